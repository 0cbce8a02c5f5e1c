package orders

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A live read is one on which a write of its section depends.
type live struct {
	section     int
	read, write int // ops, by index
	cell        cell
	val         value
}

// liveReads lists the reads of which it is proven that a write of the same section
// depends on them, should that commit.
func (s *search) liveReads() []live {
	var out []live
	for i, w := range s.h.Ops {
		if s.of[i] < 0 || w.Kind != lock.Write || w.SQL == nil || answered(w) && w.Rows == 0 {
			continue
		}
		for _, a := range w.SQL.Set {
			if !a.HasDelta && a.Value.Known() && !s.fresh(w, a.Column) {
				out = append(out, s.sourcesOf(i, a)...)
			}
		}
	}
	return out
}

// fresh reports whether a write of the column sees at its own instant what it was
// computed from: it compares the column itself, or a version.
func (s *search) fresh(w *lock.Op, column string) bool {
	return slices.ContainsFunc(guardsOf(w), func(g lock.Cond) bool {
		return g.Op == "=" && (g.Column == column || s.version(g.Column, column))
	})
}

// version reports whether whoever changes the column changes the guard too.
func (s *search) version(guard, column string) bool {
	for _, op := range s.h.Ops {
		if op.Kind == lock.Write && sets(op, column) && !sets(op, guard) {
			return false
		}
	}
	return true
}

func sets(op *lock.Op, column string) bool {
	return slices.ContainsFunc(op.SQL.Set, func(a lock.Assign) bool { return a.Column == column })
}

// sourcesOf lists what the i-th op's assignment depends on: of each cell of the column,
// where that is given, the last that its section had read of it; else of its own cell,
// where the very text that was read is written.
func (s *search) sourcesOf(i int, a lock.Assign) []live {
	w := s.h.Ops[i]
	section := s.txs[s.of[i]].section
	last := map[cell]live{}
	for j, r := range s.h.Ops {
		if s.of[j] < 0 || r.SQL == nil || s.txs[s.of[j]].section != section || !answered(r) || r.R > w.A {
			continue
		}
		for _, c := range r.Row {
			k := cell{rowOf(r), c.Column}
			last[k] = live{section, j, i, k, valueOf(c.Value)}
		}
	}
	var out []live
	for k, l := range last {
		named := k.column == a.Column && slices.Contains(s.h.Named, a.Column)
		copied := l.val.text != "" && l.val == valueOf(a.Value) && k == cell{rowOf(w), a.Column}
		if named || copied {
			out = append(out, l)
		}
	}
	return out
}
