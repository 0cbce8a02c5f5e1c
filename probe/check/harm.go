package check

import "slices"

// A link says that in any serial order one section comes before another.
type link struct {
	from, to int // sections, by place
	cell     int
	kind     linkKind
	live     int // of rw and wr: which live read
}

type linkKind uint8

const (
	ww linkKind = iota // it wrote what the other wrote later
	wr                 // it wrote what the other read
	rw                 // it read what the other wrote later
)

// harms is what one order shows.
type harms struct {
	row   bool            // a cycle on one row
	any   bool            // a cycle
	pairs map[[2]int]bool // of the sections of the cycles of two, on one row
	cycle []link          // one of them, on a row if there is one there
}

// links lists what an order shows. Of two values of which it is not known whether
// they are the same, same says whether they are taken to be.
func (s *scene) links(x *course, lives []live, same bool) []link {
	var out []link
	add := func(from, to, cell int, kind linkKind, live int) {
		if from != to {
			out = append(out, link{from, to, cell, kind, live})
		}
	}
	alike := func(v, w datum) bool {
		v.sent, w.sent = false, false // two texts are taken for two values; a reading only is not held against an order
		e := equal(v, w)
		return e == yes || e == maybe && same
	}
	for cell := range s.cells {
		list := x.of(cell)
		for i, v := range list {
			if i > 0 && !v.delta && !list[i-1].delta && alike(v.val, list[i-1].val) {
				continue
			}
			for _, u := range list[:i] {
				if !(u.delta && v.delta) {
					add(u.section, v.section, cell, ww, -1)
				}
			}
		}
	}
	for n, l := range lives {
		list, at, ok := s.seenBy(x, &l, alike)
		if !ok {
			continue
		}
		if at > 0 {
			add(list[at-1].section, l.section, l.cell, wr, n)
		}
		for _, v := range list[at:] {
			if !alike(v.val, l.val) {
				add(l.section, v.section, l.cell, rw, n)
			}
		}
	}
	return out
}

// of lists the versions of a cell.
func (x *course) of(cell int) []version {
	var out []version
	for _, v := range x.versions {
		if v.cell == cell {
			out = append(out, v)
		}
	}
	return out
}

// seenBy returns the versions of a live read's cell, and how many of them it counts
// as having seen: up to the last before the write that has what it returned, for to
// have read that one would have been the same.
func (s *scene) seenBy(x *course, l *live, alike func(v, w datum) bool) (list []version, at int, ok bool) {
	seen := -2
	for _, g := range x.sights {
		if g.cell == l.cell && s.deeds[g.deed].op == l.read {
			if seen = g.version; g.own {
				return nil, 0, false
			}
		}
	}
	wrote := slices.IndexFunc(x.versions, func(v version) bool { return s.has(v, l) })
	if seen == -2 || wrote < 0 {
		return nil, 0, false
	}
	for i, v := range x.versions {
		if v.cell != l.cell {
			continue
		}
		if list = append(list, v); i == seen || i < wrote && i > seen && l.val.known() && alike(v.val, l.val) && v.tx != x.versions[wrote].tx {
			at = len(list)
		}
	}
	return list, at, true
}

// has reports whether a version has a live read's write.
func (s *scene) has(v version, l *live) bool {
	for i := range s.deeds {
		if v.writes&(1<<i) != 0 && s.deeds[i].op == l.write {
			return true
		}
	}
	return false
}

// harmsOf finds the cycles among the links of an order.
func (s *scene) harmsOf(links []link) harms {
	h := harms{pairs: map[[2]int]bool{}}
	for row := range s.rows {
		on := slices.DeleteFunc(slices.Clone(links), func(l link) bool { return s.rowOf[l.cell] != row })
		if c := cycleIn(on); c != nil && !h.row {
			h.row, h.any, h.cycle = true, true, c
		}
		pairsIn(on, h.pairs)
	}
	if !h.any {
		if c := cycleIn(links); c != nil {
			h.any, h.cycle = true, c
		}
	}
	return h
}

// pairsIn notes the sections that form cycles of two.
func pairsIn(links []link, out map[[2]int]bool) {
	for _, a := range links {
		for _, b := range links {
			if a.from == b.to && a.to == b.from && isHarm([]link{a, b}) {
				out[[2]int{min(a.from, a.to), max(a.from, a.to)}] = true
			}
		}
	}
}

// isHarm reports whether somebody in a cycle read what was not the last, or it is
// one of writes alone, of several cells.
func isHarm(cycle []link) bool {
	writes := true
	for _, l := range cycle {
		if l.kind == rw {
			return true
		}
		writes = writes && l.kind == ww
	}
	return writes && slices.ContainsFunc(cycle, func(l link) bool { return l.cell != cycle[0].cell })
}

// cycleIn returns a cycle that is harm, the shortest there is through one of the links.
func cycleIn(links []link) []link {
	for _, l := range links {
		if l.kind == rw {
			if path := pathOf(links, l.to, l.from); path != nil {
				return append([]link{l}, path...)
			}
		}
	}
	var writes []link
	for _, l := range links {
		if l.kind == ww {
			writes = append(writes, l)
		}
	}
	for _, l := range writes {
		if c := torn(writes, []link{l}); c != nil {
			return c
		}
	}
	return nil
}

// pathOf returns the shortest way from one section to another.
func pathOf(links []link, from, to int) []link {
	came := map[int]link{}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for _, l := range links {
			if _, met := came[l.to]; met || l.from != queue[0] || l.to == from {
				continue
			}
			if came[l.to] = l; l.to != to {
				queue = append(queue, l.to)
				continue
			}
			var path []link
			for n := to; n != from; n = came[n].from {
				path = append([]link{came[n]}, path...)
			}
			return path
		}
	}
	return nil
}

// torn returns a cycle of writes, of several cells, that begins with a path.
func torn(writes, path []link) []link {
	last := path[len(path)-1]
	for _, l := range writes {
		if l.from != last.to {
			continue
		}
		with := append(slices.Clone(path), l)
		if l.to == path[0].from {
			if isHarm(with) {
				return with
			}
			continue
		}
		if !slices.ContainsFunc(path, func(p link) bool { return p.from == l.to || p.to == l.to }) {
			if c := torn(writes, with); c != nil {
				return c
			}
		}
	}
	return nil
}
