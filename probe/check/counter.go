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

// counters adds what is due to the figures of the invariants.
func (c *kase) counters() {
	for _, t := range c.tallies {
		t.add(c)
	}
	for _, f := range c.figures {
		f.add(c)
	}
}

// sumCounters completes the figures, and finds LF403.
func (c *carry) sumCounters() {
	for _, f := range c.figures {
		c.out.Fences = append(c.out.Fences, f.sum(c))
	}
	for _, t := range c.tallies {
		c.out.Counters = append(c.out.Counters, t.sum(c))
	}
}

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

// A tally is the sum of one counter, of what happened since it was set anew.
type tally struct {
	inv   Invariant
	conds []lock.Cond // of the query, where they compare with integers
	out   Counter
	start int64
	known bool // start is

	row     string   // the one that is updated
	several bool     // there are more
	before  []*write // of what was inserted or deleted before an update told the row

	intents map[*lock.Op]*intent // by the base read
	summed  map[*lock.Op]*intent // the writes that count, with what they are of
	victims map[*lock.Op]bool    // of what is in view, what was overwritten
	hanging []*write             // may still come
	met     int
	cited   [2]*intent // the first that was met and the last

	unbounded bool // the sum is given up
	unordered bool // what came before the value was set anew is not certain
	unsure    int  // bases that are not certain
	unnamed   bool // it is not certain that the writes are of the counter's row
}

func newTally(inv Invariant) *tally {
	t := &tally{inv: inv, conds: conditions(inv.Query), start: inv.Start, known: inv.HasStart,
		out: Counter{Name: inv.Name, Query: inv.Query, Table: inv.Table, Column: inv.Column, Start: inv.Start, End: inv.End}}
	t.anew()
	return t
}

// anew forgets what was summed.
func (t *tally) anew() {
	t.intents, t.summed, t.victims = map[*lock.Op]*intent{}, map[*lock.Op]*intent{}, map[*lock.Op]bool{}
	t.cited, t.unsure, t.unordered = [2]*intent{}, 0, false
	t.out.Acknowledged, t.out.Unknown, t.out.UnknownLow, t.out.UnknownHigh, t.out.Unbounded = 0, 0, 0, 0, false
	t.out.StaleBase, t.out.Victims = 0, 0
}

// add takes in the due writes of a case, by the order of their effects.
func (t *tally) add(c *kase) {
	all := t.writes(c)
	for _, w := range all {
		if c.dueOp(w.id) && t.ofRow(c, w, all) {
			t.addOne(c, w, all)
		}
	}
	t.stale(c)
}

func (t *tally) addOne(c *kase, w *write, all []*write) {
	t.place(w)
	if t.sets(c, w) {
		t.epoch(c, w, all)
		return
	}
	if w.state == uncertain {
		t.hang(w)
	}
	t.intentOf(c, w)
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

// writes lists the accepted and the uncertain writes in view that may be of the
// counter, by the order of their effects.
func (t *tally) writes(c *kase) []*write {
	var out []*write
	for _, w := range slices.Concat(c.writes, c.beside) {
		if (w.state == accepted || w.state == uncertain) && w.of(t.inv.Table) && t.concerns(w) && !t.hasRead(w) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b *write) int { return cmp.Compare(a.hi, b.hi) })
	return out
}

// hasRead reports whether the first reading already has what the write did.
func (t *tally) hasRead(w *write) bool {
	return t.inv.HasStart && t.inv.ReadAt != 0 && w.state == accepted && w.hi <= t.inv.ReadAt
}

// straddles reports whether the first reading may have what the write did, or not.
func (t *tally) straddles(w *write) bool {
	return t.inv.HasStart && t.out.Epochs == 0 && w.lo < t.inv.ReadAt && t.inv.ReadAt < w.hi
}

// mostWaiting is how many writes of a counter wait for what tells their row, or
// have no answer.
const mostWaiting = 1 << 12

// ofRow leaves out the writes that insert or delete another row than the one that
// is updated, and gives the sum up where that cannot be told. Until a row is
// updated it is not known which that is: then they count, and are looked at again.
func (t *tally) ofRow(c *kase, w *write, all []*write) bool {
	switch {
	case t.several:
		return true
	case w.op.Verb == "UPDATE" && t.row == "":
		t.row = w.row
		t.unbounded = t.unbounded || slices.ContainsFunc(t.before, func(w *write) bool { return t.elsewhere(w) && w.op.Verb == "INSERT" })
		if slices.ContainsFunc(t.before, t.another) {
			t.again(c, all)
		}
		t.before = nil
	case w.op.Verb == "UPDATE":
		t.several = w.row != t.row
		t.unbounded = t.unbounded || t.several
	case t.row == "":
		if t.before = append(t.before, w); len(t.before) > mostWaiting {
			t.unbounded, t.before = true, nil
		}
	case t.another(w):
		return false
	default:
		t.unbounded = t.unbounded || t.elsewhere(w) && w.op.Verb == "INSERT"
	}
	return true
}

func (t *tally) elsewhere(w *write) bool { return w.row != t.row && !t.another(w) }

// another reports whether a write is certainly of another row than the one that is
// updated.
func (t *tally) another(w *write) bool {
	return w.row != t.row && w.row != unknownRow && !strings.HasSuffix(w.row, "/")
}

// again sums once more what was met before it was known which row is updated.
func (t *tally) again(c *kase, all []*write) {
	t.anew()
	t.hanging = nil
	t.start, t.known, t.out.Epochs = t.inv.Start, t.inv.HasStart, 0
	for _, w := range t.before {
		if !t.another(w) {
			t.addOne(c, w, all)
		}
	}
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
			t.unbounded = true
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

// sets reports whether a write sets the value anew.
func (t *tally) sets(c *kase, w *write) bool {
	a, _ := w.assigns(t.inv.Column)
	if _, guarded := t.guardOf(w); w.op.Verb == "UPDATE" && (a.HasDelta || !a.Value.Known() || guarded || t.baseOf(c, w) != nil) {
		return false
	}
	return w.state == accepted && !w.op.SQL.Upsert
}

// epoch starts the sum again at a write that set the value anew. What may still
// come counts after it, and if it is not certain which writes did the sum is given up.
func (t *tally) epoch(c *kase, e *write, all []*write) {
	hanging := t.hanging
	t.anew()
	t.hanging = nil
	a, ok := e.assigns(t.inv.Column)
	t.out.Epochs++
	t.start, t.known = a.Value.Int, ok && a.Value.IsInt
	for _, w := range slices.Concat(all, hanging) {
		if w != e && w.id != e.id && !w.before(e) && !e.before(w) && (t.several || !t.another(w)) {
			t.unordered = true
		}
	}
	for _, w := range hanging {
		t.hang(w)
		t.intentOf(c, w)
	}
}

func (t *tally) hang(w *write) {
	if t.hanging = append(t.hanging, w); len(t.hanging) > mostWaiting {
		t.hanging, t.unbounded = nil, true
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
		t.unsure++
	}
	if r.vague {
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
			if x != w && x.state == accepted && x.before(w) && !sameTerm(x, w) && c.restored(x, m) == no {
				t.overwrote(i, x)
			}
		}
	}
	for k, pairs := range c.lost {
		if k.table == lock.TableName(t.inv.Table) && k.column == t.inv.Column {
			t.staleIn(pairs)
		}
	}
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

func (t *tally) staleIn(pairs []pair) {
	for _, p := range pairs {
		gone := p.x
		if p.later == p.x {
			gone = p.y
		}
		if i := t.summed[p.later.write.op]; i != nil && t.summed[gone.write.op] != nil {
			t.overwrote(i, gone.write)
		}
	}
}

// leave counts the intents whose base read leaves the view: no write can be computed
// from it any more.
func (t *tally) leave(k *keeper) {
	for op, i := range t.intents {
		if !k.keeps(op) {
			t.count(i)
			delete(t.intents, op)
		}
	}
	for op := range t.summed {
		if !k.keeps(op) {
			delete(t.summed, op)
			delete(t.victims, op)
		}
	}
}

// sum completes the figures.
func (t *tally) sum(c *carry) Counter {
	for _, i := range t.intents {
		t.count(i)
	}
	t.out.Unbounded = t.out.Unbounded || t.unbounded || t.unordered
	t.out.Start = t.start
	t.out.Known = t.known && t.inv.HasEnd && t.inv.Table != ""
	if t.out.Known {
		t.out.Change = t.inv.End - t.start
		t.out.NetDeficit = t.out.Acknowledged - t.out.Change
		t.judge(c)
	}
	return t.out
}

func sameTerm(x, w *write) bool { return x.op.Term.ID == w.op.Term.ID && w.op.Term.ID != 0 }

func (t *tally) judge(c *carry) {
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
	if c.out.Facts.Gaps > 0 && v.Level == Proven {
		v.Level = Likely
		p.say("The record has a gap, in which there may have been steps, so this is not proven.")
	}
	var cited []*lock.Op
	if t.cited[0] != nil {
		cited = []*lock.Op{t.cited[0].final.op, t.cited[1].final.op}
	}
	_, class := about(v.Code)
	c.file(c.lockOf(t.inv), class, with(v, p), cited...)
}

func interval(low, high int64) string {
	if low == high {
		return fmt.Sprintf("[%d, %d]", low, low)
	}
	return fmt.Sprintf("[%d, %d]", low, high)
}

// lockOf returns the lock that guards an invariant: the one that was named, else
// none.
func (c *carry) lockOf(inv Invariant) lock.LockID {
	for _, id := range c.lockOrder {
		if inv.Lock != "" && id.Key == inv.Lock && c.lockKnown[id].fact.Grants > 0 {
			return id
		}
	}
	return lock.LockID{}
}
