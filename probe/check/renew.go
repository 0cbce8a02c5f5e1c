package check

import (
	"github.com/lockfaultd/lockfaultd/lock"
)

// foreignRenewals finds LF302, one verdict for each lock and level: renewals that
// set the lifetime of another term's lock.
func (c *kase) foreignRenewals() {
	for _, op := range c.ops {
		if op.Kind != lock.Renew || op.Outcome != lock.Done || op.F == 0 || op.R == 0 || op.Guessed || !c.dueOp(op) {
			continue
		}
		id := c.ledger.LockOf(op)
		if len(c.terms[id]) == 0 || c.isMarker(id) {
			continue
		}
		victim := c.removedOther(id, op)
		if victim == nil {
			c.renewedNotOwn(id, op)
			continue
		}
		if takes(op, victim) {
			c.takenOver(op, victim)
			continue
		}
		if level := c.renewerLevel(id, op, victim); level != "" {
			c.foreignRenewal(op, victim, level)
		}
	}
}

// takes reports whether a renewal puts a token of its own where the other's was.
func takes(op *lock.Op, victim *lock.Term) bool {
	return op.Token.Known() && !op.Compares() && !op.Token.Same(victim.Token)
}

// renewerLevel says how sure it is that the sender of a renewal took the lock for
// its own. One that only renews for others takes nothing for its own.
func (c *kase) renewerLevel(id lock.LockID, op *lock.Op, victim *lock.Term) Level {
	switch {
	case !c.hadHeld(id, op):
		if !c.wasRefused(id, op) {
			return ""
		}
		return Likely
	case victim.GuessedLease, c.clockDoubt(victim) != "", !c.sameProcess(id, op), c.failedOver(victim, op),
		setAsOwn(c.byID[op.Term.ID], victim):
		return Likely
	}
	return Proven
}

// hadHeld reports whether the op's process had been granted the lock before.
func (c *kase) hadHeld(id lock.LockID, op *lock.Op) bool {
	seq, ok := c.state(id).holders[op.Actor]
	return ok && seq < op.Seq
}

// wasRefused reports whether the op's process had asked for the lock in vain.
func (c *kase) wasRefused(id lock.LockID, op *lock.Op) bool {
	seq, ok := c.state(id).refused[op.Actor]
	return ok && seq < op.Seq
}

func (c *kase) foreignRenewal(op *lock.Op, b *lock.Term, level Level) {
	m := many{id: b.Lock, code: "LF302", more: "This happened %d times."}
	c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
		p, what := wasOf(b, op)
		p.say("However in that time %s of %s, %s, was answered that it had set the lifetime: it extended B's lock, and its sender goes on as if it were its own.",
			named(op), op.Actor, what)
		if level != Proven {
			p.say("That its sender had held the lock itself was not seen, or B's lease is not certain, so this is not proven.")
		}
		return p, Verdict{Terms: termsOf(op, b)}, []*lock.Op{b.Grant, op}
	})
}

func termsOf(op *lock.Op, victim *lock.Term) []lock.TermID {
	if op.Term.ID != 0 && op.Term.ID != victim.ID {
		return []lock.TermID{op.Term.ID, victim.ID}
	}
	return []lock.TermID{victim.ID}
}
