package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// overruns finds LF101: a holder that acts as one after its lease.
func (c *kase) overruns() {
	for _, id := range c.lockIDs() {
		for _, t := range c.terms[id] {
			if !t.Marker && t.Span == lock.LeaseSpan && c.due(t) {
				c.overrun(t)
			}
		}
	}
}

func (c *kase) overrun(t *lock.Term) {
	if op := c.actedLate(t); op != nil {
		p := let("A be %s, granted between %s and %s for %s.", holder(t), ms(t.Grant.F), ms(t.Grant.R), span(t.TTL))
		if t.Renewals > 0 {
			p.say("It was renewed %d times.", t.Renewals)
		}
		level := Proven
		gone, clock := c.goneBy(t, op), t.Clock()
		if gone == nil {
			p.say("Then its lease ended between %s and %s.", ms(clock.Earliest), ms(clock.Latest))
			p.say("However A's %s was forwarded at %s, %s after the latest of those.", named(op), ms(op.F), span(op.F.Sub(clock.Latest)))
		} else {
			p.say("Then its lease had ended, or its key was lost, by %s, since its %s was answered that it held nothing.", ms(gone.R), named(gone))
			if c.takenAway(t, gone) {
				level = Likely
				p.say("Someone else may have removed it, so this is not proven.")
			}
			p.say("However A's %s was forwarded at %s, %s later.", named(op), ms(op.F), span(op.F.Sub(gone.R)))
		}
		if told := c.toldBefore(t); op == t.Release && told != nil && told.F <= clock.Latest {
			level = Likely
			p.say("It had been told by %s that it held nothing, and may only have tidied up, so this is not proven.", ms(told.D))
		}
		if t.GuessedLease {
			level = Likely
			p.say("Its last renewal was read off the arguments of a script that was not seen, so this is not proven.")
		} else if doubt := c.clockDoubt(t); doubt != "" && level == Proven && gone == nil {
			level = Likely
			p.say("%s, so this is not proven.", doubt)
		}
		c.emit(t.Lock, Verdict{Code: "LF101", Level: level, Terms: []lock.TermID{t.ID}, Proof: p.String()}, append(c.ofOthers(t), t.Grant, c.toldBefore(t), op)...)
		return
	}
	if lost := t.Lost; lost != nil && !c.takenAway(t, lost) && !c.endedOnTheWay(t, lost) {
		p := let("A be %s.", holder(t))
		p.say("Then its lease had ended, or its key was lost, by %s, since its first release, %s, was answered that it held nothing.", ms(lost.R), named(lost))
		p.say("When that was is not known from below, so this is not proven by the clock.")
		c.emit(t.Lock, Verdict{Code: "LF101", Level: Likely, Terms: []lock.TermID{t.ID}, Proof: p.String()}, t.Grant, lost)
		return
	}
	if op := c.mayHaveActedLate(t); op != nil {
		p := let("A be %s, granted between %s and %s for %s.", holder(t), ms(t.Grant.F), ms(t.Grant.R), span(t.TTL))
		p.say("Then its lease ended at %s at the earliest, and may have lasted until %s.", ms(t.Clock().Earliest), ms(t.LeaseEnd.Latest))
		p.say("However A's %s was forwarded at %s: whether the lease had ended by then is not known, so this is not proven.", named(op), ms(op.F))
		c.emit(t.Lock, Verdict{Code: "LF101", Level: Possible, Terms: []lock.TermID{t.ID}, Proof: p.String()}, t.Grant, op)
	}
}

// endedOnTheWay reports whether the lease certainly ran when a release was sent that
// was answered to have found nothing, and may have ended before that took effect.
func (c *kase) endedOnTheWay(t *lock.Term, lost *lock.Op) bool {
	earliest := t.Clock().Earliest
	return lost.F < earliest && earliest < lost.R
}

// mayHaveActedLate returns the first op of the term, a write before others, that was
// forwarded when its lease may have ended. A release that found the term's own key
// shows that it had not.
func (c *kase) mayHaveActedLate(t *lock.Term) *lock.Op {
	if t.LeaseEnd.Latest == lock.Never || t.Release != nil && t.Release.Outcome == lock.Done && c.foundOwn(t, t.Release) {
		return nil
	}
	return c.actedAfter(t, t.Clock().Earliest)
}

// ofOthers lists the term's renewals that moved the lease of another, with the grants
// of that, or of those that it may have been: without these they would have moved the
// term's own.
func (c *kase) ofOthers(t *lock.Term) []*lock.Op {
	var out []*lock.Op
	for _, op := range c.renewals()[t.ID] {
		if op.Outcome != lock.Done || op.Compares() || op.Kind != lock.Renew {
			continue
		}
		if o := c.removedOther(t.Lock, op); o != nil {
			out = append(out, o.Grant, op)
			continue
		}
		for _, o := range c.terms[t.Lock] {
			if o != t && o.Grant.F <= op.R && o.LeaseEnd.Latest >= op.F {
				out = append(out, o.Grant, op)
			}
		}
		out = append(out, c.successor(t, op)...)
	}
	return out
}

// successor returns the grant, with its release, that took a term's place before an op was
// asked: after that, what compares no token is not taken to have found the term's own key.
func (c *kase) successor(t *lock.Term, op *lock.Op) []*lock.Op {
	for _, o := range c.terms[t.Lock] {
		if o.Grant.ReplySeq > t.Grant.ReplySeq && o.Grant.ReplySeq < op.Seq {
			return []*lock.Op{o.Grant, o.Release}
		}
	}
	return nil
}

// foundOwn reports whether the key that a release of the term removed was certainly
// the term's.
func (c *kase) foundOwn(t *lock.Term, release *lock.Op) bool {
	return release.Compares() || !slices.ContainsFunc(c.during(t.Lock, t.Grant.F, release.R), func(x *lock.Op) bool {
		return x != t.Grant && (x.Kind == lock.Acquire || x.Kind == lock.Store) && mayHave(x)
	})
}

// actedLate returns the first op of the term, a write before others, that was
// forwarded after its lease had certainly ended.
func (c *kase) actedLate(t *lock.Term) *lock.Op { return c.actedAfter(t, t.LeaseEnd.Latest) }

func (c *kase) actedAfter(t *lock.Term, at lock.Instant) *lock.Op {
	var first *lock.Op
	ops := c.ofTerm[t.ID].acts()
	if t.Release != nil {
		ops = append(ops, t.Release)
	}
	for _, op := range ops {
		if op.F == 0 || op.F <= at {
			continue
		}
		if op.Kind == lock.Write {
			return op
		}
		if first == nil {
			first = op
		}
	}
	return first
}

// takenAway reports whether someone else may have removed or overwritten the
// term's key before its release.
func (c *kase) takenAway(t *lock.Term, release *lock.Op) bool {
	return slices.ContainsFunc(c.during(t.Lock, t.Grant.F, release.R), func(op *lock.Op) bool {
		switch {
		case op == t.Grant || op == release:
			return false
		case op.Kind == lock.Release:
			return mayHave(op) && mayRemove(op, t) && (!op.Compares() || op.Term.ID != t.ID)
		}
		return op.Kind == lock.Store && mayHave(op) && op.Seq > t.Grant.Seq
	})
}

// mayRemove reports whether a release could take the term's key. Of a script
// that was not seen it is not known that it compares anything.
func mayRemove(op *lock.Op, t *lock.Term) bool {
	return !op.Guarded || op.Guessed || op.Token.Same(t.Token)
}

// mayHave reports whether a release, or a grant, may have taken effect.
func mayHave(op *lock.Op) bool {
	return op.Outcome != lock.NotHeld && op.Outcome != lock.Failed && op.Outcome != lock.Refused
}

// endedWhileHeld reports whether the lease certainly ended, or the lock was lost,
// between the grant and the owner's release request; without one, the end of its process, of the
// record, or its last act as holder. What is true of a lock that its holders never
// release may be another thing.
func (c *kase) endedWhileHeld(t *lock.Term) (unreleased, released bool) {
	switch {
	case t.Marker:
		return false, false
	case c.lostWhileHeld(t):
		return true, true
	case t.Release != nil:
		return t.Dead(t.ReleaseAt), t.Dead(t.ReleaseAt)
	}
	// Some keys are left to lapse by those who hold them.
	acted := c.actedLate(t) != nil
	end := t.End
	if t.Open() {
		end = c.end
	}
	switch {
	case t.EndBy == lock.Superseded:
		return acted, acted
	case len(c.ofTerm[t.ID].acts()) > 0:
		return t.Dead(end), t.Dead(end)
	}
	return acted, t.Dead(end)
}

// belief returns when the holder was in its section, as far as its own acts
// show: from the grant's delivery to its release request, or without one to
// the last thing it did as holder.
func (c *kase) belief(t *lock.Term) (lock.Interval, bool) {
	if t.Marker || t.Grant.D == 0 {
		return lock.Interval{}, false
	}
	end := t.ReleaseAt
	if last := c.lastAct(t); last != nil {
		end = last.A
	}
	return lock.Interval{Earliest: t.Grant.D, Latest: end}, end > t.Grant.D
}

// lastAct returns the last thing that a holder did which asked for no release.
func (c *kase) lastAct(t *lock.Term) (last *lock.Op) {
	if t.Release != nil {
		return nil
	}
	for _, op := range c.ofTerm[t.ID].acts() {
		if last == nil || op.A > last.A {
			last = op
		}
	}
	return last
}

// listed is how many overlaps the facts list.
const listed = 4096

// overlaps finds LF102, one verdict for each lock and level.
func (c *kase) overlaps() {
	for _, id := range c.lockIDs() {
		c.eachOverlap(c.terms[id], func(a, b *lock.Term, from, to lock.Instant) {
			if !c.due(a) {
				return
			}
			o := Overlap{id.String(), a.ID, b.ID, from, to}
			if c.out.Facts.Overlap++; len(c.out.Facts.Overlaps) < listed {
				c.out.Facts.Overlaps = append(c.out.Facts.Overlaps, o)
			}
			c.overlap(a, b, o)
		})
	}
}

func (c *kase) overlap(a, b *lock.Term, o Overlap) {
	level, beyond := Proven, c.pinned[a.ID] || c.pinned[b.ID]
	switch {
	case a.Member && b.Member && (c.sortOf(b.Lock) == lock.Unsorted || sameClient(a, b) && a.Shared != b.Shared):
		level = Possible // who writes may read as well
	case beyond, c.tidiedUp(a, o.From):
		level = Likely
	}
	m := many{id: a.Lock, code: "LF102", more: "There are %d such pairs."}
	c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
		p := let("A be %s, whose grant was delivered at %s, and B be %s, whose grant was delivered at %s.", holder(a), ms(a.Grant.D), holder(b), ms(b.Grant.D))
		p.say("Then both were in their section from %s to %s (%s), by one clock.", ms(o.From), ms(o.To), span(o.To.Sub(o.From)))
		switch {
		case beyond && level == Likely:
			p.say("However %s", beyondKept)
		case level == Possible:
			p.say("However they are members of one key, and it is not known that the lock admits more than one at a time.")
		case level == Likely:
			p.say("However A had been told by %s that it held nothing, and may only have tidied up after that, so this is not proven.", ms(c.toldBefore(a).D))
		default:
			p.say("However the lock is to admit one at a time.")
		}
		return p, Verdict{Terms: []lock.TermID{a.ID, b.ID}}, []*lock.Op{a.Grant, b.Grant, c.toldBefore(a), c.lastAct(a), c.lastAct(b), a.Release, b.Release}
	})
	if removedByAnother(a) && a.Released.F <= b.Grant.R {
		c.follows(m, level)
	}
}

func (c *kase) eachOverlap(terms []*lock.Term, f func(a, b *lock.Term, from, to lock.Instant)) {
	type belief struct {
		t *lock.Term
		lock.Interval
	}
	var all []belief
	for _, t := range terms {
		if i, ok := c.belief(t); ok {
			all = append(all, belief{t, i})
		}
	}
	slices.SortStableFunc(all, func(a, b belief) int { return cmp.Compare(a.Earliest, b.Earliest) })
	var active []belief
	for _, b := range all {
		kept := active[:0]
		for _, a := range active {
			if a.Latest > b.Earliest {
				kept = append(kept, a)
				if !sameHolder(a.t, b.t) && !c.besides(a.t, b.t) {
					f(a.t, b.t, b.Earliest, min(a.Latest, b.Latest))
				}
			}
		}
		active = append(kept, b)
	}
}
