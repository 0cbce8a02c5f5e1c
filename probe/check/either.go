package check

import (
	"fmt"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An either counts writes that may be of a section that was over when they took
// effect, or of another, or of none.
type either struct {
	n     int
	sums  map[string]int // likewise, but of a column that an invariant names, by row
	first *lock.Op
	stale *lock.Term // that the first may be of
	why   string     // it was over
}

// noteEither counts a write that is no section's for sure, if nothing makes it safe
// whoever sent it and one of those that it may be of was over.
func (c *kase) noteEither(b *halfSeen, w *write) {
	if w.op.Verb == "INSERT" && !w.op.SQL.Upsert || c.lawless[w.op] || c.safeFromAnyone(w) {
		return
	}
	for _, id := range w.op.Term.Candidates() {
		why := c.wasOver(c.byID[id], w)
		if why == "" {
			continue
		}
		b.either.count(w, c.summed(w))
		if b.either.first == nil || w.op.Seq < b.either.first.Seq {
			b.either.first, b.either.stale, b.either.why = w.op, c.byID[id], why
		}
		return
	}
}

// count adds a write.
func (e *either) count(w *write, summed bool) {
	if e.sums == nil {
		e.sums = map[string]int{}
	}
	if summed && (e.sums[w.row] > 0 || len(e.sums) < mostChartRows) {
		e.sums[w.row]++
	} else {
		e.n++
	}
}

// summed reports whether invariants of kind counter name all that a write sets: whether
// one of those was undone is told by the sum, if it is of that row.
func (c *kase) summed(w *write) bool {
	return !slices.ContainsFunc(w.op.SQL.Set, func(a lock.Assign) bool {
		return !a.HasDelta && !c.named(columnOf{lock.TableName(w.op.SQL.Table), a.Column})
	})
}

// undecided is how many no counter decides.
func (c *carry) undecided(table string, e *either) int {
	n := e.n
	for row, k := range e.sums {
		if !slices.ContainsFunc(c.tallies, func(t *tally) bool { return lock.TableName(t.inv.Table) == table && t.row == row && t.tells() }) {
			n += k
		}
	}
	return n
}

// tells reports whether the counter has a sum, and both its readings.
func (t *tally) tells() bool { return t.out.Known && !t.out.Unbounded && t.out.GivenUp == "" }

// wasOver says in words how a term may have been over before a write took effect
// though its holder had not asked for its release; "" if it was not. Whoever asks
// for that while a write of its own is under way is told of by LF107.
func (c *kase) wasOver(t *lock.Term, w *write) string {
	if t == nil || t.Marker {
		return ""
	}
	asked := lock.Never
	if t.Release != nil {
		asked = t.ReleaseAt
	}
	if end := t.Clock().Earliest; end <= min(w.hi, asked) {
		return fmt.Sprintf("its lease may have ended at %s", ms(end))
	}
	if o := c.grantedBefore(t, c.after(t), min(w.hi, asked)); o != nil {
		return fmt.Sprintf("term %d was granted by %s", o.ID, ms(o.Grant.R))
	}
	return ""
}

// safeFromAnyone reports whether a write undoes nobody's, whoever sent it: all that it
// changes it changes from what it finds, compares with what it sets,
// or has read under the row's lock.
func (c *kase) safeFromAnyone(w *write) bool {
	if len(w.op.SQL.Set) == 0 {
		return false
	}
	return c.underRowLock(w) || !slices.ContainsFunc(w.op.SQL.Set, func(a lock.Assign) bool { return !a.HasDelta && !c.versioned(w, a.Column) })
}

// underRowLock reports whether the transaction of a write had locked its row before,
// and has read it only since.
func (c *kase) underRowLock(w *write) bool {
	if w.op.Implicit || w.op.Tx == 0 || w.row == unknownRow {
		return false
	}
	t := c.txs[txID{w.op.Session, w.op.Tx}]
	if t == nil {
		return false
	}
	for _, op := range t.ops {
		if op.SQL == nil || op.Seq >= w.op.Seq || lock.TableName(op.SQL.Table) != lock.TableName(w.op.SQL.Table) || differ(c.rowOf(op), w.row) {
			continue
		}
		return op.SQL.ForUpdate && c.rowOf(op) == w.row
	}
	return false
}

// eitherOf tells of the writes of a table that may be of a section that was over.
func (c *carry) eitherOf(k tableOf, b *halfSeen) {
	n := c.undecided(k.table, &b.either)
	if n == 0 {
		return
	}
	w, t := b.either.first, b.either.stale
	p := let("T be the table %s and W be %s.", k.table, named(w))
	if others := len(w.Term.Candidates()) - 1; others > 0 {
		p.say("Then W may be of %s or of %s: whose it was cannot be told.", holder(t), otherSections(others))
	} else {
		p.say("Then W may be of %s, or of another task of its process: whose it was cannot be told.", holder(t))
	}
	p.say("However %s, and W was accepted, and nothing in it makes it safe whoever sent it. So it is of %d such writes of %d.", b.either.why, n, b.accepted)
	c.out.Facts.Either = append(c.out.Facts.Either, EitherFact{Table: k.table, Writes: n})
	c.blindSpot(lock.LockID{}, Verdict{Level: Proven, Table: k.table, Count: n}, p, w)
}

func otherSections(n int) string {
	if n == 1 {
		return "another section"
	}
	return fmt.Sprintf("%d other sections", n)
}
