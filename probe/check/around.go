package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// around finds what was in each cell before the cluster and after it, where that is
// certain.
func (s *scene) around() {
	s.first, s.last = make([]datum, len(s.cells)), make([]datum, len(s.cells))
	for i, k := range s.cells {
		if v, ok := s.c.foundBy(k, s.cluster.start); ok {
			s.learnNumbers(v)
			s.first[i] = s.value(columnOf{k.table, k.column}, v)
		}
		if v, by := s.c.leftBy(k, s.cluster); by != nil {
			s.later = append(s.later, by)
			s.learnNumbers(v)
			s.last[i] = s.value(columnOf{k.table, k.column}, v)
		}
	}
}

// foundBy returns what was certainly in a cell at an instant: the last write put it
// there, or a read found it.
func (c *kase) foundBy(k cell, at lock.Instant) (lock.Value, bool) {
	rest := c.restAt(k, at)
	if rest.end > at {
		return lock.Value{}, false
	}
	if rest.val.Known() {
		return rest.val, true
	}
	list := c.readsOf[k]
	end, _ := slices.BinarySearchFunc(list, at, func(r *read, at lock.Instant) int { return cmp.Compare(r.op.A, at) })
	for _, r := range slices.Backward(list[max(0, end-fewReads):end]) {
		if r.op.R < c.settled.at { // of its transaction some may be out of view
			continue
		}
		if v := r.value(k.column); v.Known() && c.readFrom(r) >= rest.end && r.op.R <= at && !c.sawOwn(r, k) {
			return v, true
		}
	}
	return lock.Value{}, false
}

// endsOf returns, for each write of a cell, when it and those before it were over:
// never if one of those has no answer, or is not an UPDATE.
func (c *kase) endsOf(k cell) []lock.Instant {
	if ends, ok := c.ends[k]; ok {
		return ends
	}
	ends := make([]lock.Instant, len(c.written[k]))
	latest := lock.Instant(0)
	for i, w := range c.written[k] {
		if latest = max(latest, w.hi); w.state != accepted {
			latest = lock.Never
		}
		ends[i] = latest
	}
	c.ends[k] = ends
	return ends
}

// leftBy returns what was certainly in a cell when a cluster was over: a statement
// found it before anybody wrote there again. It returns nil if none did.
func (c *kase) leftBy(k cell, after *cluster) (lock.Value, *lock.Op) {
	if c.otherwise(k) != nil || c.known.unread(k.table) {
		return lock.Value{}, nil
	}
	writes := c.written[k]
	next, _ := slices.BinarySearchFunc(writes, after.end, func(w *write, at lock.Instant) int { return cmp.Compare(w.lo, at) })
	if next > 0 && c.endsOf(k)[next-1] > after.end {
		return lock.Value{}, nil
	}
	until := lock.Never
	if next < len(writes) {
		until = writes[next].lo
	}
	list := c.readsOf[k]
	from, _ := slices.BinarySearchFunc(list, after.end, func(r *read, at lock.Instant) int { return cmp.Compare(r.op.A, at) })
	for _, r := range list[from:min(len(list), from+fewReads)] {
		if v := r.value(k.column); v.Known() && c.readFrom(r) >= after.end && r.op.R <= until && !c.sawOwn(r, k) {
			return v, r.op
		}
	}
	return lock.Value{}, nil
}

// sawOwn reports whether a read may have seen what its own transaction had written.
func (c *kase) sawOwn(r *read, k cell) bool {
	if r.claim && slices.ContainsFunc(r.op.SQL.Set, func(a lock.Assign) bool { return a.Column == k.column }) {
		return true
	}
	t := c.txs[txID{r.op.Session, r.op.Tx}]
	return r.op.Tx != 0 && !r.op.Implicit && t != nil && slices.ContainsFunc(t.ops, func(op *lock.Op) bool {
		return op.Kind == lock.Write && op.Seq < r.op.Seq
	})
}
