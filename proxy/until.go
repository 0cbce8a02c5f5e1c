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
	if t := e.ledger.Term(op.Term.ID); t != nil {
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
	meant := e.meant(op)
	for _, in := range e.active {
		if in.wait != nil {
			of, id := e.within(op, in.wait)
			e.outlived(in, op, of, now)
			in.wait.Replied(meant, of, id, now)
			e.early(in, op, of, now)
			e.opened(in, now)
		}
	}
	e.settled(op, now)
	e.reckon(c.actor, now)
}

// outlived notes, of a gate that waits for a lease's end, that the grant to another says that it is over: nobody gave
// the lock back, and it may have ended by the clock. That may be long before the clock is certain, where its own
// grant took long to come.
func (e *Engine) outlived(in *injection, op *lock.Op, of lock.TermID, now lock.Instant) {
	t := e.ledger.Term(in.wait.Own())
	if op.Outcome != lock.Granted || of == 0 || t == nil || of == t.ID || e.ledger.Sort(t.Lock) != lock.Exclusive {
		return
	}
	kept := t.Released == nil && (t.Release == nil || t.Release == in.op && in.phase == fault.Before)
	in.outlived = kept && now >= e.ledger.EndWithout(in.op, t).Earliest
}

// heardLate tells the gates of an op that a witness told of when its reply had gone on. The ledger makes no term of a
// late grant, so what comes of that is not heard, and the gate says so.
func (e *Engine) heardLate(op *lock.Op) {
	if !e.gated.Load() {
		return
	}
	for _, in := range e.active {
		if in.wait == nil || op.R <= in.at {
			continue
		}
		of, id := e.within(op, in.wait)
		if of == 0 && id == in.wait.Lock() && op.Outcome == lock.Granted {
			in.wait.Late()
		}
		in.wait.Replied(op, of, id, op.R)
		e.early(in, op, of, op.R)
		e.opened(in, op.R)
	}
}

// within returns which term of a wait's lock an op belongs to: the wait's own, another, or none.
func (e *Engine) within(op *lock.Op, w *fault.Wait) (lock.TermID, lock.LockID) {
	for _, id := range append([]lock.TermID{op.Term.ID}, op.Term.Within...) {
		if t := e.ledger.Term(id); t != nil && t.Lock == w.Lock() {
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

// forgetWrites tells the gates that a session has ended, and what it had not committed with it.
func (e *Engine) forgetWrites(c *conn) {
	for _, in := range e.active {
		if in.wait != nil {
			in.wait.Left(c.id)
		}
	}
}

// lapse tells the gates whose lease has ended by now.
func (e *Engine) lapse(now lock.Instant) {
	for _, in := range e.active {
		if now > e.leaseEnd(in) {
			in.wait.Lapsed(now)
			e.opened(in, now)
		}
	}
}

// leaseEnd returns when the lease that a gate still waits for has certainly ended: Never if it waits for none. A
// renewal that is held moves nothing.
func (e *Engine) leaseEnd(in *injection) lock.Instant {
	if in.wait == nil || !in.wait.Waits(fault.LeaseExpired) {
		return lock.Never
	}
	if t := e.ledger.Term(in.wait.Own()); t != nil {
		return e.ledger.EndWithout(in.op, t).Latest
	}
	return lock.Never
}

// opened has an injection end when everything has come about that its gate waited for. The order is fixed from then
// on, or from when only the clock is to be certain still: what comes about anew before that needs others to go on.
func (e *Engine) opened(in *injection, now lock.Instant) {
	if in.wait.Over() || in.outlived && in.wait.WaitsOnlyFor(fault.LeaseExpired) {
		e.settle(in, now)
	} else if in.settled {
		in.settled = false
		e.unsettle(atAnew, now, func(s *settling) bool { return s.in == in })
	}
	if !in.wait.Over() || in.opened != 0 {
		return
	}
	in.opened = now
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
