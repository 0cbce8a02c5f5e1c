package resp

import "github.com/lockfaultd/lockfaultd/lock"

// maxPending is how many requests that matter, and ops of them, may wait for
// replies; a connection with more is not followed further.
const maxPending = 1 << 17

// An entry is a request whose reply matters, waiting for it.
type entry struct {
	before int64 // plain requests between the entry ahead of it and this one
	act    action
	db     int    // of a SELECT
	name   string // of a CLIENT SETNAME, or HELLO
	read   reading
	keys   int64 // keys named, where the reply counts them
	script *program
	ops    []*lock.Op
}

// An action is what a request changes in the connection once it succeeded.
type action uint8

const (
	noAction action = iota
	selects
	names
	resets
	begins
	executes
	discards
	blinds // replies cannot be counted from here on
)

// A queue holds the requests that were not answered, in order. Requests that
// do not matter are only counted.
type queue struct {
	entries []entry
	head    int
	tail    int64 // plain requests behind the last entry
}

func (q *queue) empty() bool { return q.len() == 0 && q.tail == 0 }

func (q *queue) len() int { return len(q.entries) - q.head }

func (q *queue) plain() { q.tail++ }

func (q *queue) push(e entry) {
	if len(q.entries) == cap(q.entries) && q.head > len(q.entries)/2 {
		n := copy(q.entries, q.entries[q.head:])
		clear(q.entries[n:])
		q.entries, q.head = q.entries[:n], 0
	}
	e.before, q.tail = q.tail, 0
	q.entries = append(q.entries, e)
}

// next returns the entry whose reply comes next; nil if that is a plain one's.
func (q *queue) next() *entry {
	if q.len() == 0 || q.entries[q.head].before > 0 {
		return nil
	}
	return &q.entries[q.head]
}

// popPlain takes the plain request whose reply has come.
func (q *queue) popPlain() {
	if q.len() == 0 {
		q.tail--
		return
	}
	q.entries[q.head].before--
}

// pop takes the request whose reply has come; a zero entry for a plain one.
func (q *queue) pop() entry {
	if q.next() == nil {
		q.popPlain()
		return entry{}
	}
	e := &q.entries[q.head]
	out := *e
	*e = entry{}
	q.head++
	if q.head == len(q.entries) {
		q.entries, q.head = q.entries[:0], 0
	}
	return out
}
