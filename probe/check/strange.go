package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// blindIn reports whether something may have been written to a row of the cluster in
// its time that its scene does not have, or has otherwise than it was.
func (c *kase) blindIn(k *cluster) bool {
	for row := range k.rows {
		for _, w := range c.strangeTo(row.table) {
			if w.lo >= k.end || w.hi <= k.start || w.row == row.row && w.plain() {
				continue
			}
			if w.row == row.row || !differ(w.row, row.row) {
				return true
			}
		}
	}
	return false
}

// plain reports whether a write is an UPDATE of a row that is known, and of nothing else.
func (w *write) plain() bool {
	return w.op.Verb == "UPDATE" && !w.anywhere && w.row != unknownRow
}

// strangeTo lists the writes of a table that a scene cannot have: that are no UPDATE,
// or of a row that is not known; and, where rows have names of several kinds, all.
func (c *kase) strangeTo(table string) []*write {
	if c.strange == nil {
		c.strange = map[string][]*write{}
		kinds := map[string]map[string]bool{}
		for _, w := range slices.Concat(c.writes, c.beside) {
			table := lock.TableName(w.op.SQL.Table)
			if kinds[table] == nil {
				kinds[table] = map[string]bool{}
			}
			kinds[table][c.nameOf(w.row)] = true
		}
		for _, w := range slices.Concat(c.writes, c.beside) {
			table := lock.TableName(w.op.SQL.Table)
			if w.state != accepted && w.state != uncertain || w.plain() && len(kinds[table]) == 1 {
				continue
			}
			if c.strange[table] = append(c.strange[table], w); w.anywhere {
				c.everywhere = append(c.everywhere, w)
			}
		}
	}
	return append(slices.Clip(c.strange[table]), c.everywhere...)
}
