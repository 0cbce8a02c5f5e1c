package resp

import (
	"fmt"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// modes are what a connection can be in. The first three are the server's own
// flags: CLIENT REPLY SKIP sets skipNext, which becomes skip when that command
// is done, and ends with the next.
type modes struct {
	off, skip, skipNext bool
	monitor             bool
	resp3               bool
}

// passed notes that the server is done with a request.
func (m *modes) passed() { m.skip, m.skipNext = m.skipNext, false }

// mute reports whether the server keeps its replies to itself.
func (m *modes) mute() bool { return m.off || m.skip }

// reset takes in a RESET, which leaves skip.
func (m *modes) reset() { m.off, m.skipNext, m.monitor, m.resp3 = false, false, false, false }

// A hearing tells whether a request is answered.
type hearing uint8

const (
	heard     hearing = iota
	unheard           // by no reply at all
	undecided         // the error may be its own or another's
)

// hears tells whether the reply that has come may be that to the request, nil
// for a plain one. a is nil unless the reply is an error.
func (t *Tracker) hears(e *entry, a *answer) hearing {
	act := noAction
	if e != nil {
		act = e.act
	}
	mute := t.modes.mute()
	switch {
	case act == nothing:
		return unheard
	case t.tx.active && queues(act):
		return silence(mute)
	case t.refuses(act):
		return silence(mute)
	}
	switch act {
	case replyOn:
		return heard
	case resets:
		return silence(t.modes.skip) // RESET ends OFF first
	case replyOff:
		return silence(mute || a == nil) // with replies off there are no errors
	case replySkip:
		return t.fails(mute, a)
	case silent:
		return t.fails(mute, a)
	case monitors:
		if t.modes.monitor {
			return t.fails(mute, a)
		}
	}
	return silence(mute)
}

// refuses reports whether the server answers a request of that kind with an
// error in any case: in RESP2 it takes little else than subscriptions while
// there are any.
func (t *Tracker) refuses(act action) bool {
	return act > noAction && act != resets && act != subscribes && act != nothing && act != blinds && !t.modes.resp3 && t.subs.any()
}

func silence(so bool) hearing {
	if so {
		return unheard
	}
	return heard
}

// fails is hears for a request that is answered only if it fails.
func (t *Tracker) fails(mute bool, a *answer) hearing {
	switch {
	case mute || a == nil:
		return unheard
	case a.begins("NOAUTH "):
		return heard
	case a.begins("NOPERM "), a.begins("BUSY "):
		return undecided
	}
	return unheard
}

// queues reports whether MULTI puts a request of that kind off.
func queues(act action) bool {
	switch act {
	case executes, discards, resets, begins, nothing:
		return false
	}
	return true
}

// clearWay passes over the requests that have no reply, now that one has come
// that cannot be theirs. It reports whether reading can go on.
func (t *Tracker) clearWay(marks []wire.Mark, a *answer) ([]wire.Mark, bool) {
	for !t.queue.empty() {
		e := t.queue.next()
		if e != nil && e.act == blinds {
			t.blindIn = true
			return marks, false
		}
		switch t.hears(e, a) {
		case heard:
			return marks, true
		case undecided:
			return t.desync(marks, "an error that more than one request may have caused"), false
		}
		if e != nil && e.act == executes && t.tx.revives {
			return t.desync(marks, "it may be part of what EXEC answers behind a CLIENT REPLY ON, or may not"), false
		}
		marks = t.pass(marks)
	}
	return marks, true
}

// pass takes the next request, to which there is no reply: what it asked for is
// taken for done, and what came of its ops is not known.
func (t *Tracker) pass(marks []wire.Mark) []wire.Mark {
	e := t.queue.pop()
	switch {
	case e.plain() && !t.tx.active:
	case t.tx.active && queues(e.act):
		t.tx.add(e)
	case t.refuses(e.act):
		t.settled(&e)
		t.undone(&e)
		marks = t.bare(marks, &e)
	default:
		t.settled(&e)
		t.assume(&e)
		marks = t.lose(marks, &e)
	}
	t.modes.passed()
	return marks
}

func (t *Tracker) lose(marks []wire.Mark, e *entry) []wire.Mark {
	if e.act == executes || e.act == discards || e.act == resets {
		marks = t.loseQueued(marks, e.act)
	}
	return t.bare(marks, e)
}

// bare marks a request's ops, of which no reply tells, before the frame at hand.
func (t *Tracker) bare(marks []wire.Mark, e *entry) []wire.Mark {
	e.fare(lock.Unknown, "")
	return e.replied(marks, t.rep.start, t.rep.start)
}

// assume carries out what a request that was not answered has changed.
func (t *Tracker) assume(e *entry) {
	switch e.act {
	case replyOff:
		t.modes.off = true
	case replySkip:
		t.modes.skipNext = !t.modes.off
	case subscribes:
		t.subs.waiting-- // it was refused, or else it would have been confirmed
	case hellos:
		t.greeted(e, e.num == 3 || e.num == 0 && t.modes.resp3)
	case monitors:
		t.modes.monitor = true
	case selects, resets, names, begins:
		t.changed(e, false)
	}
}

// greeted takes in a HELLO that succeeded.
func (t *Tracker) greeted(e *entry, resp3 bool) {
	t.modes.resp3 = resp3
	if e.more != nil && e.more.name != nil {
		t.setName(*e.more.name)
	}
}

// desync gives the connection up at the reply at hand.
func (t *Tracker) desync(marks []wire.Mark, what string) []wire.Mark {
	return t.giveUp(marks, t.rep.pos, fmt.Sprintf("reply at byte %d: %s", t.rep.start, what))
}
