package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An intent is one wish to change a counter: a read, and the write or writes
// that were computed from it.
type intent struct {
	n     int // in the order in which they were met
	base  lock.Value
	read  *read  // nil where it is not certain
	final *write // the last accepted write, else the last uncertain one
	delta bool
	late  bool // its base was no longer current
}

func (t *tally) hang(w *write) {
	if t.hanging = append(t.hanging, w); len(t.hanging) > mostWaiting {
		t.hanging, t.crowded = nil, true
	}
}

// baseOf returns the read from which the write was computed, or nil: that of
// its term, else the last on its connection, else the last of its process.
func (t *tally) baseOf(c *kase, w *write) *read {
	k := cell{lock.TableName(t.inv.Table), w.row, t.inv.Column}
	if w.op.Term.Sure() {
		if r, sure := c.baseRead(w.op.Term.ID, w, k); r != nil {
			return c.certain(r, sure)
		}
	}
	if r := c.lastOf(owner{session: w.op.Session}, w, k); r != nil {
		return c.certain(r, !c.reread(r, 0, []owner{{session: w.op.Session}}, w, k))
	}
	if w.op.Actor == "" {
		return nil
	}
	return c.lastOf(owner{actor: w.op.Actor}, w, k)
}

// intentOf makes a write the last of what it is of.
func (t *tally) intentOf(c *kase, w *write) {
	a, ok := w.assigns(t.inv.Column)
	r := t.baseOf(c, w)
	guard, guarded := t.guardOf(w)
	guarded = guarded && ok && !a.HasDelta
	if a.HasDelta || !ok || r == nil || guarded && !guard.Same(r.value(t.inv.Column)) {
		i := t.newIntent(guard)
		i.final, i.delta = w, a.HasDelta
		t.summed[w.op] = i
		t.count(i)
		return
	}
	if !guarded && !madeFrom(r, w) {
		t.apart.learn(r.value(t.inv.Column), a.Value)
	}
	if r.vague || c.addedSince(r, w, t.inv.Column) {
		i := t.newIntent(lock.Value{})
		i.final = w
		t.summed[w.op] = i
		t.count(i)
		return
	}
	i := t.intents[r.op]
	if i == nil {
		i = t.newIntent(r.value(t.inv.Column))
		t.intents[r.op] = i
	}
	t.summed[w.op] = i
	if i.read = r; i.final == nil || w.state == accepted || i.final.state != accepted {
		i.final = w
	}
}

func (t *tally) newIntent(base lock.Value) *intent {
	t.met++
	i := &intent{n: t.met, base: base}
	if t.cited[0] == nil {
		t.cited[0] = i
	}
	t.cited[1] = i
	return i
}

// guardOf returns the value of the counter that the write compares with: it had
// that, or the write changed nothing.
func (t *tally) guardOf(w *write) (lock.Value, bool) {
	for _, g := range w.op.SQL.Where {
		if g.Column == t.inv.Column && g.Op == "=" && g.Value.IsInt {
			return g.Value, true
		}
	}
	return lock.Value{}, false
}

// madeFrom reports whether the write certainly belongs together with the read: they
// are of one term, or of one transaction. One connection is not enough, since what
// sets a constant there may have read for another purpose.
func madeFrom(r *read, w *write) bool {
	if w.op.Term.Sure() && r.op.Term.Sure() && r.op.Term.ID == w.op.Term.ID {
		return true
	}
	return r.op.Session == w.op.Session && r.op.Tx == w.op.Tx && w.op.Tx != 0 && !w.op.Implicit && !r.op.Implicit
}

// An apart is what the writes show that read neither in their term nor in their
// transaction, but before: what each put less the last read on its connection, or of
// its process.
type apart struct {
	n        int
	step     int64
	varied   bool // not all differences are the same, or one is not known
	base     lock.Value
	unsteady bool // not all bases are the same
}

func (s *apart) learn(base, put lock.Value) {
	by, ok := put.Minus(base)
	s.varied = s.varied || !ok || s.n > 0 && by != s.step
	s.unsteady = s.unsteady || s.n > 0 && !base.Same(s.base)
	s.step, s.base = by, base
	s.n++
}

// steady reports whether the writes were computed from those reads for certain, as
// what a column's sections show of it proves it.
func (s *apart) steady() bool {
	return s.n >= cleanSections && s.step != 0 && s.unsteady && !s.varied
}

// count adds an intent to the sums.
func (t *tally) count(i *intent) {
	step, known := t.step(i)
	switch {
	case i.final.state == accepted && known && !t.straddles(i.final):
		t.out.Acknowledged += step
	case known:
		t.out.Unknown++
		t.out.UnknownLow += min(0, step)
		t.out.UnknownHigh += max(0, step)
	default:
		t.out.Unknown++
		t.out.Unbounded = true
	}
}

func (t *tally) step(i *intent) (int64, bool) {
	a, _ := i.final.assigns(t.inv.Column)
	switch {
	case i.final.row == unknownRow:
		return 0, false
	case i.delta:
		return a.Delta, true
	}
	return a.Value.Int - i.base.Int, a.Value.IsInt && i.base.IsInt
}

// stale counts the writes whose base was certainly not the row's last value
// any more, and those that they overwrote: by the clock, and of the lost
// updates, of which one of two is lost whatever the order of the writes.
func (t *tally) stale(c *kase) {
	for _, i := range t.intents {
		w := i.final
		if w.state != accepted || w.row == unknownRow || !c.dueOp(w.id) {
			continue
		}
		r := i.read
		m := &rmw{cell: cell{lock.TableName(t.inv.Table), w.row, t.inv.Column}, read: r, write: w}
		list := c.written[m.cell]
		from, _ := slices.BinarySearchFunc(list, r.op.R, func(x *write, at lock.Instant) int { return cmp.Compare(x.lo, at) })
		for _, x := range list[from:] {
			if x.lo >= w.hi {
				break
			}
			if x != w && x.state == accepted && x.before(w) && !sameSection(x, w) && c.restored(x, m) == no {
				t.overwrote(i, x)
			}
		}
	}
	for k, pairs := range c.lost {
		if k.table == lock.TableName(t.inv.Table) && k.column == t.inv.Column {
			t.lose(pairs)
		}
	}
	t.lost = slices.DeleteFunc(t.lost, t.staleBy)
}

func (t *tally) overwrote(i *intent, x *write) {
	if !i.late {
		i.late = true
		t.out.StaleBase++
	}
	if !t.victims[x.op] {
		t.victims[x.op] = true
		t.out.Victims++
	}
}

// An undone is an update that was lost, and the one by which it was.
type undone struct{ gone, later *write }

func (t *tally) lose(pairs []pair) {
	for _, p := range pairs {
		gone := p.x
		if p.later == p.x {
			gone = p.y
		}
		t.lost = append(t.lost, undone{gone.write, p.later.write})
	}
}

// staleBy counts an update that was lost, once both writes are among the sum's.
func (t *tally) staleBy(u undone) (counted bool) {
	i := t.summed[u.later.op]
	if i == nil || t.summed[u.gone.op] == nil {
		return false
	}
	t.overwrote(i, u.gone)
	return true
}

// sameSection reports whether two writes are of one section: of one term, or of terms
// of which one lies within the other.
func sameSection(x, w *write) bool {
	a, _ := keyOfSection(x.op)
	b, _ := keyOfSection(w.op)
	return a == b && a.term != 0
}

// addedSince reports whether the section of a write had itself changed the column since
// the read, otherwise than by setting it: it may have counted that in.
func (c *kase) addedSince(r *read, w *write, column string) bool {
	d := c.ofTerm[w.op.Term.ID]
	if d == nil || !w.op.Term.Sure() {
		return false
	}
	at, _ := slices.BinarySearchFunc(d.writes, r.op.Seq, func(x *write, seq uint64) int { return cmp.Compare(x.op.Seq, seq) })
	for _, x := range d.writes[at:] {
		if x.op.Seq >= w.op.Seq {
			break
		}
		a, sets := x.assigns(column)
		if (x.state == accepted || x.state == uncertain) && x.of(w.op.SQL.Table) && sets && !differ(x.row, w.row) && (a.HasDelta || !a.Value.Known()) {
			return true
		}
	}
	return false
}
