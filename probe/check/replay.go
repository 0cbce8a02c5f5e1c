package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An event is a request or a reply reaching the ledger, or the end of a session.
type event struct {
	op       *lock.Op
	end      *End
	reply    bool
	numbered bool // by the daemon
	seq      uint64
	at       lock.Instant
}

// answered reports whether a reply told what became of the op.
func answered(op *lock.Op) bool {
	return op.R != 0 && op.Outcome != lock.Pending && op.Outcome != lock.Unknown
}

// replay passes on the events of a whole history and the ends of its sessions,
// in the order in which the daemon saw them.
func replay(events []event, ends []End, tell func(event)) {
	placed, timed := inOrder(ends, events)
	pass := func(ends []End) []End {
		tell(event{end: &ends[0], seq: ends[0].Seq, at: ends[0].At})
		return ends[1:]
	}
	last := map[uint64]int{}
	for i, e := range events {
		last[e.op.Session] = i
	}
	for i, e := range events {
		for len(placed) > 0 && placed[0].Seq < e.seq {
			placed = pass(placed)
		}
		for len(timed) > 0 && timed[0].At < e.at && last[timed[0].Session] < i {
			timed = pass(timed)
		}
		tell(e)
	}
	for len(placed) > 0 {
		placed = pass(placed)
	}
	for len(timed) > 0 {
		timed = pass(timed)
	}
}

// inOrder returns the ends of sessions whose place is known, by it, and the others
// by their instants. Without numbers in the ops nobody's place is known.
func inOrder(ends []End, events []event) (placed, timed []End) {
	numbered := slices.ContainsFunc(events, func(e event) bool { return e.numbered })
	for _, e := range ends {
		if e.Seq != 0 && numbered {
			placed = append(placed, e)
		} else {
			timed = append(timed, e)
		}
	}
	slices.SortStableFunc(placed, func(a, b End) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortStableFunc(timed, func(a, b End) int { return cmp.Compare(a.At, b.At) })
	return placed, timed
}

func clone(m map[lock.LockID]*lock.Op) map[lock.LockID]*lock.Op {
	out := make(map[lock.LockID]*lock.Op, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// eventsOf lists requests and replies in order: by the daemon's numbers, and what
// has none by its instant among those. It numbers the ops that have no number.
func eventsOf(ops []*lock.Op) []event {
	var numbered, others []event
	add := func(e event) {
		if e.numbered = e.seq != 0; e.numbered {
			numbered = append(numbered, e)
		} else {
			others = append(others, e)
		}
	}
	for _, op := range ops {
		add(event{op: op, seq: op.Seq, at: op.A})
		if answered(op) {
			add(event{op: op, reply: true, seq: op.ReplySeq, at: max(op.R, op.A)})
		}
	}
	slices.SortStableFunc(numbered, func(a, b event) int { return cmp.Compare(a.seq, b.seq) })
	slices.SortStableFunc(others, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return number(interleave(numbered, others))
}

// interleave puts each of the others before the first numbered event that is
// later, a reply after its request.
func interleave(numbered, others []event) []event {
	if len(others) == 0 {
		return numbered
	}
	latest := make([]lock.Instant, len(numbered)) // up to there
	place := map[*lock.Op][2]int{}                // of request and reply, from 1
	for i, e := range numbered {
		latest[i] = e.at
		if i > 0 {
			latest[i] = max(latest[i-1], e.at)
		}
		at := place[e.op]
		at[which(e)] = i + 1
		place[e.op] = at
	}
	before := make([][]event, len(numbered)+1)
	for _, e := range others {
		to, _ := slices.BinarySearch(latest, e.at+1)
		if at := place[e.op]; e.reply {
			to = max(to, at[0])
		} else if at[1] != 0 {
			to = min(to, at[1]-1)
		}
		before[to] = append(before[to], e)
	}
	var out []event
	for i, list := range before {
		out = append(out, list...)
		if i < len(numbered) {
			out = append(out, numbered[i])
		}
	}
	return out
}

func which(e event) int {
	if e.reply {
		return 1
	}
	return 0
}

// number gives the events that have no number one: where none has any their
// place, else the number of the event before, which leaves those as they are
// and says of no two that share it which came first.
func number(events []event) []event {
	none := !slices.ContainsFunc(events, func(e event) bool { return e.numbered })
	var last uint64
	for i := range events {
		e := &events[i]
		switch {
		case e.numbered:
		case none:
			e.seq = uint64(i + 1)
		default:
			e.seq = max(last, 1)
		}
		last = e.seq
		if e.reply {
			e.op.ReplySeq = e.seq
		} else {
			e.op.Seq = e.seq
		}
	}
	return events
}
