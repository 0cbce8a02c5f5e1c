package resp

import "github.com/lockfaultd/lockfaultd/internal/wire"

// A topic is what a publication, or the confirmation of a subscription, begins
// with.
type topic uint8

const (
	noTopic topic = iota
	subscribed
	psubscribed
	ssubscribed
	unsubscribed
	punsubscribed
	sunsubscribed
	published
	ppublished
	moving
)

func topicOf(text []byte) topic {
	switch string(text) {
	case "subscribe":
		return subscribed
	case "psubscribe":
		return psubscribed
	case "ssubscribe":
		return ssubscribed
	case "unsubscribe":
		return unsubscribed
	case "punsubscribe":
		return punsubscribed
	case "sunsubscribe":
		return sunsubscribed
	case "message", "smessage":
		return published
	case "pmessage":
		return ppublished
	case "MOVING":
		return moving
	}
	return noTopic
}

// topicFor returns what confirms the command of that name.
func topicFor(name string) topic {
	switch name {
	case "SUBSCRIBE":
		return subscribed
	case "PSUBSCRIBE":
		return psubscribed
	case "SSUBSCRIBE":
		return ssubscribed
	case "UNSUBSCRIBE":
		return unsubscribed
	case "PUNSUBSCRIBE":
		return punsubscribed
	}
	return sunsubscribed
}

// confirms reports whether the topic is that of a confirmation.
func (s topic) confirms() bool { return s >= subscribed && s <= sunsubscribed }

// isPublication reports whether an array of so many elements has the form of one.
// What a server publishes itself may be a list.
func (a *answer) isPublication(elements int64) bool {
	k := &a.kinds
	switch a.topic {
	case published:
		return elements == 3 && isText(k[0]) && isText(k[1]) && (isText(k[2]) || k[2] == '*')
	case ppublished:
		return elements == 4 && isText(k[0]) && isText(k[1]) && isText(k[2]) && (isText(k[3]) || k[3] == '*')
	}
	return false
}

// isConfirmation reports whether an array, or a push, of so many elements has
// the form of one.
func (a *answer) isConfirmation(elements int64) bool {
	k := &a.kinds
	return a.topic.confirms() && elements == 3 && isText(k[0]) && (isText(k[1]) || k[1] == '_') && k[2] == ':'
}

func isText(kind byte) bool { return kind == '$' || kind == '+' }

// sumOf tells channels apart by what is kept of their names. 0 is no sum.
func sumOf(name []byte) uint32 {
	h := uint32(2166136261) // FNV-1a
	for _, c := range name[:min(len(name), maxText)] {
		h = (h ^ uint32(c)) * 16777619
	}
	return max(1, h)
}

// subscriptions are those of the connection, counted by the confirmations.
type subscriptions struct {
	channels, patterns, shards int64
	waiting                    int // requests in the queue and the transaction

	// trailing: a transaction has just ended in which others than subscriptions
	// were run while there were some. What those published may come behind its
	// reply, when the subscriptions are no more.
	trailing bool
}

// any reports whether there are any.
func (s *subscriptions) any() bool { return s.channels+s.patterns+s.shards > 0 }

// open reports whether publications may come.
func (s *subscriptions) open() bool { return s.any() || s.trailing }

// confirmed takes in the count that a confirmation tells: that of channels and
// patterns together, or that of shard channels.
func (s *subscriptions) confirmed(about topic, n int64) {
	if n < 0 {
		return
	}
	change := n - s.channels - s.patterns
	switch about {
	case ssubscribed, sunsubscribed:
		s.shards = n
	case subscribed, unsubscribed:
		s.channels = max(0, s.channels+change)
	default:
		s.patterns = max(0, s.patterns+change)
	}
}

// left returns how many subscriptions of the topic's kind there are.
func (s *subscriptions) left(about topic) int64 {
	switch about {
	case ssubscribed, sunsubscribed:
		return s.shards
	case psubscribed, punsubscribed:
		return s.patterns
	}
	return s.channels
}

// subscription notes how often the request will be confirmed.
func (t *Tracker) subscription(e *entry) {
	r := &t.req
	about := topicFor(r.plan.cmd.name)
	if r.argc == 1 && about < unsubscribed {
		return // an error, whatever the connection is like
	}
	e.act, e.num = subscribes, uint16(about)
	t.rep.pushes = true
	t.subs.waiting++
	if r.argc == 1 {
		return
	}
	d := e.own()
	d.left, d.sum = int32(r.argc-1), t.sumAt(1)
	if len(r.args) < 3 {
		return
	}
	sums := make([]uint32, 0, len(r.args)-2)
	for i := 2; i < len(r.args); i++ {
		sums = append(sums, t.sumAt(i))
	}
	d.sums = &sums
}

func (t *Tracker) sumAt(i int) uint32 {
	if name := t.req.arg(i); name != nil {
		return sumOf(name)
	}
	return 0
}

// expects reports whether the confirmation answers the request next.
func (e *entry) expects(a *answer) bool {
	if e == nil || e.act != subscribes || topic(e.num) != a.topic {
		return false
	}
	return e.more == nil || e.more.sum == 0 || a.sum == 0 || e.more.sum == a.sum
}

// confirmed takes one confirmation, and reports whether it was the last. remain
// is how many subscriptions of its kind there are left.
func (e *entry) confirmed(remain int64) bool {
	d := e.more
	if d == nil {
		return remain == 0
	}
	d.sum = 0
	if d.sums != nil && len(*d.sums) > 0 {
		d.sum, *d.sums = (*d.sums)[0], (*d.sums)[1:]
	}
	d.left--
	return d.left == 0
}

// confirm gives the confirmation that was read to the request that it answers,
// if that is one of them: a server ends subscriptions of its own accord too.
func (t *Tracker) confirm(marks []wire.Mark, e *entry) []wire.Mark {
	a := &t.rep.answer
	t.subs.confirmed(a.topic, a.last)
	if !e.expects(a) || !e.confirmed(t.subs.left(a.topic)) {
		return marks
	}
	t.subs.waiting--
	if t.tx.running {
		return t.advance(marks)
	}
	done := t.queue.pop()
	t.settled(&done)
	t.modes.passed()
	return marks
}

// confirmable returns the request whose turn it is, if that is a subscription.
// Those ahead of it that have no reply are done by now, before its effect.
func (t *Tracker) confirmable(marks []wire.Mark) ([]wire.Mark, *entry) {
	if t.subs.waiting == 0 {
		return marks, nil
	}
	if t.tx.running {
		return marks, t.tx.item()
	}
	for !t.queue.empty() {
		e := t.queue.next()
		if e != nil && e.act == subscribes && !t.tx.active {
			return marks, e
		}
		if t.hears(e, nil) != unheard {
			break
		}
		marks = t.pass(marks)
	}
	return marks, nil
}

// A claim is what an array that looks like a publication, or a confirmation, is.
type claim uint8

const (
	noClaim  claim = iota // a reply
	aside                 // neither that nor one for the next request alone
	disputed              // it may be a reply as well
)

// claims tells what an array is in RESP2, where nothing but its elements tells
// it from a reply.
func (t *Tracker) claims(marks []wire.Mark) ([]wire.Mark, claim) {
	a, elements := &t.rep.answer, t.rep.total
	switch {
	case a.isPublication(elements):
		return marks, t.publication()
	case a.isConfirmation(elements):
		var e *entry
		marks, e = t.confirmable(marks) // behind a HELLO 2, it may be
		if !t.modes.resp3 && (e.expects(a) || t.uncounted()) {
			return t.confirm(marks, e), aside
		}
	}
	return marks, noClaim
}

// uncounted reports whether a confirmation that the request next does not expect
// is one all the same: there is nothing else that the server may send so.
func (t *Tracker) uncounted() bool {
	return !t.tx.running && (t.subs.any() || t.modes.off)
}

// publication tells whether an array that looks like a publication is one. While
// there are subscriptions the server answers nothing with an array, but what
// was queued before them; and none of what it publishes comes before it has
// confirmed the first of them.
func (t *Tracker) publication() claim {
	switch {
	case t.modes.resp3:
	case t.subs.any() && !t.tx.running:
		return aside
	case t.subs.any():
		return t.contest(t.tx.item())
	case t.subs.trailing && t.queue.empty():
		return aside
	case t.subs.trailing && !t.tx.running:
		return t.contest(t.queue.next())
	}
	return noClaim
}

// contest tells whether the request, nil for a plain one, may have been answered
// with the array.
//
// That it may have is not found out later either. What a command publishes, the
// client's own PUBLISH, a script or a keyspace event, stands ahead of that command's
// element before Redis 7.2 and behind EXEC's reply since; no frame but EXEC's
// says how many there are to be, and it does not count what is published.
func (t *Tracker) contest(e *entry) claim {
	if e == nil {
		return disputed
	}
	switch e.act {
	case counts, begins, discards, resets, selects, names, subscribes:
		return aside
	case noAction:
		if len(e.ops()) > 0 && e.more.ask.counted() {
			return aside
		}
	}
	return disputed
}
