package proxy

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A settling is what follows when a gate has opened: until the held op has its answer, the order at
// the servers is fixed and not raced for, so what others begin waits. What they have begun goes on,
// and nobody waits past his own lease.
type settling struct {
	in    *injection
	gate  *Gate
	until lock.Instant
}

// listen gives an injection that has a gate what it waits for; e.mu is held.
func (e *Engine) listen(in *injection) {
	if in.Until == "" {
		return
	}
	id, own := e.subject(in.op)
	in.wait = fault.NewWait(in.Until, id, own, in.op)
	e.gated.Store(true)
	e.signalled(in)
	e.crowd(in)
}

// subject is the lock that an op is about, and its own term of it: 0 if it has none.
func (e *Engine) subject(op *lock.Op) (lock.LockID, lock.TermID) {
	if t := e.ledger.Term(op.Term.ID); t != nil && op.Term.ID != 0 {
		return t.Lock, t.ID
	}
	if op.Key != "" {
		return e.ledger.LockOf(op), 0
	}
	return lock.LockID{}, 0
}

// heard tells every gate of an op that was answered.
func (e *Engine) heard(op *lock.Op, now lock.Instant) {
	if !e.gated.Load() {
		return
	}
	for _, in := range e.active {
		if in.wait != nil && !in.wait.Over() {
			of, id := e.within(op, in.wait)
			in.wait.Replied(op, of, id, now)
			e.early(in, op, of, now)
			e.opened(in, now)
		}
	}
	e.settled(op)
}

// within returns which term of a wait's lock an op belongs to: the wait's own, another, or none.
func (e *Engine) within(op *lock.Op, w *fault.Wait) (lock.TermID, lock.LockID) {
	if op.Term.Of(w.Own()) {
		return w.Own(), w.Lock()
	}
	for _, id := range append([]lock.TermID{op.Term.ID}, op.Term.Within...) {
		if t := e.ledger.Term(id); id != 0 && t != nil && t.Lock == w.Lock() {
			return id, t.Lock
		}
	}
	if op.Key != "" {
		return 0, e.ledger.LockOf(op)
	}
	return 0, lock.LockID{}
}

// Settled tells that the implicit transaction of a statement was found to be durable.
func (e *Engine) Settled(op *lock.Op, now lock.Instant) {
	if !e.gated.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, in := range e.active {
		if in.wait != nil {
			in.wait.Settled(op, now)
			e.opened(in, now)
		}
	}
}

// lapse tells the gates whose lease has ended by now.
func (e *Engine) lapse(now lock.Instant) {
	for _, in := range e.active {
		if t := e.leaseOf(in); t != nil && t.Dead(now) {
			in.wait.Lapsed(now)
			e.opened(in, now)
		}
	}
}

// leaseOf returns the term whose lease a gate still waits for the end of, or nil.
func (e *Engine) leaseOf(in *injection) *lock.Term {
	if in.wait == nil || !in.wait.Waits(fault.LeaseExpired) || in.wait.Hopeless() {
		return nil
	}
	return e.ledger.Term(in.wait.Own())
}

// opened has an injection end when everything has come about that its gate waited for.
func (e *Engine) opened(in *injection, now lock.Instant) {
	if !in.wait.Over() || in.opened != 0 {
		return
	}
	in.opened = now
	e.settlings = append(e.settlings, &settling{in: in, gate: newGate(), until: e.bound(in, now)})
	if in.confirmed != 0 {
		in.ends = now
	}
	e.kick()
}

// bound is how long the others may wait: a fifth of each holder's lease has to be left.
func (e *Engine) bound(in *injection, now lock.Instant) lock.Instant {
	until := now.Add(in.For)
	for _, t := range e.ledger.Terms() {
		if t.Open() && t.Lock == in.wait.Lock() && t.ID != in.wait.Own() && t.LeaseEnd.Latest != lock.Never {
			until = min(until, t.LeaseEnd.Earliest.Add(-t.Lasts()/5))
		}
	}
	return until
}

// orderly returns the gate of a request that must not overtake a held op, or nil.
func (e *Engine) orderly(c *conn, op *lock.Op, now lock.Instant) *Gate {
	for _, s := range e.settlings {
		if now < s.until && c != s.in.conn && !(s.in.Act == fault.Freeze && c.actor == s.in.actor) && e.begins(op, s.in.wait) {
			return s.gate
		}
	}
	return nil
}

// begins reports whether an op begins something: it asks for the lock, or is the first statement of a
// session that is in no transaction. Everything else goes on, or row locks would wait for each other.
func (e *Engine) begins(op *lock.Op, w *fault.Wait) bool {
	switch op.Kind {
	case lock.Acquire:
		return e.ledger.LockOf(op) == w.Lock()
	case lock.Begin:
		return true
	case lock.Read, lock.Write:
		return op.Implicit
	}
	return false
}

// settled ends what the answer of a held op ends.
func (e *Engine) settled(op *lock.Op) {
	e.unsettle(func(s *settling) bool { return s.in.op == op && s.in.phase == fault.Before })
}

// unsettle lets go those who wait for certain injections.
func (e *Engine) unsettle(which func(*settling) bool) {
	e.settlings = slices.DeleteFunc(e.settlings, func(s *settling) bool {
		if !which(s) {
			return false
		}
		s.gate.Open()
		return true
	})
}

// account is what the record has of a gate.
func (in *injection) account(h *history.Injection) {
	if in.wait == nil {
		return
	}
	h.Opened = in.opened
	h.Until = string(in.Until)
	for _, m := range in.wait.Met() {
		h.Met = append(h.Met, history.Met{Condition: string(m.Condition), At: m.At, Op: m.Op})
	}
}

// closed is the outcome of a gate that did not open in its time.
const closed = "never opened"
