package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// lastWords is how long a connection that is to be closed may take to hear what
// was written to it.
const lastWords = 5 * time.Second

// A way is one direction of a driver, and how it ends. Each end of a connection
// is passed on as it came: an orderly one once everything before it has been
// written, a reset as a reset, and neither before what was said until then has
// been heard, which a reset would take back.
type way struct {
	dir      Direction
	from, to net.Conn
	out      *call         // to to
	back     *way          // the other direction
	over     chan struct{} // closed when from has ended in order, and to was told
	deaf     chan struct{} // closed when to takes nothing any more
	reset    bool          // since it was reset; set before deaf is closed
	once     sync.Once     // closes deaf
}

func ways(client, upstream net.Conn) (requests, replies *way) {
	requests = &way{dir: ToUpstream, from: client, to: upstream, out: writing(upstream), over: make(chan struct{}), deaf: make(chan struct{})}
	replies = &way{dir: ToClient, from: upstream, to: client, out: writing(client), over: make(chan struct{}), deaf: make(chan struct{})}
	requests.back, replies.back = replies, requests
	return requests, replies
}

// toClient returns the way to the client: this one or the other.
func (y *way) toClient() *way {
	if y.dir == ToClient {
		return y
	}
	return y.back
}

// A sinkError is one of the connection that was written to.
type sinkError struct{ err error }

func (s *sinkError) Error() string { return s.err.Error() }
func (s *sinkError) Unwrap() error { return s.err }

// write passes bytes on. What is said to a client that takes nothing any more is
// dropped, and read all the same: its own last words may have yet to be sent, and
// an upstream whose replies nobody reads would not take them.
func (y *way) write(b []byte) error {
	if y.dir == ToClient && isClosed(y.deaf) {
		return nil
	}
	if err := y.out.write(b); err != nil {
		y.broke(err)
		if y.dir == ToUpstream {
			return &sinkError{err}
		}
	}
	return nil
}

// broke takes note that to takes nothing any more.
func (y *way) broke(err error) {
	y.once.Do(func() {
		y.reset = errors.Is(err, syscall.ECONNRESET)
		close(y.deaf)
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// pump copies one direction until its source ends, and sees to it that the sink
// hears of that.
func (d *driver) pump(ctx context.Context, y *way) {
	err := d.copy(ctx, y)
	if sink := (*sinkError)(nil); errors.As(err, &sink) {
		// A client may have to be rid of its requests before it reads what the
		// upstream said before it ended.
		_, err = io.Copy(io.Discard, struct{ io.Reader }{y.from})
	}
	reset := err == nil && y.wasReset(ctx) || failed(err)
	if err == nil && !reset {
		err = y.sayEnd()
	}
	if err != nil || reset {
		d.leave(ctx, y.to, reset)
		return
	}
	select {
	case <-y.back.over:
	case <-ctx.Done():
	case <-y.back.deaf:
		d.leave(ctx, y.to, true)
	}
}

// failed reports whether an error is one of the connection itself, such as a
// reset, rather than of what it carries, or ours.
func failed(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno)
}

// sayEnd passes the orderly end of the source on. A sink that cannot be told
// because its connection has failed tells the other direction so.
func (y *way) sayEnd() error {
	if !isClosed(y.deaf) {
		if err := closeWrite(y.to); err != nil && !failed(err) {
			return err
		} else if err != nil {
			y.broke(err)
		}
	}
	close(y.over)
	return nil
}

// wasReset reports whether the source has not ended in order, although it reads
// like that: the one that wrote to it was told of the reset, which is told once.
func (y *way) wasReset(ctx context.Context) bool {
	if told(y.from) && !isClosed(y.back.over) {
		t := time.NewTimer(time.Second)
		defer t.Stop()
		select {
		case <-y.back.over:
		case <-y.back.deaf:
		case <-ctx.Done():
		case <-t.C:
		}
	}
	return isClosed(y.back.deaf) && y.back.reset
}

// leave ends the session once to has heard what was written to it, or had the
// time for it. It hears of a reset by one. TLS gets no word of its own in: that
// would make an end of what was cut off.
func (d *driver) leave(ctx context.Context, to net.Conn, reset bool) {
	settle(ctx, to)
	if reset {
		resets(to)
	}
	transport(to).Close()
	d.halt()
}

// resets makes the close of a connection a reset.
func resets(c net.Conn) {
	if l, ok := transport(c).(interface{ SetLinger(sec int) error }); ok {
		_ = l.SetLinger(0)
	}
}

// settle waits until the other end of a connection has what was written to it.
func settle(ctx context.Context, c net.Conn) {
	sc, ok := transport(c).(syscall.Conn)
	if !ok {
		return
	}
	over := time.NewTimer(lastWords)
	defer over.Stop()
	for pause := time.Millisecond; unheard(sc); pause = min(2*pause, 50*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-over.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}
