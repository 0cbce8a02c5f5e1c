package check

import (
	"encoding/binary"
	"slices"
)

// A version is what one transaction put into a cell, or is about to.
type version struct {
	cell, section, tx int
	writes            uint64 // the deeds that made it
	val               datum
	delta             bool // all of those added to what was there
}

// A sight is what a deed saw of a cell: which of the versions, -1 for what was
// there at first, or what its own transaction had not committed yet.
type sight struct {
	deed, cell, version int
	own                 bool
}

// A course is how far an order has got, and what is so then.
type course struct {
	placed   uint64
	first    []datum   // what was in each cell at first, where that is known
	versions []version // as they were committed
	pending  []version
	holders  []int8 // of each row's lock, by transaction from 1
	snaps    []int  // of each transaction, how many versions its snapshot has, from 1
	sights   []sight
}

func (s *scene) begin() *course {
	return &course{first: slices.Clone(s.first), holders: make([]int8, len(s.rows)), snaps: make([]int, len(s.txs))}
}

func (x *course) clone() *course {
	return &course{placed: x.placed, first: slices.Clone(x.first), versions: slices.Clone(x.versions), pending: slices.Clone(x.pending),
		holders: slices.Clone(x.holders), snaps: slices.Clone(x.snaps), sights: slices.Clone(x.sights)}
}

// key tells two courses apart as far as what follows, and what can be told of them,
// goes.
func (x *course) key() string {
	b := make([]byte, 0, 256)
	b = binary.AppendUvarint(b, x.placed)
	for _, v := range x.first {
		b = v.appendTo(b)
	}
	for _, list := range [][]version{x.versions, x.pending} {
		b = append(b, byte(len(list)))
		for _, v := range list {
			b = append(b, byte(v.cell), byte(v.tx))
			b = v.val.appendTo(binary.AppendUvarint(b, v.writes))
		}
	}
	for _, h := range x.holders {
		b = append(b, byte(h))
	}
	for _, n := range x.snaps {
		b = append(b, byte(n))
	}
	return string(x.sightsTo(b))
}

func (x *course) sightsTo(b []byte) []byte {
	for _, g := range x.sights {
		b = append(b, byte(g.deed), byte(g.cell), byte(g.version))
		if g.own {
			b = append(b, 1)
		}
	}
	return b
}

func (v datum) appendTo(b []byte) []byte {
	b = append(b, byte(v.kind), byte(asInt(v.sent)))
	if v.kind == noNumber {
		return append(append(b, byte(len(v.hash))), v.hash...)
	}
	return binary.AppendVarint(b, v.n)
}

// current is what a transaction sees in a cell, and where that comes from.
func (x *course) current(cell, tx int, snapshot bool) (v *datum, g sight) {
	for i := range x.pending {
		if p := &x.pending[i]; p.tx == tx && p.cell == cell {
			return &p.val, sight{cell: cell, own: true}
		}
	}
	n := len(x.versions)
	if snapshot && x.snaps[tx] > 0 {
		n = x.snaps[tx] - 1
	}
	for i := n - 1; i >= 0; i-- {
		if x.versions[i].cell == cell {
			return &x.versions[i].val, sight{cell: cell, version: i}
		}
	}
	return &x.first[cell], sight{cell: cell, version: -1}
}

// unchanged reports whether nobody has committed to the row since the snapshot of
// the transaction, which lets it lock that.
func (x *course) unchanged(s *scene, row, tx int) bool {
	if x.snaps[tx] == 0 {
		return true
	}
	return !slices.ContainsFunc(x.versions[x.snaps[tx]-1:], func(v version) bool { return s.rowOf[v.cell] == row })
}

func (x *course) free(row, tx int) bool { return x.holders[row] == 0 || int(x.holders[row]) == tx+1 }

// letGo ends a transaction that does not commit.
func (x *course) letGo(tx int) {
	for row, h := range x.holders {
		if int(h) == tx+1 {
			x.holders[row] = 0
		}
	}
	x.pending = slices.DeleteFunc(x.pending, func(v version) bool { return v.tx == tx })
}

func (x *course) commit(tx int) {
	for _, v := range x.pending {
		if v.tx == tx {
			x.versions = append(x.versions, v)
		}
	}
	x.letGo(tx)
}

// write adds what a deed assigns to what its transaction has pending.
func (x *course) write(s *scene, n int) {
	d := &s.deeds[n]
	for _, a := range d.sets {
		at := slices.IndexFunc(x.pending, func(v version) bool { return v.tx == d.tx && v.cell == a.cell })
		v := version{cell: a.cell, section: s.txs[d.tx].section, tx: d.tx, val: a.val}
		if a.delta {
			before, _ := x.current(a.cell, d.tx, false)
			v.val = datum{}
			if before.kind != noNumber {
				v.val = datum{n: before.n + a.val.n, kind: before.kind}
			}
			v.delta = at < 0 || x.pending[at].delta
		}
		if v.writes = 1 << n; at >= 0 {
			v.writes |= x.pending[at].writes
			x.pending[at] = v
			continue
		}
		x.pending = append(x.pending, v)
	}
}

// returns notes what a deed saw, and reports whether it can have. What is not
// known becomes known by that.
func (x *course) returns(s *scene, n int, snapshot bool) bool {
	d := &s.deeds[n]
	for _, r := range d.returned {
		v, g := x.current(r.cell, d.tx, snapshot)
		if !v.known() {
			*v = r.val
		}
		if equal(*v, r.val) == no {
			return false
		}
		g.deed = n
		x.sights = append(x.sights, g)
	}
	return true
}

// passes reports whether a deed's guards may hold, or whether one may not.
func (x *course) passes(s *scene, d *deed, hold bool) bool {
	holding := yes
	for _, g := range d.guards {
		v, _ := x.current(g.cell, d.tx, s.txs[d.tx].snapshot && !hold)
		holding = min(holding, holds(*v, g))
	}
	return holding == maybe || hold == (holding == yes)
}

// equal compares two values as far as they are known.
func equal(v, w datum) certainty {
	switch {
	case v.kind != noNumber && v.kind == w.kind:
		return certain(v.n == w.n)
	case v.kind == noNumber && w.kind == noNumber && v.hash != "" && w.hash != "":
		if v.hash != w.hash && v.sent != w.sent {
			return maybe // 8.5 is returned as 8.50
		}
		return certain(v.hash == w.hash)
	}
	return maybe
}

func certain(is bool) certainty {
	if is {
		return yes
	}
	return no
}

// holds reports whether a guard is true of a value.
func holds(v datum, g guarded) certainty {
	switch g.op {
	case "=":
		return equal(v, g.val)
	case "<>":
		return yes - equal(v, g.val)
	}
	if v.kind == noNumber || v.kind != g.val.kind {
		return maybe
	}
	switch g.op {
	case "<":
		return certain(v.n < g.val.n)
	case "<=":
		return certain(v.n <= g.val.n)
	case ">":
		return certain(v.n > g.val.n)
	}
	return certain(v.n >= g.val.n)
}
