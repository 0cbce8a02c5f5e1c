package proxy

import (
	"bytes"
	"reflect"
	"slices"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// clientGaveUp is the outcome of an injection that the client did not wait for: it says nothing about its lock.
const clientGaveUp = "client-gave-up"

// The ways to give up on a request.
const (
	closedIt = "the client closed the connection"
	sentIt   = "the client sent the request again"
)

// hold puts an injection on the list; e.mu is held.
func (e *Engine) hold(in *injection) {
	e.active = append(e.active, in)
	e.holding.Store(int32(len(e.active)))
}

// Again takes a request that was read, whether or not it has to wait: who sends what he has sent before
// and has had no answer to, on whichever connection, has given up on that.
func (e *Engine) Again(c *conn, op *lock.Op) {
	if e.holding.Load() == 0 || !telling(op) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, in := range slices.Clone(e.active) {
		if in.actor == c.actor && in.unanswered() && in.kind != lock.Renew && sameRequest(in.op, op) && !e.ofNewTerm(in.op) {
			e.repeated(in, op.A)
		}
	}
}

// ofNewTerm reports whether the process of a write in a section was granted a lock since: what is written once
// more is then most likely of the new section.
func (e *Engine) ofNewTerm(op *lock.Op) bool {
	if op.Kind != lock.Write || op.Term.ID == 0 {
		return false
	}
	for id := op.Term.ID + 1; ; id++ {
		t := e.ledger.Term(id)
		if t == nil {
			return false
		}
		if t.Actor == op.Actor && t.Grant.ReplySeq > op.Seq {
			return true
		}
	}
}

// unanswered reports whether the op's client cannot know yet what came of it.
func (in *injection) unanswered() bool {
	return in.op != nil && !in.delivered && !(in.Act == fault.Freeze && in.ordered)
}

// repeated notes that a held request was sent once more; e.mu is held.
func (e *Engine) repeated(in *injection, now lock.Instant) {
	in.conn.void.Store(in.op)
	in.gaveUp = sentIt
	if in.later != nil {
		e.leave(in, sentIt, now)
	}
}

// noteGaveUp finds out whether the client has given up on the request of an injection.
func (e *Engine) noteGaveUp(in *injection) bool {
	if in.op == nil {
		return false
	}
	gone, again := in.conn.peer.gone(), in.phase == fault.Before && in.kind != lock.Renew && in.conn.repeats(in.op)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case in.gaveUp != "":
	case gone:
		in.gaveUp = closedIt
	case again:
		e.repeated(in, 0)
	}
	return in.gaveUp != ""
}

// repeats reports whether the request that waits was sent once more on its connection, where nobody reads on meanwhile.
func (c *conn) repeats(op *lock.Op) bool {
	held := c.held.Load()
	return held != nil && c.peer.Waiting != nil && telling(op) && bytes.Contains(c.peer.Waiting(), *held)
}

// telling reports whether a request that equals this one is most likely the same intention, and not another
// one of a process that does one thing many times, as heartbeats are: it has a token, or writes values to a row.
func telling(op *lock.Op) bool {
	if op.Kind != lock.Write {
		return op.Kind != lock.Renew && op.Token.Known()
	}
	reckoned := func(a lock.Assign) bool { return !a.Value.Known() }
	return op.SQL != nil && len(op.SQL.Set) > 0 && len(op.SQL.Where) > 0 && !slices.ContainsFunc(op.SQL.Set, reckoned)
}

func sameRequest(a, b *lock.Op) bool {
	return asked(a) == asked(b) && reflect.DeepEqual(a.SQL, b.SQL)
}

// A question is what of a request tells it from others, beside its statement.
type question struct {
	proto          lock.Protocol
	upstream, path string
	verb           string
	db             int
	key            string
	token          lock.Value
}

func asked(op *lock.Op) question {
	return question{op.Proto, op.Upstream, op.Path, op.Verb, op.DB, op.Key, op.Token}
}
