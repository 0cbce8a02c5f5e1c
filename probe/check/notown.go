package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An alien is what a release or renewal that compares nothing found, and that was not
// its sender's: whose it was need not be known.
type alien struct {
	own  *lock.Term   // the last that the sender had
	gone *lock.Op     // the grant that shows that this was over; nil: the clock does
	may  []*lock.Term // of others, which of them it was
}

// mostLooked is how many terms of a lock are gone back through.
const mostLooked = 256

// notOwn reports whether what an op found on its key was certainly not its sender's:
// everything that the sender had been granted was over before it was sent.
func (c *kase) notOwn(id lock.LockID, op *lock.Op) (alien, bool) {
	last := c.byID[op.Term.ID]
	if op.Compares() || op.Actor == "" || lock.AddressOnly(op.Actor) || last == nil || !c.isOver(last, op.F) || c.failedOver(last, op) {
		return alien{}, false
	}
	a := alien{own: last, gone: c.grantedAfter(last, op.F)}
	terms := c.terms[id]
	before, _ := slices.BinarySearchFunc(terms, op.F, func(t *lock.Term, at lock.Instant) int { return cmp.Compare(t.Grant.R, at) })
	for _, x := range c.during(id, op.F, op.R) {
		switch t := c.byID[x.Term.ID]; {
		case x.Kind != lock.Acquire && x.Kind != lock.Store || answered(x) && !mayHave(x):
		case !answered(x) || t == nil || t.Grant != x || !c.weigh(&a, t, op):
			return a, false // it may be of one who is no term
		}
	}
	for i, t := range slices.Backward(terms[:before]) {
		if before-i > mostLooked {
			return a, false
		}
		if !c.weigh(&a, t, op) {
			return a, false
		}
		if t.Grant.Kind == lock.Acquire && t.Grant.NX && (i == 0 || terms[i-1].Grant.R <= t.Grant.F) {
			break // whoever had it before had it no more
		}
	}
	return a, len(a.may) > 0
}

// weigh takes in one term: of the sender it has to be over, of another it may be the
// one. It is not ok where too little is known of it.
func (c *kase) weigh(a *alien, t *lock.Term, op *lock.Op) bool {
	switch {
	case t.Span != lock.LeaseSpan || t.Votes != nil || t.Member || t.Actor == "" || t.GuessedLease:
		return false
	case t.Actor != op.Actor && t.Session != op.Session:
		if t.Clock().Latest >= op.F && c.mayBeHit(t, op) {
			a.may = append(a.may, t)
		}
		return true
	}
	return c.isOver(t, op.F)
}

// isOver reports whether a term was certainly over at an instant: by the clock, or
// since another was granted the key, which excludes, after it.
func (c *kase) isOver(t *lock.Term, at lock.Instant) bool {
	return c.grantedAfter(t, at) != nil || t.Clock().Latest < at && c.clockDoubt(t) == "" && !c.mayBeExtended(t, at)
}

// mayBeExtended reports whether a renewal that compares nothing may have moved the end of a
// term's lease beyond an instant, whoever sent it and whenever its reply was noted.
func (c *kase) mayBeExtended(t *lock.Term, at lock.Instant) bool {
	r := c.renewalsOf(t.Lock)
	for i := len(r.all) - 1; i >= 0 && r.over[i] > t.Grant.F; i-- {
		x := r.all[i]
		met := x.Kind == lock.Renew && x.F != 0 && x.F < at && mayHave(x) && !x.Compares()
		if met && (!answered(x) || x.R > t.Grant.F && lock.Lease(x, x.TTL).Latest >= at) {
			return true
		}
	}
	return false
}

// grantedAfter returns an excluding grant that certainly came after a term's and
// before an instant.
func (c *kase) grantedAfter(t *lock.Term, at lock.Instant) *lock.Op {
	terms := c.terms[t.Lock]
	from, _ := slices.BinarySearchFunc(terms, t.Grant.R, func(o *lock.Term, at lock.Instant) int { return cmp.Compare(o.Grant.R, at) })
	for _, o := range terms[from:] {
		if o.Grant.R > at {
			break
		}
		if o.Grant.Kind == lock.Acquire && o.Grant.NX && o.Grant.F >= t.Grant.R {
			return o.Grant
		}
	}
	return nil
}

// mayBeHit reports whether an op may have found the key of a term: its owner was not
// answered to hold nothing before, and if it was removed, its owner did not remove it
// and was not seen to have it later.
func (c *kase) mayBeHit(t *lock.Term, op *lock.Op) bool {
	removes := op.Kind == lock.Release
	if r := t.Release; r != nil && r.Guarded && !r.Guessed {
		if r.Outcome == lock.NotHeld && r.R <= op.F || r.Outcome == lock.Done && (removes || r.R <= op.F) {
			return false
		}
	}
	return !slices.ContainsFunc(c.renewals()[t.ID], func(x *lock.Op) bool {
		if !x.Guarded || x.Guessed {
			return false
		}
		return x.Outcome == lock.NotHeld && x.R <= op.F || x.Outcome == lock.Done && removes && x.F >= op.R
	})
}

func (a alien) proof(op *lock.Op) *proof {
	p := let("A be %s, which sent %s, and B be %s.", holder(a.own), named(op), holder(a.may[len(a.may)-1]))
	if a.gone != nil {
		p.say("Then A's lock was over when %s was granted, by %s.", named(a.gone), ms(a.gone.R))
	} else {
		p.say("Then A's lease had ended by %s.", ms(a.own.Clock().Latest))
	}
	return p
}

// whose says whose lock it was.
func (a alien) whose() string {
	if len(a.may) == 1 {
		return "B's"
	}
	return "B's, or that of another such term"
}

func (a alien) verdict() Verdict {
	v := Verdict{Terms: []lock.TermID{a.own.ID}}
	for _, t := range slices.Backward(a.may) {
		if len(v.Terms) < 9 {
			v.Terms = append(v.Terms, t.ID)
		}
	}
	return v
}

// citedOf lists what shows it, with what removed the sender's own key: else a renewal
// that compares nothing might have moved its end.
func (c *kase) citedOf(a alien, op *lock.Op) []*lock.Op {
	cited := append(c.successor(a.own, op), a.may[len(a.may)-1].Grant, a.own.Grant, a.gone, op)
	if by := a.own.Released; by != nil && by.Seq < op.Seq {
		cited = append(cited, by)
	}
	return cited
}

// removedNotOwn finds LF301 where it is open whose lock was removed.
func (c *kase) removedNotOwn(id lock.LockID, op *lock.Op) {
	a, ok := c.notOwn(id, op)
	if !ok {
		return
	}
	m := many{id: id, code: "LF301", more: "This happened %d times; one such release lets the next holder in, whose lock the victim then removes."}
	c.count(m, Proven, func() (*proof, Verdict, []*lock.Op) {
		p := a.proof(op)
		p.say("However A's release, which compares no token, was forwarded at %s and answered that it had removed the key: it was %s.", ms(op.F), a.whose())
		return p, a.verdict(), c.citedOf(a, op)
	})
}

// renewedNotOwn finds LF302 likewise.
func (c *kase) renewedNotOwn(id lock.LockID, op *lock.Op) {
	a, ok := c.notOwn(id, op)
	if !ok || op.Token.Known() {
		return
	}
	c.count(many{id: id, code: "LF302", more: "This happened %d times."}, Proven, func() (*proof, Verdict, []*lock.Op) {
		p := a.proof(op)
		p.say("However A's renewal, which compares no token, was forwarded at %s and answered that it had set the lifetime: the lock was %s.", ms(op.F), a.whose())
		return p, a.verdict(), c.citedOf(a, op)
	})
}
