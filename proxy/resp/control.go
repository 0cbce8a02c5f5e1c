package resp

import (
	"bytes"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A transaction is what was queued between MULTI and EXEC, by the replies.
type transaction struct {
	active bool
	queued int64    // requests that were answered +QUEUED
	items  []queued // those of them that matter
	next   int      // the item whose element comes next
	done   int64    // elements read
}

type queued struct {
	index int64
	entry
}

// control fills in what the request changes in the connection.
func (t *Tracker) control(e *entry) {
	r := &t.req
	switch r.plan.cmd.verb {
	case selectVerb:
		if n, ok := parseInt(r.arg(1)); ok && r.argc == 2 && n >= 0 && n <= maxCount {
			e.act, e.db = selects, int(n)
			t.asked = e.db
			t.asking++
		}
	case helloVerb:
		t.hello(e)
	case clientVerb:
		t.client(e)
	case scriptVerb:
		if bytes.EqualFold(r.arg(1), []byte("LOAD")) && r.arg(2) != nil {
			t.opt.Scripts.learn(r.arg(2))
		}
	case resetVerb:
		e.act = resets
		t.asked = 0
		t.asking++
	case multiVerb:
		e.act = begins
	case execVerb:
		e.act = executes
	case discardVerb:
		e.act = discards
	case blindVerb:
		e.act = blinds
	}
}

// hello reads HELLO [version [AUTH user password] [SETNAME name]]; the user
// and the password were never kept.
func (t *Tracker) hello(e *entry) {
	r := &t.req
	for i := 2; i < len(r.args); i++ {
		switch opt := r.arg(i); {
		case bytes.EqualFold(opt, []byte("AUTH")):
			r.plan.cmd.verb = authVerb
			i += 2
		case bytes.EqualFold(opt, []byte("SETNAME")) && i+1 < len(r.args):
			i++
			e.act, e.name = names, string(r.arg(i))
		}
	}
}

func (t *Tracker) client(e *entry) {
	switch r := &t.req; {
	case bytes.EqualFold(r.arg(1), []byte("SETNAME")) && r.argc == 3:
		e.act, e.name = names, string(r.arg(2))
	case bytes.EqualFold(r.arg(1), []byte("REPLY")) && !bytes.EqualFold(r.arg(2), []byte("ON")):
		e.act = blinds
	}
}

// opened says what is wanted of the reply that begins.
func (t *Tracker) opened(marks []wire.Mark) []wire.Mark {
	r := &t.rep
	if t.queue.empty() {
		if r.kind == '-' || r.kind == '|' {
			return marks // a server that refuses the connection says why
		}
		t.blindIn = true
		return t.goBlind(marks, r.start, "reply at byte "+itoa(r.start)+": it answers no request")
	}
	e := t.queue.next()
	r.want = e != nil || t.tx.active
	if e == nil {
		return marks
	}
	r.hold = len(e.ops) > 0 || e.ends() && len(t.tx.items) > 0
	if e.act == executes && t.tx.active && r.kind == '*' {
		r.base = 1
		t.tx.next, t.tx.done = 0, 0
	}
	return marks
}

// ends reports whether its reply settles what MULTI queued.
func (e *entry) ends() bool { return e.act == executes || e.act == discards || e.act == resets }

// reply takes in a whole frame from the server.
func (t *Tracker) reply(marks []wire.Mark) []wire.Mark {
	if t.rep.aside || t.queue.empty() {
		return marks
	}
	if !t.rep.want {
		t.queue.popPlain()
		return marks
	}
	e := t.queue.pop()
	a := &t.rep.answer
	if t.tx.active && a.kind == '+' && a.is("QUEUED") && !e.ends() {
		t.tx.add(e)
		return marks
	}
	if e.act == noAction && len(e.ops) == 0 {
		return marks
	}
	t.waiting -= 1 + len(e.ops)
	t.apply(&e, a)
	if e.ends() {
		marks = t.settle(marks, &e)
	}
	return t.replyMarks(marks, e.ops)
}

func (t *Tracker) replyMarks(marks []wire.Mark, ops []*lock.Op) []wire.Mark {
	start, end := t.rep.span()
	for _, op := range ops {
		marks = append(marks, wire.Mark{Kind: wire.Reply, Op: op, Start: start, End: end})
	}
	return marks
}

func (x *transaction) add(e entry) {
	if e.act != noAction || len(e.ops) > 0 {
		x.items = append(x.items, queued{x.queued, e})
	}
	x.queued++
}

// element gives the element of EXEC's array that was just read to the request
// that it answers.
func (t *Tracker) element() {
	x := &t.tx
	if x.next < len(x.items) && x.items[x.next].index == x.done && t.rep.total == x.queued {
		t.apply(&x.items[x.next].entry, &t.rep.answer)
		x.next++
	}
	x.done++
	t.rep.answer = answer{}
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
		t.waiting -= 1 + len(item.ops)
		if i >= x.next {
			t.undone(item)
			setOutcome(item.ops, fate, word)
		}
		marks = t.replyMarks(marks, item.ops)
	}
	t.tx = transaction{items: x.items[:0]}
	clear(x.items)
	return marks
}

// fate says what has become of the requests that were queued; Pending if they
// still are.
func (t *Tracker) fate(e *entry) (lock.Outcome, string) {
	a := &t.rep.answer
	switch {
	case t.rep.base == 1 && t.rep.total >= 0:
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

// apply reads the reply of a request: its outcome, and what has changed.
func (t *Tracker) apply(e *entry, a *answer) {
	failed := a.isError() || a.kind == 0
	switch {
	case e.act == selects || e.act == resets:
		t.moved(e, failed)
	case failed:
	case e.act == names:
		t.setName(e.name)
	case e.act == begins:
		t.tx = transaction{active: true, items: t.tx.items[:0]}
	}
	for _, op := range e.ops {
		if op.DB != t.db {
			op.DB = t.db
		}
		e.judge(op, a)
	}
}

// moved notes the answer to a SELECT or a RESET.
func (t *Tracker) moved(e *entry, failed bool) {
	t.asking--
	if !failed {
		t.db = e.db
		if e.act == resets {
			t.setName("")
		}
	}
	if t.asking == 0 {
		t.asked = t.db
	}
}

// undone notes that a queued request was not run.
func (t *Tracker) undone(e *entry) {
	if e.act == selects || e.act == resets {
		t.moved(e, true)
	}
}

func setOutcome(ops []*lock.Op, o lock.Outcome, word string) {
	for _, op := range ops {
		op.Outcome, op.Err = o, word
	}
}
