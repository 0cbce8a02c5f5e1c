package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// unsafeReleases finds LF301, one verdict for each lock.
func (c *kase) unsafeReleases() {
	for _, id := range c.lockIDs() {
		if c.isMarker(id) {
			continue
		}
		holders := c.state(id).holders
		for _, op := range c.acts[id].all {
			if op.Kind != lock.Release || op.Outcome != lock.Done || op.F == 0 || op.Guessed || byRule(op) || !c.dueOp(op) {
				continue
			}
			victim := c.removedOther(id, op)
			if victim == nil {
				c.removedNotOwn(id, op)
				continue
			}
			level := Likely
			if own, ok := holders[op.Actor]; ok && own < op.Seq && c.sameProcess(id, op) && !victim.GuessedLease && c.clockDoubt(victim) == "" && !c.failedOver(victim, op) && !setAsOwn(c.byID[op.Term.ID], victim) {
				level = Proven
			}
			c.unsafeRelease(id, level, op, victim)
		}
	}
}

// setAsOwn reports whether what opened a term may have been meant for another's that was running:
// it set the token which that has, as who was handed that does, and need not have taken the lock.
func setAsOwn(own, by *lock.Term) bool {
	return own != nil && own.Token.Same(by.Token) && own.Clock().Latest > by.Grant.F
}

// removedOther returns the term of another holder that certainly had the key
// for as long as the release may have taken effect.
func (c *kase) removedOther(id lock.LockID, op *lock.Op) *lock.Term {
	terms := c.terms[id]
	end, _ := slices.BinarySearchFunc(terms, op.ReplySeq, func(t *lock.Term, seq uint64) int { return cmp.Compare(t.Grant.ReplySeq, seq) })
	for _, t := range slices.Backward(terms[:end]) {
		if t.ID == op.Term.ID || t.Span != lock.LeaseSpan {
			return nil // nobody gives back what another's session or transaction has
		}
		if t.Grant.R > op.F {
			continue
		}
		if op.R > c.runsUntil(t) {
			return nil
		}
		// Of a client that is not known it cannot be said that it is another one.
		if t.Actor == op.Actor || t.Actor == "" || op.Actor == "" || t.Session == op.Session {
			return nil
		}
		if t.Votes != nil || op.Guarded && !op.Token.Same(t.Token) || c.goneBefore(t, op) {
			return nil // of a quorum it takes a majority
		}
		return t
	}
	return nil
}

// goneBefore reports whether another release, or a grant that overwrote it, may
// have taken the term's key before the op did.
func (c *kase) goneBefore(t *lock.Term, op *lock.Op) bool {
	return slices.ContainsFunc(c.during(t.Lock, t.Grant.F, op.R), func(x *lock.Op) bool {
		switch {
		case x == op || x == t.Grant || !mayHave(x):
			return false
		case x.Kind == lock.Release:
			return mayRemove(x, t)
		}
		return x.Kind == lock.Store
	})
}

// ownGrant returns the last grant of a lock to the sender of a later op, nil where it is not
// in view.
func (c *kase) ownGrant(id lock.LockID, op *lock.Op) *lock.Op {
	for _, t := range slices.Backward(c.terms[id]) {
		if t.Actor == op.Actor && t.Grant.Seq < op.Seq {
			return t.Grant
		}
	}
	return nil
}

// sameProcess reports whether the sender of an op is known for more than its address, or
// sent it on a connection on which it had been granted the lock.
func (c *kase) sameProcess(id lock.LockID, op *lock.Op) bool {
	return !lock.AddressOnly(op.Actor) || slices.ContainsFunc(c.terms[id], func(t *lock.Term) bool {
		return t.Session == op.Session && t.Grant.Seq < op.Seq
	})
}

// wasOf begins the proof that an op met the key while it was b's, and words what the op compares.
func wasOf(b *lock.Term, op *lock.Op) (p *proof, what string) {
	p = let("B be %s, granted by %s with a lease that did not end before %s.", holder(b), ms(b.Grant.R), ms(b.Held()))
	p.say("Then the key was B's from %s to %s.", ms(op.F), ms(op.R))
	if op.Guarded {
		return p, "which compares a token that B uses as well"
	}
	return p, "which compares no token"
}

func (c *kase) unsafeRelease(id lock.LockID, level Level, op *lock.Op, b *lock.Term) {
	more := "This happened %d times; one such release lets the next holder in, whose lock the victim then removes."
	m := many{id: id, code: "LF301", more: more}
	c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
		p, what := wasOf(b, op)
		p.say("However in that time %s of %s, %s, was answered that it had removed the key.", named(op), op.Actor, what)
		own := c.ownGrant(id, op)
		if level != Proven {
			p.say("That its sender had held the lock itself was not seen, or B's lease is not certain, so this is not proven.")
		} else if own != nil {
			p.say("Its sender takes part in the lock: it was granted it with %s.", named(own))
		}
		return p, Verdict{Terms: termsOf(op, b)}, []*lock.Op{b.Grant, op, own}
	})
	if own := c.byID[op.Term.ID]; own != nil && own != b && removedByAnother(own) {
		c.follows(m, level)
	}
}
