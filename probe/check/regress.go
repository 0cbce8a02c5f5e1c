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
		if a.Value.IsInt && c.ledger.FenceColumn(t.Lock, table, a.Column) {
			return fenced{t, w, a.Column, a.Value.Int}, true
		}
	}
	for _, g := range w.op.SQL.Where {
		if g.Op == "=" && g.Value.IsInt && c.ledger.FenceColumn(t.Lock, table, g.Column) {
			return fenced{t, w, g.Column, g.Value.Int}, true
		}
	}
	return fenced{}, false
}

type lockRow struct {
	lock       lock.LockID
	table, row string
	column     string
}

// fences finds LF105, one verdict for each write with a fence that is too low.
func (c *kase) fences() {
	r := &fencedRows{rows: map[lockRow][]fenced{}}
	for _, t := range c.ledger.Terms() {
		for _, w := range c.ofTerm[t.ID].writes {
			if f, ok := c.fenceOf(t, w); ok && !c.namedFence(w.op.SQL.Table, f.column) {
				r.add(t.Lock, f)
			}
		}
	}
	for _, inv := range c.in.Invariants {
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
func (c *kase) namedFence(table, column string) bool {
	return slices.ContainsFunc(c.in.Invariants, func(inv Invariant) bool {
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
			f.term = c.ledger.Term(w.op.Term.ID)
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
	var highest *fenced
	for _, f := range list {
		for len(done) > 0 && over(done[0]) <= f.write.lo {
			if d := done[0]; highest == nil || d.fence >= highest.fence {
				highest = &d
			}
			done = done[1:]
		}
		if highest != nil && highest.write != f.write && fell(*highest, f) && !c.setAnew(k, highest.write.lo, f.write.hi) {
			c.regression(k, *highest, f)
		}
	}
}

// fell reports whether the fence of w is too low after that of x: an equal one
// is, if it is another grant's of the same lock.
func fell(x, w fenced) bool {
	if x.fence == w.fence {
		return x.term != nil && w.term != nil && x.term != w.term && x.term.Lock == w.term.Lock
	}
	return x.fence > w.fence
}

// setAnew reports whether the row may have been removed, and made again,
// between the two instants: its fence starts again then.
func (c *kase) setAnew(k lockRow, from, to lock.Instant) bool {
	reset := func(w *write) bool {
		if !w.of(k.table) || !w.resets() || w.hi <= from || w.lo >= to {
			return false
		}
		return w.row == k.row || w.op.Verb != "INSERT" && (w.row == unknownRow || strings.HasSuffix(w.row, "/"))
	}
	return slices.ContainsFunc(c.writes, reset) || slices.ContainsFunc(c.beside, reset)
}

// resets reports whether a write may have made or removed rows.
func (w *write) resets() bool {
	return w.op.Verb != "UPDATE" && !w.op.SQL.Upsert && (w.state == accepted || w.state == uncertain)
}

func (c *kase) regression(k lockRow, x, w fenced) {
	p := let("A be %s and B be %s.", w.who(), x.who())
	p.say("B's %s was accepted on the row with %s %d, in effect by %s.", named(x.write.op), k.column, x.fence, ms(x.write.over()))
	p.say("Then no lower fence may pass any more, nor an equal one of another grant.")
	p.say("However A's %s was accepted on it with %s %d, in effect no earlier than %s.", named(w.write.op), k.column, w.fence, ms(w.write.lo))
	v := Verdict{Code: "LF105", Level: Proven, Table: k.table, Proof: p.String()}
	for _, f := range []fenced{w, x} {
		if f.term != nil {
			v.Terms = append(v.Terms, f.term.ID)
		}
	}
	c.fallen[columnOf{k.table, k.column}]++
	id := k.lock
	if id.Key == "" {
		id = c.guardOf(k, w)
	}
	c.emit(id, v, x.write.op, x.write.commit, w.write.op, w.write.commit)
}

// guardOf returns the lock to name for a column of an invariant: that of the
// invariant, else the write's own. One that is for efficiency excuses nothing.
func (c *kase) guardOf(k lockRow, w fenced) lock.LockID {
	id := lock.LockID{}
	if w.term != nil {
		id = w.term.Lock
	}
	for _, inv := range c.in.Invariants {
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

// readings finds LF105 in the two readings of a fence: it must not end lower
// than it began, nor than what was accepted.
func (c *kase) readings(inv Invariant, f *FenceFigure) {
	top, from := inv.Start, "it began at %d"
	if f.oneRow && f.Accepted > 0 && f.Highest > top {
		top, from = f.Highest, "%d was accepted on its row"
	}
	if !f.Known || inv.End >= top || f.Regressions > 0 || f.anew {
		return
	}
	p := let("F be what %q returned.", inv.Query)
	p.say("Then F may not fall below %d, since "+from+".", top, top)
	p.say("However it was %d at the end.", inv.End)
	if f.Unnumbered == 0 && (f.Accepted == 0 || f.Lowest > inv.End) {
		p.say("No write that was seen put a number so low: it was lowered past the proxy.")
	}
	k := lockRow{table: lock.TableName(inv.Table), column: inv.Column}
	f.Regressions++
	v := Verdict{Code: "LF105", Level: Proven, Table: k.table}
	if len(c.in.Gaps) > 0 || inv.Table == "" {
		v.Level = Likely
		p.say("The row may have been made anew without being seen, so this is not proven.")
	}
	c.emit(c.guardOf(k, fenced{}), with(v, p))
}

// fenceFigure counts what was written to the column of a fence invariant.
func (c *kase) fenceFigure(inv Invariant) FenceFigure {
	f := FenceFigure{Name: inv.Name, Query: inv.Query, Table: inv.Table, Column: inv.Column,
		Start: inv.Start, End: inv.End, Known: inv.HasStart && inv.HasEnd}
	table := lock.TableName(inv.Table)
	own := &tally{c: c, inv: inv, conds: conditions(inv.Query)}
	rows := map[string]bool{}
	for _, w := range slices.Concat(c.writes, c.beside) {
		if !w.of(table) || inv.Table == "" {
			continue
		}
		a, ok := w.assigns(inv.Column)
		f.anew = f.anew || w.resets() && own.concerns(w)
		switch {
		case w.state == refused && (ok || slices.ContainsFunc(w.op.SQL.Where, func(g lock.Cond) bool { return g.Column == inv.Column })):
			f.Rejected++
		case w.state != accepted && w.state != uncertain || !ok || !own.concerns(w):
		case w.state == uncertain || !a.Value.IsInt:
			f.Unnumbered++
		default:
			rows[w.row] = true
			f.accept(a.Value.Int)
		}
	}
	f.oneRow = len(rows) == 1 && !rows[unknownRow]
	f.Regressions = c.fallen[columnOf{table, inv.Column}]
	c.readings(inv, &f)
	f.oneRow, f.anew = false, false
	return f
}

func (f *FenceFigure) accept(n int64) {
	if f.Accepted++; f.Accepted == 1 {
		f.Lowest, f.Highest = n, n
	}
	f.Lowest, f.Highest = min(f.Lowest, n), max(f.Highest, n)
}
