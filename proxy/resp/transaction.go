package resp

import (
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A transaction is what was queued between MULTI and EXEC, by the replies.
//
// The elements of the array that answers EXEC are read as frames of their own,
// each for the request that was queued in its place: the count in the array's
// header is that of the requests, and a request may answer with more than one
// element, or none.
type transaction struct {
	active  bool
	running bool // the elements are being read
	secrets bool // an AUTH is among the requests
	revives bool // a CLIENT REPLY ON is among the requests

	exposed bool     // another than a subscription was run while there were some
	queued  int64    // requests that were answered +QUEUED
	items   []queued // those of them that matter
	next    int      // the item whose element comes next
	done    int64    // requests whose elements were read
}

type queued struct {
	index int64
	entry
}

func (x *transaction) add(e entry) {
	if c := e.call(); c != nil {
		c.queued = true
	}
	if !e.plain() {
		x.items = append(x.items, queued{x.queued, e})
		x.revives = x.revives || e.act == replyOn
		x.secrets = x.secrets || e.act == authenticates || e.class >= credentials
	}
	x.queued++
}

// item returns the request whose element comes next; nil for a plain one.
func (x *transaction) item() *entry {
	if x.next < len(x.items) && x.items[x.next].index == x.done {
		return &x.items[x.next].entry
	}
	return nil
}

// header is told of the header of the array that answers EXEC. Where it does not
// count what was queued, the array is read as one reply that tells nothing.
func (t *Tracker) header(marks []wire.Mark) ([]wire.Mark, event) {
	x := &t.tx
	if t.rep.total != x.queued {
		return marks, t.rep.enter(level{left: t.rep.total})
	}
	x.running, x.next, x.done = true, 0, 0
	t.rep.unpack()
	return t.unroll(marks), more
}

// element takes in an element of EXEC's array.
func (t *Tracker) element(marks []wire.Mark) []wire.Mark {
	a := &t.rep.answer
	t.tx.exposed = t.tx.exposed || t.subs.any()
	if e := t.tx.item(); e != nil {
		if e.act == subscribes {
			if !a.isError() {
				return t.desync(marks, "it confirms no subscription, though one was queued")
			}
			t.subs.waiting--
		}
		t.apply(e, a)
	}
	return t.advance(marks)
}

// advance goes on to the next request that was queued.
func (t *Tracker) advance(marks []wire.Mark) []wire.Mark {
	x := &t.tx
	if x.item() != nil {
		x.next++
	}
	x.done++
	return t.unroll(marks)
}

// unroll passes over the requests that have no element, and ends the
// transaction behind the last.
func (t *Tracker) unroll(marks []wire.Mark) []wire.Mark {
	x := &t.tx
	for x.done < x.queued {
		e := x.item()
		if e == nil && !t.modes.off || e != nil && t.hasElement(e) {
			return marks
		}
		x.exposed = x.exposed || t.subs.any()
		if e != nil {
			t.assume(e)
			e.fare(lock.Unknown, "")
			x.next++
		}
		x.done++
	}
	t.rep.rejoin()
	t.subs.trailing = x.exposed
	e := t.queue.pop()
	t.settled(&e)
	marks = t.settle(marks, &e)
	for _, op := range e.ops() {
		op.DB, op.Outcome = t.db, lock.Done
	}
	marks = t.replyMarks(marks, &e)
	t.modes.passed()
	return marks
}

func (t *Tracker) hasElement(e *entry) bool {
	switch e.act {
	case replyOff, replySkip, silent:
		return false
	case replyOn:
		return true
	case subscribes: // SSUBSCRIBE is refused within MULTI
		return !t.modes.off || topic(e.num) != ssubscribed
	}
	return !t.modes.off
}

// settle ends the transaction: what the array did not answer was not run, or
// cannot be told.
func (t *Tracker) settle(marks []wire.Mark, e *entry) []wire.Mark {
	x := &t.tx
	fate, word := t.fate(e)
	if fate == lock.Pending {
		return marks
	}
	for i := range x.items {
		item := &x.items[i].entry
		t.settled(item)
		if i >= x.next {
			t.undone(item)
			item.fare(fate, word)
		}
		marks = t.replyMarks(marks, item)
	}
	t.endTransaction()
	return marks
}

func (t *Tracker) endTransaction() {
	items := t.tx.items
	clear(items)
	if cap(items) > keptItems {
		items = nil
	}
	t.tx = transaction{items: items[:0]}
}

// keptItems is how many items' room stays between transactions.
const keptItems = 16

// fate says what has become of the requests that were queued; Pending if they
// still are.
func (t *Tracker) fate(e *entry) (lock.Outcome, string) {
	a := &t.rep.answer
	switch {
	case t.tx.running, a.isArray():
		return lock.Unknown, ""
	case e.act == executes && a.isError():
		return lock.Failed, a.word()
	case e.act == executes:
		return lock.Failed, "" // nil: a watched key had changed
	case a.isError():
		return lock.Pending, ""
	}
	return lock.Failed, "DISCARD"
}

// loseQueued ends a transaction of whose end no reply tells.
func (t *Tracker) loseQueued(marks []wire.Mark, act action) []wire.Mark {
	for i := range t.tx.items {
		item := &t.tx.items[i].entry
		t.settled(item)
		if act == executes {
			t.assume(item)
		} else {
			t.undone(item)
		}
		marks = t.bare(marks, item)
	}
	t.endTransaction()
	return marks
}

// undone notes that a queued request was not run.
func (t *Tracker) undone(e *entry) {
	switch e.act {
	case selects, resets:
		t.moved(e, true)
	case subscribes:
		t.subs.waiting--
	}
}
