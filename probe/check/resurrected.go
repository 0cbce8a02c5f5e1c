package check

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// resurrected finds LF303, one verdict for each lock, class and level: a lapsed
// lock that its owner's renewal created again.
func (c *kase) resurrected() {
	for _, id := range c.lockIDs() {
		if c.isMarker(id) {
			continue
		}
		for _, t := range c.terms[id] {
			if !c.due(t) {
				continue
			}
			if old := t.Again; t.Revived && old != nil && old.Grant.D != 0 && sameClient(old, t) && t.Token.Known() {
				c.revived(old, t)
			}
			c.revivedAlone(t)
		}
	}
}

// revived judges a term whose client had held the lock with the same token before.
func (c *kase) revived(old, t *lock.Term) {
	level := revivalLevel(t.Grant)
	if level == "" {
		return
	}
	switch other := c.grantedBetween(old, t); {
	case other != nil:
		if takesAnew(old, t) && (c.runsUntil(other) < t.Grant.R || c.goneBefore(other, t.Grant)) {
			level = Likely
		}
		c.revival(old, t.Grant, other, level)
	case old.Dead(t.Grant.F):
		if takesAnew(old, t) && c.perhapsBetween(old, t) {
			level = Likely
		}
		c.revival(old, t.Grant, nil, level)
	}
}

// takesAnew reports whether what opened a term is how its holder takes the lock in the
// first place: then it may be an acquire, of what was free again.
func takesAnew(old, t *lock.Term) bool {
	return old.Grant.Kind == lock.Store && t.Grant.Kind == lock.Store
}

// perhapsBetween reports whether another may have been granted the lock between a term
// and the one that revived it.
func (c *kase) perhapsBetween(old, t *lock.Term) bool {
	return slices.ContainsFunc(c.terms[t.Lock], func(o *lock.Term) bool {
		return o != old && o != t && o.Grant.R > old.Grant.F && o.Grant.F < t.Grant.R && !sameHolder(o, t)
	})
}

// grantedBetween returns the last term that was certainly granted to another holder
// between a term and the one that revived it; nil: none was.
func (c *kase) grantedBetween(old, t *lock.Term) (other *lock.Term) {
	for _, o := range c.terms[t.Lock] {
		if o != old && o != t && c.cameFirst(old, o) && c.cameFirst(o, t) && !sameHolder(o, t) {
			other = o
		}
	}
	return other
}

// cameFirst reports whether the grant of a certainly took effect before that of b: it was
// answered before the other was sent, or it found nothing where b's key would have been.
func (c *kase) cameFirst(a, b *lock.Term) bool {
	switch {
	case a.Grant.R <= b.Grant.F:
		return true
	case b.Grant.R <= a.Grant.F || !a.Grant.NX || a.Member || a.Votes != nil:
		return false
	}
	return c.heldAt(b, a) >= a.Grant.R && !c.removable(b, a.Grant) && !c.replaced(b, a) && c.primaryChanged(a.Lock.Upstream, b.Grant, a.Grant) == nil
}

// revives reports whether a term is the resurrection of its client's own lock
// over another's grant, which is LF303 and no grant that the server gave twice.
func (c *kase) revives(t *lock.Term) bool {
	return renews(t) && c.grantedBetween(t.Again, t) != nil
}

// renews reports whether a term began with its client's own renewal of what it had held.
func renews(t *lock.Term) bool {
	old := t.Again
	return t.Revived && old != nil && old.Grant.D != 0 && sameClient(old, t) && t.Token.Known() && revivalLevel(t.Grant) == Proven
}

// renewedAtOnce reports whether b's client renewed its own lock while a was granted it:
// either it took that again over a's grant, or it held it still and a's took it.
func (c *kase) renewedAtOnce(a, b *lock.Term) bool {
	return renews(b) && a.Grant.F < b.Grant.R && b.Grant.F < a.Grant.R
}

// revivalLevel says how sure it is that a grant was asked for as a renewal. A
// command that creates only what is not there is an acquire, and is meant as one;
// a script that does may be either.
func revivalLevel(grant *lock.Op) Level {
	switch {
	case grant.Kind == lock.Store || grant.Kind == lock.Renew:
		return Proven
	case strings.HasPrefix(grant.Verb, "EVAL"), strings.HasPrefix(grant.Verb, "FCALL"):
		return Likely
	}
	return ""
}

// revivedAlone finds a plain SET of the term's token after its lease had ended: no
// other grant lies in between, or it would have opened a term of its own.
func (c *kase) revivedAlone(t *lock.Term) {
	if t.Grant.Kind != lock.Store {
		return
	}
	end := lock.Lease(t.Grant, t.Grant.TTL).Latest
	for _, op := range c.settings(t) {
		if !answered(op) {
			return
		}
		if op.Kind == lock.Store && op.F > end {
			c.revival(t, op, nil, Proven)
			return
		}
		end = max(end, lock.Lease(op, op.TTL).Latest)
	}
}

// settings lists the term's requests to set its lease anew, by request, but those
// that had no effect.
func (c *kase) settings(t *lock.Term) []*lock.Op {
	var out []*lock.Op
	for _, op := range c.renewals()[t.ID] {
		if op.Term.ID == t.ID && op != t.Grant && (!answered(op) && op.F != 0 || op.Outcome == lock.Done) {
			out = append(out, op)
		}
	}
	return out
}

// renewals are the renewals of each term, and the plain SETs that are.
func (c *kase) renewals() map[lock.TermID][]*lock.Op {
	if c.renewed == nil {
		c.renewed = map[lock.TermID][]*lock.Op{}
		for _, op := range c.ops {
			if (op.Kind == lock.Renew || op.Kind == lock.Store) && op.Term.ID != 0 {
				c.renewed[op.Term.ID] = append(c.renewed[op.Term.ID], op)
			}
		}
	}
	return c.renewed
}

// takenOver is a renewal that put its own token where another term's was.
func (c *kase) takenOver(op *lock.Op, b *lock.Term) {
	old := c.byID[op.Term.ID]
	if old == nil || old == b || old.Grant.R > b.Grant.F {
		return
	}
	c.revival(old, op, b, Proven)
}

// revival emits the verdict: op took the lock again for old's owner; other, if
// there is one, had been granted it since.
func (c *kase) revival(old *lock.Term, op *lock.Op, other *lock.Term, level Level) {
	class, cited := Declared, []*lock.Op{old.Grant, op}
	p := let("A be %s, granted by %s for %s.", holder(old), ms(old.Grant.R), span(old.TTL))
	v := Verdict{Code: "LF303", Level: level, Terms: []lock.TermID{old.ID}}
	if other != nil {
		cited = append(cited, other.Grant)
		v.Terms = append(v.Terms, other.ID)
		p.say("Then A's lock was gone by %s, when %s had been granted it.", ms(other.Grant.R), holder(other))
	} else {
		class = Hazard
		p.say("Then its lease ended no later than %s.", ms(old.LeaseEnd.Latest))
	}
	p.say("However %s, forwarded at %s, took the key again with A's token: to A it was held all the time.", named(op), ms(op.F))
	if other != nil && other.Grant.R > op.F {
		p.say("The two overlapped, and the grant, which found nothing there, came first.")
	}
	if other != nil && other.Grant.F < old.Grant.R {
		p.say("The grants of the two overlapped, and A's, which found nothing there, came first.")
	}
	switch {
	case level != Proven && op.Kind == lock.Store:
		p.say("It is a plain SET, as A's first was, and may as well be an acquire of what was free again, so this is not proven.")
	case level != Proven:
		p.say("It is a script, and may as well be an acquire of its own, so this is not proven.")
	case other == nil:
		p.say("Nobody is seen to have been granted it in between.")
	}
	c.emitAs(old.Lock, class, with(v, p), cited...)
}
