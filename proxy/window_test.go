package proxy

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

func TestQuietConnectionGivesItsLargeBufferBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := net.Pipe()
		defer from.Close()
		defer to.Close()
		w := newWindow(from)
		defer w.close()
		feed(t, to, w, 10)
		if w.lent != nil {
			t.Fatal("a small chunk borrowed a large buffer")
		}
		feed(t, to, w, 3*smallRead)
		if w.lent == nil {
			t.Fatal("chunks that fill the small buffer did not borrow a large one")
		}
		busy := time.Now()
		for time.Since(busy) < 3*calm {
			time.Sleep(calm / 3)
			feed(t, to, w, 10)
		}
		if w.lent == nil {
			t.Fatal("the large buffer went while chunks were coming")
		}
		go func() {
			time.Sleep(3 * calm)
			to.Write([]byte("x"))
		}()
		for n := 0; n == 0; {
			chunk, err := w.read()
			if err != nil {
				t.Fatal(err)
			}
			n = len(chunk)
		}
		if w.lent != nil || cap(w.buf) != smallRead {
			t.Errorf("after %v of quiet the buffer holds %d bytes, expected %d", 3*calm, cap(w.buf), smallRead)
		}
	})
}

// feed sends n bytes and reads them all.
func feed(t *testing.T, to net.Conn, w *window, n int) {
	t.Helper()
	sent := bytes.Repeat([]byte("abc"), n)[:n]
	go to.Write(sent)
	var got []byte
	for len(got) < n {
		chunk, err := w.read()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, chunk...)
		w.drop(len(w.held()))
	}
	if !bytes.Equal(got, sent) {
		t.Fatalf("read %q, expected %q", got, sent)
	}
}

func TestWithheldBytesSurviveEveryBuffer(t *testing.T) {
	var all []byte
	for i := range 3 << 20 {
		all = append(all, byte(i>>8^i))
	}
	from, to := net.Pipe()
	go func() {
		to.Write(all)
		to.Close()
	}()
	w := newWindow(from)
	defer w.close()
	var out []byte
	for {
		_, err := w.read()
		if n := len(w.held()); n > wire.MaxHeld || err != nil {
			out = append(out, w.held()[:n-n/8]...)
			w.drop(n - n/8)
		}
		if cap(w.buf) > 4*wire.MaxHeld {
			t.Fatalf("a buffer of %d bytes for %d", cap(w.buf), len(w.held()))
		}
		if err == io.EOF {
			break
		}
	}
	out = append(out, w.held()...)
	if !bytes.Equal(out, all) {
		t.Error("the bytes are not those that were sent")
	}
	w.drop(len(w.held()))
	if w.makeRoom(); cap(w.buf) > largeRead {
		t.Errorf("an empty buffer of %d bytes is kept, expected %d at most", cap(w.buf), largeRead)
	}
}

// A bodies tracker cares for the first ten bytes of each 1 MiB and for nothing
// else of what upstream sends.
type bodies struct {
	at, skipped int64
}

const body = 1 << 20

func (b *bodies) Client(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) { return marks, 1 << 40 }

func (b *bodies) Upstream(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	b.at += int64(len(chunk))
	return marks, b.at
}

func (b *bodies) Rest(fromClient bool) int64 {
	if in := b.at % body; in >= 10 && !fromClient {
		return body - in
	}
	return 0
}

func (b *bodies) Skip(_ bool, n int64) { b.at += n; b.skipped += n }

func TestKernelMovesTheRestOfLargeBodies(t *testing.T) {
	client, near := connected(t)
	far, upstream := connected(t)
	e := engine(t)
	b := &bodies{}
	s := NewSession(e, e.Open(1, Peer{Owner: &Owner{Address: "here"}}), b, func(string) {})
	d := &driver{session: s, conn: s.conn, client: near, upstream: far, clock: func() lock.Instant { return 1 }, recorder: nobody{}}
	ended := make(chan struct{})
	go func() { defer close(ended); d.run(t.Context()) }()
	sent := bytes.Repeat([]byte("0123456789abcdef"), 8*body/16)
	go func() {
		upstream.Write(sent)
		upstream.CloseWrite()
	}()
	got, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes came, %d were sent, error %v", len(got), len(sent), err)
	}
	client.Close()
	<-ended
	if b.at != int64(len(sent)) || b.skipped < b.at/2 {
		t.Errorf("%d of %d bytes were moved by the kernel, expected most", b.skipped, b.at)
	}
}
