package resp

import (
	"math"

	"github.com/lockfaultd/lockfaultd/lock"
)

// maxPending is how many requests that matter, and ops of them, may wait for
// replies; a connection with more is not followed further.
const maxPending = 1 << 17

// An entry is a request whose reply matters, waiting for it.
type entry struct {
	before uint32 // plain requests between the entry ahead of it and this one
	num    uint16 // of a SELECT the database, of a HELLO the version, of a subscription its topic
	act    action
	class  class // what it may be answered, noted while in doubt
	more   *detail
}

// A detail is what only some entries have.
type detail struct {
	ask  *ask      // of ops
	name *string   // of a CLIENT SETNAME, or HELLO
	sums *[]uint32 // of the channels that a subscription names behind the first
	sum  uint32    // of the first, as far as it is known
	left int32     // confirmations that are to come; or the database of a SELECT that num cannot hold
}

// An ask is what has to be known of a request to read its ops' outcomes off
// the reply. Its detail is the entry's.
type ask struct {
	detail
	read   reading
	script *program
	call   *Call // whose effect a witness may tell
	keys   int64 // keys named, where the reply counts them

	optimistic bool // an acquire that is one only since its key is watched
	ops        []*lock.Op
	one        [1]*lock.Op
}

func (e *entry) ops() []*lock.Op {
	if e.more == nil || e.more.ask == nil {
		return nil
	}
	return e.more.ask.ops
}

// set gives the entry ops, beside what it has.
func (e *entry) set(a *ask) {
	if e.more != nil {
		a.detail = *e.more
	}
	a.ask = a
	e.more = &a.detail
}

// own returns a detail that may be written to.
func (e *entry) own() *detail {
	if e.more == nil {
		e.more = &detail{}
	}
	return e.more
}

// plain reports whether nothing depends on the reply.
func (e *entry) plain() bool { return e.act == noAction && e.more == nil }

// weight is how much of maxPending it takes.
func (e *entry) weight() int { return 1 + e.marked() }

// marked is how many ops and calls it has.
func (e *entry) marked() int {
	if e.call() != nil {
		return 1 + len(e.ops())
	}
	return len(e.ops())
}

func (e *entry) call() *Call {
	if e.more == nil || e.more.ask == nil {
		return nil
	}
	return e.more.ask.call
}

// An action is what a request changes in the connection, or in the counting of
// its replies, once it succeeded.
type action uint8

const (
	noAction action = iota
	selects
	names
	hellos
	resets
	begins
	executes
	discards
	reads         // a GET whose answer is heeded
	counts        // nothing, but its reply is no array: a PUBLISH where arrays may be publications
	subscribes    // it is confirmed once for each channel
	replyOff      // it has no reply, nor has what follows
	replySkip     // it has no reply, nor has the next request
	replyOn       // ends either
	monitors      // lines of others come from here on
	silent        // it has no reply
	nothing       // an empty request: it ends a skip, and has no reply
	authenticates // its error may be left out
	blinds        // replies cannot be counted from here on
)

// blockSize makes a block one of the allocator's sizes, 256 bytes.
const blockSize = 15

type block struct {
	entries [blockSize]entry
	next    *block
}

// A queue holds the requests that were not answered, in order. Requests that
// do not matter are only counted.
type queue struct {
	first, last *block
	spare       *block
	head, tail  int   // places in the first and the last block
	n           int   // entries
	behind      int64 // plain requests behind the last entry
}

func (q *queue) empty() bool { return q.n == 0 && q.behind == 0 }

func (q *queue) len() int { return q.n }

func (q *queue) plain() { q.behind++ }

func (q *queue) push(e entry) {
	for ; q.behind > math.MaxUint32; q.behind -= math.MaxUint32 + 1 {
		q.put(entry{before: math.MaxUint32})
	}
	e.before, q.behind = uint32(q.behind), 0
	q.put(e)
}

func (q *queue) put(e entry) {
	if q.last == nil || q.tail == blockSize {
		q.grow()
	}
	q.last.entries[q.tail] = e
	q.tail++
	q.n++
}

func (q *queue) grow() {
	b := q.spare
	if q.spare = nil; b == nil {
		b = &block{}
	}
	if q.last == nil {
		q.first = b
	} else {
		q.last.next = b
	}
	q.last, q.tail = b, 0
}

// latest returns the entry that was pushed last, if no plain request followed.
func (q *queue) latest() *entry {
	if q.n == 0 || q.behind > 0 {
		return nil
	}
	return &q.last.entries[q.tail-1]
}

// next returns the entry whose reply comes next; nil if that is a plain one's.
func (q *queue) next() *entry {
	if q.n == 0 || q.first.entries[q.head].before > 0 {
		return nil
	}
	return &q.first.entries[q.head]
}

// second returns the request behind the next one, if there is any: an entry,
// or nil for a plain one.
func (q *queue) second() (*entry, bool) {
	switch {
	case q.next() == nil:
		return nil, false
	case q.n == 1:
		return nil, q.behind > 0
	}
	b, at := q.first, q.head+1
	if at == blockSize {
		b, at = b.next, 0
	}
	if b.entries[at].before > 0 {
		return nil, true
	}
	return &b.entries[at], true
}

// popPlain takes the plain request whose reply has come.
func (q *queue) popPlain() {
	if q.n == 0 {
		q.behind--
		return
	}
	q.first.entries[q.head].before--
}

// popEntry takes the next entry, and the plain requests ahead of it.
func (q *queue) popEntry() entry {
	q.first.entries[q.head].before = 0
	return q.pop()
}

// pop takes the request whose reply has come; a zero entry for a plain one.
func (q *queue) pop() entry {
	if q.next() == nil {
		q.popPlain()
		return entry{}
	}
	e := &q.first.entries[q.head]
	out := *e
	*e = entry{}
	q.head++
	q.n--
	switch {
	case q.n == 0:
		q.head, q.tail = 0, 0
	case q.head == blockSize:
		q.spare, q.first, q.head = q.first, q.first.next, 0
		q.spare.next = nil
	}
	return out
}
