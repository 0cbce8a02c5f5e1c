package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// perhapsLost finds the LF104 that the connections show though it is not certain under
// which lock their statements were: what one wrote after it had read, and another
// wrote that had read the same, each before the other's write. They are never PROVEN.
func (c *kase) perhapsLost() {
	for _, r := range c.reads {
		c.rowLock(r.op, r.row)
	}
	byCell := map[cell][]*rmw{}
	for _, w := range c.writes {
		c.rowLock(w.op, w.row)
		if w.state == accepted && w.row != unknownRow && w.op.Verb == "UPDATE" && c.byID[w.op.Term.ID] != nil {
			for _, a := range w.op.SQL.Set {
				if m := c.onConnection(w, a); m != nil {
					byCell[m.cell] = append(byCell[m.cell], m)
				}
			}
		}
	}
	for _, k := range sortedCells(byCell) {
		c.perhapsLostIn(k, byCell[k])
	}
}

// onConnection returns the read-modify-write of a column that one connection shows: it
// read a number of the row, and set another in its place. The read may be of a term that
// the write may be of.
func (c *kase) onConnection(w *write, a lock.Assign) *rmw {
	k := cell{lock.TableName(w.op.SQL.Table), w.row, a.Column}
	if a.HasDelta || c.versioned(w, a.Column) || c.underRowLock(w) {
		return nil
	}
	on := owner{session: w.op.Session}
	r := c.lastOf(on, w, k)
	if r == nil || !mayShare(r.op.Term, w.op.Term) || c.reread(r, 0, []owner{on}, w, k) || c.wroteSince(r, w, k) {
		return nil
	}
	m := &rmw{term: c.byID[w.op.Term.ID], cell: k, read: r, write: w}
	if by, ok := m.put().Minus(m.base()); !ok || by == 0 {
		return nil
	}
	if c.dueOp(w.op) {
		c.numbers[columnOf{k.table, k.column}] = true
		c.stepOn(m)
	}
	return m
}

func mayShare(a, b lock.Attribution) bool {
	mine := append(a.Candidates(), a.Within...)
	return slices.ContainsFunc(append(b.Candidates(), b.Within...), func(id lock.TermID) bool { return slices.Contains(mine, id) })
}

// wroteSince reports whether the connection had written the cell between the read and w:
// then w was hardly computed from that.
func (c *kase) wroteSince(r *read, w *write, k cell) bool {
	at := func(x *write, at lock.Instant) int { return cmp.Compare(x.lo, at) }
	from, _ := slices.BinarySearchFunc(c.written[k], r.op.A, at)
	for _, x := range c.written[k][from:] {
		if x.lo > w.hi {
			break
		}
		if x.op.Session == w.op.Session && r.op.Seq < x.op.Seq && x.op.Seq < w.op.Seq {
			return true
		}
	}
	return false
}

// A stepState counts what connections wrote to a column less what they had read.
type stepState struct {
	steps map[int64]int
	n     int
}

// mostSteps is how many different ones are counted of a column.
const mostSteps = 64

func (c *kase) stepOn(m *rmw) {
	column := columnOf{m.cell.table, m.cell.column}
	s := c.stepsOn[column]
	if s == nil {
		if len(c.stepsOn) >= mostTables {
			return
		}
		s = &stepState{steps: map[int64]int{}}
		c.stepsOn[column] = s
	}
	s.n++
	if by, _ := m.put().Minus(m.base()); s.steps[by] > 0 || len(s.steps) < mostSteps {
		s.steps[by]++
	}
}

// odd reports whether nearly all of the column's writes are a step from what their
// connection had read, and this one is not: it was computed from another read.
func (c *carry) odd(m *rmw) bool {
	s := c.stepsOn[columnOf{m.cell.table, m.cell.column}]
	by, _ := m.put().Minus(m.base())
	if s == nil || s.n < cleanSections {
		return false
	}
	for step, n := range s.steps {
		if step != by && 10*n >= 9*s.n {
			return true
		}
	}
	return false
}

func (c *kase) perhapsLostIn(k cell, list []*rmw) {
	var pairs []pair
	c.overlapping(list, func(a, b *rmw) {
		if !c.apartPerhaps(a, b) || c.inCycle(a.write) == yes && c.inCycle(b.write) == yes {
			return
		}
		if p, ok := c.pairBy(a, b, func() bool { return false }); ok {
			pairs = append(pairs, p)
		}
	})
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.x.write.op.Seq, b.x.write.op.Seq) })
	for len(pairs) > 0 {
		n := 1
		for n < len(pairs) && pairs[n].x.write == pairs[0].x.write {
			n++
		}
		c.perhapsLostBy(k, pairs[:n])
		pairs = pairs[n:]
	}
}

// apartPerhaps reports whether two writes may be of two sections, and that is not sure.
func (c *kase) apartPerhaps(a, b *rmw) bool {
	x, y := a.write.op, b.write.op
	if x.Session == y.Session || x.Term.Sure() && y.Term.Sure() {
		return false
	}
	return len(x.Term.Also)+len(y.Term.Also) > 0 || x.Term.ID != y.Term.ID && !sameSection(a.write, b.write)
}

// perhapsLostBy tells of the updates that one write may have undone.
func (c *kase) perhapsLostBy(k cell, group []pair) {
	x, y := group[0].x, group[0].y
	if !c.dueOp(x.write.op) {
		return
	}
	victims := 0
	for _, p := range group {
		victims += asInt(p.later == x)
	}
	v := Verdict{Code: "LF104", Level: Possible, Table: k.table, Count: victims, Terms: x.write.op.Term.Candidates()}
	if c.named(columnOf{k.table, k.column}) && group[0].sure && len(x.write.op.Term.Also)+len(y.write.op.Term.Also) == 0 {
		v.Level = Likely
	}
	for _, id := range y.write.op.Term.Candidates() {
		if !slices.Contains(v.Terms, id) {
			v.Terms = append(v.Terms, id)
		}
	}
	f := c.emit(c.correctnessOf(x), with(v, c.perhapsLostProof(k, group)), x.read.op, x.write.op, x.write.commit, y.read.op, y.write.op, y.write.commit)
	carried, may := c.carry, map[lock.LockID]lock.TermID{}
	for _, id := range x.write.op.Term.Candidates() {
		if t := c.byID[id]; t != nil && may[t.Lock] == 0 {
			may[t.Lock] = id
		}
	}
	f.likelier = func(v *Verdict) { carried.likelier(v, k.of(), may) }
	f.unless = func() bool { return carried.odd(x) || carried.odd(y) }
}

func (c *kase) perhapsLostProof(k cell, group []pair) *proof {
	a, b := group[0].x, group[0].y
	p := let("A be %s and B be %s, on two connections; each read %s.%s of one row before it, with %s and %s.",
		named(a.write.op), named(b.write.op), k.table, k.column, named(a.read.op), named(b.read.op))
	p.say("Then A's read was before B, since %s.", c.why(a, b))
	p.say("However B's read was before A, since %s: if what was written was computed from what was read, one of the two is lost.", c.why(b, a))
	p.say("A is of %s; B is of %s. Under which of those each was is not certain, so this is not proven.", c.candidates(a.write.op), c.candidates(b.write.op))
	if n := len(group); n > 1 {
		p.say("The same holds between A and %d more.", n-1)
	}
	return p
}

// candidates names the terms of one of which an op may be.
func (c *kase) candidates(op *lock.Op) string {
	var names []string
	for _, id := range op.Term.Candidates() {
		if t := c.byID[id]; t != nil {
			names = append(names, holder(t))
		}
	}
	switch {
	case op.Term.Sure():
		return names[0]
	case len(names) == 1:
		return names[0] + " or another task"
	case len(names) > 4:
		return fmt.Sprintf("%s or %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, " or ")
}

// correctnessOf returns the lock of the first term that a write may be of and that was
// not declared to be for efficiency only.
func (c *kase) correctnessOf(m *rmw) lock.LockID {
	for _, id := range m.write.op.Term.Candidates() {
		if t := c.byID[id]; t != nil {
			if purpose, _ := c.purposeOf(t.Lock.Key); purpose != "efficiency" {
				return t.Lock
			}
		}
	}
	return m.term.Lock
}

// likelier puts the term first whose lock is likely the row's, of those that a write may
// be of.
func (c *carry) likelier(v *Verdict, row tableRow, may map[lock.LockID]lock.TermID) {
	of, n := c.usedUnder(row)
	id := may[of]
	if id == 0 || len(may) < 2 {
		return
	}
	v.Lock = of.String()
	v.Terms = append([]lock.TermID{id}, slices.DeleteFunc(slices.Clone(v.Terms), func(o lock.TermID) bool { return o == id })...)
	v.Proof += fmt.Sprintf(" Likely A is of term %d: each of the %d statements on that row may have been under %s, and all of them under no other lock.", id, n, of)
}
