package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"time"

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
}

var errGone = errors.New("the client has gone")

// run moves bytes until both directions have ended, then closes the sockets.
func (d *driver) run(ctx context.Context) {
	ctx, d.halt = context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, d.shut)
	requests, replies := ways(d.client, d.upstream)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.pump(ctx, replies)
	}()
	d.pump(ctx, requests)
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

// copy moves the bytes of one direction until its source ends, and returns nil
// for an orderly end.
func (d *driver) copy(ctx context.Context, y *way) error {
	w := newWindow(y.from)
	defer w.close()
	for {
		chunk, err := w.read()
		if len(chunk) > 0 {
			sent, err := d.take(ctx, y, w, chunk)
			if err != nil {
				return err
			}
			w.drop(sent)
		}
		if err == nil && w.filled() {
			err = d.splice(y, w)
		}
		if err != nil {
			return d.finish(ctx, y, w.held(), err)
		}
	}
}

// take feeds a chunk and returns how many of the bytes at hand are dealt with.
func (d *driver) take(ctx context.Context, y *way, w *window, chunk []byte) (int, error) {
	step := d.session.Feed(y.dir, chunk, d.clock())
	if step.Forward == len(w.held()) && !step.Report && step.Gate == nil && !step.More {
		return step.Forward, y.write(w.held())
	}
	return d.follow(ctx, y, step, w.held())
}

// finish waits as long as the connection is stalled, since an end is held like
// bytes are, and writes what was withheld for a frame that will never be whole.
// end is how the stream ended; it returns that, and nil for an orderly end.
func (d *driver) finish(ctx context.Context, y *way, rest []byte, end error) error {
	done, err := d.follow(ctx, y, d.session.Next(y.dir, d.clock()), rest)
	if err == nil && done < len(rest) {
		err = y.write(rest[done:])
	}
	if end != io.EOF {
		return end
	}
	return err
}

// follow takes the steps that the session allows and returns how many bytes
// they dealt with.
func (d *driver) follow(ctx context.Context, y *way, step Step, buf []byte) (int, error) {
	done := 0
	for {
		if step.Gate != nil && step.Gate.cut != nil {
			return done, d.sever(ctx, y, step, buf[done:])
		}
		if step.Forward > 0 {
			if err := y.write(buf[done : done+step.Forward]); err != nil {
				return done, err
			}
		}
		if step.Report {
			d.record(y.dir)
		}
		done += step.Forward + step.Drop
		if len(step.Answer) > 0 {
			// Either direction may have one, so this is no call of the way's own.
			if _, err := d.client.Write(step.Answer); err != nil {
				y.toClient().broke(err)
			}
		}
		if step.Gate != nil {
			if y.dir == ToUpstream {
				d.keep(buf[done:], step.Held)
			}
			if err := d.wait(ctx, y, step); err != nil {
				return done, err
			}
		} else if !step.More {
			return done, nil
		}
		step = d.session.Next(y.dir, d.clock())
	}
}

// mostKept is how large a held request may be to be known again.
const mostKept = 64 << 10

// keep has the request that waits be known again, should the client send it once more.
func (d *driver) keep(buf []byte, held int) {
	d.conn.held.Store(nil)
	if held <= 0 || held > mostKept || held > len(buf) {
		return
	}
	request := bytes.Clone(buf[:held])
	d.conn.held.Store(&request)
}

func (d *driver) record(dir Direction) {
	for _, op := range d.session.Sent(dir, d.clock()) {
		d.recorder.Op(op)
	}
}

// wait returns when the gate opens, or the patience with it is at its end. Nothing
// is forwarded from a client that has gone by then, unless it waited only for a
// witness.
func (d *driver) wait(ctx context.Context, y *way, step Step) error {
	var enough <-chan time.Time
	if step.Patience > 0 {
		t := time.NewTimer(step.Patience)
		defer t.Stop()
		enough = t.C
	}
	select {
	case <-step.Gate.Done():
	case <-enough:
	case <-ctx.Done():
		return ctx.Err()
	}
	if y.dir == ToUpstream && step.Patience == 0 && d.conn.peer.gone() {
		return errGone
	}
	return nil
}
