package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An event is a request or a reply reaching the ledger.
type event struct {
	op       *lock.Op
	reply    bool
	numbered bool // by the daemon
	seq      uint64
	at       lock.Instant
}

// answered reports whether a reply told what became of the op.
func answered(op *lock.Op) bool {
	return op.R != 0 && op.Outcome != lock.Pending && op.Outcome != lock.Unknown
}

// replay tells the ledger of everything, in the order in which the daemon did.
func (c *kase) replay() {
	events := c.events()
	survey := lock.NewSurvey(c.in.Declarations)
	for _, op := range c.ops {
		survey.Add(op)
	}
	c.ledger.Learn(survey)
	placed, timed := c.ends(events)
	last := map[uint64]int{}
	for i, e := range events {
		last[e.op.Session] = i
	}
	for i, e := range events {
		for len(placed) > 0 && placed[0].Seq < e.seq {
			placed = c.closed(placed)
		}
		for len(timed) > 0 && timed[0].At < e.at && last[timed[0].Session] < i {
			timed = c.closed(timed)
		}
		c.tell(e)
	}
	for len(placed) > 0 {
		placed = c.closed(placed)
	}
	for len(timed) > 0 {
		timed = c.closed(timed)
	}
}

func (c *kase) closed(ends []End) []End {
	c.ledger.Closed(ends[0].Session, ends[0].At)
	return ends[1:]
}

// ends returns the ends of sessions whose place is known, by it, and the others
// by their instants. Without numbers in the ops nobody's place is known.
func (c *kase) ends(events []event) (placed, timed []End) {
	numbered := slices.ContainsFunc(events, func(e event) bool { return e.numbered })
	for _, e := range c.in.Ends {
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

func (c *kase) tell(e event) {
	if e.reply {
		c.ledger.Reply(e.op)
		return
	}
	c.ledger.Request(e.op)
	if e.op.Kind == lock.Renew || e.op.Kind == lock.Store {
		c.unsent(e.op)
	}
	if e.op.Kind == lock.Write && !e.op.Term.Sure() && len(c.ledger.OpenTerms(e.op.Actor)) == 0 {
		if refused := c.ledger.Refusals(e.op.Actor); len(refused) > 0 {
			c.strays = append(c.strays, stray{op: e.op, refused: clone(refused)})
		}
	}
}

// unsent tells the ledger that a renewal which never left the proxy had no effect,
// as the end of its session told the daemon's: a history may lack that end.
func (c *kase) unsent(op *lock.Op) {
	if op.F == 0 && op.R == 0 && op.Outcome == lock.Failed {
		c.ledger.Reply(op)
	}
}

func clone(m map[lock.LockID]*lock.Op) map[lock.LockID]*lock.Op {
	out := make(map[lock.LockID]*lock.Op, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// events lists requests and replies in order: by the daemon's numbers, and what
// has none by its instant among those. It numbers the ops that have no number,
// and sorts them.
func (c *kase) events() []event {
	var numbered, others []event
	add := func(e event) {
		if e.numbered = e.seq != 0; e.numbered {
			numbered = append(numbered, e)
		} else {
			others = append(others, e)
		}
	}
	for _, op := range c.ops {
		add(event{op: op, seq: op.Seq, at: op.A})
		if answered(op) {
			add(event{op: op, reply: true, seq: op.ReplySeq, at: max(op.R, op.A)})
		}
	}
	slices.SortStableFunc(numbered, func(a, b event) int { return cmp.Compare(a.seq, b.seq) })
	slices.SortStableFunc(others, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	events := number(interleave(numbered, others))
	c.ops = c.ops[:0]
	for _, e := range events {
		if !e.reply {
			c.ops = append(c.ops, e.op)
		}
	}
	return events
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
