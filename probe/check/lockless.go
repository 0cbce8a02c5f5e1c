package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// lockless finds LF308, one verdict for each process and lock: it wrote what
// the lock protects after the lock had been refused to it.
func (c *kase) lockless() {
	type key struct {
		id    lock.LockID
		actor string
	}
	found := map[key][]stray{}
	var order []key
	state := map[*lock.Op]*write{}
	for _, w := range c.writes {
		state[w.op] = w
	}
	for _, s := range c.strays {
		w := state[s.op]
		if w == nil || w.state != accepted || s.op.Actor == "" {
			continue
		}
		for _, id := range sortedLocks(s.refused) {
			if byTable, certain := c.guarded(id, w); byTable || certain {
				s.certain = certain
				k := key{id, s.op.Actor}
				if found[k] == nil {
					order = append(order, k)
				}
				found[k] = append(found[k], s)
			}
		}
	}
	for _, k := range order {
		c.lockless1(k.id, found[k])
	}
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
	for _, d := range c.in.Declarations {
		if d.Table != "" && lock.TableName(d.Table) == table && d.Covers(id.Key) {
			byTable, certain = true, certain || d.Key == id.Key
		}
	}
	for _, a := range w.op.SQL.Set {
		for _, x := range c.written[cell{table, w.row, a.Column}] {
			if t := c.ledger.Term(x.op.Term.ID); t != nil && t.Lock == id && x.op.Term.Sure() && w.row != unknownRow {
				return byTable, true
			}
		}
	}
	return byTable, certain
}

func (c *kase) lockless1(id lock.LockID, list []stray) {
	op, refusal := list[0].op, list[0].refused[id]
	p := let("W be %s of %s, accepted by %s.", named(op), op.Actor, ms(op.R))
	v := Verdict{Code: "LF308", Level: Proven, Table: lock.TableName(op.SQL.Table), Count: len(list)}
	p.say("Then its process held no lock when it sent W at %s, and the last answer it had about %s was that of %s, at %s: %s.",
		ms(op.A), id, named(refusal), ms(refusal.R), outcomeOf(refusal))
	p.say("However the lock protects what W wrote.")
	if doubt := c.locklessDoubt(id, list[0], refusal); doubt != "" {
		v.Level = Likely
		p.say("%s, so this is not proven.", doubt)
	}
	c.emit(id, with(v, p), refusal, op)
}

// locklessDoubt says why a write after a refusal may be right, or "".
func (c *kase) locklessDoubt(id lock.LockID, s stray, refusal *lock.Op) string {
	switch {
	case !answered(refusal) || refusal.D == 0 || refusal.D > s.op.A:
		return "The answer had not reached it for certain when it sent W"
	case s.op.Term.ID != 0:
		return "It may be of a section that the process never asked to end"
	case c.manyTasks(s.op.Actor):
		return "The process has held two locks at once: another of its tasks may have been refused"
	case c.heldDuring(id, refusal):
		return "The process had the lock itself when it was refused: another of its tasks may have asked"
	case !s.certain:
		return "The lock is one of several that the declaration covers, and W may be of a row that another one protects"
	}
	return ""
}

// heldDuring reports whether the process that was refused a lock may have held
// it at that time.
func (c *kase) heldDuring(id lock.LockID, refusal *lock.Op) bool {
	return slices.ContainsFunc(c.terms[id], func(t *lock.Term) bool {
		return t.Actor == refusal.Actor && t.Grant.A <= refusal.R && (t.End == 0 || t.End >= refusal.A)
	})
}

func outcomeOf(op *lock.Op) string {
	if op.Outcome == lock.Pending {
		return "none"
	}
	return string(op.Outcome)
}

// manyTasks reports whether a process has had two sections open at once.
func (c *kase) manyTasks(actor string) bool {
	var last *lock.Term
	for _, t := range c.ledger.Terms() {
		if t.Actor != actor {
			continue
		}
		if last != nil && (last.End == 0 || last.End > t.Grant.A) {
			return true
		}
		last = t
	}
	return false
}
