package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// lockless finds LF308, one verdict for each process and lock: it wrote what
// the lock protects after the lock had been refused to it.
func (c *kase) lockless() {
	state := map[*lock.Op]*write{}
	for _, w := range c.writes {
		state[w.op] = w
	}
	for _, s := range c.strays {
		w := state[s.op]
		if w == nil || !c.dueOp(s.op) || w.state != accepted || s.op.Actor == "" {
			continue
		}
		for _, id := range sortedLocks(s.refused) {
			if c.hadIt(id, s.op) {
				continue
			}
			if byTable, certain := c.guarded(id, w); byTable || certain {
				s.certain = certain
				c.lockless1(id, s, w)
			}
		}
	}
}

// hadIt reports whether the process had been granted the lock when it sent the write,
// even if that was noted later: a grant is, when its reply was delivered.
func (c *kase) hadIt(id lock.LockID, w *lock.Op) bool {
	return slices.ContainsFunc(latest(c.terms[id], w.R), func(t *lock.Term) bool {
		return t.Actor == w.Actor && t.Grant.R <= w.A && (t.End == 0 || t.End >= w.A)
	})
}

// mayHaveIt reports whether the process was granted the lock, and may have been before the write
// took effect, though it had not been told when it sent it.
func (c *kase) mayHaveIt(id lock.LockID, w *lock.Op) bool {
	return slices.ContainsFunc(latest(c.terms[id], w.R), func(t *lock.Term) bool {
		return t.Actor == w.Actor && t.Grant.F < w.R && (t.End == 0 || t.End >= w.A)
	})
}

// mostUnheard is how many unanswered acquires of one process are kept in mind.
const mostUnheard = 64

// unanswered notes an acquire that was never answered. One whose answer could not be
// read was answered to its process, which may have the lock since.
func (j *Judging) unanswered(op *lock.Op) {
	own := j.unheard[op.Actor]
	if op.R != 0 {
		delete(own, j.ledger.LockOf(op))
		j.ledger.Forgive(op)
		return
	}
	if own == nil {
		if op.Actor == "" || len(j.unheard) >= mostActors {
			return
		}
		own = map[lock.LockID]*lock.Op{}
		j.unheard[op.Actor] = own
	}
	if len(own) >= mostUnheard {
		clear(own)
	}
	own[j.ledger.LockOf(op)] = op
}

// notGranted returns the locks that a process last asked for and was not told to
// have, with what it asked, or nil.
func (j *Judging) notGranted(actor string) map[lock.LockID]*lock.Op {
	refused, unheard := j.ledger.Refusals(actor), j.unheard[actor]
	if len(refused)+len(unheard) == 0 {
		return nil
	}
	out := clone(refused)
	for id, op := range unheard {
		if r := out[id]; r == nil || r.Seq < op.Seq {
			out[id] = op
		}
	}
	return out
}

func sortedLocks(m map[lock.LockID]*lock.Op) []lock.LockID {
	var out []lock.LockID
	for id := range m {
		out = append(out, id)
	}
	slices.SortFunc(out, func(a, b lock.LockID) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// guarded reports whether the lock is declared to protect the write's table, and
// whether it is certainly this lock that protects what was written: the declaration
// names its key alone, or its terms wrote the same row.
func (c *kase) guarded(id lock.LockID, w *write) (byTable, certain bool) {
	table := lock.TableName(w.op.SQL.Table)
	for _, d := range c.setup.Declarations {
		if d.Table != "" && lock.TableName(d.Table) == table && d.Covers(id.Key) {
			byTable, certain = true, certain || d.Key == id.Key
		}
	}
	for _, a := range w.op.SQL.Set {
		k := cell{table, w.row, a.Column}
		if w.row != unknownRow && (slices.Contains(c.rowLocks[k], id) || c.writtenUnder(id, k)) {
			return byTable, true
		}
	}
	return byTable, certain
}

// writtenUnder reports whether a term of the lock wrote the cell for sure.
func (c *kase) writtenUnder(id lock.LockID, k cell) bool {
	return c.writeUnder(id, k) != nil
}

func (c *kase) writeUnder(id lock.LockID, k cell) *lock.Op {
	for _, x := range c.written[k] {
		if t := c.byID[x.op.Term.ID]; t != nil && t.Lock == id && x.op.Term.Sure() {
			return x.op
		}
	}
	return nil
}

func (c *kase) lockless1(id lock.LockID, s stray, w *write) {
	c.lawless[s.op] = true
	if c.piled("LF308", Proven, id, s.op.Actor, 1) {
		return
	}
	op, refusal := s.op, s.refused[id]
	p := let("W be %s of %s, accepted by %s.", named(op), op.Actor, ms(op.R))
	v := Verdict{Code: "LF308", Level: Proven, Table: lock.TableName(op.SQL.Table)}
	p.say("Then its process held no lock when it sent W at %s, and %s.", ms(op.A), lastHeard(id, refusal))
	p.say("However the lock protects what W wrote.")
	cited := []*lock.Op{refusal, op}
	for _, a := range w.op.SQL.Set {
		if by := c.writeUnder(id, cell{v.Table, w.row, a.Column}); by != nil {
			p.say("Its sections write that row, as %s of %s.", named(by), holder(c.byID[by.Term.ID]))
			cited = append(cited, c.byID[by.Term.ID].Grant, by)
			break
		}
	}
	doubt := c.locklessDoubt(id, s, refusal)
	f := c.pile(c.emit(id, with(v, p), cited...), s.op.Actor, "")
	carried, actor, ledger := c.carry, op.Actor, c.ledger
	f.unless = func() bool { return !ledger.Kept(id) }
	f.doubt = func() string {
		if doubt == "" && carried.manyTasks(actor) {
			return severalTasks
		}
		return doubt
	}
}

const severalTasks = "The process has held two locks at once: another of its tasks may have been refused"

// lastHeard is what a process knew of a lock from the last time that it had asked.
func lastHeard(id lock.LockID, asked *lock.Op) string {
	switch {
	case answered(asked):
		return fmt.Sprintf("the last answer it had about %s was that of %s, at %s: %s", id, named(asked), ms(asked.R), outcomeOf(asked))
	case asked.F == 0:
		return fmt.Sprintf("its last request for %s, %s, was cut off before it reached the server", id, named(asked))
	}
	return fmt.Sprintf("its last request for %s, %s, was never answered", id, named(asked))
}

// locklessDoubt says why a write after a refusal may be right, or "".
func (c *kase) locklessDoubt(id lock.LockID, s stray, refusal *lock.Op) string {
	gone, over := c.ended[refusal.Session]
	switch {
	case lock.AddressOnly(s.op.Actor) && refusal.Session != s.op.Session:
		return "Of W and of who was refused it is only known that they came from one address"
	case refusal.F == 0 && !answered(refusal) && over && gone <= s.op.A:
		return c.severalDoubt(id, s, refusal) // it cannot have been granted
	case !answered(refusal) && over && gone <= s.op.A:
		return "The server may have granted it, though it had no answer"
	case !answered(refusal) || refusal.D == 0 || refusal.D > s.op.A:
		return "The answer had not reached it for certain when it sent W"
	}
	return c.severalDoubt(id, s, refusal)
}

// severalDoubt says why W may be of another section or lock than the refused one's.
func (c *kase) severalDoubt(id lock.LockID, s stray, refusal *lock.Op) string {
	switch {
	case s.op.Term.ID != 0 && !s.op.Term.Sure():
		return "It may be of a section that the process never asked to end"
	case c.manyTasks(s.op.Actor):
		return severalTasks
	case c.mayHaveIt(id, s.op):
		return "It had asked for the lock again, and may have been granted it before W took effect"
	case c.heldDuring(id, refusal):
		return "The process had the lock itself when it was refused: another of its tasks may have asked"
	case c.ledger.HandsOver(id):
		return "Tokens of this lock are handed from one process to another, and it may have had one"
	case !s.certain:
		return "The lock is one of several that the declaration covers, and W may be of a row that another one protects"
	}
	return ""
}

// heldDuring reports whether the process that was refused a lock may have held
// it at that time.
func (c *kase) heldDuring(id lock.LockID, refusal *lock.Op) bool {
	own := slices.DeleteFunc(slices.Clone(c.terms[id]), func(t *lock.Term) bool { return t.Actor != refusal.Actor })
	return c.state(id).denied[refusal.Actor] == refusal.Seq || heldDuring(own, refusal)
}

// heldDuring reports whether one of a process's terms of a lock, by ID, was open
// when it was refused the lock. Of many it looks at those that began last.
func heldDuring(own []*lock.Term, refusal *lock.Op) bool {
	return slices.ContainsFunc(latest(own, refusal.R), func(t *lock.Term) bool { return t.End == 0 || t.End >= refusal.A })
}

// latest returns those of terms, which are by ID, that were asked for last by then.
func latest(terms []*lock.Term, by lock.Instant) []*lock.Term {
	end, _ := slices.BinarySearchFunc(terms, by+1, func(t *lock.Term, at lock.Instant) int { return cmp.Compare(t.Grant.A, at) })
	return terms[max(0, end-lookedBack):end]
}

const lookedBack = 64

func outcomeOf(op *lock.Op) string {
	if op.Outcome == lock.Pending {
		return "none"
	}
	return string(op.Outcome)
}
