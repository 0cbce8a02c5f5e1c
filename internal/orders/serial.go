package orders

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// explained reports whether some order of whole sections, one after the other,
// accounts for what an order of effects gave: each live read of what committed
// returned the same, each accepted write passed, and the same was left.
func (s *search) explained(st *state) bool {
	sections := map[int][]int{} // the writes that committed and the live reads, by request
	for _, list := range st.cells {
		for _, v := range list {
			sections[v.section] = append(sections[v.section], v.ops...)
		}
	}
	live := s.liveIn(st)
	for _, l := range live {
		sections[l.section] = append(sections[l.section], l.read)
	}
	var names []int
	for k, ops := range sections {
		slices.Sort(ops)
		sections[k] = slices.Compact(ops)
		names = append(names, k)
	}
	return s.permute(names, func(order []int) bool { return s.replay(st, order, sections, live) })
}

// liveIn lists the live reads whose write committed.
func (s *search) liveIn(st *state) []live {
	return slices.DeleteFunc(slices.Clone(s.live), func(l live) bool {
		_, ok := st.versionOf(l.write)
		return !ok
	})
}

func (s *search) permute(list []int, try func([]int) bool) bool {
	var rest func(i int) bool
	rest = func(i int) bool {
		if i == len(list) {
			return try(list)
		}
		for j := i; j < len(list); j++ {
			list[i], list[j] = list[j], list[i]
			if rest(i + 1) {
				return true
			}
			list[i], list[j] = list[j], list[i]
		}
		return false
	}
	return rest(0)
}

// replay plays whole sections and reports whether it comes to the same.
func (s *search) replay(st *state, order []int, sections map[int][]int, live []live) bool {
	now := map[cell]value{}
	get := func(k cell) value {
		if v, ok := now[k]; ok {
			return v
		}
		return st.firstOf(k)
	}
	for _, section := range order {
		for _, n := range sections[section] {
			if !s.replayOp(n, live, get, now) {
				return false
			}
		}
	}
	for k, list := range st.cells {
		if get(k) != list[len(list)-1].val {
			return false
		}
	}
	return true
}

// firstOf is what was there at first: something else than all that is known, where
// nothing is.
func (st *state) firstOf(k cell) value {
	if v, ok := st.first[k]; ok {
		return v
	}
	return value{n: 1 << 40}
}

func (s *search) replayOp(n int, live []live, get func(cell) value, now map[cell]value) bool {
	op := s.h.Ops[n]
	row := rowOf(op)
	for _, l := range live {
		if l.read == n && get(l.cell) != l.val {
			return false
		}
	}
	if op.Kind != lock.Write {
		return true
	}
	for _, g := range guardsOf(op) {
		if !holds(get(cell{row, g.Column}), g) {
			return false
		}
	}
	for _, a := range op.SQL.Set {
		k := cell{row, a.Column}
		if a.HasDelta {
			now[k] = value{n: get(k).n + a.Delta}
		} else {
			now[k] = valueOf(a.Value)
		}
	}
	return true
}
