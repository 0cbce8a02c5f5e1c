package resp

import (
	"fmt"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// opened says what is wanted of the reply that begins.
func (t *Tracker) opened(marks []wire.Mark) []wire.Mark {
	r := &t.rep
	t.late = false
	if t.tx.running {
		r.want = true
		t.late = r.kind == '*' && t.mayPublish() || r.kind == '+' && t.modes.monitor
		return marks
	}
	e := t.queue.next()
	if t.odd() || e != nil && (e.act >= subscribes || e.class >= authClass) {
		if t.late = t.tellsLate(e); t.late {
			r.want, r.hold = true, t.due > 0
			return marks
		}
		ok := true
		if marks, ok = t.clearWay(marks, nil); !ok {
			return marks
		}
		e = t.queue.next()
	}
	return t.expect(marks, e)
}

// odd reports whether more than the next request decides what a frame is.
func (t *Tracker) odd() bool {
	m := &t.modes
	return m.off || m.skip || m.monitor || t.doubt || !m.resp3 && t.subs.open()
}

// mayPublish reports whether an array may be a publication or a confirmation.
func (t *Tracker) mayPublish() bool {
	return !t.modes.resp3 && (t.subs.open() || t.subs.waiting > 0)
}

// tellsLate reports whether more than its first byte has to be known of the
// frame before it can be told whose it is.
func (t *Tracker) tellsLate(e *entry) bool {
	switch {
	case t.doubt, e != nil && e.class >= authClass && !t.tx.active:
		return true
	}
	switch t.rep.kind {
	case '-', '!', '|':
		return true
	case '+':
		return t.modes.monitor || t.watching > 0
	case '*':
		return !t.tx.active && (t.mayPublish() || t.subs.waiting > 0 || t.modes.off)
	}
	return false
}

// expect prepares for the reply to a request, nil for a plain one.
func (t *Tracker) expect(marks []wire.Mark, e *entry) []wire.Mark {
	r := &t.rep
	if e == nil && t.queue.empty() {
		if r.kind == '-' || r.kind == '|' {
			return marks // a server that refuses the connection says why
		}
		return t.unasked(marks)
	}
	r.want = e != nil || t.tx.active || r.kind == '-'
	if e == nil {
		return marks
	}
	r.hold = e.marked() > 0 || e.ends() && len(t.tx.items) > 0
	if e.act != executes || !t.tx.active || r.kind != '*' || len(t.tx.items) == 0 && !t.modes.monitor {
		return marks
	}
	if t.tx.secrets {
		return t.desync(marks, "an AUTH was queued, and some servers leave its reply out of EXEC's")
	}
	r.split = true
	return marks
}

func (t *Tracker) unasked(marks []wire.Mark) []wire.Mark {
	return t.desync(marks, "it answers no request")
}

// ends reports whether its reply settles what MULTI queued.
func (e *entry) ends() bool { return e.act == executes || e.act == discards || e.act == resets }

// reply takes in a whole frame from the server.
func (t *Tracker) reply(marks []wire.Mark) []wire.Mark {
	r := &t.rep
	switch {
	case r.aside:
		if r.want && r.answer.topic == moving {
			t.leave("MOVING")
		}
		if r.want && r.answer.isConfirmation(r.total) {
			marks, e := t.confirmable(marks)
			return t.confirm(marks, e)
		}
		return marks
	case t.late:
		t.late = false
		mine := false
		if marks, mine = t.sort(marks); !mine {
			return marks
		}
	}
	t.subs.trailing = false
	if r.want && r.answer.isError() {
		t.redirected(&r.answer)
	}
	switch {
	case t.tx.running:
		return t.element(marks)
	case t.queue.empty():
		return marks
	case !r.want:
		t.queue.popPlain()
		return marks
	case r.answer.isError() && r.answer.begins("ERR Protocol error"):
		return t.hungUp(marks)
	}
	return t.answered(marks)
}

// sort tells what a frame is that could not be told from its first byte. It
// reports whether the frame answers the next request.
func (t *Tracker) sort(marks []wire.Mark) ([]wire.Mark, bool) {
	a := &t.rep.answer
	switch {
	case a.kind == '*':
		c := noClaim
		switch marks, c = t.claims(marks); c {
		case aside:
			return marks, false
		case disputed:
			return t.desync(marks, "it may be a publication, or an answer that looks like one"), false
		}
	case a.kind == '+' && isFeed(a.text()):
		if marks = t.passToMonitor(marks); t.modes.monitor {
			return marks, false
		}
	}
	switch {
	case t.tx.running:
		return marks, true
	case t.doubt || t.shaky > 0 && t.inDoubt():
		return t.weigh(marks)
	}
	var bad *answer
	if a.isError() {
		bad = a
	}
	marks, ok := t.clearWay(marks, bad)
	switch {
	case !ok:
		return marks, false
	case t.queue.empty() && bad == nil:
		return t.unasked(marks), false
	}
	return marks, true
}

// passToMonitor passes over the requests that have no reply up to a MONITOR,
// whose effect is seen.
func (t *Tracker) passToMonitor(marks []wire.Mark) []wire.Mark {
	for !t.modes.monitor && !t.queue.empty() && t.hears(t.queue.next(), nil) == unheard {
		marks = t.pass(marks)
	}
	return marks
}

// isFeed reports whether a line is what MONITOR shows of a command, as in
// 1700000000.123456 [0 127.0.0.1:4711] "GET" "a".
func isFeed(line []byte) bool {
	i := 0
	for i < len(line) && (line[i] >= '0' && line[i] <= '9' || line[i] == '.' && i > 0) {
		i++
	}
	return i > 0 && i+1 < len(line) && line[i] == ' ' && line[i+1] == '['
}

// answered gives the frame to the next request.
func (t *Tracker) answered(marks []wire.Mark) []wire.Mark {
	e := t.queue.pop()
	a := &t.rep.answer
	defer t.modes.passed()
	if t.tx.active && a.kind == '+' && a.is("QUEUED") && queues(e.act) {
		if e.class >= authClass {
			t.shaky--
			e.class = credentials
		}
		t.tx.add(e)
		return marks
	}
	if e.plain() {
		return marks
	}
	t.settled(&e)
	if e.act == subscribes {
		t.subs.waiting--
		if !a.isError() {
			return t.desync(marks, "it confirms no subscription, though one was asked for")
		}
	}
	t.apply(&e, a)
	if e.ends() {
		marks = t.settle(marks, &e)
	}
	return t.replyMarks(marks, &e)
}

func (t *Tracker) replyMarks(marks []wire.Mark, e *entry) []wire.Mark {
	start, end := t.rep.span()
	return e.replied(marks, start, end)
}

// replied marks the reply of a request, between those offsets.
func (e *entry) replied(marks []wire.Mark, start, end int64) []wire.Mark {
	if c := e.call(); c != nil {
		marks = append(marks, wire.Mark{Kind: wire.Answered, Call: c, Start: start, End: end})
	}
	for _, op := range e.ops() {
		marks = append(marks, wire.Mark{Kind: wire.Reply, Op: op, Start: start, End: end})
	}
	return marks
}

// hungUp takes in the server's word that it reads no further: what it was sent
// behind the request that it did not understand is not run.
func (t *Tracker) hungUp(marks []wire.Mark) []wire.Mark {
	for i := range t.tx.items {
		marks = t.refuse(marks, &t.tx.items[i].entry)
	}
	for t.queue.len() > 0 {
		e := t.queue.popEntry()
		marks = t.refuse(marks, &e)
	}
	return t.giveUp(marks, t.rep.pos, fmt.Sprintf("reply at byte %d: the server found a protocol error, and reads no further", t.rep.start))
}

func (t *Tracker) refuse(marks []wire.Mark, e *entry) []wire.Mark {
	e.fare(lock.Failed, t.rep.answer.word())
	return t.replyMarks(marks, e)
}

// apply reads the reply of a request: its outcome, and what has changed.
func (t *Tracker) apply(e *entry, a *answer) {
	t.changed(e, a.isError() || a.kind == 0)
	if e.act == hellos && !a.isError() {
		t.greeted(e, a.kind == '%')
	}
	for _, op := range e.ops() {
		if op.DB != t.db {
			op.DB = t.db
		}
		e.more.ask.judge(op, a)
		if op.Outcome == lock.Granted || op.Member && op.Kind == lock.Store && op.Outcome == lock.Done {
			t.opt.Scripts.keys.add(op.DB, op.Key)
		}
	}
	if e.act == reads {
		t.noted(e.num, a)
	}
	if c := e.call(); c != nil {
		c.answered(t.db, a)
	}
}

// changed carries out what a request that was answered has changed.
func (t *Tracker) changed(e *entry, failed bool) {
	switch {
	case e.act == selects || e.act == resets:
		t.moved(e, failed)
	case failed:
	case e.act == names:
		t.setName(*e.more.name)
	case e.act == begins && !t.tx.active:
		t.tx = transaction{active: true, items: t.tx.items[:0]}
	case e.act == monitors:
		t.modes.monitor = true
	case e.act == replyOn:
		t.modes.off, t.modes.skip = false, false
	}
}

// moved notes the answer to a SELECT or a RESET.
func (t *Tracker) moved(e *entry, failed bool) {
	t.asking--
	if !failed {
		t.db = e.database()
		if e.act == resets {
			t.setName("")
			t.modes.reset()
			t.subs = subscriptions{waiting: t.subs.waiting}
		}
	}
	if t.asking == 0 {
		t.asked = t.db
	}
}

// fare says what has become of a request that has no reply of its own.
func (e *entry) fare(o lock.Outcome, word string) {
	for _, op := range e.ops() {
		op.Outcome, op.Err = o, word
		if o == lock.Failed && word == "" && e.more.ask.optimistic {
			op.Outcome = lock.Refused
		}
	}
	if c := e.call(); c != nil {
		c.ran = o == lock.Unknown
	}
}
