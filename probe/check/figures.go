package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A fenceTally counts what is written to the column of a fence invariant.
type fenceTally struct {
	inv  Invariant
	own  *tally
	out  FenceFigure
	rows map[string]bool // of the accepted writes: two at most
	anew bool            // the row may have been made anew
}

func newFenceTally(inv Invariant) *fenceTally {
	return &fenceTally{inv: inv, own: newTally(inv), rows: map[string]bool{},
		out: FenceFigure{Name: inv.Name, Query: inv.Query, Table: inv.Table, Column: inv.Column,
			Start: inv.Start, End: inv.End, Known: inv.HasStart && inv.HasEnd}}
}

// add takes in what is due of a case.
func (f *fenceTally) add(c *kase) {
	if f.inv.Table == "" {
		return
	}
	for _, w := range slices.Concat(c.writes, c.beside) {
		if w.of(f.inv.Table) && c.dueOp(w.id) {
			f.write(w)
		}
	}
}

func (f *fenceTally) write(w *write) {
	a, ok := w.assigns(f.inv.Column)
	f.anew = f.anew || w.resets() && f.own.concerns(w)
	switch {
	case w.state == refused && (ok || slices.ContainsFunc(w.op.SQL.Where, func(g lock.Cond) bool { return g.Column == f.inv.Column })):
		f.out.Rejected++
	case w.state != accepted && w.state != uncertain || !ok || !f.own.concerns(w):
	case w.state == uncertain || !a.Value.IsInt:
		f.out.Unnumbered++
	default:
		if len(f.rows) < 2 {
			f.rows[w.row] = true
		}
		f.out.accept(a.Value.Int)
	}
}

func (f *FenceFigure) accept(n int64) {
	if f.Accepted++; f.Accepted == 1 {
		f.Lowest, f.Highest = n, n
	}
	f.Lowest, f.Highest = min(f.Lowest, n), max(f.Highest, n)
}

// sum completes the figure, and finds LF105 in the two readings of a fence: it must
// not end lower than it began, nor than what was accepted.
func (f *fenceTally) sum(c *carry) FenceFigure {
	inv := f.inv
	f.out.Regressions = c.fallen[columnOf{lock.TableName(inv.Table), inv.Column}]
	top, from := inv.Start, "it began at %d"
	if len(f.rows) == 1 && !f.rows[unknownRow] && f.out.Accepted > 0 && f.out.Highest > top {
		top, from = f.out.Highest, "%d was accepted on its row"
	}
	if !f.out.Known || inv.End >= top || f.out.Regressions > 0 || f.anew {
		return f.out
	}
	p := let("F be what %q returned.", inv.Query)
	p.say("Then F may not fall below %d, since "+from+".", top, top)
	p.say("However it was %d at the end.", inv.End)
	if f.out.Unnumbered == 0 && (f.out.Accepted == 0 || f.out.Lowest > inv.End) {
		p.say("No write that was seen put a number so low: it was lowered past the proxy.")
	}
	k := lockRow{table: lock.TableName(inv.Table), column: inv.Column}
	f.out.Regressions++
	v := Verdict{Code: "LF105", Level: Proven, Table: k.table}
	if c.out.Facts.Gaps > 0 || inv.Table == "" {
		v.Level = Likely
		p.say("The row may have been made anew without being seen, so this is not proven.")
	}
	_, class := about(v.Code)
	c.file(c.guardOf(k, fenced{}), class, with(v, p))
	return f.out
}
