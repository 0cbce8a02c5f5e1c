package proxy

import (
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A called is a call that was read and not answered.
type called struct {
	wire.Call
	a, f, r lock.Instant
	spent   time.Duration // waiting for the witness
	held    time.Duration // see lock.Op
}

// Watch has the session ask w of its calls. It comes before the first Feed.
func (s *Session) Watch(w Watcher) { s.watcher = w }

func (s *Session) callOf(c wire.Call) *called {
	for i := range s.calls {
		if s.calls[i].Call == c {
			return &s.calls[i]
		}
	}
	return nil
}

// look asks the witness about the call of the mark at hand, and returns the gate
// where that waits.
func (s *Session) look(f *flow, m wire.Mark, now lock.Instant) *Gate {
	c := s.callOf(m.Call)
	if s.watcher == nil || c == nil {
		return nil
	}
	switch {
	case m.Kind == wire.Called:
		f.look = s.watcher.Before(c.Call)
	case c.f != 0:
		f.look = s.watcher.After(c.Call)
	}
	if f.look == nil || f.look.given() || m.Start == m.End {
		return nil
	}
	f.asked = now
	return f.look.gate
}

// patience is how long the first mark may wait at its gate; 0: until it opens.
func (s *Session) patience(f *flow) time.Duration {
	if f.look == nil {
		return 0
	}
	return max(1, Patience-s.callOf(f.marks[0].Call).spent)
}

// looked ends the waiting for a look at a call, and returns the look if it was not
// given in time.
func (s *Session) looked(f *flow, c *called, now lock.Instant) *Look {
	l := f.look
	if l == nil {
		return nil
	}
	f.look = nil
	if f.asked != 0 {
		c.spent += now.Sub(f.asked)
		f.asked = 0
	}
	if l.given() {
		l.told()
		return nil
	}
	s.watcher.Missed(c.Call)
	return l
}

// forwarded notes that a call is being forwarded.
func (s *Session) forwarded(f *flow, m wire.Mark, now lock.Instant) {
	if c := s.callOf(m.Call); c != nil {
		s.looked(f, c, now)
		c.f, c.held = now, c.held+f.kept.sum
	}
}

// resolve returns the replies of the ops that a call has come to, which take
// the place of its own.
func (s *Session) resolve(f *flow, m wire.Mark, now lock.Instant) []wire.Mark {
	i := slices.IndexFunc(s.calls, func(c called) bool { return c.Call == m.Call })
	if i < 0 {
		return nil
	}
	missed := s.looked(f, &s.calls[i], now)
	c := s.calls[i]
	s.calls = slices.Delete(s.calls, i, i+1)
	var out []wire.Mark
	for _, op := range s.opsOf(c, true, now) {
		out = append(out, wire.Mark{Kind: wire.Reply, Op: op, Start: m.Start, End: m.End})
	}
	s.owe(f, c, missed, m)
	return out
}

// opsOf shows the ops of a call to the engine, late as they are.
func (s *Session) opsOf(c called, replied bool, now lock.Instant) []*lock.Op {
	ops := c.Resolve(replied)
	if c.f == 0 {
		return nil
	}
	for _, op := range ops {
		op.A, op.F, op.R, op.Held = c.a, c.f, c.r, c.held
		s.engine.Request(s.conn, op, false, now)
		s.asked = append(s.asked, op)
	}
	return ops
}

// unanswered makes ops of the calls that have got no reply, as the session ends.
func (s *Session) unanswered(now lock.Instant) {
	for _, c := range s.calls {
		if s.watcher != nil && c.f != 0 {
			if l := s.watcher.After(c.Call); l != nil && l.given() {
				l.told()
			}
		}
		s.opsOf(c, false, now)
	}
	s.calls = nil
}
