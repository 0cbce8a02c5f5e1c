package proxy

import (
	"context"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

const (
	mostOwed  = 64          // calls of a session of which more may come to be known
	places    = 64          // ops that a call may come to beside those that were marked
	listening = time.Second // for what is still to be told when a session has ended
)

// An owed is a call whose reply went on before all was known of it. Its ops are
// held back from the record, and not from the client: what is told late does not
// change what rules have done, and in the ledger of the engine it does no more than
// end a section, but a history that is judged has each op at its place.
type owed struct {
	later wire.Later
	look  *Look    // that was not given in time; nil: more comes to be known by other calls
	place *lock.Op // where what comes beside later.Ops belongs, which has no place of its own
	open  int      // of place and later.Ops: those that are not delivered
	held  []*lock.Op
}

// owe notes that more may come to be known of a call that was resolved. The mark
// is that of its reply.
func (s *Session) owe(f *flow, c called, look *Look, m wire.Mark) {
	later := c.Later(look != nil)
	if later == nil {
		return
	}
	if len(s.owes) == mostOwed {
		s.settleFor(s.owes[0])
	}
	o := &owed{later: later, look: look, open: len(later.Ops())}
	if look != nil {
		o.place = &lock.Op{A: c.a, F: c.f, R: c.r}
		o.place.Seq, o.place.Actor = s.engine.Reserve(s.conn, places)
		o.open++
		f.landing = append(f.landing, landing{op: o.place, end: m.End, place: true})
	}
	s.owes = append(s.owes, o)
}

// holds takes an op that was delivered, or never will be, if it is held back.
func (s *Session) holds(op *lock.Op) bool {
	for _, o := range s.owes {
		if op == o.place || slices.Contains(o.later.Ops(), op) {
			o.open--
			o.held = append(o.held, op)
			return true
		}
	}
	return false
}

// hear takes in what has come to be known since. fresh says that the client has
// sent more: what is not lasting is not to be told any longer.
func (s *Session) hear(fresh bool) {
	for i := 0; i < len(s.owes); {
		if o := s.owes[i]; o.settles(fresh) {
			s.settleFor(o)
		} else {
			i++
		}
	}
}

// settles reports whether no more is to come to be known of a call.
func (o *owed) settles(fresh bool) bool {
	if l := o.look; l != nil && l.given() {
		l.told()
		o.look = nil
	}
	if fresh && o.look != nil && !o.look.lasting {
		return true
	}
	over := o.look == nil && o.place != nil // nobody else tells of it
	return o.open == 0 && (over || o.later.Known())
}

// settleFor has the ops of a call go into the record by what is known now.
func (s *Session) settleFor(o *owed) {
	s.owes = slices.DeleteFunc(s.owes, func(p *owed) bool { return p == o })
	marked := o.later.Ops()
	copies := make([]*lock.Op, len(marked))
	for i, op := range marked {
		own := *op
		copies[i] = &own
	}
	more := o.later.Amend(copies)
	for i, op := range marked {
		if slices.Contains(o.held, op) { // else it goes its own way
			s.engine.Amended(copies[i])
			s.done = append(s.done, copies[i])
		}
	}
	if o.place == nil {
		return
	}
	for i, op := range more[:min(len(more), places)] {
		o.put(op, uint64(i))
		s.engine.Amended(op)
		s.done = append(s.done, op)
	}
}

// put gives an op, the i-th that the call comes to late, the place of the call.
func (o *owed) put(op *lock.Op, i uint64) {
	op.A, op.F, op.R, op.D = o.place.A, o.place.F, o.place.R, o.place.D
	op.Seq, op.ReplySeq, op.Actor = o.place.Seq+i, o.place.Seq+places+i, o.place.Actor
}

// gates returns those behind which something is still to be told.
func (s *Session) gates() []*Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Gate
	for _, o := range s.owes {
		if o.look != nil {
			out = append(out, o.look.gate)
		}
	}
	if l := s.flows[ToClient].look; l != nil {
		out = append(out, l.gate)
	}
	return out
}

// listen waits, when a session has ended, for what is still to be told of it.
func (d *driver) listen() {
	gates := d.session.gates()
	if len(gates) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), listening)
	defer cancel()
	for _, g := range gates {
		select {
		case <-g.Done():
		case <-ctx.Done():
		}
	}
}
