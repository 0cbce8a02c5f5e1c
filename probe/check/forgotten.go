package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// forgotten returns what took a term's key away while it certainly was the term's, as a failover that forgot
// it would: lockfaultd did it, since a rule assumes that it happens. It is nil where nothing did.
func (c *kase) forgotten(t *lock.Term) *lock.Op {
	del := t.Released
	if del == nil || !byRule(del) || del.F < t.Grant.R || del.R > c.runsUntil(t) {
		return nil
	}
	return del
}

// byRule reports whether an op is no client's: lockfaultd did it, since a rule assumes that it happens.
func byRule(op *lock.Op) bool { return op.Evidence == lock.FromRule }

// onlyForgotten returns what made the server forget a term's key before another's grant, if nothing else can
// have removed it.
func (c *kase) onlyForgotten(t *lock.Term, grant *lock.Op) *lock.Op {
	del := c.forgotten(t)
	if del == nil || c.removedOtherwise(t, grant.R) {
		return nil
	}
	return del
}

// removedOtherwise reports whether a client's release may have removed a term's key by an instant.
func (c *kase) removedOtherwise(t *lock.Term, at lock.Instant) bool {
	return slices.ContainsFunc(c.during(t.Lock, t.Grant.F, at), func(op *lock.Op) bool {
		return op.Kind == lock.Release && !byRule(op) && mayHave(op) && mayRemove(op, t)
	})
}

// failoverAssumed finds LF306 in two live grants between which the server was made to forget the first. No
// service could have prevented it, so it is a hazard: harm is what comes of it on the data. B's may have been on
// its way when the key went: it was granted, so that it came behind that, and A's was answered before it was sent.
func (c *kase) failoverAssumed(a, b *lock.Term, del *lock.Op) {
	level := Likely
	if a.Grant.R <= b.Grant.F && a.Actor != "" && b.Actor != "" && !a.GuessedLease && c.clockDoubt(a) == "" {
		level = Proven
	}
	m := many{id: a.Lock, code: "LF306", by: "rule", class: Hazard, more: "There are %d such pairs."}
	c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
		p := let("A be %s and B be %s, with different tokens.", holder(a), holder(b))
		p.say("A was granted by %s, and its lease did not end before %s.", ms(a.Grant.R), ms(a.Held()))
		p.say("Then the server was made to forget the key between %s and %s, as a failover would that had not heard of the grant: a rule assumes it.", ms(del.F), ms(del.R))
		p.say("However %s granted it to B between %s and %s, while A's lease was running.", named(b.Grant), ms(b.Grant.F), ms(b.Grant.R))
		return p, Verdict{Terms: []lock.TermID{a.ID, b.ID}}, []*lock.Op{a.Grant, del, b.Grant}
	})
}
