package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Recorder takes the ops that are finished. Op may block to slow the wire
// down rather than lose one; the op is the recorder's from then on.
type Recorder interface {
	Op(op *lock.Op)
	End(session uint64, at lock.Instant, seq uint64)
}

// A driver owns the two sockets of a session.
type driver struct {
	session  *Session
	conn     *conn
	client   net.Conn
	upstream net.Conn
	clock    func() lock.Instant
	recorder Recorder
	ended    func()             // told when the session has ended; may be nil
	halt     context.CancelFunc // ends both directions

	said    atomic.Bool // the upstream has ended its stream, and the client was told
	unheard atomic.Bool // the upstream takes nothing any more
}

var errGone = errors.New("the client has gone")

// run moves bytes until both directions have ended, then closes the sockets.
func (d *driver) run(ctx context.Context) {
	ctx, d.halt = context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, d.shut)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.pump(ctx, ToClient, d.upstream, d.client)
	}()
	d.pump(ctx, ToUpstream, d.client, d.upstream)
	<-ended
	if stop() {
		d.shut()
	}
	d.halt()
}

func (d *driver) shut() {
	d.client.Close()
	d.upstream.Close()
}

// pump copies one direction until its source ends. An orderly end is passed on
// as such once everything has been written; any other takes the session down.
func (d *driver) pump(ctx context.Context, dir Direction, from, to net.Conn) {
	err := d.copy(ctx, dir, from, to)
	if err == nil {
		err = unwritten(closeWrite(to))
	}
	var sink *sinkError
	switch {
	case dir == ToUpstream && errors.As(err, &sink):
		d.deaf()
		return
	case err == nil && dir == ToUpstream:
		return
	case err == nil && !d.said.Swap(true) && !d.unheard.Load():
		return
	}
	if errors.Is(err, syscall.ECONNRESET) {
		abort(to)
	}
	d.halt()
}

// deaf takes note that the upstream hears nothing any more, and throws away what
// the client still sends: what the upstream said before is delivered by the
// other direction, which then hears of the end as well, and the client may have
// to be rid of its requests before it reads.
func (d *driver) deaf() {
	d.unheard.Store(true)
	if d.said.Load() {
		d.halt()
		return
	}
	_, _ = io.Copy(io.Discard, struct{ io.Reader }{d.client})
}

// A sinkError is one of the connection that was written to.
type sinkError struct{ err error }

func (s *sinkError) Error() string { return s.err.Error() }
func (s *sinkError) Unwrap() error { return s.err }

func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return &sinkError{err}
}

func (d *driver) copy(ctx context.Context, dir Direction, from, to net.Conn) error {
	w := newWindow(from)
	defer w.close()
	for {
		chunk, err := w.read()
		if len(chunk) > 0 {
			sent, err := d.take(ctx, dir, w, chunk, to)
			if err != nil {
				return err
			}
			w.drop(sent)
		}
		if err == nil && w.filled() {
			err = d.splice(dir, w, to)
		}
		if err == io.EOF {
			return d.flush(w.held(), to)
		}
		if err != nil {
			return err
		}
	}
}

// take feeds a chunk and returns how many of the bytes at hand are dealt with.
func (d *driver) take(ctx context.Context, dir Direction, w *window, chunk []byte, to net.Conn) (int, error) {
	step := d.session.Feed(dir, chunk, d.clock())
	if step.Forward == len(w.held()) && !step.Report && step.Gate == nil && !step.More {
		n, err := to.Write(w.held())
		return n, unwritten(err)
	}
	return d.follow(ctx, dir, step, w.held(), to)
}

// flush writes what was withheld for a frame that will never be whole.
func (d *driver) flush(rest []byte, to net.Conn) error {
	if len(rest) == 0 {
		return nil
	}
	_, err := to.Write(rest)
	return unwritten(err)
}

// follow takes the steps that the session allows and returns how many bytes
// they dealt with.
func (d *driver) follow(ctx context.Context, dir Direction, step Step, buf []byte, to net.Conn) (int, error) {
	done := 0
	for {
		if step.Forward > 0 {
			if _, err := to.Write(buf[done : done+step.Forward]); err != nil {
				return done, unwritten(err)
			}
		}
		if step.Report {
			d.record(dir)
		}
		done += step.Forward + step.Drop
		if len(step.Answer) > 0 {
			if _, err := d.client.Write(step.Answer); err != nil {
				return done, err
			}
		}
		if step.Gate != nil {
			if err := d.wait(ctx, step.Gate); err != nil {
				return done, err
			}
		} else if !step.More {
			return done, nil
		}
		step = d.session.Next(dir, d.clock())
	}
}

func (d *driver) record(dir Direction) {
	for _, op := range d.session.Sent(dir, d.clock()) {
		d.recorder.Op(op)
	}
}

// wait returns when the gate opens. Nothing is forwarded for a client that has
// gone by then.
func (d *driver) wait(ctx context.Context, g *Gate) error {
	select {
	case <-g.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.conn.peer.gone() {
		return errGone
	}
	return nil
}

func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}

// abort closes with a reset, as the one that was received was. TLS gets no
// word of its own in: that would make an end of what was cut off.
func abort(c net.Conn) {
	c = transport(c)
	if l, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = l.SetLinger(0)
		c.Close()
	}
}
