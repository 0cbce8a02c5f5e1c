package orders

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Shrink leaves out of a history whatever it can while keep still holds of it: ops,
// and of what they say the columns and the conditions.
func Shrink(h History, keep func(History) bool) History {
	for {
		next, ok := smaller(h, keep)
		if !ok {
			return h
		}
		h = next
	}
}

func smaller(h History, keep func(History) bool) (History, bool) {
	for i, op := range h.Ops {
		if h.anchors(i) {
			continue
		}
		less := h
		less.Ops = slices.Delete(slices.Clone(h.Ops), i, i+1)
		less.Section = slices.Delete(slices.Clone(h.Section), i, i+1)
		if keep(less) {
			return less, true
		}
		if op.SQL == nil {
			continue
		}
		for _, o := range simpler(op) {
			less := h
			less.Ops = slices.Clone(h.Ops)
			less.Ops[i] = o
			if keep(less) {
				return less, true
			}
		}
	}
	return h, false
}

// anchors reports whether the i-th op is a section's grant or release, and the section
// has statements: without it they would be nobody's.
func (h History) anchors(i int) bool {
	if h.Ops[i].Proto != lock.Redis || h.Section[i] == 0 {
		return false
	}
	for j, section := range h.Section {
		if section == h.Section[i] && h.Ops[j].Proto == lock.Postgres {
			return true
		}
	}
	return false
}

// simpler lists statements that say a little less.
func simpler(op *lock.Op) []*lock.Op {
	var out []*lock.Op
	but := func(change func(*lock.Op)) {
		own, sql := *op, *op.SQL
		own.SQL = &sql
		change(&own)
		out = append(out, &own)
	}
	for i := range op.SQL.Set {
		if len(op.SQL.Set) > 1 {
			but(func(o *lock.Op) { o.SQL.Set = slices.Delete(slices.Clone(o.SQL.Set), i, i+1) })
		}
	}
	for i, w := range op.SQL.Where {
		if w.Column != "id" {
			but(func(o *lock.Op) { o.SQL.Where = slices.Delete(slices.Clone(o.SQL.Where), i, i+1) })
		}
	}
	for i := range op.Row {
		if len(op.Row) > 1 {
			but(func(o *lock.Op) {
				o.Row = slices.Delete(slices.Clone(o.Row), i, i+1)
				o.SQL.Columns = slices.Delete(slices.Clone(o.SQL.Columns), i, i+1)
			})
		}
	}
	if op.SQL.ForUpdate {
		but(func(o *lock.Op) { o.SQL.ForUpdate = false })
	}
	return out
}
