package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// facts counts what was seen.
func (c *kase) facts() {
	f := &c.out.Facts
	f.Ops, f.Gaps = len(c.ops), len(c.in.Gaps)
	actors := map[string]bool{}
	for _, op := range c.ops {
		if op.Actor != "" {
			actors[op.Actor] = true
		}
		if op.SQL != nil || op.Kind == lock.Commit {
			c.countStatement(op)
		}
		if op.Guessed {
			if f.Guessed++; op.Term.ID != 0 {
				f.Believed++
			}
		}
	}
	f.Actors = len(actors)
	for _, id := range c.locks {
		c.lockFact(id)
	}
	c.tableFacts()
}

func (c *kase) countStatement(op *lock.Op) {
	f := &c.out.Facts
	if !answered(op) && op.F != 0 {
		f.Unsettled++
	}
	if op.Term.Sure() && op.Kind == lock.Read {
		f.Reads++
	}
}

func (c *kase) lockFact(id lock.LockID) {
	l := LockFact{Lock: id.String()}
	_, l.Declared = c.purposeOf(id.Key)
	for _, op := range c.acts[id].all {
		if op.Kind == lock.Acquire && answered(op) && op.Outcome != lock.Granted {
			l.Refusals++
		}
	}
	var held []time.Duration
	for _, t := range c.terms[id] {
		l.Grants++
		l.Renewals += t.Renewals
		l.Marker = l.Marker || t.Marker
		if !slices.Contains(l.TTLs, t.TTL) {
			l.TTLs = append(l.TTLs, t.TTL)
		}
		if t.HasFence {
			if l.Fences++; l.Fences == 1 {
				l.FenceKey = fenceKey(t)
			}
		}
		if t.Release != nil {
			c.out.Facts.Sections++
			if t.Grant.D != 0 && t.ReleaseAt > t.Grant.D {
				held = append(held, t.ReleaseAt.Sub(t.Grant.D))
			}
		}
		if c.endedWhileHeld(t) {
			l.Overrun++
		}
	}
	slices.Sort(l.TTLs)
	if slices.Sort(held); len(held) > 0 {
		l.MedianHeld = held[len(held)/2]
	}
	f := &c.out.Facts
	f.Grants += l.Grants
	f.Refusals += l.Refusals
	f.EndedWhileHeld += l.Overrun
	if l.Grants+l.Refusals > 0 {
		f.Locks = append(f.Locks, l)
	}
}

// tableFacts lists the tables that sections wrote, and the reads of those.
func (c *kase) tableFacts() {
	tables := map[string]*TableFact{}
	locks := map[string]map[string]int{}
	var order []string
	for _, w := range c.writes {
		table := lock.TableName(w.op.SQL.Table)
		if w.state != accepted && w.state != refused || !w.op.Term.Sure() {
			continue
		}
		if w.state == accepted {
			c.out.Facts.Writes++
		}
		t := tables[table]
		if t == nil {
			t = &TableFact{Table: table}
			tables[table], locks[table] = t, map[string]int{}
			order = append(order, table)
		}
		c.tableWrite(t, w, locks[table])
	}
	for _, w := range c.writes {
		if w.state == accepted && !w.op.Term.Sure() && (tables[lock.TableName(w.op.SQL.Table)] != nil || c.ledger.Protected(w.op.SQL.Table)) {
			c.out.Facts.Unattributed++
		}
	}
	c.tableReads(tables)
	for _, name := range order {
		t := tables[name]
		for _, l := range sortedNames(locks[name]) {
			if t.Lock == "" || locks[name][l] > locks[name][t.Lock] {
				t.Lock = l
			}
		}
		c.out.Facts.Tables = append(c.out.Facts.Tables, *t)
	}
}

func (c *kase) tableWrite(t *TableFact, w *write, locks map[string]int) {
	term := c.ledger.Term(w.op.Term.ID)
	if w.state == accepted {
		t.Writes++
	}
	locks[term.Lock.String()]++
	for _, a := range w.op.SQL.Set {
		if !slices.Contains(t.Columns, a.Column) {
			t.Columns = append(t.Columns, a.Column)
		}
		if c.countable(w, a) && !slices.Contains(t.Numbers, a.Column) {
			if t.Numbers = append(t.Numbers, a.Column); t.Where == "" {
				t.Where = c.whereOf(w.op)
			}
		}
		if t.Fence == "" && c.ledger.FenceColumn(term.Lock, w.op.SQL.Table, a.Column) {
			t.Fence = a.Column
		}
	}
}

// countable reports whether an invariant could sum what the write assigns.
func (c *kase) countable(w *write, a lock.Assign) bool {
	table := lock.TableName(w.op.SQL.Table)
	return w.op.Verb == "UPDATE" && (a.HasDelta || c.numbers[columnOf{table, a.Column}]) && !c.ledger.IsFence(table, a.Column)
}

func (c *kase) tableReads(tables map[string]*TableFact) {
	for _, op := range c.ops {
		if op.Kind != lock.Read || op.SQL == nil || !op.Term.Sure() {
			continue
		}
		if t := tables[lock.TableName(op.SQL.Table)]; t != nil {
			t.Reads++
		}
	}
}

func sortedNames(m map[string]int) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
