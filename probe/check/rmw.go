package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An rmw is an accepted read-modify-write of one cell by one term: its write
// depends on its read.
type rmw struct {
	term  *lock.Term
	cell  cell
	read  *read
	write *write
	copy  bool // the write puts back what was read
	vague bool // it may have been computed from a later read

	restorers []*write // see since
	scanned   bool
}

func (m *rmw) base() lock.Value { return m.read.value(m.cell.column) }

func (m *rmw) put() lock.Value {
	a, _ := m.write.assigns(m.cell.column)
	return a.Value
}

// readFrom is the earliest instant of which the read can have seen the row: a
// transaction may see the row as of its first statement, which may have been of no
// table, and be no op.
func (c *kase) readFrom(r *read) lock.Instant {
	if r.op.Implicit || r.op.Tx == 0 {
		return r.op.F
	}
	if t := c.txs[txID{r.op.Session, r.op.Tx}]; t != nil {
		return min(r.op.F, t.began())
	}
	return r.op.F
}

// rmws lists the read-modify-writes in view, by column.
func (c *kase) rmws() map[columnOf][]*rmw {
	candidates := map[columnOf][]*rmw{}
	for _, t := range c.all {
		if t.Marker {
			continue
		}
		d := c.ofTerm[t.ID]
		for _, w := range d.writes {
			if w.state == accepted && w.row != unknownRow && w.op.SQL != nil {
				c.rmwsOf(t, w, candidates)
			}
		}
	}
	return candidates
}

type columnOf struct{ table, column string }

func (c *kase) rmwsOf(t *lock.Term, w *write, into map[columnOf][]*rmw) {
	table := lock.TableName(w.op.SQL.Table)
	for _, a := range w.op.SQL.Set {
		if a.HasDelta || !a.Value.Known() || c.versioned(w, a.Column) {
			continue
		}
		k := cell{table, w.row, a.Column}
		r, sure := c.baseRead(t.ID, w, k)
		if r == nil || c.sawOwn(r, k) && r.op.Session == w.op.Session && r.op.Tx == w.op.Tx {
			continue
		}
		m := &rmw{term: t, cell: k, read: r, write: w, vague: !sure}
		base := m.base()
		if by, ok := a.Value.Minus(base); ok {
			c.numbers[columnOf{table, a.Column}] = true
			if c.dueOp(w.op) {
				c.stepped(columnOf{table, a.Column}, by)
			}
		}
		m.copy = sure && base.Known() && !base.IsInt && !base.IsRel && base.Same(a.Value)
		into[columnOf{table, a.Column}] = append(into[columnOf{table, a.Column}], m)
	}
}

// heard reports whether the reply of r was there before w was asked.
func heard(r, w *lock.Op) bool {
	if r.ReplySeq != 0 && w.Seq != 0 {
		return r.ReplySeq < w.Seq
	}
	return r.R <= w.A
}

// inHand reports whether the reply of a read was in its client's hands when w was asked:
// not held back then. That it was delivered is noted once it has been written, and a
// client may be faster than that.
func inHand(r, w *lock.Op) bool { return r.D != 0 && r.D <= w.A.Add(notedWithin) }

// notedWithin is how soon a reply that was delivered is noted to have been.
const notedWithin = 25 * time.Millisecond

// cleanSections is how many sections have to agree on the difference between
// what they read and what they wrote before the write counts as computed from
// the read.
const cleanSections = 20

// A columnState is what was seen of what sections wrote to a column less what they
// had read of it.
type columnState struct {
	met      bool // there was a difference
	step     int64
	varied   bool // not all differences are the same, or one is not known
	sections int  // that are clean
	last     lock.TermID
	bases    lock.Value // what they read
	unsteady bool       // that was not always the same
}

// learn takes in the due ones of a column's read-modify-writes.
func (c *kase) learn(column columnOf, list []*rmw) {
	s := c.columns[column]
	if s == nil {
		if len(c.columns) >= mostCells {
			return
		}
		s = &columnState{}
		c.columns[column] = s
	}
	for _, m := range list {
		if !m.vague && !s.varied && c.dueOp(m.write.op) {
			s.learn(m)
		}
	}
}

func (s *columnState) learn(m *rmw) {
	by, ok := m.put().Minus(m.base())
	if !ok || s.met && by != s.step {
		s.varied = true
		return
	}
	s.step, s.met = by, true
	if !clean(m) {
		return
	}
	s.unsteady = s.unsteady || s.sections > 0 && !s.bases.Same(m.base())
	if s.bases = m.base(); s.last != m.term.ID {
		s.last = m.term.ID
		s.sections++
	}
}

// dependent reports whether writes of the column are proven to depend on reads
// of it: an invariant names it as a counter, or the difference is constant. Where
// what was read is always the same, so is the difference, and tells nothing. More
// of the history may change that, except for maybe, which is for now only.
func (c *carry) dependent(column columnOf, whole bool) certainty {
	if c.named(column) {
		return yes
	}
	s := c.columns[column]
	switch {
	case s == nil, s.varied:
		return no
	case !whole:
		return maybe
	case s.step != 0 && s.unsteady && s.sections >= cleanSections:
		return yes
	}
	return no
}

// clean reports whether the section ended, by its own release, within its lease.
func clean(m *rmw) bool {
	return m.term.Release != nil && m.term.ReleaseAt < m.term.LeaseEnd.Earliest && m.term.Lost == nil
}

// A pair is two read-modify-writes of one cell by two terms, each of which read
// before the other's write: whatever the order of the writes, one is lost.
type pair struct {
	x, y  *rmw // x is the one to blame
	sure  bool
	value bool // an order rests on the values
	later *rmw // whose write came second
}

// overwritten lists the accepted writes of other terms that m, which depends on
// an older read, certainly overwrote, and that depend on no read themselves: those are
// lost as well, for m had read before them and wrote after them.
func (c *kase) overwritten(m *rmw, dependent map[*write]bool) []*rmw {
	if m.vague {
		return nil
	}
	var out []*rmw
	list := c.written[m.cell]
	from, _ := slices.BinarySearchFunc(list, m.read.op.R, func(x *write, at lock.Instant) int { return cmp.Compare(x.lo, at) })
	for _, x := range list[from:] {
		if x.lo >= m.write.hi {
			break
		}
		t := c.byID[x.op.Term.ID]
		if x.state != accepted || dependent[x] || !x.op.Term.Sure() || sameSection(x, m.write) || !x.before(m.write) {
			continue
		}
		if c.restored(x, m) == no && !c.sameAgain(x, m) {
			out = append(out, &rmw{term: t, cell: m.cell, write: x})
		}
	}
	return out
}

// order says how the read of m lies to the write of n.
type order int

const (
	unordered order = iota
	certainly       // the read was first
	byValue         // the read was first, since its value is older
	perhaps         // the read may have been first, and returned the same base
)

func (c *kase) readBefore(m, n *rmw) order {
	r, w := m.read.op, n.write
	if r.R <= w.lo || r.Session == w.op.Session && r.Seq < w.op.Seq {
		return certainly
	}
	if c.readFrom(m.read) >= w.hi {
		return unordered
	}
	if c.olderValue(m, n.write) {
		return byValue
	}
	if m.base().Known() && m.base().Same(n.base()) {
		return perhaps
	}
	return unordered
}

// olderValue reports whether the value that m read shows that w had not taken
// effect: had it, m would have read what w put, or what a later write did, and
// none of those put that value.
func (c *kase) olderValue(m *rmw, w *write) bool {
	base := m.base()
	if !base.Known() || c.known.unread(m.cell.table) || c.otherwise(m.cell) != nil {
		return false
	}
	for _, x := range c.between(m.cell, w, m.read.op.R) {
		a, _ := x.assigns(m.cell.column)
		if !a.Value.Known() || !c.unlike(columnOf{m.cell.table, m.cell.column}, a.Value, base) {
			return false
		}
	}
	return !slices.ContainsFunc(c.remade(m.cell), func(x *write) bool { return x.lo < m.read.op.R && !x.before(w) })
}

// between lists w and the writes of the cell that may have taken effect after
// w and before the instant to.
func (c *kase) between(k cell, w *write, to lock.Instant) []*write {
	list := c.written[k]
	if c.overs[k] == nil {
		c.overs[k] = prefixMax(list, (*write).over)
	}
	overs := c.overs[k]
	end, _ := slices.BinarySearchFunc(list, to, func(x *write, at lock.Instant) int { return cmp.Compare(x.lo, at) })
	out, from := []*write{w}, min(w.lo, w.over())
	for i := end - 1; i >= 0 && overs[i] >= from; i-- {
		if x := list[i]; x != w && !x.before(w) {
			out = append(out, x)
		}
	}
	return out
}

// prefixMax returns for each write the latest of its instant and of those of the ones
// before it in the list.
func prefixMax(list []*write, of func(*write) lock.Instant) []lock.Instant {
	out := make([]lock.Instant, len(list))
	var latest lock.Instant
	for i, x := range list {
		latest = max(latest, of(x))
		out[i] = latest
	}
	return out
}

// overlapping calls f for every two of the list that were between read and
// write at the same time.
func (c *kase) overlapping(list []*rmw, f func(a, b *rmw)) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *rmw) int { return cmp.Compare(c.readFrom(a.read), c.readFrom(b.read)) })
	var active []*rmw
	for _, m := range list {
		kept := active[:0]
		for _, o := range active {
			if o.write.hi > c.readFrom(m.read) {
				kept = append(kept, o)
				f(o, m)
			}
		}
		active = append(kept, m)
	}
}

func sortedCells[T any](m map[cell][]T) []cell {
	var out []cell
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, compareCells)
	return out
}

func compareCells(a, b cell) int {
	return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.column, b.column), cmp.Compare(a.row, b.row))
}
