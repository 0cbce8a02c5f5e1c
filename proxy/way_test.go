package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// wordless is a connection that cannot be told of an end.
type wordless struct{ net.Conn }

func (wordless) CloseWrite() error { return errors.New("no word") }

// reader is a tracker that finds nothing.
type reader struct{ at [2]int64 }

func (r *reader) Client(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	r.at[0] += int64(len(chunk))
	return marks, r.at[0]
}

func (r *reader) Upstream(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	r.at[1] += int64(len(chunk))
	return marks, r.at[1]
}

// A client that cannot be told of the upstream's end, in its TLS for instance,
// hears of it by that of its connection.
func TestEndThatCannotBeSaid(t *testing.T) {
	e := engine(t)
	client, accepted := connected(t)
	dialled, server := connected(t)
	c := e.Open(1, owner("a"))
	d := &driver{session: NewSession(e, c, &reader{}, nil), conn: c, client: wordless{accepted}, upstream: dialled,
		clock: func() lock.Instant { return 1 }, recorder: nobody{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.run(t.Context())
	}()
	if _, err := server.Write([]byte("+OK\r\n")); err != nil {
		t.Fatal(err)
	}
	server.Close()
	_ = client.SetReadDeadline(time.Now().Add(time.Minute))
	if b, err := io.ReadAll(client); string(b) != "+OK\r\n" || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the client reads %q, %v", b, err)
	}
	<-ended
}
