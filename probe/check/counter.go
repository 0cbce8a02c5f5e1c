package check

import (
	"fmt"
	"slices"

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
	for _, m := range c.risings {
		m.add(c)
	}
}

// sumCounters completes the figures, and finds LF403 and LF404.
func (c *carry) sumCounters() {
	for _, f := range c.figures {
		c.out.Fences = append(c.out.Fences, f.sum(c))
	}
	for _, t := range c.tallies {
		c.out.Counters = append(c.out.Counters, t.sum(c))
	}
	for _, m := range c.risings {
		c.out.Risings = append(c.out.Risings, m.sum(c))
	}
}

// A tally is the sum of one counter, of what happened since it was set anew.
type tally struct {
	inv   Invariant
	conds []lock.Cond // of the query
	whole bool        // conds are all that chooses its row
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
	lost    []undone             // of which one is not among the sum's, so far
	met     int
	cited   [2]*intent // the first that was met and the last

	unbounded bool // the sum is given up: some of the writes may be of another row
	crowded   bool // likewise: more waited for what tells of them than are remembered
	unordered bool // what came before the value was set anew is not certain
	apart     apart
	unnamed   bool // it is not certain that the writes are of the counter's row
}

func newTally(inv Invariant) *tally {
	t := &tally{inv: inv, start: inv.Start, known: inv.HasStart,
		out: Counter{Name: inv.Name, Query: inv.Query, Table: inv.Table, Column: inv.Column, Start: inv.Start, End: inv.End}}
	t.conds, t.whole = conditions(inv.Query)
	t.anew()
	return t
}

// anew forgets what was summed.
func (t *tally) anew() {
	t.intents, t.summed, t.victims = map[*lock.Op]*intent{}, map[*lock.Op]*intent{}, map[*lock.Op]bool{}
	t.cited, t.apart, t.unordered = [2]*intent{}, apart{}, false
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

// mostWaiting is how many writes of a counter wait for what tells their row, or
// have no answer.
const mostWaiting = 1 << 12

// leave counts the intents whose base read leaves the view: no write can be computed
// from it any more.
func (t *tally) leave(k *keeper) {
	for op, i := range t.intents {
		if !k.keeps(op) {
			t.count(i)
			delete(t.intents, op)
		}
	}
	t.lost = slices.DeleteFunc(t.lost, func(u undone) bool { return !k.keeps(u.gone.op) || !k.keeps(u.later.op) })
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
	if t.out.GivenUp = t.givenUp(); t.out.GivenUp != "" {
		t.anew()
		t.start, t.known, t.out.Epochs, t.out.Unbounded = t.inv.Start, false, 0, true
	}
	t.out.Start = t.start
	t.out.Known = t.known && t.inv.HasEnd && t.inv.Table != ""
	if t.out.Known {
		t.out.Change = t.inv.End - t.start
		t.out.NetDeficit = t.out.Acknowledged - t.out.Change
		t.judge(c)
	}
	return t.out
}

// givenUp says why there is no sum.
func (t *tally) givenUp() string {
	switch {
	case t.several:
		return "its writes are of several rows"
	case t.crowded:
		return "too many of its writes have no answer, or are not known to be of its row"
	case t.unbounded:
		return "some of its writes may be of another row than the query's"
	case t.unordered:
		return "it was set anew while another write of it was on its way"
	}
	return ""
}

func (t *tally) judge(c *carry) {
	low, high := t.out.Acknowledged+t.out.UnknownLow, t.out.Acknowledged+t.out.UnknownHigh
	if t.out.Unbounded || low <= t.out.Change && t.out.Change <= high {
		return
	}
	v := Verdict{Code: "LF403", Level: Proven, Table: lock.TableName(t.inv.Table), Count: int(max(t.out.NetDeficit, -t.out.NetDeficit))}
	p := let("S be the sum of the steps that were acknowledged on %s.%s, each what was written less what had been read for it: %d.", t.inv.Table, t.inv.Column, t.out.Acknowledged)
	if t.out.Epochs > 0 {
		p.say("The value was set anew %d times; S counts from the last of those, from %d.", t.out.Epochs, t.start)
	}
	if t.out.Unknown > 0 {
		p.say("%d more have no answer and may have added from %d to %d.", t.out.Unknown, t.out.UnknownLow, t.out.UnknownHigh)
	}
	p.say("Then the counter's change lies in %s.", interval(low, high))
	p.say("However it went from %d to %d, a change of %d: a net deficit of %d.", t.start, t.inv.End, t.out.Change, t.out.NetDeficit)
	switch {
	case t.apart.n == 0:
	case t.apart.steady():
		p.say("Of %d writes the read was not within their section or transaction; but each put %d more than the last read before it, whatever that was, so that was their base.", t.apart.n, t.apart.step)
	default:
		v.Level = Likely
		p.say("Of %d writes it is not certain from which read they were computed.", t.apart.n)
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
