package check

import (
	"cmp"
	"slices"
)

// An ordering goes through the orders that a scene admits: those in which every
// deed lies within its interval, a connection's deeds in their sequence, a row's
// lock with one transaction at a time, and in which each statement returned, and its
// guards let pass, what was there.
type ordering struct {
	*scene
	seen   map[string]bool
	leaves map[string]bool
	budget int

	leaf func(*course)
}

// mostCourses is how many courses are looked at before a cluster is left to what is
// certain.
const mostCourses = 16000

// every calls leaf for each order, once for those that nobody could have told apart,
// and reports how much room there is left, and whether there was enough.
func (s *scene) every(room int, leaf func(*course)) (left int, all bool) {
	o := &ordering{scene: s, seen: map[string]bool{}, leaves: map[string]bool{}, budget: room, leaf: leaf}
	o.from(s.begin())
	return max(0, o.budget), o.budget >= 0
}

// from goes through the orders that begin so.
func (o *ordering) from(x *course) {
	if o.budget < 0 {
		return
	}
	k := x.key()
	if o.seen[k] {
		return
	}
	o.seen[k] = true
	o.budget--
	whole := true
	for i := range o.deeds {
		d := &o.deeds[i]
		if x.placed&(1<<i) != 0 {
			continue
		}
		whole = whole && d.optional
		if o.waits(x, d) || o.overtaken(x, i) {
			continue
		}
		o.place(x, i)
	}
	if whole {
		o.end(x)
	}
}

// waits reports whether a deed comes after another that was not placed, and has to be.
func (o *ordering) waits(x *course, d *deed) bool {
	for j := range o.deeds {
		if d.after&(1<<j) != 0 && x.placed&(1<<j) == 0 && !o.deeds[j].optional {
			return true
		}
	}
	return false
}

// overtaken reports whether what should come after a deed has been placed: then
// that one, being optional, lies nowhere.
func (o *ordering) overtaken(x *course, i int) bool {
	for j := range o.deeds {
		if x.placed&(1<<j) != 0 && o.deeds[j].after&(1<<i) != 0 {
			return true
		}
	}
	return false
}

func (o *ordering) next(x *course, i int) *course {
	next := x.clone()
	next.placed |= 1 << i
	return next
}

// place goes on with the i-th deed.
func (o *ordering) place(x *course, i int) {
	d := &o.deeds[i]
	switch d.kind {
	case deedSnapshot:
		next := o.next(x, i)
		next.snaps[d.tx] = len(next.versions) + 1
		o.from(next)
	case deedLook:
		o.look(x, i)
	case deedPut, deedTake:
		o.write(x, i)
	case deedMiss:
		for _, next := range o.grounded(x, i) {
			if next.passes(o.scene, d, false) {
				o.from(next)
			}
		}
	default:
		if d.kind != deedUndo {
			next := o.next(x, i)
			next.commit(d.tx)
			o.from(next)
		}
		if d.kind != deedCommit {
			next := o.next(x, i)
			next.letGo(d.tx)
			o.from(next)
		}
	}
}

func (o *ordering) look(x *course, i int) {
	d := &o.deeds[i]
	t := o.txs[d.tx]
	if d.locks && !(x.free(d.row, d.tx) && x.unchanged(o.scene, d.row, d.tx)) {
		return
	}
	next := o.next(x, i)
	if d.locks && t.explicit {
		next.holders[d.row] = int8(d.tx + 1)
	}
	if next.returns(o.scene, i, t.snapshot) {
		o.from(next)
	}
}

func (o *ordering) write(x *course, i int) {
	d := &o.deeds[i]
	if !x.free(d.row, d.tx) || !x.unchanged(o.scene, d.row, d.tx) {
		return
	}
	for _, next := range o.grounded(x, i) {
		if !next.passes(o.scene, d, true) {
			continue
		}
		next.passed(o.scene, d)
		next.write(o.scene, i)
		if !next.returns(o.scene, i, false) {
			continue
		}
		if d.kind == deedPut {
			next.commit(d.tx)
		} else {
			next.holders[d.row] = int8(d.tx + 1)
		}
		o.from(next)
	}
}

// passed makes known what a guard that held tells of a value.
func (x *course) passed(s *scene, d *deed) {
	for _, g := range d.guards {
		if v, _ := x.current(g.cell, d.tx, false); g.op == "=" && !v.known() {
			*v = g.val
		}
	}
}

// grounded returns the courses that go on with the i-th deed, in which it is known
// what was there at first in the cells that its guards compare or that it adds to,
// as far as that matters: each of the values that occur, and one that does not.
func (o *ordering) grounded(x *course, i int) []*course {
	d := &o.deeds[i]
	out := []*course{o.next(x, i)}
	ground := func(cell int) {
		for _, next := range slices.Clone(out) {
			v, _ := next.current(cell, d.tx, false)
			if v.known() || v != &next.first[cell] {
				continue
			}
			for _, guess := range o.candidates(cell) {
				other := next.clone()
				other.first[cell] = guess
				out = append(out, other)
			}
			out = slices.DeleteFunc(out, func(c *course) bool { return c == next })
		}
	}
	for _, g := range d.guards {
		ground(g.cell)
	}
	for _, a := range d.sets {
		if a.delta {
			ground(a.cell)
		}
	}
	return out
}

// candidates lists the values that a cell may have had at first: what occurs in it,
// less what was added, one less than that, and something else.
func (s *scene) candidates(k int) []datum {
	occur := []datum{s.first[k], s.last[k]}
	added := []int64{0}
	for i := range s.deeds {
		d := &s.deeds[i]
		for _, a := range d.sets {
			switch {
			case a.cell != k:
			case a.delta && len(added) < 1<<6:
				for _, n := range slices.Clone(added) {
					added = append(added, n+a.val.n)
				}
			case !a.delta:
				occur = append(occur, a.val)
			}
		}
		for _, g := range d.guards {
			if g.cell == k {
				occur = append(occur, g.val)
			}
		}
		for _, r := range d.returned {
			if r.cell == k {
				occur = append(occur, r.val)
			}
		}
	}
	return around(occur, added)
}

const nowhereNear = 1 << 60

func around(occur []datum, added []int64) []datum {
	var out []datum
	for _, v := range occur {
		switch {
		case !v.known():
		case v.kind == noNumber:
			out = append(out, v, datum{hash: "another"})
		default:
			out = append(out, datum{n: nowhereNear, kind: v.kind})
			for _, by := range added {
				out = append(out, datum{n: v.n - by, kind: v.kind}, datum{n: v.n - by - 1, kind: v.kind})
			}
		}
	}
	if len(out) == 0 {
		return []datum{{n: nowhereNear, kind: aNumber}}
	}
	slices.SortFunc(out, func(a, b datum) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.n, b.n), cmp.Compare(a.hash, b.hash))
	})
	return slices.Compact(out)
}

// end looks at a whole order, once for those in which the same was written and seen.
func (o *ordering) end(x *course) {
	for _, x := range o.bottomed(x) {
		if !o.leavesBehind(x) {
			continue
		}
		y := *x
		y.placed, y.holders, y.snaps, y.pending = 0, nil, nil, nil
		y.sights = slices.Clone(x.sights)
		slices.SortFunc(y.sights, func(a, b sight) int { return cmp.Or(a.deed-b.deed, a.cell-b.cell) })
		if k := y.key(); !o.leaves[k] {
			o.leaves[k] = true
			o.leaf(x)
		}
	}
}

// leavesBehind reports whether an order leaves behind what was found afterwards.
func (s *scene) leavesBehind(x *course) bool {
	for cell, last := range s.last {
		if !last.known() {
			continue
		}
		v := x.first[cell]
		for _, w := range x.versions {
			if w.cell == cell {
				v = w.val
			}
		}
		if equal(v, last) == no {
			return false
		}
	}
	return true
}

// bottomed makes known what was there at first in cells that were only added to.
func (o *ordering) bottomed(x *course) []*course {
	out := []*course{x}
	for cell := range o.cells {
		if x.first[cell].known() || !slices.ContainsFunc(x.versions, func(v version) bool { return v.cell == cell && v.delta }) {
			continue
		}
		var more []*course
		for _, c := range out {
			for _, guess := range o.candidates(cell) {
				next := c.clone()
				next.first[cell] = guess
				more = append(more, next)
			}
		}
		out = more
	}
	return out
}
