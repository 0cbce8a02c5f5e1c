package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A tableState is what is carried of one table.
type tableState struct {
	fact    TableFact
	first   uint64 // the Seq of the first write that a section made of it, or tried to, or may have; 0: none did
	locks   map[string]int
	columns []columnUse
}

func (c *carry) tableState(name string) *tableState {
	name = lock.TableName(name)
	t := c.tables[name]
	if t == nil {
		if len(c.tables) >= mostTables {
			return nil
		}
		t = &tableState{fact: TableFact{Table: name}, locks: map[string]int{}}
		c.tables[name] = t
	}
	return t
}

// A columnUse is how sections wrote a column.
type columnUse struct {
	name    string
	first   wrote // where it was assigned first
	updated wrote // likewise by an UPDATE, which chose its row so
	where   string
	delta   bool // one added to it
}

// A wrote is a place in the record: an op, and an assignment of it from 1.
type wrote struct {
	op uint64
	at int
}

func (p wrote) compare(q wrote) int { return cmp.Or(cmp.Compare(p.op, q.op), cmp.Compare(p.at, q.at)) }

// earlier reports whether p comes before q, which may be none.
func (p wrote) earlier(q wrote) bool { return q.at == 0 || p.compare(q) < 0 }

// tableFacts counts what sections wrote, table by table.
func (c *kase) tableFacts() {
	for _, w := range c.writes {
		if !c.dueOp(w.op) {
			continue
		}
		c.remember(w)
		if w.state == accepted && !w.op.Term.Sure() {
			if table := lock.TableName(w.op.SQL.Table); len(c.strayed) < mostTables || c.strayed[table] > 0 {
				c.strayed[table]++
			}
		}
		if w.state == accepted && w.op.Term.ID != 0 && !w.op.Term.Sure() {
			c.perhapsOf(w)
		}
		if w.state != accepted && w.state != refused || !w.op.Term.Sure() {
			continue
		}
		if w.state == accepted {
			c.out.Facts.Writes++
		}
		if t := c.tableState(w.op.SQL.Table); t != nil {
			c.tableWrite(t, w)
		} else {
			c.meet(boundTables)
		}
	}
}

// tableWrite notes a write. Writes are due in another order than that in which they
// were asked for, so that nothing may depend on which is met first.
func (c *kase) tableWrite(s *tableState, w *write) {
	if s.first == 0 || w.op.Seq < s.first {
		s.first = w.op.Seq
	}
	if w.state == accepted {
		s.fact.Writes++
	}
	if name := c.byID[w.op.Term.ID].Lock.String(); s.locks[name] > 0 || len(s.locks) < mostTables {
		s.locks[name]++
	}
	c.usedBy(s, w)
}

// perhapsOf notes a write that may be of a section.
func (c *kase) perhapsOf(w *write) {
	s := c.tableState(w.op.SQL.Table)
	if s == nil {
		c.meet(boundTables)
		return
	}
	if s.first == 0 || w.op.Seq < s.first {
		s.first = w.op.Seq
	}
	s.fact.Perhaps++
	c.usedBy(s, w)
}

// usedBy notes which columns a write set.
func (c *kase) usedBy(s *tableState, w *write) {
	for i, a := range w.op.SQL.Set {
		u := s.use(a.Column)
		if u == nil {
			continue
		}
		at := wrote{w.op.Seq, i + 1}
		if at.earlier(u.first) {
			u.first = at
		}
		if w.op.Verb == "UPDATE" {
			if u.delta = u.delta || a.HasDelta; at.earlier(u.updated) {
				u.updated, u.where = at, c.whereOf(w.op)
			}
		}
	}
}

// mostColumns is how many columns are remembered of one table.
const mostColumns = 1 << 10

func (s *tableState) use(column string) *columnUse {
	for i := range s.columns {
		if s.columns[i].name == column {
			return &s.columns[i]
		}
	}
	if len(s.columns) >= mostColumns {
		return nil
	}
	s.columns = append(s.columns, columnUse{name: column})
	return &s.columns[len(s.columns)-1]
}

// countable reports whether an invariant could sum what is written to a column.
func (c *carry) countable(table string, u columnUse) bool {
	return u.updated.at != 0 && (u.delta || c.numbers[columnOf{table, u.name}]) && !c.ledger.IsFence(table, u.name)
}

// sumTables completes what is known of the tables that sections wrote.
func (c *carry) sumTables() {
	var list []*tableState
	for _, s := range c.tables {
		if s.first != 0 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *tableState) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.fact.Table, b.fact.Table))
	})
	for _, s := range list {
		c.sumTable(s)
	}
}

func (c *carry) sumTable(s *tableState) {
	t := s.fact
	for _, l := range sortedNames(s.locks) {
		if t.Lock == "" || s.locks[l] > s.locks[t.Lock] {
			t.Lock = l
		}
	}
	slices.SortFunc(s.columns, func(a, b columnUse) int { return a.first.compare(b.first) })
	for _, u := range s.columns {
		t.Columns = append(t.Columns, u.name)
		if t.Fence == "" && c.ledger.IsFence(t.Table, u.name) {
			t.Fence = u.name
		}
	}
	slices.SortStableFunc(s.columns, func(a, b columnUse) int { return a.updated.compare(b.updated) })
	for _, u := range s.columns {
		if c.countable(t.Table, u) {
			if t.Numbers = append(t.Numbers, u.name); t.Where == "" {
				t.Where = u.where
			}
		}
	}
	c.out.Facts.Tables = append(c.out.Facts.Tables, t)
}

func sortedNames(m map[string]int) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
