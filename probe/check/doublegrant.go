package check

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// doubleGrants finds LF305, and LF306 where the primary changed between the two:
// one verdict for each lock and level.
func (c *kase) doubleGrants() {
	for _, id := range c.lockIDs() {
		if c.isMarker(id) {
			continue
		}
		c.eachDoubleGrant(id, func(a, b *lock.Term) {
			if !c.due(b) || c.revives(b) || c.renewedAtOnce(a, b) || c.renewedAtOnce(b, a) {
				return
			}
			if del := c.onlyForgotten(a, b.Grant); del != nil {
				c.failoverAssumed(a, b, del)
				return
			}
			if change := c.primaryChanged(id.Upstream, a.Grant, b.Grant); change != nil {
				c.failover(a, b, change)
				return
			}
			c.doubleGrant(a, b, c.doubleLevel(a, b))
		})
	}
}

// doubleLevel says how sure two live grants are. What creates only what is not
// there shows that the key had vanished, and with it the first grant.
func (c *kase) doubleLevel(a, b *lock.Term) Level {
	switch {
	case c.unsorted(a, b):
		return Possible
	case a.Actor == "" || b.Actor == "":
		return Likely // it may have been one client
	case b.Grant.Kind == lock.Store && !a.GuessedLease && c.clockDoubt(a) == "":
		return Proven
	}
	return Likely
}

// sortOf returns how many may hold a lock at once, as far as is known.
func (c *carry) sortOf(id lock.LockID) lock.Sort { return c.ledger.Sort(id) }

// besides reports whether the two may hold their lock at once by its sort.
func (c *kase) besides(a, b *lock.Term) bool {
	switch c.sortOf(b.Lock) {
	case lock.Semaphore:
		return true
	case lock.Exclusive, lock.Reentrant:
		return false
	}
	return a.Shared && b.Shared
}

// unsorted reports whether two terms are members of a key of which it is not known how
// many it admits.
func (c *kase) unsorted(a, b *lock.Term) bool {
	return a.Member && b.Member && c.sortOf(b.Lock) == lock.Unsorted
}

func (c *kase) doubleGrant(a, b *lock.Term, level Level) {
	m := many{id: a.Lock, code: "LF305", more: "There are %d such pairs."}
	c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
		p := doubleProof(a, b)
		switch {
		case level == Possible:
			p.say("Both are members of the key, of which there may be several; whether the lock admits more than one is not known.")
		case b.Grant.Kind == lock.Store:
			p.say("It was taken by a plain SET, which excludes nobody.")
		default:
			p.say("The key must have vanished early: it was evicted, flushed, lost by a failover, or removed past the proxy.")
		}
		if a.Actor == "" || b.Actor == "" {
			p.say("Whose both were is not known: it may have been one client, so this is not proven.")
		}
		return p, Verdict{Terms: []lock.TermID{a.ID, b.ID}}, []*lock.Op{a.Grant, b.Grant}
	})
}

func doubleProof(a, b *lock.Term) *proof {
	p := let("A be %s and B be %s, with different tokens.", holder(a), holder(b))
	p.say("A was granted by %s, and its lease did not end before %s.", ms(a.Grant.R), ms(a.Held()))
	p.say("Then until then the key was A's: no release of it had been forwarded by %s.", ms(b.Grant.R))
	p.say("However %s granted it to B between %s and %s.", named(b.Grant), ms(b.Grant.F), ms(b.Grant.R))
	return p
}

// eachDoubleGrant calls f for every two live grants of a lock. Those of Postgres
// itself are never two: where its locks end unseen, they only seem so.
func (c *kase) eachDoubleGrant(id lock.LockID, f func(a, b *lock.Term)) {
	var active []*lock.Term
	for _, b := range c.terms[id] {
		if b.Span != lock.LeaseSpan {
			continue
		}
		kept := active[:0]
		for _, a := range active {
			forgotten := c.onlyForgotten(a, b.Grant) != nil
			if c.heldAt(a, b) < b.Grant.R || !forgotten && c.removable(a, b.Grant) || c.replaced(a, b) || c.rewritten(a, b.Grant) {
				continue
			}
			if !forgotten { // it is B's by now, and no more A's for those who come after B
				kept = append(kept, a)
			}
			if !sameClient(a, b) && !a.Token.Same(b.Token) && !c.otherWayRound(a, b) && !c.besides(a, b) {
				f(a, b)
			}
		}
		active = append(kept, b)
	}
}

// heldAt returns until when a's lease was certainly running, as far as b's grant goes.
func (c *kase) heldAt(a, b *lock.Term) lock.Instant {
	return min(c.heldUnless(a, b.Grant.F), c.runsUntil(a))
}

// runsUntil returns until when a term's lease was certainly running, whoever may have been
// granted the key without having heard so.
func (c *kase) runsUntil(t *lock.Term) lock.Instant {
	first, cut := lock.Never, c.cutShort(t)
	for _, op := range c.acts[t.Lock].hanging {
		if op.Kind == lock.Acquire || op.Kind == lock.Store {
			first = min(first, op.F)
		}
	}
	if first == lock.Never {
		return min(cut, t.Held())
	}
	return min(cut, c.heldUnless(t, first), t.Held())
}

// heldUnless returns until when it was, if another may have been granted the key after
// an instant: a renewal that compares nothing may then have been of that one's.
func (c *kase) heldUnless(t *lock.Term, at lock.Instant) lock.Instant {
	if t.Votes != nil || t.Span != lock.LeaseSpan {
		return t.Held()
	}
	until := lock.Lease(t.Grant, t.Grant.TTL).Earliest
	for _, op := range c.settings(t) {
		if op.Outcome == lock.Done && (op.Compares() || op.R <= at) {
			until = max(until, lock.Lease(op, op.TTL).Earliest)
		}
	}
	return until
}

// otherWayRound reports whether the two grants, which the replies show in one
// order, may have happened in the other, with the end of b's lease in between.
func (c *kase) otherWayRound(a, b *lock.Term) bool {
	return b.Grant.F < a.Grant.R && (min(lock.Lease(b.Grant, b.Grant.TTL).Earliest, c.cutShort(b)) < a.Grant.R || c.removable(b, a.Grant))
}

// sameHolder reports whether one client took the lock again with its own token.
// Two clients that share a token are two holders.
func sameHolder(a, b *lock.Term) bool { return sameClient(a, b) && a.Token.Same(b.Token) }

func sameClient(a, b *lock.Term) bool {
	return a.Session == b.Session || a.Actor != "" && a.Actor == b.Actor
}

// removable reports whether a release that was seen may have removed the
// term's key before the grant that followed.
func (c *kase) removable(t *lock.Term, grant *lock.Op) bool { return c.removableBy(t, grant.R) }

func (c *kase) removableBy(t *lock.Term, at lock.Instant) bool {
	return slices.ContainsFunc(c.during(t.Lock, t.Grant.F, at), func(op *lock.Op) bool {
		return op.Kind == lock.Release && mayHave(op) && mayRemove(op, t)
	})
}

// rewritten reports whether a statement of which it was not understood what it does to
// the lock, but that wrote its table, may have removed the term's row before the grant
// that followed.
func (c *kase) rewritten(t *lock.Term, grant *lock.Op) bool {
	table, _, _ := strings.Cut(strings.TrimPrefix(t.Lock.Key, "lease:"), ":")
	return grant.Proto == lock.Postgres && slices.ContainsFunc(c.ops, func(op *lock.Op) bool {
		return op.Kind == lock.Write && op.SQL != nil && !op.SQL.Lease && lock.TableName(op.SQL.Table) == lock.TableName(table) &&
			op.Upstream == t.Lock.Upstream && op.F < grant.R && (!answered(op) || op.Rows != 0 && op.Outcome != lock.Failed && op.R > t.Grant.F)
	})
}

// replaced reports whether a plain SET, be it a renewal, may have put another's token over
// a's before b took what it found absent: the key that was gone by then need not have
// been a's.
func (c *kase) replaced(a, b *lock.Term) bool {
	if b.Grant.Kind != lock.Acquire {
		return false
	}
	r := c.renewalsOf(a.Lock)
	for i := len(r.all) - 1; i >= 0 && r.over[i] > a.Grant.F; i-- {
		if op := r.all[i]; puts(op) && !op.Token.Same(a.Token) && op.F < b.Grant.R && (!answered(op) || op.R > a.Grant.F) {
			return true
		}
	}
	return false
}

// puts reports whether an op may have put its token where another may have been.
func puts(op *lock.Op) bool {
	return op.F != 0 && !op.Compares() && op.Token.Known() && mayHave(op)
}

// isMarker reports whether a key is taken and never released: it is no lock,
// and two that took it hold nothing.
func (c *carry) isMarker(id lock.LockID) bool {
	s := c.lockKnown[id]
	return s != nil && s.marker
}
