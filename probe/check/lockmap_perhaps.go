package check

import (
	"maps"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// chartPerhaps notes a write with the locks of one of whose sections it may be. It is
// kept apart until the whole is known: such a lock need not have been met yet.
func (c *kase) chartPerhaps(w *write) {
	var met []lock.LockID
	for _, id := range w.op.Term.Candidates() {
		t := c.byID[id]
		if t == nil || t.Marker {
			continue
		}
		shape := lock.LockID{Upstream: t.Lock.Upstream, DB: t.Lock.DB, Key: lock.Shape(t.Lock.Key)}
		if slices.Contains(met, shape) {
			continue
		}
		met = append(met, shape)
		if g := c.chartTable(c.mapped.maybe(shape), w); g != nil {
			g.Perhaps++
			g.least = min(g.least, w.op.Term.Confidence)
		}
	}
}

func (m *chartBook) maybe(shape lock.LockID) map[string]*chartedTable {
	g := m.perhaps[shape]
	if g == nil {
		if g = map[string]*chartedTable{}; len(m.perhaps) < mostMapped {
			m.perhaps[shape] = g
		}
	}
	return g
}

// chartTable returns what is kept of a write's table, with its row and its
// columns noted; nil where there are too many.
func (c *kase) chartTable(guards map[string]*chartedTable, w *write) *chartedTable {
	name := lock.TableName(w.op.SQL.Table)
	g := guards[name]
	if g == nil {
		if len(guards) >= mostGuarded {
			return nil
		}
		g = &chartedTable{Guarded: Guarded{Table: name, Where: c.whereOf(w.op), Sure: 1}, rows: map[string]bool{}, put: map[string]bool{}, least: 1}
		guards[name] = g
	}
	if w.row != unknownRow && len(g.rows) < mostChartRows {
		g.rows[w.row] = true
	}
	for _, a := range w.op.SQL.Set {
		g.sets(a.Column)
	}
	return g
}

func (g *chartedTable) sets(column string) {
	if at, known := slices.BinarySearch(g.Columns, column); !known && len(g.Columns) < mostChartColumns {
		g.Columns = slices.Insert(g.Columns, at, column)
	}
}

// join adds the tables that may be written under the lock.
func (e *charted) join(perhaps map[string]*chartedTable) {
	for name, p := range perhaps {
		g := e.guards[name]
		if g == nil {
			e.guards[name] = p
			continue
		}
		g.Perhaps = p.Perhaps
		for _, column := range p.Columns {
			g.sets(column)
		}
		maps.Copy(g.rows, p.rows)
	}
}
