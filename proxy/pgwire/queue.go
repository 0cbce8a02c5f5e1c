package pgwire

import "github.com/lockfaultd/lockfaultd/lock"

// startupPacket stands in the queue for the startup message, which has no type
// byte. Its reply ends with the first ReadyForQuery.
const startupPacket = 0

// maxAsked bounds the requests that are outstanding.
const maxAsked = 1 << 18

// asked is a message of the client that upstream will answer.
type asked struct {
	typ      byte
	optional bool // a Sync that upstream may swallow: copy data came behind it
	seen     bool // a Sync that copy data came behind, swallowed or not
	copying  bool // upstream has begun to read copy data
	op       *lock.Op
	stmt     *statement // P: registered; D: being described
	portal   *portal    // E
	query    *query     // Q
	undo     *undo
}

// A query is a Query in which a statement matters.
type query struct {
	items []item
	at    int
}

// An item is one statement of a Query.
type item struct {
	op   *lock.Op // nil if it is none
	undo *undo
	tmpl *template
}

// current returns the statement that upstream is at, nil behind the last.
func (q *query) current() *item {
	if q == nil || q.at >= len(q.items) {
		return nil
	}
	return &q.items[q.at]
}

// A queue holds what has been asked and not answered, in order.
type queue struct {
	list []asked
	head int
}

func (q *queue) len() int { return len(q.list) - q.head }

// first returns the oldest one, nil if there is none. It is good until the
// next change.
func (q *queue) first() *asked {
	if q.len() == 0 {
		return nil
	}
	return &q.list[q.head]
}

// last returns the newest but n, nil if there are not so many.
func (q *queue) last(n int) *asked {
	if n >= q.len() {
		return nil
	}
	return &q.list[len(q.list)-1-n]
}

func (q *queue) push(a asked) {
	if q.head > 64 && q.head > len(q.list)/2 {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, a)
}

func (q *queue) pop() {
	q.list[q.head] = asked{}
	q.head++
	q.rewind()
}

func (q *queue) drop(n int) {
	clear(q.list[q.head : q.head+n])
	q.head += n
	q.rewind()
}

// keepAsked is how many places an empty queue keeps: a connection may be idle.
const keepAsked = 16

func (q *queue) rewind() {
	if q.head < len(q.list) {
		return
	}
	q.list, q.head = q.list[:0], 0
	if cap(q.list) > keepAsked {
		q.list = nil
	}
}

// segment returns those up to the next Sync, with it. It is empty without one.
func (q *queue) segment() []asked {
	for i := q.head; i < len(q.list); i++ {
		if q.list[i].typ == 'S' {
			return q.list[q.head : i+1]
		}
	}
	return nil
}
