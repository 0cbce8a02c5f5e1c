package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A fenced is an accepted write with the fence that it set or compared.
type fenced struct {
	term   *lock.Term // nil where an invariant names the column, and the write is nobody's for sure
	write  *write
	column string
	fence  int64
}

// fenceOf returns the fence with which a write was sent.
func (c *kase) fenceOf(t *lock.Term, w *write) (fenced, bool) {
	table := w.op.SQL.Table
	for _, a := range w.op.SQL.Set {
		if a.Value.IsInt && c.mayBeFence(t.Lock, table, a.Column) {
			return fenced{t, w, a.Column, a.Value.Int}, true
		}
	}
	for _, g := range w.op.SQL.Where {
		if g.Op == "=" && g.Value.IsInt && c.mayBeFence(t.Lock, table, g.Column) {
			return fenced{t, w, g.Column, g.Value.Int}, true
		}
	}
	return fenced{}, false
}

// mayBeFence reports whether the column keeps the lock's fences, or may turn out
// to when more of the history is known.
func (c *kase) mayBeFence(id lock.LockID, table, column string) bool {
	if c.horizon == lock.Never {
		return c.ledger.FenceColumn(id, table, column)
	}
	return c.ledger.MayBeFence(id, table, column)
}

// unlessFence drops a finding if the column turns out not to keep the lock's fences.
func (c *kase) unlessFence(f *finding, id lock.LockID, table, column string) {
	carried := c.carry
	f.unless = func() bool { return !carried.ledger.FenceColumn(id, table, column) }
}

type lockRow struct {
	lock       lock.LockID
	table, row string
	column     string
}

// fences finds LF105, one verdict for each write with a fence that is too low.
func (c *kase) fences() {
	r := &fencedRows{rows: map[lockRow][]fenced{}}
	c.fenced = r
	for _, t := range c.all {
		for _, w := range c.ofTerm[t.ID].writes {
			if f, ok := c.fenceOf(t, w); ok && !c.namedFence(w.op.SQL.Table, f.column) {
				r.add(t.Lock, f)
			}
		}
	}
	for _, inv := range c.setup.Invariants {
		if inv.Kind == "fence" && inv.Table != "" {
			c.invariantFences(inv, r)
		}
	}
	for _, k := range r.order {
		c.regressions(k, r.rows[k])
	}
}

type fencedRows struct {
	rows  map[lockRow][]fenced
	order []lockRow
}

func (r *fencedRows) add(id lock.LockID, f fenced) {
	w := f.write
	if w.row == unknownRow || w.state != accepted || w.op.Verb != "UPDATE" {
		return
	}
	k := lockRow{id, lock.TableName(w.op.SQL.Table), w.row, f.column}
	if r.rows[k] == nil {
		r.order = append(r.order, k)
	}
	r.rows[k] = append(r.rows[k], f)
}

// namedFence reports whether a fence invariant names the column.
func (c *carry) namedFence(table, column string) bool {
	return slices.ContainsFunc(c.setup.Invariants, func(inv Invariant) bool {
		return inv.Kind == "fence" && inv.Column == column && inv.Table != "" && lock.TableName(inv.Table) == lock.TableName(table)
	})
}

// invariantFences adds the writes of the column that an invariant names, under
// whatever lock, or none: it must rise whoever writes it.
func (c *kase) invariantFences(inv Invariant, r *fencedRows) {
	for _, w := range c.writes {
		if lock.TableName(w.op.SQL.Table) != lock.TableName(inv.Table) {
			continue
		}
		f := fenced{write: w, column: inv.Column}
		if w.op.Term.Sure() {
			f.term = c.byID[w.op.Term.ID]
		}
		if v, ok := fenceIn(w.op, inv.Column); ok {
			f.fence = v
			r.add(lock.LockID{}, f)
		}
	}
}

// fenceIn returns the number that a statement sets the column to, or else
// demands of it.
func fenceIn(op *lock.Op, column string) (int64, bool) {
	for _, a := range op.SQL.Set {
		if a.Column == column {
			return a.Value.Int, a.Value.IsInt
		}
	}
	for _, g := range op.SQL.Where {
		if g.Column == column && g.Op == "=" && g.Value.IsInt {
			return g.Value.Int, true
		}
	}
	return 0, false
}

// regressions goes through a row's writes by their earliest effect, and keeps
// the highest fence of those that were certainly over by then.
func (c *kase) regressions(k lockRow, list []fenced) {
	slices.SortStableFunc(list, func(a, b fenced) int { return cmp.Compare(a.write.lo, b.write.lo) })
	done := slices.Clone(list)
	over := func(f fenced) lock.Instant { return f.write.over() }
	slices.SortStableFunc(done, func(a, b fenced) int { return cmp.Compare(over(a), over(b)) })
	told := map[*write]bool{}
	defer func() { c.unorderedFences(k, list, told) }()
	var highest *fenced
	if before, ok := c.highest[k]; ok {
		highest = &before
	}
	for _, f := range list {
		for len(done) > 0 && over(done[0]) <= f.write.lo {
			if d := done[0]; highest == nil || d.fence >= highest.fence {
				highest = &d
			}
			done = done[1:]
		}
		switch {
		case highest == nil || highest.write == f.write || !c.dueOp(f.write.op) || !fell(*highest, f):
		case c.begunAgain(k, *highest, f.write.hi):
			highest = nil
		default:
			told[f.write] = true
			c.regression(k, *highest, f, Proven)
		}
	}
}

// fell reports whether the fence of w is too low after that of x: an equal one
// is, if it is another grant's of the same lock.
func fell(x, w fenced) bool {
	if x.fence == w.fence {
		return x.term != nil && w.term != nil && x.term.Lock == w.term.Lock && !oneHolding(x.term, w.term)
	}
	return x.fence > w.fence
}

// oneHolding reports whether two terms are, to their holder, the same: it re-created with its
// token what had lapsed, and keeps the fence that it had.
func oneHolding(a, b *lock.Term) bool {
	if a.ID > b.ID {
		a, b = b, a
	}
	for b != a && b.Revived && sameClient(b.Again, b) {
		b = b.Again
	}
	return a == b
}

// setAnew reports whether the row may have been removed, and made again, between the two instants.
func (c *kase) setAnew(k lockRow, from, to lock.Instant) bool {
	return c.someWrite(func(w *write) bool { return w.hi > from && w.lo < to && w.resets() && w.concernsRow(k) })
}

// begunAgain reports whether the fence of a row may have started again after x was written and
// before an instant.
func (c *kase) begunAgain(k lockRow, x fenced, to lock.Instant) bool {
	return c.someWrite(func(w *write) bool { return w.lo < to && w.startsAgain(k, x) })
}

// someWrite reports whether something is so of a write, or of what it may write beside.
func (c *kase) someWrite(is func(*write) bool) bool {
	return slices.ContainsFunc(c.writes, is) || slices.ContainsFunc(c.beside, is)
}

// startsAgain reports whether a write may have let the fence of a row start again since x was
// written. Who belongs to no section and puts a lower number there takes it back: whoever comes
// with more than that then is no stale holder. What an invariant names must rise all the same.
func (w *write) startsAgain(k lockRow, x fenced) bool {
	return w.hi > x.write.lo && w.concernsRow(k) && (w.resets() || k.lock.Key != "" && w.takesBack(k.column, x.fence))
}

// takesBack reports whether a write of nobody's may have put less than a fence into its column.
func (w *write) takesBack(column string, fence int64) bool {
	if w.op.Term.ID != 0 || w.op.Verb == "INSERT" || w.state != accepted && w.state != uncertain {
		return false
	}
	a, ok := assignIn(w.op, column)
	return ok && !a.HasDelta && (!a.Value.IsInt || a.Value.Int < fence)
}

// concernsRow reports whether what makes or removes rows may have been of this one.
func (w *write) concernsRow(k lockRow) bool {
	return w.of(k.table) && (w.row == k.row || w.op.Verb != "INSERT" && (w.row == unknownRow || strings.HasSuffix(w.row, "/")))
}

// resets reports whether a write may have made or removed rows.
func (w *write) resets() bool {
	return w.op.Verb != "UPDATE" && !w.op.SQL.Upsert && (w.state == accepted || w.state == uncertain)
}

func (c *kase) regression(k lockRow, x, w fenced, level Level, tell ...*lock.Op) {
	cited := append([]*lock.Op{x.write.op, x.write.commit, w.write.op, w.write.commit}, tell...)
	p := let("A be %s and B be %s.", w.who(), x.who())
	p.say("B's %s was accepted on the row with %s %d, in effect by %s.", named(x.write.op), k.column, x.fence, ms(x.write.over()))
	p.say("Then no lower fence may pass any more, nor an equal one of another grant.")
	p.say("However A's %s was accepted on it with %s %d, in effect no earlier than %s.", named(w.write.op), k.column, w.fence, ms(w.write.lo))
	switch {
	case level == Possible:
		p.say("A's came after B's in some of the orders that the intervals, the connections, the locks of rows and the values admit, so this is not proven.")
	case x.write.over() > w.write.lo:
		p.say("A's came after B's in all of the orders that the intervals, the connections, the locks of rows and the values admit.")
	}
	v := Verdict{Code: "LF105", Level: level, Table: k.table, Proof: p.String()}
	for _, f := range []fenced{w, x} {
		if f.term != nil {
			v.Terms = append(v.Terms, f.term.ID)
		}
	}
	id := k.lock
	if named := id.Key == ""; named {
		c.fallen[columnOf{k.table, k.column}] += asInt(level == Proven)
		c.emit(c.guardOf(k, w), v, cited...)
		return
	}
	f := c.emit(id, v, cited...)
	c.unlessFence(f, id, k.table, k.column)
}

// guardOf returns the lock to name for a column of an invariant: that of the
// invariant, else the write's own. One that is for efficiency excuses nothing.
func (c *carry) guardOf(k lockRow, w fenced) lock.LockID {
	id := lock.LockID{}
	if w.term != nil {
		id = w.term.Lock
	}
	for _, inv := range c.setup.Invariants {
		if l := c.lockOf(inv); inv.Kind == "fence" && l.Key != "" && inv.Column == k.column && lock.TableName(inv.Table) == k.table {
			id = l
		}
	}
	if purpose, _ := c.purposeOf(id.Key); purpose == "efficiency" {
		return lock.LockID{}
	}
	return id
}

func (f fenced) who() string {
	switch {
	case f.term != nil:
		return holder(f.term)
	case f.write.op.Actor != "":
		return f.write.op.Actor
	}
	return fmt.Sprintf("session %d", f.write.op.Session)
}

// leaveFences keeps, of the writes that leave the view, or whose terms do, each row's
// highest fence.
func (c *kase) leaveFences(k *keeper) {
	var anew []*write
	columns := c.fencedColumns()
	for _, w := range slices.Concat(c.writes, c.beside) {
		if (w.resets() || w.op.Term.ID == 0 && w.setsOne(columns)) && !k.keeps(w.id) {
			anew = append(anew, w)
		}
	}
	for row, f := range c.highest {
		if resetAfter(anew, row, f) {
			delete(c.highest, row)
		}
	}
	for _, row := range c.fenced.order {
		for _, f := range c.fenced.rows[row] {
			if k.keeps(f.write.op) && (f.term == nil || k.j.term[f.term.ID] != nil) || resetAfter(anew, row, f) {
				continue
			}
			if top, ok := c.highest[row]; (!ok || top.fence <= f.fence) && (ok || len(c.highest) < mostCells) {
				c.highest[row] = f
			}
		}
	}
}

// fencedColumns are those of which the highest fences are kept.
func (c *kase) fencedColumns() map[columnOf]bool {
	out := map[columnOf]bool{}
	for row := range c.highest {
		out[columnOf{row.table, row.column}] = true
	}
	for _, row := range c.fenced.order {
		out[columnOf{row.table, row.column}] = true
	}
	return out
}

func (w *write) setsOne(columns map[columnOf]bool) bool {
	return slices.ContainsFunc(w.op.SQL.Set, func(a lock.Assign) bool { return columns[columnOf{lock.TableName(w.op.SQL.Table), a.Column}] })
}

// resetAfter reports whether one of the writes may have made the row anew after
// the fence was written.
func resetAfter(anew []*write, row lockRow, f fenced) bool {
	return slices.ContainsFunc(anew, func(w *write) bool { return w.startsAgain(row, f) })
}
