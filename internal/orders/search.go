package orders

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Tally says in how many of the orders something is so.
type Tally struct{ Yes, No int }

// Every and Some report whether it is so in every order, and in one.
func (t Tally) Every() bool { return t.Yes > 0 && t.No == 0 }
func (t Tally) Some() bool  { return t.Yes > 0 }

func (t *Tally) add(yes bool) {
	if yes {
		t.Yes++
	} else {
		t.No++
	}
}

// A Result is what is so of a history. Orders that differ in nothing that anybody
// could have read or written count once.
type Result struct {
	Orders  int
	Lost    Tally // a cycle on one row: LF104
	Anomaly Tally // a cycle across rows, and none on one: LF106
	Stale   Tally // a write that nothing guards after another section's grant: LF103, if it is in no cycle and the history has Grants
	Fell    Tally // a lower fence after a higher one, or the same of another section: LF105
	// Alibi: in some order with harm, a serial order of the sections gives every
	// read that matters what it returned, lets every write that was accepted pass,
	// and leaves the same behind.
	Alibi bool
	// Enough: the budget was spent before every order was seen. Nothing else holds then.
	Enough bool
}

// A search goes through the orders of one history.
type search struct {
	h      History
	txs    []*trans
	of     []int
	points []point
	live   []live
	cells  []cell
	budget int
	seen   map[string]bool
	leaves map[string]bool
	out    Result
}

// Judge says what is so in the orders that a history admits, of which it looks at
// no more than budget states.
func Judge(h History, budget int) Result {
	s := &search{h: h, budget: budget, seen: map[string]bool{}, leaves: map[string]bool{}}
	s.txs, s.of = transactions(h)
	s.points = pointsOf(h, s.txs, s.of)
	s.live = s.liveReads()
	s.cells = cellsOf(h)
	if len(s.points) > 32 {
		return Result{Enough: true}
	}
	st := newState()
	st.txs = len(s.txs)
	s.from(st)
	return s.out
}

// from goes through the orders that begin so.
func (s *search) from(st *state) {
	k := st.key(s.cells)
	if s.seen[k] || s.out.Enough {
		return
	}
	s.seen[k] = true
	if len(s.seen) > s.budget {
		s.out.Enough = true
		return
	}
	whole := true
	for i := range s.points {
		p := &s.points[i]
		if st.placed&(1<<i) != 0 {
			continue
		}
		whole = whole && p.optional
		if p.after&^st.placed&^s.optional() != 0 || s.overtaken(st, i) {
			continue
		}
		for _, next := range s.place(st, p) {
			next.placed |= 1 << i
			s.from(next)
		}
	}
	if whole {
		s.leaf(st)
	}
}

// optional is the set of points that may lie nowhere.
func (s *search) optional() (out uint32) {
	for i, p := range s.points {
		if p.optional {
			out |= 1 << i
		}
	}
	return out
}

// overtaken reports whether a point that should come after the i-th has been
// placed: then that one, being optional, lies nowhere.
func (s *search) overtaken(st *state, i int) bool {
	for j := range s.points {
		if st.placed&(1<<j) != 0 && s.points[j].after&(1<<i) != 0 {
			return true
		}
	}
	return false
}

// place returns the states that may follow when p comes next.
func (s *search) place(st *state, p *point) []*state {
	if p.kind == grant {
		next := st.clone()
		next.grants = append(next.grants, s.h.Section[p.n])
		return []*state{next}
	}
	snapshot := s.txs[p.tx].snapshot
	switch p.kind {
	case snap:
		return s.takeSnap(st.clone(), p)
	case look:
		return s.look(st, p, snapshot)
	case put, take:
		return s.write(st, p)
	case miss:
		return s.guarded(st, p, snapshot, false)
	case keep:
		return []*state{committed(st, p.tx)}
	case drop:
		return []*state{dropped(st, p.tx)}
	}
	return []*state{committed(st, p.tx), dropped(st, p.tx)}
}

func committed(st *state, tx int) *state {
	next := st.clone()
	next.commit(tx)
	return next
}

func dropped(st *state, tx int) *state {
	next := st.clone()
	next.letGo(tx)
	return next
}

func (s *search) takeSnap(next *state, p *point) []*state {
	lens := map[cell]int{}
	for k, list := range next.cells {
		lens[k] = len(list)
	}
	next.snaps[p.tx] = lens
	return []*state{next}
}

func (s *search) look(st *state, p *point, snapshot bool) []*state {
	row := rowOf(p.op)
	if p.op.SQL.ForUpdate {
		if !st.free(row, p.tx) || !st.unchanged(row, p.tx) {
			return nil
		}
	}
	next := st.clone()
	if !next.returns(p, snapshot) {
		return nil
	}
	if p.op.SQL.ForUpdate && s.txs[p.tx].explicit {
		next.hold(row, p.tx)
	}
	return []*state{next}
}

// returns notes what a statement returned, and reports whether it can have. Of what
// was there at first that is how it becomes known.
func (st *state) returns(p *point, snapshot bool) bool {
	row := rowOf(p.op)
	for _, c := range p.op.Row {
		k := cell{row, c.Column}
		v, r, unset := st.current(k, p.tx, snapshot)
		r.op = p.n
		got := valueOf(c.Value)
		if unset {
			st.first[k], v = got, got
		}
		if v != got {
			return false
		}
		st.reads = append(st.reads, r)
	}
	return true
}

func (s *search) write(st *state, p *point) []*state {
	row, t := rowOf(p.op), s.txs[p.tx]
	if !st.free(row, p.tx) || !st.unchanged(row, p.tx) {
		return nil
	}
	var out []*state
	for _, next := range s.guarded(st, p, false, true) {
		for _, next := range s.based(next, p) {
			next.write(p.op, p.n, p.tx, t.section)
			if !next.returns(p, false) {
				continue
			}
			if p.kind == put {
				next.commit(p.tx)
			} else {
				next.hold(row, p.tx)
			}
			out = append(out, next)
		}
	}
	return out
}

// based makes known what was there at first where a statement adds to it.
func (s *search) based(st *state, p *point) []*state {
	out := []*state{st}
	for _, a := range p.op.SQL.Set {
		if a.HasDelta {
			out = s.known(out, cell{rowOf(p.op), a.Column}, p.tx)
		}
	}
	return out
}

// known returns the states in which it is known what was in the cell at first, as
// far as that matters: each of the values that occur, and one that does not.
func (s *search) known(list []*state, k cell, tx int) []*state {
	var out []*state
	for _, st := range list {
		if _, _, unset := st.current(k, tx, false); !unset {
			out = append(out, st)
			continue
		}
		for _, v := range s.candidates(k) {
			next := st.clone()
			next.first[k] = v
			out = append(out, next)
		}
	}
	return out
}

// guarded returns the states in which the statement's guards hold, or one does not.
func (s *search) guarded(st *state, p *point, snapshot, hold bool) []*state {
	list := []*state{st}
	for _, g := range guardsOf(p.op) {
		list = s.known(list, cell{rowOf(p.op), g.Column}, p.tx)
	}
	var out []*state
	for _, st := range list {
		if st.passes(p, snapshot) == hold {
			out = append(out, st.clone())
		}
	}
	return out
}

func (st *state) passes(p *point, snapshot bool) bool {
	for _, g := range guardsOf(p.op) {
		v, _, _ := st.current(cell{rowOf(p.op), g.Column}, p.tx, snapshot)
		if !holds(v, g) {
			return false
		}
	}
	return true
}

func holds(v value, g lock.Cond) bool {
	w := valueOf(g.Value)
	switch g.Op {
	case "=":
		return v == w
	case "<>":
		return v != w
	case "<":
		return v.n < w.n
	}
	return v.n <= w.n
}

// candidates lists the values that a cell may have had at first: what occurs in it,
// less what was added, one less than that, and something else.
func (s *search) candidates(k cell) []value {
	var occur []value
	added := []int64{0}
	for _, op := range s.h.Ops {
		if op.SQL == nil || rowOf(op) != k.row {
			continue
		}
		for _, a := range op.SQL.Set {
			switch {
			case a.Column != k.column:
			case a.HasDelta:
				for _, n := range slices.Clone(added) {
					added = append(added, n+a.Delta)
				}
			default:
				occur = append(occur, valueOf(a.Value))
			}
		}
		for _, g := range op.SQL.Where {
			if g.Column == k.column {
				occur = append(occur, valueOf(g.Value))
			}
		}
		for _, c := range op.Row {
			if c.Column == k.column {
				occur = append(occur, valueOf(c.Value))
			}
		}
	}
	out := []value{{n: 1 << 40}}
	for _, v := range occur {
		if v.text != "" {
			out = append(out, v)
			continue
		}
		for _, d := range added {
			out = append(out, value{n: v.n - d}, value{n: v.n - d - 1})
		}
	}
	slices.SortFunc(out, func(a, b value) int {
		if a.text != b.text {
			return map[bool]int{true: -1, false: 1}[a.text < b.text]
		}
		return int(a.n - b.n)
	})
	return slices.Compact(out)
}
