package check

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// splitSessions finds LF310, one verdict for each lock and level: an unlock that
// the server answered with false, while the lock was held by another backend.
func (c *kase) splitSessions() {
	for _, op := range c.ops {
		if op.Proto != lock.Postgres || op.Kind != lock.Release || op.All || op.Outcome != lock.NotHeld || op.F == 0 || !c.dueOp(op) {
			continue
		}
		if strings.HasPrefix(op.Key, "advisory:") && op.Key != "advisory:?" {
			c.splitSession(op)
		}
	}
}

func (c *kase) splitSession(op *lock.Op) {
	for _, t := range slices.Backward(c.terms[lock.IDOf(op)]) {
		if t.Span != lock.SessionSpan || t.Grant.R > op.F || !sameOwner(t, op) || c.unlocked(t, op) {
			continue
		}
		if t.Session == op.Session || !c.refusedThere(op) {
			c.split(t, op)
			return
		}
	}
}

// sameOwner reports whether the unlock was sent by the client that holds the term.
func sameOwner(t *lock.Term, op *lock.Op) bool {
	return t.Session == op.Session || t.Actor == op.Actor && op.Actor != ""
}

// unlocked reports whether the term's own connection unlocked it, ever, or may have
// ended before the unlock that failed was answered.
func (c *kase) unlocked(t *lock.Term, op *lock.Op) bool {
	at, ended := c.ended[t.Session]
	return ended && at <= op.R || slices.ContainsFunc(c.unlocks(t.Session), func(x *lock.Op) bool {
		return x != op && x.Seq > t.Grant.Seq && (x.All || x.Key == t.Lock.Key) && x.Outcome != lock.NotHeld && x.Outcome != lock.Failed
	})
}

// unlocks lists the advisory unlocks of a session.
func (c *kase) unlocks(session uint64) []*lock.Op {
	if c.unlocking == nil {
		c.unlocking = map[uint64][]*lock.Op{}
		for _, op := range c.ops {
			if op.Proto == lock.Postgres && op.Kind == lock.Release {
				c.unlocking[op.Session] = append(c.unlocking[op.Session], op)
			}
		}
	}
	return c.unlocking[session]
}

// refusedThere reports whether the unlock's own connection had been refused the
// lock, or had unlocked it already: then it is one too many, and no more.
func (c *kase) refusedThere(op *lock.Op) bool {
	a := c.acts[lock.IDOf(op)]
	return a != nil && slices.ContainsFunc(a.all, func(x *lock.Op) bool {
		return x.Session == op.Session && x.Seq < op.Seq
	})
}

func (c *kase) split(t *lock.Term, op *lock.Op) {
	level := Proven
	if t.Session == op.Session || lock.AddressOnly(op.Actor) {
		level = Likely
	}
	m := many{id: t.Lock, code: "LF310", more: "This happened %d times."}
	c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
		p := let("A be %s, granted by %s on session %d.", holder(t), ms(t.Grant.R), t.Session)
		p.say("Then the backend of that session has the lock until it unlocks it or ends, and neither was seen by %s.", ms(op.R))
		p.say("However the unlock, %s, was sent on session %d and answered at %s that it held nothing: the lock is still taken.", named(op), op.Session, ms(op.R))
		switch {
		case t.Session == op.Session:
			p.say("Something between the proxy and the server must have given it to another backend, as a pooler does; that was not seen, so this is not proven.")
		case level != Proven:
			p.say("Of both it is only known that they came from one address, so this is not proven.")
		}
		return p, Verdict{Terms: []lock.TermID{t.ID}}, []*lock.Op{t.Grant, op}
	})
}
