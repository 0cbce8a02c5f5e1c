package orders

import (
	"encoding/binary"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A version is what one transaction left in a cell.
type version struct {
	section int
	ops     []int // the writes that made it, by index
	val     value
	delta   bool // all of them added to what was there
	seq     int  // place among all commits
	grants  int  // how many there had been
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
	grants  []int // the sections, as they were granted their locks
	commits int
	txs     int // how many transactions there are
}

func newState() *state {
	return &state{first: map[cell]value{}, cells: map[cell][]version{}, pending: map[int]map[cell]version{},
		holder: map[string]int{}, snaps: map[int]map[cell]int{}}
}

func (s *state) clone() *state {
	c := newState()
	c.placed, c.commits, c.txs, c.reads, c.grants = s.placed, s.commits, s.txs, slices.Clone(s.reads), slices.Clone(s.grants)
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
func (s *state) key(cells []cell) string {
	b := make([]byte, 0, 256)
	put := func(ns ...int) {
		for _, n := range ns {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	put(int(s.placed), s.commits, len(s.reads), len(s.grants))
	put(s.grants...)
	for _, r := range s.reads {
		put(r.op, r.at, slices.Index(cells, r.cell))
		b = append(b, flag(r.own))
	}
	for i, k := range cells {
		v, ok := s.first[k]
		b = append(b, flag(ok))
		b = append(binary.AppendVarint(b, v.n), v.text...)
		put(len(s.cells[k]), s.holder[k.row])
		for _, v := range s.cells[k] {
			b = v.appendTo(b)
		}
		for tx := range s.txs {
			if v, ok := s.pending[tx][k]; ok {
				put(i, tx)
				b = v.appendTo(b)
			}
			if m, ok := s.snaps[tx]; ok {
				put(-1, tx, m[k])
			}
		}
	}
	return string(b)
}

func (v version) appendTo(b []byte) []byte {
	for _, n := range append([]int{v.section, v.seq, v.grants, len(v.ops)}, v.ops...) {
		b = binary.AppendVarint(b, int64(n))
	}
	b = append(binary.AppendVarint(b, v.val.n), v.val.text...)
	return append(b, flag(v.delta))
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
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
		v.seq, v.grants = s.commits, len(s.grants)
		s.cells[k] = append(s.cells[k], v)
	}
	s.commits++
	s.letGo(tx)
}
