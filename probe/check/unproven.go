package check

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// unproven lists the columns whose late writes could not be judged: nothing
// shows whether they were computed from what had been read.
func (c *kase) unproven() {
	at := map[columnOf]int{}
	for _, id := range c.lockIDs() {
		for i, t := range c.terms[id] {
			if t.Marker {
				continue
			}
			for _, w := range c.ofTerm[t.ID].writes {
				if c.late(t, w, c.terms[id][i+1:]) {
					c.unprovenWrite(t, w, at)
				}
			}
		}
	}
}

// late reports whether an UPDATE was accepted after the lease of its term, or,
// where nothing guards it, after the next grant.
func (c *kase) late(t *lock.Term, w *write, later []*lock.Term) bool {
	if w.state != accepted || c.cycled[w] || w.op.Verb != "UPDATE" {
		return false
	}
	return t.Dead(w.lo) || len(c.guards(w.op)) == 0 && grantedBefore(t, later, w.lo) != nil
}

func (c *kase) unprovenWrite(t *lock.Term, w *write, at map[columnOf]int) {
	table := lock.TableName(w.op.SQL.Table)
	for _, a := range w.op.SQL.Set {
		column := columnOf{table, a.Column}
		if a.HasDelta || !a.Value.Known() || c.judged(column) || c.versioned(w, a.Column) || c.claimedBy(t, w) {
			continue
		}
		if _, ok := at[column]; !ok {
			at[column] = len(c.out.Facts.Unproven)
			c.out.Facts.Unproven = append(c.out.Facts.Unproven, Unproven{Table: table, Column: a.Column, Where: c.whereOf(w.op)})
		}
		u := &c.out.Facts.Unproven[at[column]]
		u.Writes++
		u.Number = u.Number || a.Value.IsInt || a.Value.IsRel
	}
}

// judged reports whether writes of the column were looked through for lost
// updates, or are none: an invariant names it, it keeps fences, or they were
// proven to depend on what was read.
func (c *kase) judged(column columnOf) bool {
	return c.proven[column] || c.ledger.IsFence(column.table, column.column) ||
		slices.ContainsFunc(c.in.Invariants, func(inv Invariant) bool {
			return inv.Column == column.column && lock.TableName(inv.Table) == column.table
		})
}

// claimedBy reports whether the term had claimed the row and the write compares
// its claim: nobody can have written in between.
func (c *kase) claimedBy(t *lock.Term, w *write) bool {
	return c.ofTerm[t.ID].claimed(w) && slices.ContainsFunc(c.guards(w.op), func(g lock.Cond) bool { return g.Op == "=" })
}

// whereOf is how a statement chooses its row, in SQL and without its values.
func (c *kase) whereOf(op *lock.Op) string {
	s := c.shapeOf(op.SQL.Table)
	var parts []string
	for _, w := range op.SQL.Where {
		if w.Op == "=" && !s.mutable[w.Column] {
			parts = append(parts, w.Column+" = ...")
		}
	}
	return strings.Join(parts, " AND ")
}
