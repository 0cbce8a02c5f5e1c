package check

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// counters computes the figures of each invariant, and finds LF403.
func (c *kase) counters() {
	for _, inv := range c.in.Invariants {
		if inv.Kind == "fence" {
			c.out.Fences = append(c.out.Fences, c.fenceFigure(inv))
			continue
		}
		c.counter(inv)
	}
}

// An intent is one wish to change a counter: a read, and the write or writes
// that were computed from it.
type intent struct {
	base  lock.Value
	final *write // the last accepted write, else the last uncertain one
	delta bool
}

type tally struct {
	c       *kase
	inv     Invariant
	conds   []lock.Cond // of the query, where they compare with integers
	out     Counter
	intents map[*read]*intent
	summed  map[*write]*intent // the writes that count, with what they are of
	order   []*intent
	cited   []*lock.Op
	start   int64
	known   bool // start is
	unsure  int  // bases that are not certain
	unnamed bool // it is not certain that the writes are of the counter's row
}

func (c *kase) counter(inv Invariant) {
	t := &tally{c: c, inv: inv, conds: conditions(inv.Query), start: inv.Start, known: inv.HasStart,
		intents: map[*read]*intent{}, summed: map[*write]*intent{},
		out: Counter{Name: inv.Name, Query: inv.Query, Table: inv.Table, Column: inv.Column, Start: inv.Start, End: inv.End}}
	writes := t.ofRow(t.writes())
	for _, w := range writes {
		t.place(w)
	}
	for _, w := range writes[t.epoch(writes):] {
		t.add(w)
	}
	for _, i := range t.order {
		t.count(i)
	}
	t.stale()
	t.out.Start = t.start
	t.out.Known = t.known && inv.HasEnd && inv.Table != ""
	if t.out.Known {
		t.out.Change = inv.End - t.start
		t.out.NetDeficit = t.out.Acknowledged - t.out.Change
		t.judge()
	}
	c.out.Counters = append(c.out.Counters, t.out)
}

var condition = regexp.MustCompile(`(?i)(?:where|and)\s+"?(\w+)"?\s*=\s*(?:(-?\d+)|'(?:[^']|'')*')`)

// conditions returns the comparisons with integers and texts in a query. The
// value of a text is not known: a history keeps it as a hash only.
func conditions(query string) []lock.Cond {
	var out []lock.Cond
	for _, m := range condition.FindAllStringSubmatch(query, -1) {
		if m[2] == "" {
			out = append(out, lock.Cond{Column: m[1], Op: "="})
			continue
		}
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err == nil {
			out = append(out, lock.Cond{Column: m[1], Op: "=", Value: lock.Value{Int: n, IsInt: true}})
		}
	}
	return out
}

// writes lists the accepted and the uncertain writes of the counter's row, by
// the order of their effects.
func (t *tally) writes() []*write {
	var out []*write
	for _, w := range slices.Concat(t.c.writes, t.c.beside) {
		if (w.state == accepted || w.state == uncertain) && w.of(t.inv.Table) && t.concerns(w) && !t.before(w) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b *write) int { return cmp.Compare(a.hi, b.hi) })
	return out
}

// before reports whether the first reading already has what the write did.
func (t *tally) before(w *write) bool {
	return t.inv.HasStart && t.inv.ReadAt != 0 && w.state == accepted && w.hi <= t.inv.ReadAt
}

// straddles reports whether the first reading may have what the write did, or not.
func (t *tally) straddles(w *write) bool {
	return t.inv.HasStart && t.out.Epochs == 0 && w.lo < t.inv.ReadAt && t.inv.ReadAt < w.hi
}

// ofRow leaves out the writes that insert or delete another row than the one that
// is updated, and gives the sum up where that cannot be told.
func (t *tally) ofRow(writes []*write) []*write {
	rows := map[string]bool{}
	for _, w := range writes {
		if w.op.Verb == "UPDATE" {
			rows[w.row] = true
		}
	}
	if len(rows) != 1 {
		t.out.Unbounded = len(rows) > 1
		return writes
	}
	var out []*write
	for _, w := range writes {
		if !rows[w.row] && w.row != unknownRow && !strings.HasSuffix(w.row, "/") {
			continue
		}
		t.out.Unbounded = t.out.Unbounded || !rows[w.row] && w.op.Verb == "INSERT"
		out = append(out, w)
	}
	return out
}

// place gives the sum up if the write may be of another row than the one that the
// query reads: it does not name that by the query's own columns. Of one that the
// query names by a text it is not certain.
func (t *tally) place(w *write) {
	if len(w.op.SQL.Where) == 0 && !w.op.SQL.Opaque && w.op.Verb != "INSERT" {
		return // it is of every row
	}
	for _, q := range t.conds {
		v, ok := columnIn(w, q.Column)
		switch {
		case !ok || q.Value.IsInt && !v.IsInt:
			t.out.Unbounded = true
		case !q.Value.IsInt:
			t.unnamed = true
		}
	}
}

// columnIn returns the value of a column in the row that a write is of.
func columnIn(w *write, column string) (lock.Value, bool) {
	for _, g := range w.op.SQL.Where {
		if g.Column == column && g.Op == "=" && g.Value.Known() {
			return g.Value, true
		}
	}
	a, ok := w.assigns(column)
	return a.Value, ok && w.op.Verb == "INSERT" && a.Value.Known()
}

// concerns reports whether the write may have changed the counter.
func (t *tally) concerns(w *write) bool {
	for _, q := range t.conds {
		for _, g := range w.op.SQL.Where {
			if g.Column == q.Column && g.Op == "=" && g.Value.IsInt && q.Value.IsInt && g.Value.Int != q.Value.Int {
				return false
			}
		}
		if a, ok := w.assigns(q.Column); ok && w.op.Verb == "INSERT" && a.Value.IsInt && q.Value.IsInt && a.Value.Int != q.Value.Int {
			return false
		}
	}
	_, ok := w.assigns(t.inv.Column)
	return ok || w.op.Verb != "UPDATE"
}

// epoch returns where counting starts: after the last accepted write that set
// the value anew.
func (t *tally) epoch(writes []*write) int {
	from := 0
	for i, w := range writes {
		a, ok := w.assigns(t.inv.Column)
		if _, guarded := t.guardOf(w); w.op.Verb == "UPDATE" && (a.HasDelta || !a.Value.Known() || guarded || t.baseOf(w) != nil) {
			continue
		}
		if w.state != accepted || w.op.SQL.Upsert {
			continue
		}
		from = i + 1
		t.out.Epochs++
		t.start, t.known = a.Value.Int, ok && a.Value.IsInt
	}
	if from > 0 {
		t.checkOrder(writes[from-1], writes)
	}
	return from
}

// checkOrder gives the sum up if it is not certain which writes came after the
// one that set the value anew.
func (t *tally) checkOrder(e *write, writes []*write) {
	for _, w := range writes {
		if w != e && !w.before(e) && !e.before(w) {
			t.out.Unbounded = true
		}
	}
}

// baseOf returns the read from which the write was computed, or nil: that of
// its term, else the last on its connection, else the last of its process.
func (t *tally) baseOf(w *write) *read {
	k := cell{lock.TableName(t.inv.Table), w.row, t.inv.Column}
	if w.op.Term.Sure() {
		if r, sure := t.c.baseRead(w.op.Term.ID, w, k); r != nil {
			return t.c.certain(r, sure)
		}
	}
	if r := t.c.lastOf(owner{session: w.op.Session}, w, k); r != nil {
		return t.c.certain(r, !t.c.reread(r, 0, []owner{{session: w.op.Session}}, w, k))
	}
	if w.op.Actor == "" {
		return nil
	}
	return t.c.lastOf(owner{actor: w.op.Actor}, w, k)
}

func (t *tally) add(w *write) { t.summed[w] = t.intentOf(w) }

// intentOf returns what the write is of, and makes it the last of that.
func (t *tally) intentOf(w *write) *intent {
	a, ok := w.assigns(t.inv.Column)
	r := t.baseOf(w)
	guard, guarded := t.guardOf(w)
	guarded = guarded && ok && !a.HasDelta
	if a.HasDelta || !ok || r == nil || guarded && !guard.Same(r.value(t.inv.Column)) {
		i := &intent{base: guard, final: w, delta: a.HasDelta}
		t.order = append(t.order, i)
		return i
	}
	if !guarded && !madeFrom(r, w) {
		t.unsure++
	}
	i := t.intents[r]
	if i == nil {
		i = &intent{base: r.value(t.inv.Column)}
		t.intents[r] = i
		t.order = append(t.order, i)
	}
	if i.final == nil || w.state == accepted || i.final.state != accepted {
		i.final = w
	}
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

// count adds an intent to the sums.
func (t *tally) count(i *intent) {
	step, known := t.step(i)
	t.cited = append(t.cited, i.final.op)
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
func (t *tally) stale() {
	bases, victims := map[*intent]bool{}, map[*write]bool{}
	for r, i := range t.intents {
		w := i.final
		if w.state != accepted || w.row == unknownRow || r.vague {
			continue
		}
		m := &rmw{cell: cell{lock.TableName(t.inv.Table), w.row, t.inv.Column}, read: r, write: w}
		list := t.c.written[m.cell]
		from, _ := slices.BinarySearchFunc(list, r.op.R, func(x *write, at lock.Instant) int { return cmp.Compare(x.lo, at) })
		for _, x := range list[from:] {
			if x.lo >= w.hi {
				break
			}
			if x != w && x.state == accepted && x.before(w) && !sameTerm(x, w) && t.c.restored(x, m) == no {
				bases[i] = true
				victims[x] = true
			}
		}
	}
	for k, pairs := range t.c.lost {
		if k.table == lock.TableName(t.inv.Table) && k.column == t.inv.Column {
			t.staleIn(pairs, bases, victims)
		}
	}
	t.out.StaleBase, t.out.Victims = len(bases), len(victims)
}

func (t *tally) staleIn(pairs []pair, bases map[*intent]bool, victims map[*write]bool) {
	for _, p := range pairs {
		gone := p.x
		if p.later == p.x {
			gone = p.y
		}
		if i := t.summed[p.later.write]; i != nil && t.summed[gone.write] != nil {
			bases[i] = true
			victims[gone.write] = true
		}
	}
}

func sameTerm(x, w *write) bool { return x.op.Term.ID == w.op.Term.ID && w.op.Term.ID != 0 }

func (t *tally) judge() {
	low, high := t.out.Acknowledged+t.out.UnknownLow, t.out.Acknowledged+t.out.UnknownHigh
	if t.out.Unbounded || low <= t.out.Change && t.out.Change <= high {
		return
	}
	v := Verdict{Code: "LF403", Level: Proven, Table: lock.TableName(t.inv.Table), Count: int(max(t.out.NetDeficit, -t.out.NetDeficit))}
	p := let("S be the sum of the steps that were acknowledged on %s.%s, each what a section wrote less what it had read: %d.", t.inv.Table, t.inv.Column, t.out.Acknowledged)
	if t.out.Epochs > 0 {
		p.say("The value was set anew %d times; S counts from the last of those, from %d.", t.out.Epochs, t.start)
	}
	if t.out.Unknown > 0 {
		p.say("%d more have no answer and may have added from %d to %d.", t.out.Unknown, t.out.UnknownLow, t.out.UnknownHigh)
	}
	p.say("Then the counter's change lies in %s.", interval(low, high))
	p.say("However it went from %d to %d, a change of %d: a net deficit of %d.", t.start, t.inv.End, t.out.Change, t.out.NetDeficit)
	if t.unsure > 0 {
		v.Level = Likely
		p.say("Of %d writes it is not certain from which read they were computed.", t.unsure)
	}
	if t.unnamed && v.Level == Proven {
		v.Level = Likely
		p.say("The query names its row by a text, which the record does not keep: the writes may be of another one.")
	}
	if len(t.c.in.Gaps) > 0 && v.Level == Proven {
		v.Level = Likely
		p.say("The record has a gap, in which there may have been steps, so this is not proven.")
	}
	var cited []*lock.Op
	if n := len(t.cited); n > 0 {
		cited = []*lock.Op{t.cited[0], t.cited[n-1]}
	}
	t.c.emit(t.c.lockOf(t.inv), with(v, p), cited...)
}

func interval(low, high int64) string {
	if low == high {
		return fmt.Sprintf("[%d, %d]", low, low)
	}
	return fmt.Sprintf("[%d, %d]", low, high)
}

// lockOf returns the lock that guards an invariant: the one that was named, else
// none.
func (c *kase) lockOf(inv Invariant) lock.LockID {
	for _, id := range c.lockIDs() {
		if inv.Lock != "" && id.Key == inv.Lock {
			return id
		}
	}
	return lock.LockID{}
}
