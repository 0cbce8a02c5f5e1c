package orders

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A version is what one transaction left in a cell.
type version struct {
	section int
	ops     []int // the writes that made it, by index
	val     value
	delta   bool // all of them added to what was there
	seq     int  // place among all commits
}

// A reading is which version of a cell a statement read: its place in the cell,
// 0 for what was there at first, or none where it saw what its own transaction had
// not committed yet.
type reading struct {
	op   int
	cell cell
	at   int
	own  bool
}

// A state is how far an order has got, and what is so then.
type state struct {
	placed  uint32
	first   map[cell]value // what was there at first, where that had to be known
	cells   map[cell][]version
	pending map[int]map[cell]version // by transaction
	holder  map[string]int           // of a row's lock, from 1; see hold
	snaps   map[int]map[cell]int     // versions that a snapshot has, and the own row's
	reads   []reading
	commits int
}

func newState() *state {
	return &state{first: map[cell]value{}, cells: map[cell][]version{}, pending: map[int]map[cell]version{},
		holder: map[string]int{}, snaps: map[int]map[cell]int{}}
}

func (s *state) clone() *state {
	c := newState()
	c.placed, c.commits, c.reads = s.placed, s.commits, slices.Clone(s.reads)
	for k, v := range s.first {
		c.first[k] = v
	}
	for k, v := range s.cells {
		c.cells[k] = slices.Clone(v)
	}
	for t, m := range s.pending {
		c.pending[t] = map[cell]version{}
		for k, v := range m {
			c.pending[t][k] = v
		}
	}
	for k, v := range s.holder {
		c.holder[k] = v
	}
	for k, v := range s.snaps {
		c.snaps[k] = v // never changed
	}
	return c
}

// key tells two states apart as far as what follows goes.
func (s *state) key() string {
	var b strings.Builder
	fmt.Fprint(&b, s.placed, s.reads, s.commits)
	for _, m := range []any{s.first, s.cells, s.pending, s.holder, s.snaps} {
		fmt.Fprint(&b, m) // by key
	}
	return b.String()
}

// free reports whether the transaction can have the row's lock, or has it.
func (s *state) free(row string, tx int) bool { return s.holder[row] == 0 || s.holder[row] == tx+1 }

func (s *state) hold(row string, tx int) { s.holder[row] = tx + 1 }

func (s *state) letGo(tx int) {
	for row, t := range s.holder {
		if t == tx+1 {
			delete(s.holder, row)
		}
	}
	delete(s.pending, tx)
}

// current returns the cell's value as the transaction sees it, and where it comes
// from; unset where that is what was there at first and is not known.
func (s *state) current(k cell, tx int, snapshot bool) (v value, r reading, unset bool) {
	if p, ok := s.pending[tx][k]; ok {
		return p.val, reading{cell: k, own: true}, false
	}
	n := len(s.cells[k])
	if snap, ok := s.snaps[tx]; ok && snapshot {
		n = snap[k]
	}
	r = reading{cell: k, at: n}
	if n > 0 {
		return s.cells[k][n-1].val, r, false
	}
	v, ok := s.first[k]
	return v, r, !ok
}

// unchanged reports whether nobody has committed to the row since the snapshot of
// the transaction, which lets it write there.
func (s *state) unchanged(row string, tx int) bool {
	snap, ok := s.snaps[tx]
	if !ok {
		return true
	}
	for k, list := range s.cells {
		if k.row == row && len(list) != snap[k] {
			return false
		}
	}
	return true
}

// write adds what a statement assigns to what its transaction has pending.
func (s *state) write(op *lock.Op, n, tx, section int) {
	row := rowOf(op)
	for _, a := range op.SQL.Set {
		k := cell{row, a.Column}
		old, had := s.pending[tx][k]
		v := version{section: section, ops: append(slices.Clone(old.ops), n), val: valueOf(a.Value)}
		if a.HasDelta {
			before, _, _ := s.current(k, tx, false)
			v.val, v.delta = value{n: before.n + a.Delta}, !had || old.delta
		}
		if s.pending[tx] == nil {
			s.pending[tx] = map[cell]version{}
		}
		s.pending[tx][k] = v
	}
}

// commit puts what the transaction has pending into the cells.
func (s *state) commit(tx int) {
	for k, v := range s.pending[tx] {
		v.seq = s.commits
		s.cells[k] = append(s.cells[k], v)
	}
	s.commits++
	s.letGo(tx)
}
