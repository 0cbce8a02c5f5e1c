package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A rest is what was in a cell once all that had been asked to write there was over.
type rest struct {
	val lock.Value   // not known: the zero value
	end lock.Instant // when it was over; Never: something may come yet
}

// A settlement is what was in the cells when the ops that ended before left the view.
type settlement struct {
	at    lock.Instant
	cells map[cell]rest // that were written before, or read
	full  bool          // there were more cells
}

// of returns what was in a cell then, and whether that is kept.
func (s *settlement) of(k cell) (rest, bool) {
	r, ok := s.cells[k]
	if !ok && s.full {
		r.end = s.at
	}
	return r, ok
}

// restAt returns what the writes left in a cell that began before the instant.
func (c *kase) restAt(k cell, at lock.Instant) rest {
	out, kept := c.settled.of(k)
	if at < c.settled.at || c.otherwise(k) != nil || c.shapeOf(k.table).opaque {
		return rest{end: lock.Never}
	}
	byStart := func(w *write, at lock.Instant) int { return cmp.Compare(w.lo, at) }
	list := c.written[k]
	n, _ := slices.BinarySearchFunc(list, at, byStart)
	from := 0
	if kept {
		from, _ = slices.BinarySearchFunc(list, c.settled.at, byStart)
	}
	if n <= from {
		return out
	}
	ends := c.endsOf(k)
	if n > 1 {
		out.end = max(out.end, ends[n-2])
	}
	last := list[n-1]
	a, _ := last.assigns(k.column)
	if out.val = a.Value; a.HasDelta || last.op.Verb != "UPDATE" || out.end > last.lo {
		out.val = lock.Value{}
	}
	out.end = max(out.end, ends[n-1])
	return out
}

// inTurn lists cells so that the same are left out each time where there are too many.
func inTurn(cells map[cell]rest) []cell {
	out := slices.Collect(maps.Keys(cells))
	slices.SortFunc(out, compareCells)
	return out
}

// settleCells notes what is in the cells, before what ended by the instant leaves the view.
func (c *kase) settleCells(at lock.Instant) {
	if at <= c.settled.at {
		return
	}
	next := map[cell]rest{}
	of := func(k cell) {
		if _, ok := next[k]; ok {
			return
		}
		r := rest{end: lock.Never}
		if len(c.cellsByName()[columnOf{k.table, k.column}]) < 2 {
			if r = c.restAt(k, at); r.end <= at {
				r.val, _ = c.foundBy(k, at)
			}
		}
		next[k] = r
	}
	for k := range c.written {
		of(k)
	}
	for k := range c.readsOf {
		of(k)
	}
	for _, k := range inTurn(next) {
		r := next[k]
		if _, known := c.settled.cells[k]; known || len(c.settled.cells) < mostCells {
			c.settled.cells[k] = r
		} else {
			c.settled.full = true
			c.meet(boundCells)
		}
	}
	c.settled.at = at
}
