package check

import "github.com/lockfaultd/lockfaultd/lock"

// awaitTakers lets terms wait whose key was gone, or whose grant found nothing, while
// nobody is known to have taken the key that was there: whoever did may have an answer
// that is held, and is heard of only then. It is waited for, for a while.
func (c *kase) awaitTakers() {
	if c.answersBy == lock.Never {
		return
	}
	wait := func(t *lock.Term, at lock.Instant) {
		if at >= c.answersBy {
			c.held[t.ID] = true
		}
	}
	for _, t := range c.all {
		if op := c.unexplained(t); op != nil {
			wait(t, op.R)
		}
	}
	for _, id := range c.lockIDs() {
		c.eachDoubleGrant(id, func(_, b *lock.Term) {
			if b.Grant.Kind == lock.Acquire {
				wait(b, b.Grant.R)
			}
		})
	}
}

// unexplained returns what found a term's key gone while neither its clock nor anybody
// who is known accounts for that; nil if nothing did.
func (c *kase) unexplained(t *lock.Term) *lock.Op {
	if t.Span != lock.LeaseSpan {
		return nil
	}
	found := t.Lost
	if op := c.actedLate(t); op != nil {
		found = c.goneBy(t, op)
	} else if found != nil && c.endedOnTheWay(t, found) {
		return nil
	}
	if found == nil || c.takenAway(t, found) {
		return nil
	}
	return found
}

// goneBy returns what shows that a term's key was gone when an op of it came, where that
// is not its clock.
func (c *kase) goneBy(t *lock.Term, op *lock.Op) *lock.Op {
	if t.Gone == nil || op.F > t.Clock().Latest || t.LeaseEnd.Latest != t.Gone.R {
		return nil
	}
	return t.Gone
}
