package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// fencesMet reports whether two sections wrote one row with a fence, in an order that
// the intervals leave open.
func (s *scene) fencesMet() bool {
	for i := range s.deeds {
		for j := range s.deeds[:i] {
			a, b := &s.deeds[i], &s.deeds[j]
			if s.fencesOf(a, b) && a.lo < b.hi && b.lo < a.hi {
				return true
			}
		}
	}
	return false
}

// fencesOf reports whether two deeds of different sections wrote one row with a fence.
func (s *scene) fencesOf(a, b *deed) bool {
	return a.row == b.row && s.txs[a.tx].section != s.txs[b.tx].section && s.hasFence(a) && s.hasFence(b)
}

func (s *scene) hasFence(d *deed) bool {
	if d.kind != deedPut && d.kind != deedTake {
		return false
	}
	t := s.c.byID[d.op.Term.ID]
	is := func(column string) bool {
		return s.c.namedFence(d.op.SQL.Table, column) || t != nil && s.c.ledger.MayBeFence(t.Lock, d.op.SQL.Table, column)
	}
	return slices.ContainsFunc(d.op.SQL.Set, func(a lock.Assign) bool { return is(a.Column) }) ||
		slices.ContainsFunc(d.op.SQL.Where, func(g lock.Cond) bool { return g.Op == "=" && is(g.Column) })
}

// firsts notes of the writes with fences which came before which in an order.
func (s *scene) firsts(x *course, r *clustered) {
	at := func(i int) int {
		return slices.IndexFunc(x.versions, func(v version) bool { return v.writes&(1<<i) != 0 })
	}
	for i := range s.deeds {
		for j := range s.deeds {
			a, b := &s.deeds[i], &s.deeds[j]
			if i == j || !s.fencesOf(a, b) {
				continue
			}
			if p, q := at(i), at(j); p >= 0 && q >= 0 && p < q {
				if r.first == nil {
					r.first = map[[2]*lock.Op]int{}
				}
				r.first[[2]*lock.Op{a.op, b.op}]++
			}
		}
	}
}

// inOrders returns how sure it is, by the orders of their cluster, that x came before
// w; "" if that was not found out, or is so in none.
func (c *kase) inOrders(x, w *write) Level {
	p, q := c.placeOf[x.op], c.placeOf[w.op]
	if p.result == nil || p.result != q.result || p.result.blind {
		return ""
	}
	switch n := p.result.first[[2]*lock.Op{x.op, w.op}]; {
	case n == 0:
		return ""
	case n == p.result.with.orders:
		return Proven
	}
	return Possible
}

// unorderedFences finds LF105 where the intervals do not tell the order of two writes: in
// all orders that their cluster admits, or in some.
func (c *kase) unorderedFences(k lockRow, list []fenced, told map[*write]bool) {
	beside := map[*clustered][]fenced{}
	for _, f := range list {
		if in := c.placeOf[f.write.op].result; in != nil {
			beside[in] = append(beside[in], f)
		}
	}
	for _, w := range list {
		if told[w.write] || !c.dueOp(w.write.op) {
			continue
		}
		var best Level
		var by fenced
		for _, x := range beside[c.placeOf[w.write.op].result] {
			if x.write == w.write || !fell(x, w) || w.write.over() <= x.write.lo {
				continue
			}
			if level := c.inOrders(x.write, w.write); level != "" && (best == "" || level.atLeast(best) && level != best) {
				best, by = level, x
			}
		}
		if best == Possible && c.endedAsHigh(k, by.fence) {
			continue
		}
		if best != "" && !c.begunAgain(k, by, w.write.hi) {
			c.regression(k, by, w, best, c.tellers(w.write)...)
		}
	}
}

// endedAsHigh reports whether the last reading of the invariant that names a column was
// no lower than a fence: then nothing says that it ever was.
func (c *carry) endedAsHigh(k lockRow, fence int64) bool {
	return slices.ContainsFunc(c.setup.Invariants, func(inv Invariant) bool {
		return k.lock.Key == "" && inv.Kind == "fence" && inv.Column == k.column && lock.TableName(inv.Table) == k.table && inv.HasEnd && inv.End >= fence
	})
}

// tellers lists what else was done to the row of a write in its cluster, which may be
// what tells of its order.
func (c *kase) tellers(w *write) (out []*lock.Op) {
	s := c.placeOf[w.op].result.scene
	for i := range s.deeds {
		if d := &s.deeds[i]; d.row >= 0 && s.rows[d.row] == (tableRow{lock.TableName(w.op.SQL.Table), w.row}) {
			out = append(out, d.op)
		}
	}
	return append(out, s.later...)
}
