package check

import "github.com/lockfaultd/lockfaultd/lock"

// toldBefore returns the renewal, the last that its holder was answered before it asked for the
// release, that found nothing; nil if it found the lock. Whoever heeds that has left its section.
func (c *kase) toldBefore(t *lock.Term) (told *lock.Op) {
	if t.Release == nil {
		return nil
	}
	for _, op := range c.renewals()[t.ID] {
		if op.Kind == lock.Renew && op.Guarded && op.D != 0 && op.D <= t.ReleaseAt {
			told = op
		}
	}
	if told == nil || told.Outcome != lock.NotHeld {
		return nil
	}
	return told
}

// tidiedUp reports whether a holder had been told of its loss by an instant, and did no more
// than to ask for the release since then.
func (c *kase) tidiedUp(t *lock.Term, at lock.Instant) bool {
	told := c.toldBefore(t)
	return told != nil && max(told.D, c.lastStatement(t)) <= at
}

// lastStatement is when the last statement or commit of a term was sent.
func (c *kase) lastStatement(t *lock.Term) (at lock.Instant) {
	for _, op := range c.ofTerm[t.ID].acts() {
		at = max(at, op.A)
	}
	return at
}
