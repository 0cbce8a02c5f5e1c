package orders

import "slices"

// An edge says that in any serial order one section comes before another.
type edge struct {
	from, to int
	cell     cell
	kind     edgeKind
}

type edgeKind int

const (
	ww edgeKind = iota // it wrote what the other wrote later
	wr                 // it wrote what the other read
	rw                 // it read what the other wrote later
)

// leaf looks at one order, for each way in which what was there at first may have been.
func (s *search) leaf(st *state) {
	for _, st := range s.grounded(st) {
		k := s.outcome(st)
		if s.leaves[k] {
			continue
		}
		s.leaves[k] = true
		s.out.Orders++
		edges := s.edges(st)
		lost := slices.ContainsFunc(rowsOf(edges), func(row string) bool { return harmful(onRow(edges, row)) })
		any := lost || harmful(edges)
		s.out.Lost.add(lost)
		s.out.Anomaly.add(any && !lost)
		s.out.Stale.add(s.stale(st))
		s.out.Fell.add(s.fell(st))
		s.out.Alibi = s.out.Alibi || any && s.explained(st)
	}
}

// outcome tells two orders apart by what was written and read.
func (s *search) outcome(st *state) string {
	c := *st
	c.placed, c.holder, c.snaps, c.pending = 0, nil, nil, nil
	slices.SortFunc(c.reads, func(a, b reading) int {
		if a.op != b.op {
			return a.op - b.op
		}
		return map[bool]int{true: -1, false: 1}[a.cell.column < b.cell.column]
	})
	return c.key(s.cells)
}

// grounded makes known what was there at first in those cells that were added to,
// and where it so far could be anything.
func (s *search) grounded(st *state) []*state {
	out := []*state{st}
	for k, list := range st.cells {
		if list[0].delta {
			out = s.known(out, k, -1)
		}
	}
	return out
}

func (s *search) edges(st *state) []edge {
	var out []edge
	add := func(from, to int, k cell, kind edgeKind) {
		if from != to {
			out = append(out, edge{from, to, k, kind})
		}
	}
	for k, list := range st.cells {
		for i := range list {
			for j := range list[:i] {
				if !(list[i].delta && list[j].delta) && !repeats(list, i) {
					add(list[j].section, list[i].section, k, ww)
				}
			}
		}
	}
	for _, l := range s.live {
		w, ok := st.versionOf(l.write)
		r := slices.IndexFunc(st.reads, func(r reading) bool { return r.op == l.read && r.cell == l.cell })
		if !ok || r < 0 || st.reads[r].own {
			continue
		}
		list := st.cells[l.cell]
		at := st.credited(l, st.reads[r].at, w)
		if at > 0 {
			add(list[at-1].section, l.section, l.cell, wr)
		}
		for _, v := range list[at:] {
			if v.val != l.val {
				add(l.section, v.section, l.cell, rw)
			}
		}
	}
	return out
}

// repeats reports whether a version is what was set before it already. What was come
// to by adding is not set: in another order the sum is another.
func repeats(list []version, i int) bool {
	return i > 0 && !list[i].delta && !list[i-1].delta && list[i].val == list[i-1].val
}

// versionOf returns the version that has a write, if that committed.
func (st *state) versionOf(op int) (version, bool) {
	for _, list := range st.cells {
		for _, v := range list {
			if slices.Contains(v.ops, op) {
				return v, true
			}
		}
	}
	return version{}, false
}

// credited returns the last version before the write that has what was read: to
// have read that one would have been the same.
func (st *state) credited(l live, at int, w version) int {
	list := st.cells[l.cell]
	for i := at; i < len(list) && list[i].seq < w.seq; i++ {
		if list[i].val == l.val {
			at = i + 1
		}
	}
	return at
}

func rowsOf(edges []edge) (out []string) {
	for _, e := range edges {
		if !slices.Contains(out, e.cell.row) {
			out = append(out, e.cell.row)
		}
	}
	return out
}

func onRow(edges []edge, row string) []edge {
	return slices.DeleteFunc(slices.Clone(edges), func(e edge) bool { return e.cell.row != row })
}

// harmful reports whether there is a cycle in which somebody read what was not
// the last, or one of writes alone that are of several cells.
func harmful(edges []edge) bool {
	for _, e := range edges {
		if e.kind == rw && reaches(edges, e.to, e.from, nil) {
			return true
		}
	}
	var writes []edge
	for _, e := range edges {
		if e.kind == ww {
			writes = append(writes, e)
		}
	}
	return slices.ContainsFunc(writes, func(e edge) bool { return torn(writes, []int{e.from, e.to}, []cell{e.cell}) })
}

func reaches(edges []edge, from, to int, seen []int) bool {
	if from == to {
		return true
	}
	seen = append(seen, from)
	return slices.ContainsFunc(edges, func(e edge) bool {
		return e.from == from && !slices.Contains(seen, e.to) && reaches(edges, e.to, to, seen)
	})
}

// torn reports whether a path of writes closes to a cycle that has several cells.
func torn(writes []edge, path []int, cells []cell) bool {
	for _, e := range writes {
		if e.from != path[len(path)-1] {
			continue
		}
		with := append(slices.Clone(cells), e.cell)
		if e.to == path[0] && len(slices.CompactFunc(with, func(a, b cell) bool { return a == b })) > 1 {
			return true
		}
		if !slices.Contains(path, e.to) && torn(writes, append(slices.Clone(path), e.to), with) {
			return true
		}
	}
	return false
}
