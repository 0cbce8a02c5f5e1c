package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A certainty says whether something happened.
type certainty int

const (
	no certainty = iota
	maybe
	yes
)

// restored reports whether, when m wrote, its row had again the value that m had
// read although e had been written since: then the serial order in which m comes
// last explains it, and m lost nothing.
func (c *kase) restored(e *write, m *rmw) certainty {
	if !m.base().Known() {
		return no
	}
	out := no
	for _, x := range c.since(m) {
		if x != e && x.before(e) {
			continue
		}
		a, _ := x.assigns(m.cell.column)
		certain := a.Value.Same(m.base()) && x.state == accepted && x.row == m.cell.row
		if certain && (x == e || e.before(x)) && x.before(m.write) {
			return yes
		}
		out = maybe
	}
	return out
}

// since lists the writes that may have been of m's cell and put back what m read,
// between m's read and its write.
func (c *kase) since(m *rmw) []*write {
	if m.scanned {
		return m.restorers
	}
	m.scanned = true
	list := c.mayWrite(m.cell)
	from := c.readFrom(m.read)
	end, _ := slices.BinarySearchFunc(list, m.write.hi, func(x *write, at lock.Instant) int { return cmp.Compare(x.lo, at) })
	start, _ := slices.BinarySearch(c.mayEnds[m.cell], from+1)
	for _, x := range list[min(start, end):end] {
		if x != m.write && !m.write.before(x) && m.putsBack(x, list[min(start, end):end]) {
			m.restorers = append(m.restorers, x)
		}
	}
	return m.restorers
}

// putsBack reports whether a write may have put back what m had read: with an addition,
// by what others had set there or added.
func (m *rmw) putsBack(x *write, list []*write) bool {
	a, _ := x.assigns(m.cell.column)
	if a.HasDelta {
		return m.leadsTo(-a.Delta, x, list)
	}
	return !a.Value.Known() || a.Value.Same(m.base())
}

// mostSums is how many sums are looked at before any number is taken to be one.
const mostSums = 1 << 10

// leadsTo reports whether some of the writes but x and m's own may together have put
// a number there that is by so much more than what m had read.
func (m *rmw) leadsTo(by int64, x *write, list []*write) bool {
	sums, deltas := map[int64]bool{0: true}, []int64(nil)
	for _, y := range list {
		a, _ := y.assigns(m.cell.column)
		if y == x || y == m.write || m.write.before(y) {
			continue
		}
		if n, ok := a.Value.Minus(m.base()); a.HasDelta {
			deltas = append(deltas, a.Delta)
		} else if ok {
			sums[n] = true
		}
	}
	for _, d := range deltas {
		if len(sums) > mostSums {
			return true
		}
		for _, n := range slices.Collect(maps.Keys(sums)) {
			sums[n+d] = true
		}
	}
	return sums[by]
}

// mayWrite lists the accepted and the uncertain writes of the cell, and of those
// that are not certainly of another row, by earliest effect.
func (c *kase) mayWrite(k cell) []*write {
	if list, ok := c.may[k]; ok {
		return list
	}
	list := c.written[k]
	if others := slices.Concat(c.opaqueOf(k.table), c.otherwise(k), c.remade(k)); len(others) > 0 {
		list = append(slices.Clone(list), others...)
		slices.SortStableFunc(list, func(a, b *write) int { return cmp.Compare(a.lo, b.lo) })
	}
	c.may[k], c.mayEnds[k] = list, prefixMax(list, func(x *write) lock.Instant { return x.hi })
	return list
}

// opaqueOf lists the writes of a table of which it is not known what they put: a MERGE,
// a COPY, what a WITH list writes.
func (c *kase) opaqueOf(table string) []*write {
	if c.opaque == nil {
		c.opaque = map[string][]*write{}
		for _, w := range slices.Concat(c.writes, c.beside) {
			known := len(w.op.SQL.Set) > 0 || w.op.Verb == "DELETE" || w.op.Verb == "TRUNCATE"
			if name := lock.TableName(w.op.SQL.Table); !known && (w.state == accepted || w.state == uncertain) {
				c.opaque[name] = append(c.opaque[name], w)
			}
		}
	}
	return slices.Clip(c.opaque[lock.TableName(table)])
}

// otherwise lists the writes of the column whose row is named otherwise than the
// cell's, and may be the same.
func (c *kase) otherwise(k cell) []*write {
	if out, ok := c.others[k]; ok {
		return out
	}
	var out []*write
	own := c.nameOf(k.row)
	for name, cells := range c.cellsByName()[columnOf{k.table, k.column}] {
		if name == own {
			continue
		}
		for _, o := range cells {
			if !differ(o.row, k.row) {
				out = append(out, c.written[o]...)
			}
		}
	}
	c.others[k] = out
	return out
}

// cellsByName sorts the cells of each column that were written by what names their rows.
func (c *kase) cellsByName() map[columnOf]map[string][]cell {
	if c.byName != nil {
		return c.byName
	}
	c.byName = map[columnOf]map[string][]cell{}
	for _, o := range sortedCells(c.written) {
		column := columnOf{o.table, o.column}
		if c.byName[column] == nil {
			c.byName[column] = map[string][]cell{}
		}
		name := c.nameOf(o.row)
		c.byName[column][name] = append(c.byName[column][name], o)
	}
	return c.byName
}

// remade lists the writes that may have made the cell's row anew, with whatever its
// column is by default, if somebody may have removed it.
func (c *kase) remade(k cell) (out []*write) {
	removed := false
	for _, w := range c.madeOrRemoved(k.table) {
		_, sets := w.assigns(k.column)
		switch {
		case differ(w.row, k.row):
		case w.op.Verb != "INSERT":
			removed = true
		case !sets:
			out = append(out, w)
		}
	}
	if !removed {
		return nil
	}
	return out
}

// madeOrRemoved lists the INSERTs, the DELETEs and the TRUNCATEs of a table.
func (c *kase) madeOrRemoved(table string) []*write {
	if c.making == nil {
		c.making = map[string][]*write{}
		for _, w := range slices.Concat(c.writes, c.beside) {
			made := w.op.Verb == "INSERT" || w.op.Verb == "DELETE" || w.op.Verb == "TRUNCATE"
			if name := lock.TableName(w.op.SQL.Table); made && (w.state == accepted || w.state == uncertain) {
				c.making[name] = append(c.making[name], w)
			}
		}
	}
	return slices.Concat(c.making[table], c.everyTable())
}

// everyTable lists the writes that may have removed rows of whatever table.
func (c *kase) everyTable() (out []*write) {
	for _, w := range c.beside {
		if w.anywhere && (w.state == accepted || w.state == uncertain) {
			out = append(out, w)
		}
	}
	return out
}
