package check

import "github.com/lockfaultd/lockfaultd/lock"

// toldBefore reports whether a holder had been told that it held nothing when it asked for the
// release: whoever heeds that has left its section.
func toldBefore(t *lock.Term) bool {
	return t.Release != nil && t.Gone != nil && t.Gone.D != 0 && t.Gone.D <= t.ReleaseAt
}

// lastStatement is when the last statement or commit of a term was sent.
func (c *kase) lastStatement(t *lock.Term) (at lock.Instant) {
	for _, op := range c.ofTerm[t.ID].acts() {
		at = max(at, op.A)
	}
	return at
}
