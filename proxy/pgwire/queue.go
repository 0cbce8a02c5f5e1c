package pgwire

import (
	"iter"
	"math"

	"github.com/lockfaultd/lockfaultd/lock"
)

// startupPacket stands in the queue for the startup message, which has no type
// byte. Its reply ends with the first ReadyForQuery.
const startupPacket = 0

const (
	maxAsked  = 1 << 22 // requests that are outstanding, a run of Syncs being one
	maxWeight = 1 << 20 // KiB of their details
)

// asked is a message of the client that upstream will answer.
type asked struct {
	typ  byte
	is   state
	n    uint32 // S: how many more there are, all alike; P: which of the unnamed statements
	more *detail
}

// A state is what is known of a request beside its type.
type state uint8

const (
	seen      state = 1 << iota // S: copy data came behind it, swallowed or not
	optional                    // S: upstream may swallow it, since that came
	copying                     // E: upstream has begun to read copy data
	mayCommit                   // E: runs code that may commit
	leads                       // P, B, D: its reply belongs to the op of the next Execute
)

func (a *asked) has(s state) bool { return a.is&s != 0 }

// A detail is what only some requests have. It is a part of what it is about,
// where that is made for one request, so that it costs no allocation.
type detail struct {
	stmt   *statement // D: being described; E: run, if what it does is of interest
	run    *portal    // E: whose op it is
	query  *query     // Q
	change *change    // P, C, E
	weight int32      // in KiB, about
	shared int32      // requests in the queue that have it
}

// weighs returns the weight of a statement with its values, in one execution.
func weighs(sql *lock.Statement, from bound) int32 {
	const each = 8 // a value takes 128 bytes
	n := len(from)
	if sql != nil {
		n += len(sql.Set) + len(sql.Where)
	}
	return int32(1 + n/each)
}

// statement returns what is described, or run.
func (a *asked) statement() *statement {
	if a.more == nil {
		return nil
	}
	return a.more.stmt
}

// run returns the portal of an Execute that is an op. A Describe may have the
// same detail.
func (a *asked) run() *portal {
	if a.typ != 'E' || a.more == nil {
		return nil
	}
	return a.more.run
}

func (a *asked) query() *query {
	if a.more == nil {
		return nil
	}
	return a.more.query
}

func (a *asked) change() *change {
	if a.typ == 'D' || a.more == nil {
		return nil
	}
	return a.more.change
}

// weight is how much of maxWeight is taken with the first of those that share
// the detail, which there is, and given back with the last.
func (a *asked) weight() int {
	if a.more.shared > 0 {
		return 0
	}
	return int(a.more.weight)
}

// A query is a Query in which a statement matters.
type query struct {
	detail
	items []item
	at    int
}

// An item is one statement of a Query.
type item struct {
	doing  // nothing if it is no op
	change *change
	tmpl   *template
}

// current returns the statement that upstream is at, nil behind the last.
func (q *query) current() *item {
	if q == nil || q.at >= len(q.items) {
		return nil
	}
	return &q.items[q.at]
}

// blockSize makes a block one of the allocator's sizes, 256 bytes.
const blockSize = 15

type block struct {
	entries    [blockSize]asked
	prev, next *block
}

// A queue holds what has been asked and not answered, in order. Syncs that
// stand side by side and are alike share an entry.
type queue struct {
	oldest, newest *block
	spare          *block
	head, tail     int // places in the oldest and behind the last in the newest block
	entries        int
	length         int // requests
	weight         int // of all
}

func (q *queue) len() int { return q.length }

// full reports whether there is no place for another request.
func (q *queue) full(a *asked) bool {
	return q.entries >= maxAsked || a.more != nil && q.weight+a.weight() > maxWeight
}

// first returns the entry of the oldest request, nil if there is none. It is
// good until that is taken.
func (q *queue) first() *asked {
	if q.entries == 0 {
		return nil
	}
	return &q.oldest.entries[q.head]
}

// last returns the newest entry but n, nil if there are not so many. It is for
// a small n.
func (q *queue) last(n int) *asked {
	if n >= q.entries {
		return nil
	}
	b, place := q.newest, q.tail-1-n
	for ; place < 0; place += blockSize {
		b = b.prev
	}
	return &b.entries[place]
}

func (q *queue) push(a asked) {
	q.length++
	if a.typ == 'S' {
		if s := q.last(0); s != nil && s.typ == 'S' && s.is == a.is && s.n < math.MaxUint32 {
			s.n++
			return
		}
	}
	if q.newest == nil || q.tail == blockSize {
		q.grow()
	}
	if a.more != nil {
		q.weight += a.weight()
		a.more.shared++
	}
	q.newest.entries[q.tail] = a
	q.tail++
	q.entries++
}

func (q *queue) grow() {
	b := q.spare
	if q.spare = nil; b == nil {
		b = &block{}
	}
	b.prev = q.newest
	if q.newest == nil {
		q.oldest = b
	} else {
		q.newest.next = b
	}
	q.newest, q.tail = b, 0
}

// pop takes the oldest request, of a run of Syncs the first.
func (q *queue) pop() {
	q.length--
	a := &q.oldest.entries[q.head]
	if a.typ == 'S' && a.n > 0 {
		a.n--
		return
	}
	if a.more != nil {
		a.more.shared--
		q.weight -= a.weight()
	}
	*a = asked{}
	q.head++
	q.entries--
	switch {
	case q.entries == 0:
		q.head, q.tail = 0, 0
	case q.head == blockSize:
		q.shrink()
	}
}

func (q *queue) shrink() {
	b := q.oldest
	q.oldest, q.head = b.next, 0
	q.oldest.prev, b.next = nil, nil
	q.spare = b
}

// backward ranges over n entries, from the one before a place on to older ones.
func (q *queue) backward(b *block, place, n int) iter.Seq[*asked] {
	return func(yield func(*asked) bool) {
		for ; n > 0; n-- {
			if place == 0 {
				b, place = b.prev, blockSize
			}
			place--
			if !yield(&b.entries[place]) {
				return
			}
		}
	}
}

// recent ranges over at most n entries, the newest first.
func (q *queue) recent(n int) iter.Seq[*asked] {
	return q.backward(q.newest, q.tail, min(n, q.entries))
}

// next returns the oldest entry of a type and how many are older, nil if there
// is none.
func (q *queue) next(typ byte) (*asked, int) {
	b, place := q.oldest, q.head
	for n := range q.entries {
		if place == blockSize {
			b, place = b.next, 0
		}
		if b.entries[place].typ == typ {
			return &b.entries[place], n
		}
		place++
	}
	return nil, 0
}

// ahead ranges over the n oldest entries, the newest of them first.
func (q *queue) ahead(n int) iter.Seq[*asked] {
	b, place := q.oldest, q.head+n
	for ; place > blockSize; place -= blockSize {
		b = b.next
	}
	return q.backward(b, place, n)
}
