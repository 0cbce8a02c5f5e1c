package check

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An unprovenColumn counts late writes of a column that rest on the same premises.
type unprovenColumn struct {
	Unproven
	on []*premise // of the cycles that the writes may be part of
}

// unproven lists the columns whose late writes could not be judged: nothing
// shows whether they were computed from what had been read.
func (c *kase) unproven() {
	for _, id := range c.lockIDs() {
		for i, t := range c.terms[id] {
			if t.Marker {
				continue
			}
			for _, w := range c.ofTerm[t.ID].writes {
				if c.dueOp(w.op) && c.late(t, w, c.terms[id][i+1:]) {
					c.unprovenWrite(t, w)
				}
			}
		}
	}
}

// late reports whether an UPDATE was accepted after the lease of its term, or,
// where nothing guards it, after the next grant.
func (c *kase) late(t *lock.Term, w *write, later []*lock.Term) bool {
	if w.state != accepted || c.inCycle(w) == yes || w.op.Verb != "UPDATE" {
		return false
	}
	return t.Dead(w.lo) || len(c.guards(w.op)) == 0 && c.grantedBefore(t, later, w.lo) != nil
}

func (c *kase) unprovenWrite(t *lock.Term, w *write) {
	table := lock.TableName(w.op.SQL.Table)
	for _, a := range w.op.SQL.Set {
		if a.HasDelta || !a.Value.Known() || c.versioned(w, a.Column) || c.claimedBy(t, w) {
			continue
		}
		if u := c.unprovenColumn(table, a.Column, w); u != nil {
			u.Writes++
			u.Number = u.Number || a.Value.IsInt || a.Value.IsRel
		}
	}
}

func (c *kase) unprovenColumn(table, column string, w *write) *unprovenColumn {
	on := c.cycled[w]
	for _, u := range c.unproved {
		if u.Table == table && u.Column == column && slices.EqualFunc(u.on, on, (*premise).is) {
			return u
		}
	}
	if len(c.unproved) >= mostTables {
		return nil
	}
	u := &unprovenColumn{Unproven{Table: table, Column: column, Where: c.whereOf(w.op)}, on}
	c.unproved = append(c.unproved, u)
	return u
}

// sumUnproven leaves out what turned out to be judged, or part of a cycle.
func (c *carry) sumUnproven() {
	list := &c.out.Facts.Unproven
	for _, u := range c.unproved {
		if c.isJudged(columnOf{u.Table, u.Column}) || slices.ContainsFunc(u.on, c.holds) {
			continue
		}
		at := slices.IndexFunc(*list, func(o Unproven) bool { return o.Table == u.Table && o.Column == u.Column })
		if at < 0 {
			*list = append(*list, u.Unproven)
			continue
		}
		(*list)[at].Writes += u.Writes
		(*list)[at].Number = (*list)[at].Number || u.Number
	}
}

// isJudged reports whether writes of the column were looked through for lost
// updates, or are none: an invariant names it, it keeps fences, or they were
// proven to depend on what was read.
func (c *carry) isJudged(column columnOf) bool {
	return c.dependent(column, true) == yes || c.ledger.IsFence(column.table, column.column) ||
		slices.ContainsFunc(c.setup.Invariants, func(inv Invariant) bool {
			return inv.Kind != "monotone" && inv.Column == column.column && lock.TableName(inv.Table) == column.table
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
