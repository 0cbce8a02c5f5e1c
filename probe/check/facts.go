package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// facts counts what was seen.
func (c *kase) facts() {
	for _, op := range c.ops {
		if c.dueOp(op) {
			c.countOp(op)
		}
	}
	for _, id := range c.locks {
		c.lockFact(id)
	}
	c.tableFacts()
}

func (c *kase) countOp(op *lock.Op) {
	f := &c.out.Facts
	f.Ops++
	if op.Actor != "" && len(c.actors) < mostActors && !c.actors[op.Actor] {
		c.actors[op.Actor] = true
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

func (c *kase) countStatement(op *lock.Op) {
	f := &c.out.Facts
	if !answered(op) && op.F != 0 {
		f.Unsettled++
	}
	if op.Kind != lock.Read || !op.Term.Sure() {
		return
	}
	f.Reads++
	if op.SQL != nil {
		if t := c.tableState(op.SQL.Table); t != nil {
			t.fact.Reads++
		}
	}
}

func (c *kase) lockFact(id lock.LockID) {
	s := c.state(id)
	held := map[string][]*lock.Term{}
	for _, t := range c.terms[id] {
		held[t.Actor] = append(held[t.Actor], t)
	}
	for _, op := range c.acts[id].all {
		if op.Kind == lock.Acquire && answered(op) && op.Outcome != lock.Granted && c.dueOp(op) {
			s.fact.Refusals++
			if heldDuring(held[op.Actor], op) && len(s.denied) < mostActors {
				s.denied[op.Actor] = op.Seq
			}
		}
	}
	for _, t := range c.terms[id] {
		if c.due(t) {
			c.termFact(s, t)
		}
	}
}

func (c *kase) termFact(s *lockState, t *lock.Term) {
	l := &s.fact
	l.Grants++
	l.Renewals += t.Renewals
	s.released = s.released || t.Release != nil || t.Renewals > 0
	if !slices.Contains(l.TTLs, t.TTL) && len(l.TTLs) < mostTTLs {
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
			s.hold(t.ReleaseAt.Sub(t.Grant.D))
		}
	}
	unreleased, released := c.endedWhileHeld(t)
	s.unsure[0] += asInt(unreleased)
	s.unsure[1] += asInt(released)
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// How much is remembered of one lock.
const (
	mostTTLs = 64
	mostHeld = 1 << 12
)

// hold remembers how long a section was, or every n-th where there are many.
func (s *lockState) hold(d time.Duration) {
	if s.sections++; s.sections%s.every != 0 {
		return
	}
	if s.held = append(s.held, d); len(s.held) < mostHeld {
		return
	}
	for i := range len(s.held) / 2 {
		s.held[i] = s.held[2*i+1]
	}
	s.held = s.held[:len(s.held)/2]
	s.every *= 2
}

// sum completes the facts once everything was seen.
func (c *carry) sum() {
	f := &c.out.Facts
	f.Actors = len(c.actors)
	for _, id := range c.lockOrder {
		s := c.lockKnown[id]
		l := s.fact
		l.Marker = s.marker
		l.Overrun = s.unsure[asInt(s.released || l.Declared)]
		slices.Sort(l.TTLs)
		if slices.Sort(s.held); len(s.held) > 0 {
			l.MedianHeld = s.held[len(s.held)/2]
		}
		f.Grants += l.Grants
		f.Refusals += l.Refusals
		f.EndedWhileHeld += l.Overrun
		if l.Grants+l.Refusals > 0 {
			f.Locks = append(f.Locks, l)
		}
	}
	for _, name := range c.tableOrder {
		c.sumTable(c.tables[name])
	}
	for table, n := range c.strayed {
		if t := c.tables[table]; t != nil && t.sure || c.ledger.Protected(table) {
			f.Unattributed += n
		}
	}
	c.sumCounters()
	c.sumUnproven()
}

// A tableState is what is carried of one table.
type tableState struct {
	fact    TableFact
	sure    bool // a section wrote it, or tried to
	locks   map[string]int
	fenceOf lock.LockID // whose section set the fence column
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
		if w.state != accepted && w.state != refused || !w.op.Term.Sure() {
			continue
		}
		if w.state == accepted {
			c.out.Facts.Writes++
		}
		if t := c.tableState(w.op.SQL.Table); t != nil {
			if !t.sure {
				t.sure = true
				c.tableOrder = append(c.tableOrder, t.fact.Table)
			}
			c.tableWrite(t, w)
		}
	}
}

// remember keeps under which locks cells were written.
func (c *kase) remember(w *write) {
	t := c.byID[w.op.Term.ID]
	if t == nil || !w.op.Term.Sure() || w.row == unknownRow || w.state != accepted && w.state != uncertain {
		return
	}
	for _, a := range w.op.SQL.Set {
		k := cell{lock.TableName(w.op.SQL.Table), w.row, a.Column}
		if ids := c.rowLocks[k]; !slices.Contains(ids, t.Lock) && len(ids) < mostTTLs && (len(c.rowLocks) < mostCells || ids != nil) {
			c.rowLocks[k] = append(ids, t.Lock)
		}
	}
}

func (c *kase) tableWrite(s *tableState, w *write) {
	t := &s.fact
	term := c.byID[w.op.Term.ID]
	if w.state == accepted {
		t.Writes++
	}
	if name := term.Lock.String(); s.locks[name] > 0 || len(s.locks) < mostTables {
		s.locks[name]++
	}
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
			t.Fence, s.fenceOf = a.Column, term.Lock
		}
	}
}

// countable reports whether an invariant could sum what the write assigns.
func (c *kase) countable(w *write, a lock.Assign) bool {
	table := lock.TableName(w.op.SQL.Table)
	return w.op.Verb == "UPDATE" && (a.HasDelta || c.numbers[columnOf{table, a.Column}]) && !c.ledger.IsFence(table, a.Column)
}

// sumTable completes what is known of a table.
func (c *carry) sumTable(s *tableState) {
	t := s.fact
	for _, l := range sortedNames(s.locks) {
		if t.Lock == "" || s.locks[l] > s.locks[t.Lock] {
			t.Lock = l
		}
	}
	t.Numbers = slices.DeleteFunc(t.Numbers, func(column string) bool { return c.ledger.IsFence(t.Table, column) })
	if t.Fence != "" && !c.ledger.FenceColumn(s.fenceOf, t.Table, t.Fence) {
		t.Fence = ""
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
