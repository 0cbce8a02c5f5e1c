package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// farBack is how many writes of a row are looked through for one that made a
// guard false. It is mostly the last.
const farBack = 4096

// newer returns an accepted write of the row that certainly came before w and
// made its guard false: a fence at least as high, or another version than the
// one that w's term had read or claimed.
func (c *kase) newer(w *write, g lock.Cond) *write {
	list := c.written[cell{lock.TableName(w.op.SQL.Table), w.row, g.Column}]
	end, _ := slices.BinarySearchFunc(list, w.op.F, func(x *write, at lock.Instant) int { return cmp.Compare(x.lo, at) })
	for _, x := range slices.Backward(list[max(0, end-farBack):end]) {
		a, _ := x.assigns(g.Column)
		if x.state != accepted || x.hi > w.op.F || !a.Value.Known() && !a.HasDelta {
			continue
		}
		if g.Op == "=" {
			if a.Value.Same(g.Value) || a.HasDelta && !c.moved(x, w, g, a.Delta) || c.mayBeBack(list, x, w, g) {
				return nil
			}
			return x
		}
		if a.Value.IsInt && g.Value.IsInt && (a.Value.Int > g.Value.Int || a.Value.Int == g.Value.Int && g.Op == "<") {
			return x
		}
	}
	return nil
}

// moved reports whether x, which added to what was there, certainly left another
// value than the guard's: that had been read before x.
func (c *kase) moved(x, w *write, g lock.Cond, by int64) bool {
	return by != 0 && c.readOf(x, w, g) != nil
}

// readOf returns what read the guard's value in w's section before x; nil if nothing did.
func (c *kase) readOf(x, w *write, g lock.Cond) *lock.Op {
	for _, r := range c.readsOf[cell{lock.TableName(w.op.SQL.Table), w.row, g.Column}] {
		if r.op.R <= x.lo && r.value(g.Column).Same(g.Value) && r.op.Term.ID == w.op.Term.ID {
			return r.op
		}
	}
	return nil
}

// mayBeBack reports whether a write that put the guard's value may have come
// after x and before w.
func (c *kase) mayBeBack(list []*write, x, w *write, g lock.Cond) bool {
	end, _ := slices.BinarySearchFunc(list, w.op.R, func(y *write, at lock.Instant) int { return cmp.Compare(y.lo, at) })
	return slices.ContainsFunc(list[max(0, end-farBack):end], func(y *write) bool {
		a, _ := y.assigns(g.Column)
		return (a.HasDelta || !a.Value.Known() || a.Value.Same(g.Value)) && y != x && !y.before(x)
	})
}

// inversions finds LF309: an older grant with a higher fence.
func (c *kase) inversions() {
	for _, id := range c.lockIDs() {
		terms := c.terms[id]
		lowest := make([]*lock.Term, len(terms)+1) // of those after i, the one with the lowest fence
		for i := len(terms) - 1; i >= 0; i-- {
			lowest[i] = lowest[i+1]
			if t := terms[i]; t.HasFence && (lowest[i] == nil || t.Fence < lowest[i].Fence) {
				lowest[i] = t
			}
		}
		for i, t := range terms {
			if c.due(t) && t.HasFence && lowest[i+1] != nil && lowest[i+1].Fence < t.Fence {
				c.inversion(t, terms[i+1:])
			}
		}
	}
}

func (c *kase) inversion(t *lock.Term, later []*lock.Term) {
	var b *lock.Term
	for _, o := range later {
		if o.HasFence && o.Fence < t.Fence && t.Grant.R <= o.Grant.F && o.Grant.F < t.FenceOp.R && fenceKey(o) == fenceKey(t) {
			b = o
			break
		}
		if o.Grant.F >= t.FenceOp.R {
			break
		}
	}
	if b == nil {
		return
	}
	d := c.ofTerm[t.ID]
	for _, w := range d.writes {
		f, ok := c.fenceOf(t, w)
		if !ok || f.fence != t.Fence || w.state != accepted || w.op.SQL.Returning && d.claims(w) {
			continue
		}
		c.unlessFence(c.inverted(t, b, w, d.claimed(w)), t.Lock, w.op.SQL.Table, f.column)
		return
	}
}

// claims reports whether the write is itself a claim: what it returned was read.
func (d *doings) claims(w *write) bool {
	return slices.ContainsFunc(d.reads, func(r *read) bool { return r.op == w.op })
}

// claimed reports whether the term had claimed the row when it read it.
func (d *doings) claimed(w *write) bool {
	return slices.ContainsFunc(d.reads, func(r *read) bool { return r.claim && r.row == w.row && r.op.Seq < w.op.Seq })
}

func fenceKey(t *lock.Term) string {
	if t.FenceOp.FenceKey != "" {
		return t.FenceOp.FenceKey
	}
	return t.FenceOp.Key
}

func (c *kase) inverted(a, b *lock.Term, w *write, claimed bool) *finding {
	p := let("A be %s, granted by %s, and B be %s, granted no earlier than %s.", holder(a), ms(a.Grant.R), holder(b), ms(b.Grant.F))
	p.say("Then A's grant is the older one, and B's fence should be the higher.")
	level := Proven
	if a.FenceOp.F < b.Grant.R {
		level = Likely
		p.say("(That A's was issued after B's grant follows from the numbers alone, and from no clock: they may have started anew.)")
	}
	p.say("However A was issued fence %d by %s and B fence %d by %s, and A's %s was accepted under the higher one.", a.Fence, named(a.FenceOp), b.Fence, named(b.FenceOp), named(w.op))
	v := Verdict{Code: "LF309", Level: level, Table: lock.TableName(w.op.SQL.Table), Terms: []lock.TermID{a.ID, b.ID}, Proof: p.String()}
	if claimed {
		v.Proof += " A had claimed the row when it read it, so this is a hazard and no more."
		return c.emitAs(a.Lock, Hazard, v, a.Grant, b.Grant, a.FenceOp, w.op)
	}
	return c.emit(a.Lock, v, a.Grant, b.Grant, a.FenceOp, w.op)
}
