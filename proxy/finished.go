package proxy

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// forget takes an op off the list, where it mostly is the first, and reports
// whether it was there.
func (s *Session) forget(op *lock.Op) bool {
	if len(s.asked) > 0 && s.asked[0] == op {
		s.asked = s.asked[1:]
		return true
	}
	i := slices.Index(s.asked, op)
	if i < 0 {
		return false
	}
	s.asked = slices.Delete(s.asked, i, i+1)
	return true
}

// Sent reports that everything which Next released in a direction has been
// written, at the instant now. It returns the ops that are finished, which then
// belong to the caller.
func (s *Session) Sent(dir Direction, now lock.Instant) []*lock.Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.flows[dir]
	if len(f.landing) == 0 {
		return s.take()
	}
	gone := s.conn.peer.gone()
	keep := f.landing[:0]
	for _, l := range f.landing {
		if l.end > f.base {
			keep = append(keep, l)
			continue
		}
		if !gone && s.conn.void.Load() != l.op {
			l.op.D = now
		}
		s.engine.Delivered(l.op, now)
		s.deliver(l)
	}
	f.landing = keep
	if len(s.owes) > 0 {
		s.hear(false)
	}
	return s.take()
}

func (s *Session) deliver(l landing) {
	if unsettled(l.op) {
		s.asked = append(s.asked, l.op)
		return
	}
	s.finish(l)
}

// finish has an op go into the record, unless it is held back.
func (s *Session) finish(l landing) {
	if !s.holds(l.op) && !l.place {
		s.done = append(s.done, l.op)
	}
}

// unsettled reports whether an op still waits for the end of its implicit
// transaction, which says whether it took effect.
func unsettled(op *lock.Op) bool {
	return op.Kind == lock.Write && op.Implicit && op.Z == 0
}

// NotSent is the Err of an op whose request never left the proxy, because its
// client had gone before it might.
const NotSent = "not-sent"

// Close ends the session at the instant now and returns the ops that are not
// recorded yet: those whose reply was read and not delivered, and those that
// never got one.
func (s *Session) Close(now lock.Instant) []*lock.Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range s.flows[ToUpstream].stopped() {
		s.forget(op)
		op.Outcome, op.Err, op.F = lock.Failed, NotSent, 0
		s.done = append(s.done, op)
	}
	s.hearOut(now)
	s.unanswered(now)
	if s.watcher != nil {
		s.watcher.Closed()
	}
	for _, l := range s.flows[ToClient].landing {
		s.finish(l)
	}
	s.hear(false)
	for len(s.owes) > 0 {
		s.settleFor(s.owes[0])
	}
	for _, op := range s.asked {
		if op.Outcome == lock.Pending || (unsettled(op) && op.Outcome == lock.Done) {
			op.Outcome = lock.Unknown
		}
		s.done = append(s.done, op)
	}
	s.asked, s.flows[ToClient].landing = nil, nil
	return s.take()
}

// hearOut takes in the replies that waited behind a gate when the session
// ended: the server did what they say, even if nobody will hear of it.
func (s *Session) hearOut(now lock.Instant) {
	f := &s.flows[ToClient]
	for i := 0; i < len(f.marks); i++ {
		m := f.marks[i]
		decided := i == 0 && f.decided
		f.decided = f.decided && m.Kind != wire.Answered
		if m.Kind == wire.Answered {
			f.marks = slices.Replace(f.marks, i, i+1, s.resolve(f, m, now)...)
			i--
			continue
		}
		if m.Kind == wire.Reply && m.Op.Seq != 0 && m.Op.F != 0 && !decided {
			s.engine.Reply(s.conn, m.Op, false, now)
		}
		s.pass(f, m, now)
	}
	f.marks = nil
}

func (s *Session) take() []*lock.Op {
	out := s.done
	s.done = nil
	return out
}
