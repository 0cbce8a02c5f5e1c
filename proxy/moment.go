package proxy

import (
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// momentOf describes a moment to the plan. It costs no allocation.
func (e *Engine) momentOf(c *conn, phase fault.Phase, op *lock.Op, now lock.Instant) fault.Moment {
	m := fault.Moment{Phase: phase, Op: op, Actor: c.actor.Label, Freezable: c.actor.owner.Reason == "", Cannot: c.actor.owner.Reason}
	m.Key, m.Backend = e.keyOf(op) != nil, e.ownerOf(op) != nil
	t := e.ledger.Term(op.Term.ID)
	if t == nil {
		m.Lock = op.Key != ""
		return m
	}
	m.TTL, m.Lock, m.NoLease = t.Lasts(), true, t.Lasts() == 0
	m.Back = t.Released != nil && t.Released == t.Release
	m.Sole = e.sole(t, phase)
	if end := e.ledger.EndWithout(op, t).Latest; end != lock.Never {
		m.Left = max(0, end.Sub(now))
	}
	return m
}

// sole says whether others can have the lock of a term while the op of a moment is held.
func (e *Engine) sole(t *lock.Term, phase fault.Phase) fault.Sole {
	gone := t.Released != nil || !t.Open() && phase == fault.After
	if t.Lasts() > 0 || gone || t.Shared || t.Member || t.Votes != nil {
		return fault.Free
	}
	switch sort := e.ledger.Sort(t.Lock); {
	case sort != lock.Exclusive && sort != lock.Reentrant:
		return fault.Free
	case t.Span == lock.LeaseSpan:
		return fault.Kept
	}
	return fault.Bound
}
