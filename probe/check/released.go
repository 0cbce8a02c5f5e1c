package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// releasedEarly finds LF107, one verdict for each lock and level: a lock that was
// released before the transaction which it guards had committed.
func (c *kase) releasedEarly() {
	for _, id := range c.lockIDs() {
		for _, t := range c.terms[id] {
			if c.due(t) && !t.Marker && t.Release != nil && t.Span != lock.TxSpan {
				c.releasedBefore(t)
			}
		}
	}
}

func (c *kase) releasedBefore(t *lock.Term) {
	seen := map[*lock.Op]bool{}
	for _, w := range c.writesIn(t) {
		if w.commit == nil || seen[w.commit] || w.op.Seq > t.Release.Seq || w.state != accepted && w.state != uncertain {
			continue
		}
		level := earlier(t.Release, w)
		if level == "" || c.guardedBeside(t, w, heldThrough) {
			continue
		}
		if c.guardedBeside(t, w, perhapsHeld) {
			level = Possible
		}
		seen[w.commit] = true
		m := many{id: t.Lock, code: "LF107", more: "This is so of %d transactions."}
		c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
			return earlyProof(t, w, level), Verdict{Table: lock.TableName(w.op.SQL.Table), Terms: []lock.TermID{t.ID}},
				[]*lock.Op{t.Grant, w.op, t.Release, w.commit}
		})
	}
}

// earlier says how sure it is that the release took effect before the COMMIT of a
// write, and "" where it is not even possible.
func earlier(release *lock.Op, w *write) Level {
	switch {
	case release.F == 0 || release.Outcome != lock.Done && answered(release) || w.hi <= release.F:
		return ""
	case answered(release) && release.R <= w.lo && w.state == accepted:
		return Proven
	}
	return Possible
}

// guardedBeside reports whether another lock around the write was held when its
// transaction committed.
func (c *kase) guardedBeside(t *lock.Term, w *write, held func(o *lock.Term, w *write) bool) bool {
	return slices.ContainsFunc(append([]lock.TermID{w.op.Term.ID}, w.op.Term.Within...), func(id lock.TermID) bool {
		o := c.byID[id]
		return o != nil && o != t && held(o, w)
	})
}

// heldThrough reports whether a lock was certainly held when a write took effect.
func heldThrough(o *lock.Term, w *write) bool {
	switch {
	case o.LeaseEnd.Earliest < w.hi:
		return false
	case o.Span == lock.TxSpan:
		return true
	case o.Release == nil:
		return o.Open()
	}
	return o.Release.A >= w.hi
}

// perhapsHeld reports whether it may have been.
func perhapsHeld(o *lock.Term, w *write) bool {
	return o.LeaseEnd.Latest >= w.lo && (o.Span == lock.TxSpan || o.Release == nil || !answered(o.Release) || o.Release.R > w.lo)
}

func earlyProof(t *lock.Term, w *write, level Level) *proof {
	p := let("A be %s, and W be its %s, answered at %s in a transaction.", holder(t), named(w.op), ms(w.op.R))
	p.say("Then A guards W until that has committed.")
	if level == Proven {
		p.say("However A's release, %s, was answered at %s, and the COMMIT of W, %s, was forwarded at %s, %s later: whoever took the lock in between read what was there before W.",
			named(t.Release), ms(t.Release.R), named(w.commit), ms(w.commit.F), span(w.commit.F.Sub(t.Release.R)))
		return p
	}
	p.say("However A's release, %s, was forwarded at %s, when the COMMIT of W, %s, had not been answered: it may have come first, with no other lock around it, and is not proven to have.",
		named(t.Release), ms(t.Release.F), named(w.commit))
	return p
}
