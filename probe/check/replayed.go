package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A refusal is a write that was refused, with what it was computed from and what had
// been written since.
type refusal struct {
	op    *lock.Op
	row   tableRow
	base  *lock.Op
	value lock.Value // what was read
	over  *write     // what somebody else had written since, and the base does not have
	on    columnOf
}

// mostRefused is how many refused writes of a process are kept in mind.
const mostRefused = 16

// replays finds LF202: what a refused write had put is sent again by its process
// without a new read, and accepted. What was written in between, which had it
// refused, is lost.
func (c *kase) replays() {
	for _, op := range c.ops {
		if op.SQL == nil || op.Actor == "" || lock.AddressOnly(op.Actor) || !c.dueOp(op) {
			continue
		}
		if op.Kind == lock.Read || op.SQL.Returning {
			c.readAgain(op)
		}
		if w := c.writeOf[op]; w != nil && op.Kind == lock.Write && w.row != unknownRow {
			switch w.state {
			case refused:
				c.refuse(w)
			case accepted:
				c.replay(w)
			}
		}
	}
}

// readAgain forgets the refused writes of a process of a row that it reads again.
func (c *kase) readAgain(op *lock.Op) {
	if len(c.refused[op.Actor]) == 0 || !answered(op) || op.Outcome != lock.Done {
		return
	}
	row, beside := c.rowOf(op), c.joined(op)
	c.refused[op.Actor] = slices.DeleteFunc(c.refused[op.Actor], func(r refusal) bool {
		own := r.row.table == lock.TableName(op.SQL.Table) && (row == unknownRow || !differ(row, r.row.row))
		return own || (row == unknownRow || !differ(row, r.row.row)) && (slices.Contains(beside, "") || slices.Contains(beside, r.on.column))
	})
}

// refuse keeps a refused write in mind, if its process heard so.
func (c *kase) refuse(w *write) {
	t := c.byID[w.op.Term.ID]
	if t == nil || !w.op.Term.Sure() || w.op.D == 0 || w.op.Outcome != lock.Done {
		return
	}
	table := lock.TableName(w.op.SQL.Table)
	for _, a := range w.op.SQL.Set {
		k := cell{table, w.row, a.Column}
		if a.HasDelta || !a.Value.Known() || c.mayBeFence(t.Lock, table, a.Column) {
			continue
		}
		base, sure := c.baseRead(t.ID, w, k)
		if base == nil || !sure {
			continue
		}
		r := refusal{op: w.op, row: k.of(), base: base.op, value: base.value(k.column), on: columnOf{table, a.Column}}
		if r.over = c.writtenSince(base, w, k); r.over == nil {
			continue
		}
		list := append(c.refused[w.op.Actor], r)
		if len(c.refused) < mostActors || len(list) > 1 {
			c.refused[w.op.Actor] = list[max(0, len(list)-mostRefused):]
		}
	}
}

// writtenSince returns a write by another section that came for certain between a
// read and a refused write, and put another value than was read.
func (c *kase) writtenSince(base *read, w *write, k cell) *write {
	was := base.value(k.column)
	if !was.Known() {
		return nil
	}
	for _, x := range slices.Backward(c.written[k]) {
		if x.state != accepted || x.lo < base.op.R || x.hi > w.op.R || sameSection(x, w) {
			continue
		}
		if a, _ := x.assigns(k.column); a.Value.Known() && !a.Value.Same(was) {
			return x
		}
	}
	return nil
}

// replay looks whether an accepted write is a refused one that was sent again.
func (c *kase) replay(w *write) {
	for _, r := range c.refused[w.op.Actor] {
		a, ok := w.assigns(r.on.column)
		b, _ := assignIn(r.op, r.on.column)
		if !ok || a.HasDelta || !a.Value.Same(b.Value) || r.row != (tableRow{lock.TableName(w.op.SQL.Table), w.row}) || r.op.ReplySeq >= w.op.Seq {
			continue
		}
		if c.versioned(w, r.on.column) || c.backSince(r, w) {
			continue
		}
		c.replayed(r, w)
		return
	}
}

func assignIn(op *lock.Op, column string) (lock.Assign, bool) {
	at := slices.IndexFunc(op.SQL.Set, func(a lock.Assign) bool { return a.Column == column })
	if at < 0 {
		return lock.Assign{}, false
	}
	return op.SQL.Set[at], true
}

// backSince reports whether the value that had been read may have been put back
// before it was sent again.
func (c *kase) backSince(r refusal, w *write) bool {
	k := cell{r.row.table, r.row.row, r.on.column}
	return slices.ContainsFunc(c.mayWrite(k), func(x *write) bool {
		a, _ := x.assigns(k.column)
		return x != w && x.op != r.over.op && !x.before(r.over) && !w.before(x) && (a.HasDelta || !a.Value.Known() || a.Value.Same(r.value))
	})
}

func (c *kase) replayed(r refusal, w *write) {
	p := let("A be %s, R be %s and W be %s, both of A.", w.op.Actor, named(r.op), named(w.op))
	p.say("R put into %s.%s what A had computed from a read of it, %s, and was answered at %s that it changed nothing.", r.on.table, r.on.column, named(r.base), ms(r.op.R))
	p.say("Then what A had read was no longer there: %s had been accepted since, in effect by %s.", named(r.over.op), ms(r.over.over()))
	p.say("However W put the same value, without a new read of the row in between that the record shows, and was accepted: that update is lost.")
	v := Verdict{Code: "LF202", Level: Proven, Table: r.row.table}
	id := lock.LockID{}
	for _, op := range []*lock.Op{w.op, r.op, r.over.op} {
		if t := c.byID[op.Term.ID]; t != nil && op.Term.Sure() && !slices.Contains(v.Terms, t.ID) {
			if v.Terms = append(v.Terms, t.ID); id.Key == "" {
				id = t.Lock
			}
		}
	}
	if len(v.Terms) == 0 {
		v.Level = Likely
		p.say("Whose W is is not certain, so this is not proven.")
	}
	f := c.emit(id, with(v, p), r.base, r.op, r.over.op, r.over.commit, w.op, w.commit)
	carried, actor, on := c.carry, w.op.Actor, r.on
	f.unless = func() bool { return carried.dependent(on, true) != yes }
	f.doubt = func() string {
		if carried.manyTasks(actor) {
			return "The process has held two locks at once: another of its tasks may have sent it"
		}
		return ""
	}
	if c.named(on) {
		c.cycle(w, nil)
	}
}
