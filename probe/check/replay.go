package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An event is a request or a reply reaching the ledger.
type event struct {
	op    *lock.Op
	reply bool
	seq   uint64
	at    lock.Instant
}

// answered reports whether a reply told what became of the op.
func answered(op *lock.Op) bool {
	return op.R != 0 && op.Outcome != lock.Pending && op.Outcome != lock.Unknown
}

// replay tells the ledger of everything, in the order in which the daemon did.
func (c *kase) replay() {
	events := c.events()
	c.ledger.Learn(c.ops)
	ends := slices.Clone(c.in.Ends)
	slices.SortStableFunc(ends, func(a, b End) int { return cmp.Compare(a.At, b.At) })
	last := map[uint64]int{}
	for i, e := range events {
		last[e.op.Session] = i
	}
	for i, e := range events {
		for len(ends) > 0 && ends[0].At < e.at && last[ends[0].Session] < i {
			c.ledger.Closed(ends[0].Session, ends[0].At)
			ends = ends[1:]
		}
		c.tell(e)
	}
	for _, end := range ends {
		c.ledger.Closed(end.Session, end.At)
	}
}

func (c *kase) tell(e event) {
	if e.reply {
		c.ledger.Reply(e.op)
		return
	}
	c.ledger.Request(e.op)
	if e.op.Kind == lock.Write && e.op.Term.ID == 0 && len(c.ledger.OpenTerms(e.op.Actor)) == 0 {
		if refused := c.ledger.Refusals(e.op.Actor); len(refused) > 0 {
			c.strays = append(c.strays, stray{e.op, clone(refused)})
		}
	}
}

func clone(m map[lock.LockID]*lock.Op) map[lock.LockID]*lock.Op {
	out := make(map[lock.LockID]*lock.Op, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// events lists requests and replies in order: by the daemon's numbers where
// there are any, else by their instants. Ops without a number get one.
func (c *kase) events() []event {
	numbered := !slices.ContainsFunc(c.ops, func(op *lock.Op) bool { return op.Seq == 0 || answered(op) && op.ReplySeq == 0 })
	events := make([]event, 0, 2*len(c.ops))
	for _, op := range c.ops {
		events = append(events, event{op, false, op.Seq, op.A})
		if answered(op) {
			events = append(events, event{op, true, op.ReplySeq, max(op.R, op.A)})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		if numbered {
			return cmp.Compare(a.seq, b.seq)
		}
		return cmp.Compare(a.at, b.at)
	})
	if !numbered {
		number(events)
	}
	slices.SortStableFunc(c.ops, func(a, b *lock.Op) int { return cmp.Compare(a.Seq, b.Seq) })
	return events
}

func number(events []event) {
	for i, e := range events {
		if e.reply {
			e.op.ReplySeq = uint64(i + 1)
		} else {
			e.op.Seq = uint64(i + 1)
		}
	}
}
