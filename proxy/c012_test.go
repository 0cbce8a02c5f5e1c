package proxy

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// inTurn is a tracker that gives the second of three replies itself, in the place
// of a line "?" of the server's.
type inTurn struct{ op *lock.Op }

func (a *inTurn) Client(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	return append(marks, wire.Mark{Kind: wire.Request, Op: a.op, Start: 0, End: int64(len(chunk))}), int64(len(chunk))
}

func (a *inTurn) Upstream(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	at := int64(bytes.IndexByte(chunk, '?'))
	a.op.Outcome = lock.Granted
	return append(marks,
		wire.Mark{Kind: wire.Reply, Op: a.op, Start: 0, End: at},
		wire.Mark{Kind: wire.Answer, Start: at, End: at + 1, Bytes: []byte("-our own\r\n")},
	), int64(len(chunk))
}

// A reply that the proxy makes is given in its turn: behind the replies before
// it, even while one of those is held, and before those after it.
func TestC012MadeRepliesInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, "stall-after", "SETNX=1s")
		start := time.Now()
		clock := func() lock.Instant { return lock.Instant(time.Since(start)) + 1 }
		var n testbed.Network
		pair := func(name string) (near, far *testbed.Conn) {
			ln, err := n.Listen(name)
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			out, err := n.Dial(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			in, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return in.(*testbed.Conn), out.(*testbed.Conn)
		}
		accepted, client := pair("proxy")
		server, dialled := pair("server")
		c := e.Open(1, owner("a"))
		op := grant(1, "job")
		op.Outcome = lock.Pending
		d := &driver{session: NewSession(e, c, &inTurn{op}, nil), conn: c, client: accepted, upstream: dialled, clock: clock, recorder: nobody{}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.run(t.Context())
		}()
		write := func(to *testbed.Conn, text string) {
			if _, err := to.Write([]byte(text)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		write(client, "SET")
		write(server, "+first\r\n?+third\r\n")
		time.Sleep(time.Second)
		e.Advance(clock())
		orders, _ := e.Take()
		e.Released(orders[0].Release, false, clock())
		_ = server.CloseWrite()
		_ = client.CloseWrite()
		<-ended
		buf := make([]byte, 100)
		got := ""
		for {
			n, err := client.Read(buf)
			got += string(buf[:n])
			if err != nil {
				break
			}
		}
		if want := "+first\r\n-our own\r\n+third\r\n"; got != want {
			t.Errorf("the client reads %q, want %q", got, want)
		}
	})
}
