package proxy

import (
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A settling is what follows when a gate has opened: until the held op has its answer, the order at
// the servers is fixed and not raced for, so what others begin waits its turn.
type settling struct {
	in    *injection
	since lock.Instant
	until lock.Instant // for those who have nothing to lose before
	turns []*turn
}

// A turn is a request of another that waits behind the held op.
type turn struct {
	conn  *conn
	op    *lock.Op
	gate  *Gate
	since lock.Instant
	limit limit
	over  bool
}

// A limit is until when a request may wait, and what would be in danger then.
type limit struct {
	at  lock.Instant
	why string
}

func (l limit) or(m limit) limit {
	if m.at < l.at {
		return m
	}
	return l
}

// Why a request did not wait until the held op had its answer.
const (
	atTimeout = "timeout"     // the gate's, or longestTurn
	atLease   = "lease"       // the last fifth of one that its process has had begun
	atWork    = "transaction" // its process is inside of one on another connection
	atGrant   = "lock"        // its process was granted one meanwhile that the wait might have kept from being given back
	atAnew    = "anew"        // the gate waits for more again, which others are to do
	atEnd     = "end"         // its connection, or the run, has ended
	atStop    = "stop"        // all that rules held was let go by hand
)

// elsewhere is how long a request waits whose process is inside a transaction on another connection:
// the two may be one task's, and the held op may wait for a row of that transaction.
const elsewhere = 200 * time.Millisecond

// longestTurn bounds how long others wait for the answer of a held op that is let go, whatever the time of its gate: that
// grows with the lease, and they have timeouts of their own.
const longestTurn = 5 * time.Second

// settle fixes the order behind an injection whose gate has opened.
func (e *Engine) settle(in *injection, now lock.Instant) {
	if e.rules && !in.settled {
		in.settled = true
		e.settlings = append(e.settlings, &settling{in: in, since: now, until: now.Add(min(in.For, longestTurn))})
	}
}

// orderly returns the gate of a request that must not overtake a held op, or nil. One that has waited its
// turn waits no more.
func (e *Engine) orderly(c *conn, op *lock.Op, now lock.Instant) *Gate {
	for _, s := range e.settlings {
		if c.urgent || s.knows(op) {
			continue
		}
		if l := e.mayWait(s, c, op, now); l.at > now {
			t := &turn{conn: c, op: op, gate: newGate(), since: now, limit: l}
			s.turns = append(s.turns, t)
			e.kick()
			return t.gate
		}
	}
	return nil
}

func (s *settling) knows(op *lock.Op) bool {
	return slices.ContainsFunc(s.turns, func(t *turn) bool { return t.op == op })
}

// mayWait returns until when a request may be kept waiting behind a held op; it is over where it may not.
func (e *Engine) mayWait(s *settling, c *conn, op *lock.Op, now lock.Instant) limit {
	switch {
	case s.in.conn == c, s.in.Act == fault.Freeze && s.in.freezes(c.actor), !e.begins(op, s.in.wait):
		return limit{}
	case e.wantedBy(s.in, c.actor, op, now), op.Proto == lock.Redis && e.keeps(c, op, now):
		return limit{why: atGrant}
	}
	l := limit{s.until, atTimeout}
	if c.worksElsewhere() {
		l = l.or(limit{s.since.Add(elsewhere), atWork})
	}
	return l.or(limit{e.leasesOf(c.actor, op, now), atLease})
}

// begins reports whether an op begins something: it asks for the lock, or is a statement or a BEGIN outside
// of any transaction. Everything else goes on, or row locks would wait for each other. What a statement does
// to a lease's row is told by the op beside it.
func (e *Engine) begins(op *lock.Op, w *fault.Wait) bool {
	switch op.Kind {
	case lock.Acquire, lock.Store:
		return e.ledger.LockOf(op) == w.Lock() && !e.ledger.Renews(op)
	case lock.Begin:
		return true
	case lock.Read, lock.Write:
		return op.Implicit && !op.SQL.Lease
	}
	return false
}

// living lists the open terms of a process whose leases may not have ended, without an op that asks to go on.
func (e *Engine) living(a *Actor, op *lock.Op, now lock.Instant) []*lock.Term {
	return slices.DeleteFunc(e.ledger.OpenTerms(a.Label), func(t *lock.Term) bool { return now > e.ledger.EndWithout(op, t).Latest })
}

// wantedBy reports whether a process has a lock that the held op asks for, or one of a session, which somebody
// may wait for at the server: the answer may wait for the release, and that for what the process does before.
func (e *Engine) wantedBy(in *injection, a *Actor, op *lock.Op, now lock.Instant) bool {
	asks := in.op.Kind == lock.Acquire && in.phase == fault.Before
	return slices.ContainsFunc(e.living(a, op, now), func(t *lock.Term) bool {
		return t.Span == lock.SessionSpan || asks && t.Lock == e.ledger.LockOf(in.op)
	})
}

// keeps reports whether a lock that a process has was taken on a connection: its renewal, or its release,
// may come behind whatever is held there.
func (e *Engine) keeps(c *conn, op *lock.Op, now lock.Instant) bool {
	return slices.ContainsFunc(e.living(c.actor, op, now), func(t *lock.Term) bool {
		return t.Session == c.id || slices.ContainsFunc(t.Votes, func(v *lock.Vote) bool { return v.Grant.Session == c.id })
	})
}

// worksElsewhere reports whether a process is inside a transaction on another of its connections.
func (c *conn) worksElsewhere() bool {
	for _, o := range c.actor.conns {
		if o != c && o.peer.Working != nil && o.peer.Working() {
			return true
		}
	}
	return false
}

// leasesOf is the end of the time in which a process has more than a fifth left of each of its leases.
func (e *Engine) leasesOf(a *Actor, op *lock.Op, now lock.Instant) lock.Instant {
	until := lock.Never
	for _, t := range e.living(a, op, now) {
		until = min(until, t.LeaseEnd.Earliest.Add(-t.Lasts()/5))
	}
	return until
}

// reckon looks again at how long the requests of a process may wait, since it may have been granted a lock.
func (e *Engine) reckon(a *Actor, now lock.Instant) {
	for _, s := range e.settlings {
		for _, t := range s.turns {
			if t.conn.actor == a {
				t.limit = t.limit.or(e.mayWait(s, t.conn, t.op, now))
			}
		}
	}
	e.letTurns(now)
}

// letTurns lets go the requests that may wait no longer.
func (e *Engine) letTurns(now lock.Instant) {
	for _, s := range e.settlings {
		for _, t := range s.turns {
			if t.limit.at <= now {
				e.passes(s, t, t.limit.why, now)
			}
		}
	}
	e.unsettle(atTimeout, now, func(s *settling) bool { return s.until <= now })
}

// passes ends a turn, and notes why if the held op has no answer.
func (e *Engine) passes(s *settling, t *turn, why string, now lock.Instant) {
	if t.over {
		return
	}
	t.over = true
	t.gate.Open()
	e.turned = append(e.turned, history.Turn{Injection: s.in.Injection, Op: t.op.Seq, Session: t.conn.id, Actor: t.conn.actor.Label, At: t.since, Ended: now, Cut: why})
	e.kick()
}

// nextTurn returns when a request may wait no longer, Never if none waits.
func (e *Engine) nextTurn() lock.Instant {
	next := lock.Never
	for _, s := range e.settlings {
		for _, t := range s.turns {
			if !t.over {
				next = min(next, t.limit.at)
			}
		}
	}
	return next
}

// settled ends what the answer of a held op ends.
func (e *Engine) settled(op *lock.Op, now lock.Instant) {
	e.unsettle("", now, func(s *settling) bool { return s.in.op == op })
}

// unsettle lets go those who wait for certain injections.
func (e *Engine) unsettle(why string, now lock.Instant, which func(*settling) bool) {
	e.settlings = slices.DeleteFunc(e.settlings, func(s *settling) bool {
		if !which(s) {
			return false
		}
		for _, t := range s.turns {
			e.passes(s, t, why, now)
		}
		return true
	})
}

// unturn ends the turns of a connection that has ended, and the order behind what was held on it.
func (e *Engine) unturn(c *conn, now lock.Instant) {
	for _, s := range e.settlings {
		for _, t := range s.turns {
			if t.conn == c {
				e.passes(s, t, atEnd, now)
			}
		}
	}
	e.unsettle("", now, func(s *settling) bool { return s.in.conn == c })
}

// Turns returns the turns that have ended since the last call.
func (e *Engine) Turns() []history.Turn {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.turned
	e.turned = nil
	return out
}
