package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// queued is how many requests and replies wait for one that comes before them.
const queued = 1 << 14

// A queue puts requests, replies and ends, which a history has in the order in
// which the ops were finished, into the order in which they happened, by their
// numbers. It holds back a bounded number of them; a survey tells it of what
// would come later than that. An end without a number takes the place that its
// instant gives it, after what its session did.
type queue struct {
	events eventHeap
	ends   []End          // without a number, by instant
	next   uint64         // the number that would follow the last
	late   []*lock.Op     // by Seq
	early  map[uint64]int // late ones that were put in before their line, by Seq: how many
	seen   uint64         // the highest number met
	busy   map[uint64]int // requests and replies that wait, by session
	tell   func(event)
}

func newQueue(k *Survey, tell func(event)) *queue {
	return &queue{next: 1, late: k.late, early: map[uint64]int{}, busy: map[uint64]int{}, tell: tell}
}

// op takes in the op of the next line.
func (q *queue) op(op *lock.Op) {
	if n := q.early[op.Seq]; n > 0 {
		if q.early[op.Seq]--; n == 1 {
			delete(q.early, op.Seq)
		}
		return
	}
	q.seen = max(q.seen, op.Seq, op.ReplySeq)
	for len(q.late) > 0 && q.late[0].Seq <= q.seen {
		own := *q.late[0] // the survey's may be read again
		q.early[own.Seq]++
		q.add(&own)
		q.late = q.late[1:]
	}
	q.add(op)
	q.drain(queued)
}

func (q *queue) add(op *lock.Op) {
	q.busy[op.Session]++
	q.events.push(event{op: op, seq: op.Seq, at: op.A, numbered: true})
	if answered(op) {
		q.busy[op.Session]++
		q.events.push(event{op: op, reply: true, seq: op.ReplySeq, at: max(op.R, op.A), numbered: true})
	}
}

// end takes in the end of a session.
func (q *queue) end(e End) {
	if e.Seq != 0 {
		q.events.push(event{end: &e, seq: e.Seq, at: e.At, numbered: true})
		q.drain(queued)
		return
	}
	at, _ := slices.BinarySearchFunc(q.ends, e, func(a, b End) int { return int(a.At - b.At) })
	q.ends = slices.Insert(q.ends, at, e)
}

// flush passes everything on.
func (q *queue) flush() {
	q.drain(0)
	for _, e := range q.ends {
		q.tell(event{end: &e, at: e.At})
	}
	q.ends = nil
}

// drain passes on what is next, and what there is no room for.
func (q *queue) drain(room int) {
	for len(q.events) > 0 && (q.events[0].seq <= q.next || len(q.events) > room) {
		e := q.events.pop()
		q.next = max(q.next, e.seq+1)
		if len(q.ends) > 0 {
			q.endsBefore(e.at)
		}
		if e.op != nil {
			q.left(e.op.Session)
		}
		q.tell(e)
	}
}

func (q *queue) left(session uint64) {
	if q.busy[session]--; q.busy[session] == 0 {
		delete(q.busy, session)
	}
}

func (q *queue) endsBefore(at lock.Instant) {
	q.ends = slices.DeleteFunc(q.ends, func(e End) bool {
		if e.At >= at || q.busy[e.Session] > 0 {
			return false
		}
		q.tell(event{end: &e, at: e.At})
		return true
	})
}

// An eventHeap has the event with the lowest number first.
type eventHeap []event

func (h *eventHeap) push(e event) {
	list := append(*h, e)
	for i := len(list) - 1; i > 0; {
		up := (i - 1) / 2
		if !list[i].before(&list[up]) {
			break
		}
		list[i], list[up] = list[up], list[i]
		i = up
	}
	*h = list
}

func (h *eventHeap) pop() event {
	list := *h
	first, last := list[0], len(list)-1
	list[0], list[last] = list[last], event{}
	list = list[:last]
	for i := 0; ; {
		least := i
		for down := 2*i + 1; down <= 2*i+2 && down < len(list); down++ {
			if list[down].before(&list[least]) {
				least = down
			}
		}
		if least == i {
			break
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
	*h = list
	return first
}

func (e *event) before(o *event) bool {
	if e.seq != o.seq {
		return e.seq < o.seq
	}
	return !e.reply && o.reply
}
