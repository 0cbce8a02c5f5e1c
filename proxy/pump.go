package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Recorder takes the ops that are finished. Op may block to slow the wire
// down rather than lose one; the op is the recorder's from then on.
type Recorder interface {
	Op(op *lock.Op)
	End(session uint64, at lock.Instant, seq uint64)
}

// readSize is what one read asks for, in bytes.
const readSize = 32 << 10

// A driver owns the two sockets of a session.
type driver struct {
	session  *Session
	conn     *conn
	client   net.Conn
	upstream net.Conn
	clock    func() lock.Instant
	recorder Recorder
	halt     context.CancelFunc // ends both directions
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
	if err == nil && closeWrite(to) == nil {
		return
	}
	if errors.Is(err, syscall.ECONNRESET) {
		abort(to)
	}
	d.halt()
}

func (d *driver) copy(ctx context.Context, dir Direction, from, to net.Conn) error {
	buf := make([]byte, 0, readSize)
	for {
		buf = room(buf)
		n, err := from.Read(buf[len(buf):cap(buf)])
		if n > 0 {
			d.session.Feed(dir, buf[len(buf):len(buf)+n], d.clock())
			buf = buf[:len(buf)+n]
			rest, err := d.forward(ctx, dir, buf, to)
			if err != nil {
				return err
			}
			buf = buf[:copy(buf[:cap(buf)], rest)]
		}
		if err == io.EOF {
			return d.flush(dir, buf, to)
		}
		if err != nil {
			return err
		}
	}
}

// room makes sure that a read finds space behind what is withheld.
func room(buf []byte) []byte {
	if cap(buf)-len(buf) >= readSize/2 {
		return buf
	}
	bigger := make([]byte, len(buf), 2*cap(buf))
	copy(bigger, buf)
	return bigger
}

// flush writes what was withheld for a frame that will never be whole.
func (d *driver) flush(dir Direction, rest []byte, to net.Conn) error {
	if len(rest) == 0 {
		return nil
	}
	_, err := to.Write(rest)
	return err
}

// forward takes the steps that the session allows and returns what it withholds.
func (d *driver) forward(ctx context.Context, dir Direction, buf []byte, to net.Conn) ([]byte, error) {
	for {
		step := d.session.Next(dir, d.clock())
		if step.Forward > 0 {
			if _, err := to.Write(buf[:step.Forward]); err != nil {
				return nil, err
			}
			d.record(dir)
		}
		buf = buf[step.Forward+step.Drop:]
		if len(step.Answer) > 0 {
			if _, err := d.client.Write(step.Answer); err != nil {
				return nil, err
			}
		}
		if step.Gate != nil {
			if err := d.wait(ctx, step.Gate); err != nil {
				return nil, err
			}
			continue
		}
		if !step.More {
			return buf, nil
		}
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

// abort makes the close that follows a reset, as the one that was received was.
func abort(c net.Conn) {
	if l, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = l.SetLinger(0)
	}
}
