package check

import (
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// atOnce is how soon after a grant its lifetime must come to have come with it.
const atOnce = 100 * time.Millisecond

// noExpiry finds LF304, one verdict for each lock and level: grants without a
// lifetime.
func (c *kase) noExpiry() {
	for _, id := range c.lockIDs() {
		if c.isMarker(id) || c.ledger.Queue(id) {
			continue
		}
		for _, t := range c.terms[id] {
			g := t.Grant
			if c.due(t) && t.Span == lock.LeaseSpan && g.TTL == 0 && g.Until == 0 {
				c.endless(t)
			}
		}
	}
}

func (c *kase) endless(t *lock.Term) {
	set, told := c.firstLifetime(t)
	level := Proven
	if set != nil && (!told || c.atOnce(t, set)) {
		level = Possible
	}
	m := many{id: t.Lock, code: "LF304", more: "This is so of %d grants."}
	c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
		p := let("A be %s, granted by %s without a lifetime.", holder(t), ms(t.Grant.R))
		p.say("Then the key stays until it is removed, whatever becomes of A.")
		switch {
		case set == nil:
			p.say("However none was set later, either: if A dies in its section, the lock is held for ever.")
		case !told:
			p.say("However %s, which would have set one, was never answered.", named(set))
		case level == Proven:
			p.say("However it was given one by %s only, forwarded %s after the grant had been answered: if A had died before, the lock would be held for ever.",
				named(set), span(set.F.Sub(t.Grant.R)))
		default:
			p.say("However it was given one by a command of its own, %s, forwarded %s after the grant had been answered: a crash in between would leave the lock for ever.",
				named(set), span(set.F.Sub(t.Grant.R)))
		}
		return p, Verdict{Terms: []lock.TermID{t.ID}}, []*lock.Op{t.Grant, set}
	})
}

// firstLifetime returns the first op that set a lifetime of the term's key, or
// that may have, and whether it did for certain.
func (c *kase) firstLifetime(t *lock.Term) (set *lock.Op, told bool) {
	for _, op := range c.settings(t) {
		if op.TTL == 0 && op.Until == 0 {
			continue
		}
		if answered(op) {
			return op, true
		}
		if set == nil {
			set = op
		}
	}
	return set, false
}

// atOnce reports whether the lifetime came right after the grant.
func (c *kase) atOnce(t *lock.Term, set *lock.Op) bool {
	if set.F.Sub(t.Grant.R) > atOnce {
		return false
	}
	for _, op := range c.ofTerm[t.ID].ops {
		if op.Seq < set.Seq {
			return false
		}
	}
	return true
}
