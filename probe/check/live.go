package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// liveReads lists the reads on which a write of the section depends: of each cell
// the last that it had heard before it wrote. A write with a delta, one that compares
// the column and one that compares a version see at their own instant what they
// are computed from.
func (s *scene) liveReads(n int) {
	sec := s.cluster.sections[n]
	for _, w := range sec.writes {
		if w.state != accepted && w.state != uncertain || w.row == unknownRow {
			continue
		}
		table := lock.TableName(w.op.SQL.Table)
		for _, a := range w.op.SQL.Set {
			if !a.HasDelta && a.Value.Known() && !s.c.versioned(w, a.Column) {
				s.liveFor(n, w, cell{table, w.row, a.Column}, a.Value)
			}
		}
	}
}

// liveFor finds what the value that a write puts into a cell was computed from.
func (s *scene) liveFor(n int, w *write, k cell, put lock.Value) {
	column := columnOf{k.table, k.column}
	for from, r := range s.lastReads(n, w, column) {
		l := live{section: n, read: r.op, write: w.op, cell: from, val: s.value(column, r.value(k.column)), on: column, sure: true}
		own := s.cells[from] == k
		copied := l.val.kind == noNumber && l.val.hash != "" && l.val.hash == put.Hash
		named := s.c.named(column)
		depends := s.c.dependent(column, s.c.horizon == lock.Never)
		switch {
		case copied && own, named:
			l.everything = true
		case depends == no || !own:
			continue
		default:
			l.everything = depends == yes
		}
		l.sure = inHand(r.op, w.op) && !s.c.reread(r, w.op.Term.ID, ownersOf(w), w, s.cells[from])
		s.live = append(s.live, l)
	}
}

// ownersOf is who may have made the read that a write was computed from. What is of no
// term has its own connection's.
func ownersOf(w *write) []owner {
	owners := []owner{{session: w.op.Session}, {term: w.op.Term.ID}}
	if w.op.Actor != "" && w.op.Term.ID != 0 {
		owners = append(owners, owner{actor: w.op.Actor})
	}
	return owners
}

// lastReads returns, of each cell of the column, the last read of it that the
// section had heard before the write.
func (s *scene) lastReads(n int, w *write, column columnOf) map[int]*read {
	out := map[int]*read{}
	for _, r := range s.cluster.sections[n].reads {
		if r.row == unknownRow || lock.TableName(r.op.SQL.Table) != column.table || !heard(r.op, w.op) {
			continue
		}
		if slices.Contains(s.c.columnsOf(r), column.column) {
			out[s.cell(cell{column.table, r.row, column.column})] = r
		}
	}
	return out
}

// named reports whether an invariant names the column as a counter.
func (c *carry) named(column columnOf) bool {
	return slices.ContainsFunc(c.setup.Invariants, func(inv Invariant) bool {
		return inv.Kind == "counter" && inv.Column == column.column && lock.TableName(inv.Table) == column.table
	})
}
