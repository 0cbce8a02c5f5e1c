package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// dropped begins a drop-reply, and returns how it ended after what is done to it.
func dropped(t *testing.T, then func(e *Engine, c *conn, in *injection)) []history.Injection {
	t.Helper()
	e := engine(t, "drop-reply", "acquire")
	c := e.Open(1, owner("a"))
	op := grant(1, "job")
	e.Request(c, op, true, 1)
	g := e.Reply(c, op, true, 2)
	if g == nil || g.cut == nil || g.Opened() {
		t.Fatalf("gate %+v, want one that is cut", g)
	}
	if e.holding.Load() != 1 {
		t.Errorf("%d are held", e.holding.Load())
	}
	if next, due := e.NextDeadline(3); due {
		t.Errorf("a reset has a deadline: %d", next)
	}
	then(e, c, g.cut)
	_, ended := e.Take()
	if !e.Idle() {
		t.Error("the injection is never over")
	}
	return ended
}

func TestCutIsToldOnce(t *testing.T) {
	ended := dropped(t, func(e *Engine, _ *conn, in *injection) {
		e.Cut(in, false, nil, 5)
		e.Cut(in, false, nil, 6)
	})
	if len(ended) != 1 || ended[0].Outcome != "landed" || ended[0].Confirmed != 5 || ended[0].Ended != 5 {
		t.Errorf("%+v", ended)
	}
}

func TestCutThatNeverCame(t *testing.T) {
	ended := dropped(t, func(e *Engine, c *conn, _ *injection) { e.Closed(c, 7) })
	if len(ended) != 1 || ended[0].Outcome != "cut short" || ended[0].Ended != lock.Instant(7) || ended[0].Reason == "" {
		t.Errorf("%+v", ended)
	}
}

// A waited is a connection that is about to be waited for, at which something else happens.
type waited struct {
	net.Conn
	then  func()
	reset bool
}

func (w *waited) SyscallConn() (syscall.RawConn, error) {
	w.then()
	return nil, errors.ErrUnsupported
}

func (w *waited) SetLinger(int) error {
	w.reset = true
	return nil
}

// A session that ends while the last that was written is on its way ends by itself: nobody is reset, or told so.
func TestCutOfASessionThatEnds(t *testing.T) {
	for _, ends := range []bool{false, true} {
		ended := dropped(t, func(e *Engine, c *conn, in *injection) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			near, far := net.Pipe()
			defer far.Close()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			client := &waited{Conn: near, then: func() {
				if ends {
					cancel()
				}
			}}
			upstream := &waited{Conn: near, then: func() {}}
			d := &driver{session: &Session{engine: e}, conn: c, client: client, upstream: upstream, clock: func() lock.Instant { return 5 }, halt: cancel}
			_, replies := ways(client, upstream)
			if err := d.sever(ctx, replies, Step{Gate: in.gate}, nil); !errors.Is(err, errCut) {
				t.Error(err)
			}
			if client.reset == ends || upstream.reset == ends {
				t.Errorf("ends %t: reset %t, %t", ends, client.reset, upstream.reset)
			}
			e.Closed(c, 7)
		})
		if want := map[bool]string{false: "landed", true: "cut short"}[ends]; len(ended) != 1 || ended[0].Outcome != want {
			t.Errorf("ends %t: %+v", ends, ended)
		}
	}
}

// The end of the run takes no reset back: nothing behind it is read any more. The runner waits until it is told of.
func TestCutAtTheEndOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []history.Injection
		dropped(t, func(e *Engine, _ *conn, in *injection) {
			over, cancel := context.WithCancel(t.Context())
			cancel()
			r := &Runner{Engine: e, Clock: func() lock.Instant { return 7 }, Injected: func(in history.Injection) { ended = append(ended, in) }}
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.Run(over)
			}()
			synctest.Wait()
			if len(ended) != 0 || isClosed(done) {
				t.Error("the record is closed before the reset")
			}
			e.Cut(in, false, nil, 8)
			<-done
		})
		if len(ended) != 1 || ended[0].Outcome != "landed" || ended[0].Ended != 8 {
			t.Errorf("%+v", ended)
		}
	})
}

// A scripted tracker gives marks as they are set.
type scripted struct {
	requests, replies []wire.Mark
	heard             bool
}

func (s *scripted) Client(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	return append(marks, s.requests...), int64(len(chunk))
}

func (s *scripted) Upstream(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	s.heard = true
	return append(marks, s.replies...), int64(len(chunk))
}

// What the server says while the connections are being reset is lost as what it says later, and what stands
// behind the request is not sent. What belongs to the same message, and what nobody looks at, goes on with it.
func TestLastStepOfASession(t *testing.T) {
	e := engine(t, "reset-after", "acquire")
	c := e.Open(1, owner("a"))
	first, beside, next := grant(1, "job"), grant(1, "beside"), grant(1, "next")
	for _, op := range []*lock.Op{first, beside, next} {
		op.Outcome, op.F, op.R = lock.Pending, 0, 0
	}
	tr := &scripted{requests: []wire.Mark{{Kind: wire.Request, Op: first, Start: 2, End: 8}, {Kind: wire.Request, Op: beside, Start: 2, End: 8}, {Kind: wire.Request, Op: next, Start: 10, End: 15}}}
	s := NewSession(e, c, tr, nil)
	step := s.Feed(ToUpstream, make([]byte, 20), 5)
	if step.Gate == nil || step.Gate.cut == nil || step.Forward != 10 {
		t.Fatalf("%+v, want the first ten bytes and the end", step)
	}
	if step := s.Feed(ToClient, make([]byte, 4), 6); step.Gate == nil || step.Forward != 0 || tr.heard {
		t.Errorf("the reply goes on, or was read: %+v", step)
	}
	if step := s.Next(ToUpstream, 7); step.Gate == nil || step.Forward != 0 {
		t.Errorf("the rest goes on: %+v", step)
	}
	var told []*lock.Op
	for _, op := range s.Close(8) {
		told = append(told, op)
		if op.Outcome != lock.Unknown || op.F != 5 || op.R != 0 || op.Seq == 0 {
			t.Errorf("%+v", op)
		}
	}
	if len(told) != 2 || told[0] != first || told[1] != beside {
		t.Errorf("recorded %+v", told)
	}
}
