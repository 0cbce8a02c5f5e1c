package check

import (
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
	if op.Actor != "" && !byRule(op) && len(c.actors) < mostActors && !c.actors[op.Actor] {
		c.actors[op.Actor] = true
	}
	if op.SQL != nil || op.Kind == lock.Commit {
		c.countStatement(op)
	}
	if op.SQL != nil {
		c.names(op.SQL)
	}
	if op.Guessed && op.Err != "NOSCRIPT" && !shownIdle(op) { // else it was only an attempt
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
		if op.Kind == lock.Acquire && answered(op) && op.Outcome != lock.Granted && c.dueOp(op) && !c.ledger.Ignores(op) {
			s.fact.Refusals++
			if heldDuring(held[op.Actor], op) && len(s.denied) < mostActors {
				s.denied[op.Actor] = op.Seq
			}
		}
	}
	for _, t := range c.terms[id] {
		if !c.due(t) {
			continue
		}
		if c.termFact(s, t); s == c.lockKnown[lock.LockID{}] {
			c.meet(boundLocks)
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
	lost := c.lostWhileHeld(t)
	l.Lost += asInt(lost)
	c.out.Facts.Forgotten += asInt(lost && c.forgotten(t) != nil)
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
		f.Lost += l.Lost
		if l.Grants+l.Refusals > 0 {
			f.Locks = append(f.Locks, l)
		}
	}
	c.sumTables()
	c.sumUnmet()
	for table, n := range c.strayed {
		if t := c.tables[table]; t != nil && t.first != 0 || c.ledger.Protected(table) {
			f.Unattributed += n
		}
	}
	c.sumCounters()
	c.sumUnproven()
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
