package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A rising follows the row of an invariant of kind monotone.
type rising struct {
	inv     Invariant
	own     *tally // for what its query says of the row
	out     Rising
	row     string // as statements name it; "" until one does
	begun   bool
	peak    [2]*shown // the highest of what left the view: of numbers, and of shifted ones
	here    []shown
	read    [2]*shown // the first reading that was lower than what was certain before
	anew    bool      // the row may have been made anew
	unnamed bool      // the query names it by a text, which no record has
}

// A shown is a value that the row certainly had at some time between two instants.
type shown struct {
	value    int64
	shifted  bool // as all of the column are, by the same amount, which nobody knows
	lo, over lock.Instant
	hi       lock.Instant // of a write, when it had committed: until then others may read what was there before
	op       *lock.Op     // nil: the first reading
	write    *write       // nil: it was read
}

func newRising(inv Invariant) *rising {
	return &rising{inv: inv, own: newTally(inv),
		out: Rising{Name: inv.Name, Query: inv.Query, Table: inv.Table, Column: inv.Column, Highest: max(inv.Start, inv.End), Start: inv.Start, End: inv.End, Known: inv.HasStart && inv.HasEnd}}
}

// add takes in what a case shows of the row.
func (m *rising) add(c *kase) {
	if m.inv.Table == "" {
		return
	}
	if m.here = nil; !m.begun && m.inv.HasStart {
		m.peak[0] = &shown{value: m.inv.Start, lo: m.inv.ReadAt, over: m.inv.ReadAt, hi: m.inv.ReadAt}
	}
	m.begun = true
	for _, w := range slices.Concat(c.writes, c.beside) {
		if w.of(m.inv.Table) && m.own.concerns(w) {
			m.anew = m.anew || w.resets() && !m.own.hasRead(w)
			m.put(c, w)
		}
	}
	for _, r := range c.reads {
		v := r.value(m.inv.Column)
		w := &write{op: r.op, row: r.row}
		if (v.IsInt || v.IsRel) && !r.claim && w.of(m.inv.Table) && m.own.concerns(w) && m.names(w) && !c.sawOwn(r, cell{lock.TableName(m.inv.Table), r.row, m.inv.Column}) {
			m.note(v, shown{lo: c.readFrom(r), over: max(r.op.R, r.op.Z), hi: max(r.op.R, r.op.Z), op: r.op})
		}
	}
	m.falls(c)
}

// put takes in a write.
func (m *rising) put(c *kase, w *write) {
	a, ok := w.assigns(m.inv.Column)
	switch {
	case !ok || w.state != accepted || w.op.Verb != "UPDATE" || !m.names(w):
	case c.superseded(w, m.inv.Column):
	case a.HasDelta && c.dueOp(w.op):
		if by := c.addedBy(w, m.inv.Column); by < 0 {
			m.fell(c, shown{}, shown{value: by, lo: w.lo, over: max(w.lo, w.over()), op: w.op, write: w})
		}
	case !a.HasDelta && (a.Value.IsInt || a.Value.IsRel):
		m.note(a.Value, shown{lo: w.lo, over: w.over(), hi: w.hi, op: w.op, write: w})
	}
}

func (m *rising) note(v lock.Value, s shown) {
	if s.value, s.shifted = v.Int, !v.IsInt; s.shifted {
		s.value = v.Rel
	} else {
		m.out.Highest = max(m.out.Highest, s.value)
	}
	m.here = append(m.here, s)
}

// names reports whether a statement is of the row that the query reads.
func (m *rising) names(w *write) bool {
	if w.row == unknownRow || !m.own.whole {
		return false
	}
	for _, q := range m.own.conds {
		v, ok := columnIn(w, q.Column)
		if !ok || q.Value.IsInt && !v.IsInt {
			return false
		}
		m.unnamed = m.unnamed || !q.Value.IsInt
	}
	if m.row == "" {
		m.row = w.row
	}
	return m.row == w.row
}

// falls finds what is lower than what was certainly there before.
func (m *rising) falls(c *kase) {
	slices.SortStableFunc(m.here, func(a, b shown) int { return cmp.Compare(a.lo, b.lo) })
	for _, shifted := range []bool{false, true} {
		of := slices.DeleteFunc(slices.Clone(m.here), func(s shown) bool { return s.shifted != shifted })
		for _, read := range []bool{false, true} {
			m.fallsIn(c, of, m.peak[asInt(shifted)], read)
		}
	}
}

// before is the instant from which another write, or a read, comes after what was shown.
func (s shown) before(read bool) lock.Instant {
	if read {
		return s.hi
	}
	return s.over
}

// fallsIn looks at the reads of a list, or at its writes.
func (m *rising) fallsIn(c *kase, list []shown, highest *shown, read bool) {
	done := slices.Clone(list)
	slices.SortStableFunc(done, func(a, b shown) int { return cmp.Compare(a.before(read), b.before(read)) })
	for _, f := range list {
		if (f.write == nil) != read {
			continue
		}
		for len(done) > 0 && done[0].before(read) <= f.lo {
			if d := done[0]; highest == nil || d.value >= highest.value {
				highest = &d
			}
			done = done[1:]
		}
		k := lockRow{table: lock.TableName(m.inv.Table), row: m.row}
		if highest == nil || f.value >= highest.value || highest.before(read) > f.lo || !c.dueOp(f.op) || c.setAnew(k, highest.lo, f.over) {
			continue
		}
		if x := *highest; f.write != nil {
			m.fell(c, x, f)
		} else if m.read[0] == nil {
			m.read = [2]*shown{&x, &f}
		}
	}
}

// leave keeps the highest of what can be before everything that is yet to come.
func (m *rising) leave(c *kase, from lock.Instant) {
	k := lockRow{table: lock.TableName(m.inv.Table), row: m.row}
	reset := func(s shown) bool { return c.setAnew(k, s.lo, lock.Never) }
	for i, p := range m.peak {
		if p != nil && reset(*p) {
			m.peak[i] = nil
		}
	}
	for _, s := range m.here {
		if p := &m.peak[asInt(s.shifted)]; s.hi < from && (*p == nil || s.value >= (*p).value) && !reset(s) {
			*p = &s
		}
	}
}

func (s shown) number() string {
	if s.shifted {
		return "a number that the record does not keep"
	}
	return itoa(s.value)
}

func (s shown) what() string {
	switch {
	case s.op == nil:
		return "the first reading"
	case s.write == nil:
		return "by " + named(s.op)
	}
	return "as " + named(s.op) + " had put it"
}

// fell tells of a write that was lower than what was there: x, or whatever it took
// something from.
func (m *rising) fell(c *kase, x, f shown) {
	id, by := m.lockOf(c.carry), m.inv.Name+" "+m.inv.Query
	level := m.level()
	if m.out.Falls++; c.piled("LF404", level, id, by, 1) {
		return
	}
	p := let("C be the counter %s.%s, which is to rise only, and W be %s.", m.inv.Table, m.inv.Column, named(f.op))
	if cited := f.write; x.over == 0 && x.op == nil && cited.adds(m.inv.Column) {
		p.say("However W, with what its transaction did to it before, took %d from it and was accepted, in effect between %s and %s.", -f.value, ms(f.lo), ms(f.over))
	} else {
		p.say("Then C was %s (%s) by %s.", x.number(), x.what(), ms(x.over))
		p.say("However W, in effect no earlier than %s, put %s, %d less.", ms(f.lo), f.number(), x.value-f.value)
	}
	v := Verdict{Code: "LF404", Level: level, Table: lock.TableName(m.inv.Table)}
	if t := c.byID[f.op.Term.ID]; t != nil && f.op.Term.Sure() {
		v.Terms = append(v.Terms, t.ID)
	}
	cited := []*lock.Op{x.op}
	if x.write != nil {
		cited = append(cited, x.write.commit)
	}
	filed := c.emit(id, with(v, m.doubt(p)), append(cited, f.op, f.write.commit)...)
	if x.op == nil && !f.write.adds(m.inv.Column) { // the first reading: a gap since then counts
		filed.from = min(filed.from, x.over)
	}
	c.pile(filed, by, "This is so of %d writes.")
}

// adds reports whether a write adds to a column, or takes from it.
func (w *write) adds(column string) bool {
	a, ok := w.assigns(column)
	return ok && a.HasDelta
}

func (m *rising) level() Level {
	if m.unnamed {
		return Likely
	}
	return Proven
}

func (m *rising) doubt(p *proof) *proof {
	if m.unnamed {
		p.say("The query names its row by a text, which the record does not keep: it may be another one, so this is not proven.")
	}
	return p
}

// lockOf returns the lock that the invariant names. One that is for efficiency
// excuses nothing.
func (m *rising) lockOf(c *carry) lock.LockID {
	id := c.lockOf(m.inv)
	if purpose, _ := c.purposeOf(id.Key); purpose == "efficiency" {
		return lock.LockID{}
	}
	return id
}

// sum completes the figure, and finds LF404 in the readings, where no write tells of it.
func (m *rising) sum(c *carry) Rising {
	top := m.peak[0]
	for _, s := range m.here {
		if !s.shifted && (top == nil || s.value >= top.value) { // rather what was seen than the first reading
			top = &s
		}
	}
	switch {
	case m.out.Falls > 0 || m.anew:
	case top != nil && m.inv.HasEnd && m.inv.End < top.value:
		m.lower(c, *top, shown{value: m.inv.End})
	case m.read[0] != nil:
		m.lower(c, *m.read[0], *m.read[1])
	case m.inv.Table == "" && m.out.Known && m.inv.End < m.inv.Start:
		m.lower(c, shown{value: m.inv.Start}, shown{value: m.inv.End})
	}
	return m.out
}

// lower tells of a reading that was lower than what had been there.
func (m *rising) lower(c *carry, x, f shown) {
	p := let("C be what %q returned, which is to rise only.", m.inv.Query)
	p.say("Then C may not be lower than %s (%s) any more.", x.number(), x.what())
	if f.op == nil {
		p.say("However it was %d at the end.", f.value)
	} else {
		p.say("However %s, forwarded at %s, returned %s, %d less.", named(f.op), ms(f.op.F), f.number(), x.value-f.value)
	}
	v := Verdict{Code: "LF404", Level: m.level(), Table: lock.TableName(m.inv.Table)}
	if c.out.Facts.Gaps > 0 && v.Level == Proven {
		v.Level = Likely
		p.say("The record has a gap, in which the row may have been made anew, so this is not proven.")
	}
	m.out.Falls++
	c.file(m.lockOf(c), Harm, with(v, m.doubt(p)), x.op, f.op)
}
