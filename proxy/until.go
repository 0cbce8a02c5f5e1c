package proxy

import (
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

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

// heard tells every gate of an op that was answered on a connection.
func (e *Engine) heard(c *conn, op *lock.Op, now lock.Instant) {
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
	e.settled(op, now)
	e.reckon(c.actor, now)
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
	e.settle(in, now)
	if in.confirmed != 0 {
		in.ends = now
	}
	e.kick()
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
