package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// staleWrites finds LF103: unguarded writes after another term was granted that
// are part of no cycle.
func (c *kase) staleWrites() {
	for _, id := range c.lockIDs() {
		terms := c.terms[id]
		for i, t := range terms {
			if !t.Marker {
				c.staleWritesOf(t, terms[i+1:])
			}
		}
	}
}

// A staleWrite is a write after the next grant that may be part of a cycle.
type staleWrite struct {
	write *write
	next  *lock.Term
	on    []*premise // of the cycles
}

// firstOf returns the first statement of the transaction in which a read was made: it
// may have read as of that.
func (c *kase) firstOf(r *read) *lock.Op {
	if t := c.txs[txID{r.op.Session, r.op.Tx}]; t != nil && !r.op.Implicit && r.op.Tx != 0 {
		return t.first
	}
	return nil
}

// mayBeRefused reports whether a write compares a column that changes, or one that it
// sets, or has conditions that were not understood: had another written, it might not
// have passed.
func (c *kase) mayBeRefused(w *write) bool {
	return w.op.SQL.Opaque || len(c.guards(w.op)) > 0 || slices.ContainsFunc(w.op.SQL.Where, func(g lock.Cond) bool {
		_, sets := w.assigns(g.Column)
		return sets
	})
}

// hangs reports whether a write may yet take effect, or have taken it, since it or its
// COMMIT was never answered.
func (w *write) hangs() bool {
	return w.state == uncertain && w.hi == lock.Never && (w.commit == nil || answered(w.op))
}

func (c *kase) staleWritesOf(t *lock.Term, later []*lock.Term) {
	var sure, perhaps []staleWrite
	for _, w := range c.ofTerm[t.ID].writes {
		if w.state != accepted && !w.hangs() || c.inCycle(w) == yes || c.mayBeRefused(w) || !c.dueOp(w.op) || w.hangs() && c.placeOf[w.op].result.neverTook(w.op) {
			continue
		}
		if o := c.grantedBefore(t, later, w.lo); o != nil && w.state == accepted {
			sure = append(sure, staleWrite{w, o, c.cycled[w]})
		} else if o := c.perhapsGranted(t, w); o != nil && (w.lo >= o.Grant.R || !c.seenBefore(w, o.Grant.F)) {
			perhaps = append(perhaps, staleWrite{w, o, c.cycled[w]})
		}
	}
	level := Proven
	if c.pinned[t.ID] {
		level = Likely
	}
	c.staleOnce(t, sure, level)
	c.staleOnce(t, perhaps, Possible)
}

// staleOnce finds LF103 among writes as soon as it is known which are part of a cycle.
func (c *kase) staleOnce(t *lock.Term, list []staleWrite, level Level) {
	if !slices.ContainsFunc(list, func(s staleWrite) bool { return len(s.on) > 0 }) {
		c.carry.stale(t, list, level, func(f *finding, cited []*lock.Op) { c.draw(f, cited) })
	} else if len(c.later) < mostFound {
		carried, hang := c.carry, c.sketched(t, list)
		c.later = append(c.later, func() { carried.stale(t, list, level, hang) })
	}
}

// citedOf lists the ops that the proof of a stale write rests on.
func citedOf(t *lock.Term, s staleWrite) []*lock.Op {
	return []*lock.Op{t.Grant, s.next.Grant, s.write.op, s.write.commit}
}

// sketched is draw for a verdict that is found when the ops are in view no more: the
// picture is made now, of the first of its writes.
func (c *kase) sketched(t *lock.Term, list []staleWrite) func(*finding, []*lock.Op) {
	g := c.pictures
	if g == nil || g.sketches >= mostPictures {
		return func(*finding, []*lock.Op) {}
	}
	g.sketches++
	p := c.picture([]lock.TermID{t.ID, list[0].next.ID}, citedOf(t, list[0]))
	return func(f *finding, _ []*lock.Op) {
		if g.room(f) {
			f.Picture = p
		}
	}
}

// stale finds LF103 among writes of a term, once it is known which are part of a
// cycle. A term has one verdict, which counts those that are judged later as well, and
// which draw gives its picture.
func (c *carry) stale(t *lock.Term, list []staleWrite, level Level, draw func(*finding, []*lock.Op)) {
	list = slices.DeleteFunc(list, func(s staleWrite) bool { return slices.ContainsFunc(s.on, c.holds) })
	if len(list) == 0 {
		return
	}
	key := staleID{t.ID, level == Possible}
	if f := c.staleOf[key]; f != nil && f.Level == level {
		f.Count += len(list)
		return
	}
	first, next := list[0].write, list[0].next
	p := let("A be %s, granted at %s, and B be %s.", holder(t), ms(t.Grant.R), holder(next))
	switch {
	case level == Possible && next.Grant.R <= first.lo && t.Member && next.Member:
		p.say("Then B was granted by %s.", ms(next.Grant.R))
		p.say("However A's %s took effect no earlier than %s; both are members of the key, of which there may be several, so this is not proven.", named(first.op), ms(first.lo))
	case level == Possible:
		p.say("Then B may have been granted from %s on, after A.", ms(next.Grant.F))
		p.say("However A's %s, %s, and nothing in it could have refused it; which came first is open, so this is not proven.", named(first.op), lateAs(first))
	default:
		p.say("Then B was granted by %s.", ms(next.Grant.R))
		p.say("However A's %s took effect no earlier than %s and was accepted; nothing in it could have refused it.", named(first.op), ms(first.lo))
	}
	if t.Span == lock.SessionSpan {
		p.say("%s", sentBeside(first, next))
	} else if first.op.A > t.LeaseEnd.Latest {
		p.say("It was sent at %s, after A's lease had ended by %s: A had not noticed (kind b).", ms(first.op.A), ms(t.LeaseEnd.Latest))
	} else {
		p.say("It was sent at %s, when A's lease need not have ended yet: it was late on its way, as a slow network alone can make it (kind a).", ms(first.op.A))
	}
	if slices.ContainsFunc(list, func(s staleWrite) bool { return !onlyAdds(s.write.op) }) {
		p.say("No lost update came of it that the record shows.")
	} else {
		p.say("It adds to what it finds, so no other's update can be lost by it, and for that it needs no fence.")
	}
	if level == Likely {
		p.say("It goes back beyond what the judge keeps in mind, so this is not proven.")
	}
	v := Verdict{Code: "LF103", Level: level, Table: lock.TableName(first.op.SQL.Table), Terms: []lock.TermID{t.ID, next.ID}, Count: len(list), Proof: p.String()}
	_, class := about(v.Code)
	cited := citedOf(t, list[0])
	f := c.file(t.Lock, class, v, cited...)
	draw(f, cited)
	if level == Possible { // beside what is more than that it is not told
		f.unless = func() bool { return c.staleOf[staleID{t.ID, false}] != nil }
	}
	if f.into != nil {
		f = f.into
	}
	if len(c.staleOf) < mostFound {
		c.staleOf[key] = f
	}
}

// onlyAdds reports whether a statement changes what it finds by a difference, and no more.
func onlyAdds(op *lock.Op) bool {
	return op.Verb == "UPDATE" && !slices.ContainsFunc(op.SQL.Set, func(a lock.Assign) bool { return !a.HasDelta })
}

// lateAs says how late a write may have taken effect.
func lateAs(w *write) string {
	if w.hangs() {
		return "which was never answered, may have taken effect at any time since, or never"
	}
	return "which was accepted, may have taken effect as late as " + ms(w.hi)
}

// A staleID names the LF103 of a term: that which is POSSIBLE, or the other.
type staleID struct {
	term    lock.TermID
	perhaps bool
}

// grantedBefore returns a term that was granted after t, and certainly before at,
// and that may not hold the lock beside it.
func (c *kase) grantedBefore(t *lock.Term, later []*lock.Term, at lock.Instant) *lock.Term {
	for _, o := range later {
		if o.Grant.F > at {
			return nil
		}
		if o.Grant.R <= at && t.Grant.R <= o.Grant.F && !sameHolder(o, t) && !c.besides(t, o) && !c.unsorted(t, o) {
			return o
		}
	}
	return nil
}
