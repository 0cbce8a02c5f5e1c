package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// sameAgain reports whether m's transaction may have left in its cell what another section
// had just left there, be that x or one that came after it: then nothing says that m came
// after x.
func (c *kase) sameAgain(x *write, m *rmw) bool {
	left := c.finalOf(m)
	return slices.ContainsFunc(c.mayWrite(m.cell), func(y *write) bool {
		if y == m.write || y != x && y.before(x) || m.write.before(y) || sameSection(y, m.write) {
			return false
		}
		v, set := c.leaves(y, m.cell)
		return set && mayBeSame(v, left)
	})
}

func mayBeSame(v, w lock.Value) bool { return !v.Known() || !w.Known() || v.Same(w) }

// finalOf returns what the transaction of m's write left in its cell: the last that it set
// there, which may be another write's than m's.
func (c *kase) finalOf(m *rmw) lock.Value {
	v, _ := c.leaves(m.write, m.cell)
	return v
}

// leaves returns what the transaction of a write left in a cell, as far as that is known,
// and whether it may have set it at all: else it only added to what was there.
func (c *kase) leaves(w *write, k cell) (v lock.Value, set bool) {
	t := c.txs[txID{w.op.Session, w.op.Tx}]
	if w.op.Tx == 0 || w.op.Implicit || t == nil {
		return w.puts(lock.Value{}, false, w, k)
	}
	for _, op := range t.ops {
		if x := c.writeOf[op]; x != nil {
			v, set = x.puts(v, set, w, k)
		}
		for _, x := range c.besideOf[op] {
			v, set = x.puts(v, set, w, k)
		}
	}
	return v, set
}

// puts returns what is in a cell after the write, a statement of w's transaction, where
// before it the transaction had set v there, if it had.
func (x *write) puts(v lock.Value, set bool, w *write, k cell) (lock.Value, bool) {
	a, sets := x.assigns(k.column)
	opaque := len(x.op.SQL.Set) == 0 && x.op.Verb != "DELETE" && x.op.Verb != "TRUNCATE"
	switch {
	case x.state == void || x.state == refused || !x.of(k.table) || !sets && !opaque || differ(x.row, k.row):
		return v, set
	case opaque, x.anywhere, x.row != k.row, x.state != w.state, !oneTable(x.op, w.op):
		return lock.Value{}, true
	case !a.HasDelta:
		return a.Value, true
	case set && v.IsInt:
		return lock.Value{Int: v.Int + a.Delta, IsInt: true}, true
	}
	return lock.Value{}, set
}
