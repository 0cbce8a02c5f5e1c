package resp

import (
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// Redis 7.2 to 8 leave out the error of an AUTH, or a HELLO with AUTH, that
// fails while replies to earlier requests are still in their buffers. Behind an
// AUTH that was sent while replies were due, a reply may therefore answer the
// next request or the one after it. Both readings are kept until one of them
// contradicts what a request can be answered: usually at once, and at the latest
// when nothing is outstanding. Meanwhile outcomes are Unknown.

// maxCareful is how many requests are kept apart for that.
const maxCareful = 2048

// A class is what may answer a request beside an error, as far as it is known.
type class uint8

const (
	anyClass    class = iota
	okClass           // OK, or null
	intClass          // an integer
	bulkClass         // a string, or null
	dataClass         // not OK
	mapClass          // a map, or an array
	topicClass        // an array, or nothing but pushes
	putOffClass       // QUEUED
	credentials       // a HELLO with AUTH that cannot be left out
	authClass         // OK; its error may be left out
	greetClass        // a map, or an array; its error may be left out
)

// classify notes what may answer the request at hand, once that matters.
func (t *Tracker) classify(e *entry) {
	auth := t.req.plan.cmd.verb == authVerb
	if auth || e.class == credentials {
		t.beginCare(e, auth)
		return
	}
	if !t.careful {
		return
	}
	switch e.act {
	case begins:
		t.queued = true
		e.class = okClass
		return
	case executes, discards, resets:
		t.queued = false
		return
	}
	if e.class = t.classOf(e); t.queued {
		e.class = putOffClass
	}
}

func (t *Tracker) beginCare(e *entry, auth bool) {
	if t.queue.empty() {
		return
	}
	e.class = greetClass
	if auth {
		e.class = authClass
	}
	if !t.careful {
		t.queued = false
	}
	t.careful = true
	t.shaky++
}

func (t *Tracker) classOf(e *entry) class {
	switch e.act {
	case selects, names:
		return okClass
	case hellos:
		return mapClass
	case subscribes:
		return topicClass
	case replyOn:
		return okClass
	}
	switch name := t.req.arg(0); string(name) {
	case "SET":
		if t.req.argc == 3 {
			return okClass
		}
	case "MSET", "WATCH", "UNWATCH", "SETEX", "PSETEX":
		return okClass
	case "INCR", "INCRBY", "DECR", "DECRBY", "DEL", "UNLINK", "EXISTS", "EXPIRE", "PEXPIRE", "TTL", "PTTL", "SETNX", "PUBLISH", "LPUSH", "RPUSH",
		"HSET", "SADD", "SREM", "DBSIZE":
		return intClass
	case "GET", "HGET", "ECHO":
		return bulkClass
	case "MGET", "HMGET", "HGETALL", "PING", "INFO", "LRANGE", "SMEMBERS", "ZADD", "ZRANGE", "COMMAND", "ROLE", "TIME", "KEYS", "SCAN", "TYPE":
		return dataClass
	}
	return anyClass
}

// fits reports whether the answer may be that to a request of the class.
func (c class) fits(a *answer) bool {
	ok := a.kind == '+' && a.is("OK")
	queued := a.kind == '+' && a.is("QUEUED")
	switch {
	case a.isError() && a.begins("WRONGPASS"):
		return c == authClass || c == greetClass
	case a.isError() && a.begins("NOAUTH "):
		return c != authClass && c != greetClass
	case a.isError():
		return true
	case c == okClass:
		return ok || a.isNull()
	case c == intClass:
		return a.kind == ':'
	case c == bulkClass:
		return a.kind == '$' || a.isNull()
	case c == dataClass:
		return !ok && !queued
	case c == mapClass || c == greetClass:
		return a.kind == '%' || a.kind == '*'
	case c == topicClass:
		return a.kind == '*'
	case c == putOffClass:
		return queued
	case c == authClass:
		return ok
	}
	return true
}

// inDoubt reports whether the next request is an AUTH that may not be answered.
func (t *Tracker) inDoubt() bool {
	e := t.queue.next()
	return e != nil && e.class >= authClass && !t.tx.active
}

// weigh gives the frame to the next request, or to the one behind it if only
// that can be answered so. It reports whether the frame is the next request's.
func (t *Tracker) weigh(marks []wire.Mark) ([]wire.Mark, bool) {
	a := &t.rep.answer
	e := t.queue.next()
	if e == nil {
		if t.queue.empty() && a.isError() {
			return marks, false
		}
		return t.unasked(marks), false
	}
	f, more := t.queue.second()
	if !countable(e) || more && !countable(f) {
		return t.desync(marks, "an AUTH before it may not have been answered"), false
	}
	first := e.class.fits(a)
	second := more && f != nil && f.class.fits(a)
	t.doubt = first && second
	t.careful = t.doubt || t.shaky > 0
	switch {
	case first && second:
		return t.either(marks), false
	case first:
		return marks, true
	case second:
		return t.shift(marks), true
	}
	return t.desync(marks, "neither of the requests that it may be for can be answered so"), false
}

// countable reports whether exactly one frame answers the request.
func countable(e *entry) bool {
	return e == nil || e.act <= subscribes || e.act == authenticates || e.act == replyOn
}

// either takes in a reply that fits both readings.
func (t *Tracker) either(marks []wire.Mark) []wire.Mark {
	ops := t.queue.next().ops()
	marks = t.answered(marks)
	for _, op := range ops {
		op.Outcome, op.Err, op.Fence, op.HasFence = lock.Unknown, "", 0, false
	}
	return marks
}

// shift takes the next request without a reply: the one before it, or its own,
// was left out.
func (t *Tracker) shift(marks []wire.Mark) []wire.Mark {
	e := t.queue.pop()
	t.settled(&e)
	if e.class < authClass {
		t.assume(&e)
	}
	return t.bare(marks, &e)
}
