package orders

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// stale reports whether a section's write that nothing guards took effect after
// another section had been granted the lock, later than its own.
func (s *search) stale(st *state) bool {
	for _, list := range st.cells {
		for _, v := range list {
			own := slices.Index(st.grants, v.section)
			if own >= 0 && v.grants > own+1 && slices.ContainsFunc(v.ops, func(n int) bool { return len(guardsOf(s.h.Ops[n])) == 0 }) {
				return true
			}
		}
	}
	return false
}

// A fenced write is one that set a fence, or compared its own.
type fenced struct {
	seq, section int
	row          string
	fence        int64
}

// fell reports whether a row took a write with a lower fence after one with a
// higher, or with the same of another section.
func (s *search) fell(st *state) bool {
	var list []fenced
	for k, versions := range st.cells {
		for _, v := range versions {
			for _, n := range v.ops {
				if f, ok := fenceOf(s.h.Ops[n]); ok {
					list = append(list, fenced{v.seq, v.section, k.row, f})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b fenced) int { return cmp.Compare(a.seq, b.seq) })
	for i, w := range list {
		for _, x := range list[:i] {
			if x.row == w.row && x.seq != w.seq && (x.fence > w.fence || x.fence == w.fence && x.section != w.section) {
				return true
			}
		}
	}
	return false
}

// fenceOf returns the fence that a write sets, or else demands.
func fenceOf(op *lock.Op) (int64, bool) {
	for _, a := range op.SQL.Set {
		if a.Column == Fence {
			return a.Value.Int, a.Value.IsInt
		}
	}
	for _, g := range op.SQL.Where {
		if g.Column == Fence && g.Op == "=" {
			return g.Value.Int, g.Value.IsInt
		}
	}
	return 0, false
}
