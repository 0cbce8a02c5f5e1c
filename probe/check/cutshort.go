package check

import (
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// cutShort returns when a term's lease may have ended at the earliest since a renewal
// set a shorter one that need not have been the term's own; Never if none did.
func (c *kase) cutShort(t *lock.Term) lock.Instant {
	earliest := lock.Never
	if t.Votes != nil || t.Span != lock.LeaseSpan {
		return earliest
	}
	if end, known := c.cut[t.ID]; known {
		return end
	}
	for _, op := range c.renewalsOf(t.Lock).shorter {
		if end, met := endIfMet(t, op); met && end < earliest && c.shortens(t, op, end) && !c.setSince(t, op, end) {
			earliest = end
		}
	}
	c.cut[t.ID] = earliest
	return earliest
}

// endIfMet returns the earliest end of a term's lease by a renewal that may have met
// its key whoever sent it, and whether there is one.
func endIfMet(t *lock.Term, op *lock.Op) (lock.Instant, bool) {
	if op.TTL <= 0 || op.F == 0 || !mayHave(op) || answered(op) && op.R <= t.Grant.F ||
		op.Compares() && (op.Term.ID == t.ID || !op.Token.Same(t.Token)) {
		return 0, false
	}
	own := *op
	own.F = max(op.F, t.Grant.F)
	return lock.Lease(&own, op.TTL).Earliest, true
}

// shortens reports whether the lease would have lasted for longer without it.
func (c *kase) shortens(t *lock.Term, op *lock.Op, end lock.Instant) bool {
	longer := func(x *lock.Op) bool {
		return x != op && (!answered(op) || x.F < op.R) && lock.Lease(x, x.TTL).Earliest > end
	}
	return longer(t.Grant) || slices.ContainsFunc(c.renewalsOf(t.Lock).all, longer)
}

// setSince reports whether the term certainly set its lease anew after it.
func (c *kase) setSince(t *lock.Term, op *lock.Op, end lock.Instant) bool {
	return answered(op) && slices.ContainsFunc(c.settings(t), func(x *lock.Op) bool {
		return x.Outcome == lock.Done && x.F >= op.R && (x.Compares() || end >= x.R)
	})
}

// renewals are those of one lock.
type renewals struct {
	all     []*lock.Op     // by request, and the plain SETs
	shorter []*lock.Op     // that set a shorter lifetime than others, or than it was taken for
	unknown []*lock.Op     // scripts that were not seen, and named no token of the lock
	over    []lock.Instant // by when each of all, and those before it, were answered
	known   bool           // shorter and over are
	longest time.Duration
}

// renewalsOf sorts the renewals of a lock. Where all set the same lifetime none is shorter.
func (c *kase) renewalsOf(id lock.LockID) *renewals {
	if c.renewing == nil {
		c.renewing = lockRenewals{}
		for _, op := range c.ops {
			if op.Kind == lock.Renew || op.Kind == lock.Store || op.Kind == lock.Acquire {
				c.renewing.add(c.ledger.LockOf(op), op)
			}
		}
	}
	if r := c.renewing[id]; r != nil {
		return r.sorted()
	}
	return &renewals{}
}

type lockRenewals map[lock.LockID]*renewals

func (m lockRenewals) add(id lock.LockID, op *lock.Op) {
	r := m[id]
	if r == nil {
		r = &renewals{}
		m[id] = r
	}
	if r.longest = max(r.longest, op.TTL); op.Kind != lock.Acquire {
		r.all = append(r.all, op)
	}
	if op.Guessed && op.Term.ID == 0 && mayHave(op) && op.F != 0 {
		r.unknown = append(r.unknown, op)
	}
}

func (r *renewals) sorted() *renewals {
	if !r.known {
		r.known = true
		for _, op := range r.all {
			if op.Kind == lock.Renew && op.TTL < r.longest {
				r.shorter = append(r.shorter, op)
			}
			end := op.R
			if !answered(op) {
				end = lock.Never
			}
			if n := len(r.over); n > 0 {
				end = max(end, r.over[n-1])
			}
			r.over = append(r.over, end)
		}
	}
	return r
}
