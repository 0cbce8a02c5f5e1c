package orders

import (
	"fmt"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A KeyResult is what is so of the commands on one lock's key, in the orders that
// their intervals and their answers admit and in which every lease ends by itself
// within the bounds of its clock. There may be no such order: then the key vanished.
type KeyResult struct {
	Orders   int
	Removed  Tally // a release removed another client's lock: LF301
	Extended Tally // a renewal moved the end of another client's lock: LF302
	Double   Tally // the lock was granted while another client's lease was running: LF305
	Overrun  Tally // a release was sent after the key had gone: LF101
	Enough   bool
}

// deeds is a set of what was done in an order.
type deeds uint8

const (
	removed deeds = 1 << iota
	extended
	double
	overrun
)

// A keyPoint is an instant to be placed: a command's effect, the end of the lease
// that it set, or when a release was sent.
type keyPoint struct {
	op       *lock.Op
	n        int
	ends     bool
	sent     bool
	lo, hi   lock.Instant
	optional bool
	after    uint64
}

// mostOps is how many commands a key's history may have.
const mostOps = 24

// A keyState is how far an order has got, with the instants as early as they can be.
type keyState struct {
	placed uint64
	moot   uint64 // points that do not come any more
	holder int8   // the grant whose key is there, by index, from 1
	done   deeds
	// live are the grants that have neither ended by themselves nor been released: a
	// plain SET takes the key of one and not its lease. set is what set the lease of
	// each last, and ends when that ends at the earliest.
	live uint32
	set  [mostOps]int8
	ends [mostOps]lock.Instant
	now  lock.Instant
}

type keySearch struct {
	ops    []*lock.Op
	points []keyPoint
	endOf  [mostOps]int8 // the point at which the lease that an op set ends, from 1
	budget int
	seen   map[keyState]bool
	found  map[deeds]bool
	enough bool
}

// Key says what is so of a history of one key's commands: Acquire, Store, Renew and
// Release. Commands of one actor are of one client, and tokens are of one client
// each. It looks at no more than budget states.
func Key(ops []*lock.Op, budget int) KeyResult {
	s := &keySearch{ops: ops, budget: budget, seen: map[keyState]bool{}, found: map[deeds]bool{}}
	if len(ops) > mostOps {
		return KeyResult{Enough: true}
	}
	for i, op := range ops {
		s.add(op, i)
	}
	for i := range s.points {
		for j := range s.points {
			a, b := s.points[i], s.points[j]
			fifo := i < j && !a.ends && !b.ends && a.op.Session == b.op.Session // a release is sent before it takes effect
			own := a.op == b.op && !a.ends && b.ends
			if i != j && (a.hi <= b.lo || fifo || own) {
				s.points[j].after |= 1 << i
			}
		}
	}
	s.from(keyState{})
	out := KeyResult{Orders: len(s.found), Enough: s.enough}
	for d := range s.found {
		out.Removed.add(d&removed != 0)
		out.Extended.add(d&extended != 0)
		out.Double.add(d&double != 0)
		out.Overrun.add(d&overrun != 0)
	}
	return out
}

func (s *keySearch) add(op *lock.Op, n int) {
	if op.F == 0 || op.Outcome == lock.Failed {
		return
	}
	if op.Kind == lock.Release {
		s.points = append(s.points, keyPoint{op: op, n: n, sent: true, lo: op.F, hi: op.F})
	}
	p := keyPoint{op: op, n: n, lo: op.F, hi: op.R}
	if !answered(op) {
		p.hi, p.optional = lock.Never, true
	}
	s.points = append(s.points, p)
	if op.Kind == lock.Release || op.TTL == 0 || op.Outcome == lock.Refused || op.Outcome == lock.NotHeld {
		return
	}
	end := keyPoint{op: op, n: n, ends: true, optional: p.optional, lo: op.F.Add(shortest(op)), hi: lock.Never}
	if answered(op) {
		end.hi = op.R.Add(op.TTL + time.Millisecond + drift(op))
	}
	s.points = append(s.points, end)
	s.endOf[n] = int8(len(s.points))
}

// drift is how far the two clocks may part during a lease: by 2 ms and 500 ppm.
func drift(op *lock.Op) time.Duration { return 2*time.Millisecond + op.TTL/2000 }

// shortest is how long the lease lasts that an op sets, at least.
func shortest(op *lock.Op) time.Duration { return op.TTL - drift(op) }

func (s *keySearch) from(st keyState) {
	if s.seen[st] || s.enough {
		return
	}
	s.seen[st] = true
	if s.enough = len(s.seen) > s.budget; s.enough {
		return
	}
	whole := true
	for i, p := range s.points {
		if (st.placed|st.moot)&(1<<i) != 0 {
			continue
		}
		whole = whole && p.optional
		if !s.ready(st, i) {
			continue
		}
		if next, ok := s.place(st, p); ok {
			next.placed |= 1 << i
			s.from(next)
		}
	}
	if whole {
		s.found[st.done] = true
	}
}

// ready reports whether the i-th point may come next, as far as the intervals go. An
// optional one that should have come before what has been placed lies nowhere.
func (s *keySearch) ready(st keyState, i int) bool {
	p := s.points[i]
	for j, q := range s.points {
		before, here := p.after&(1<<j) != 0, st.placed&(1<<j) != 0
		if before && !here && st.moot&(1<<j) == 0 && (!q.optional || q.op == p.op) || here && q.after&(1<<i) != 0 {
			return false
		}
	}
	return true
}

// place lets the point come next, if the clock and what was answered admit it.
func (s *keySearch) place(st keyState, p keyPoint) (keyState, bool) {
	op, known := p.op, answered(p.op)
	st.now = max(st.now, p.lo)
	if p.ends {
		st.now = max(st.now, st.ends[p.n])
		st.ends[p.n] = 0
		return s.end(st, p), st.now <= p.hi
	}
	if st.now > p.hi {
		return st, false
	}
	if p.sent {
		if int(st.holder) != s.lastOf(p)+1 {
			st.done |= overrun
		}
		return st, true
	}
	switch op.Kind {
	case lock.Acquire:
		free := st.holder == 0
		if known && free != (op.Outcome == lock.Granted) || !known && !free {
			return st, false
		}
		if !free {
			return st, true
		}
		return s.grant(st, p), true
	case lock.Store:
		return s.grant(st, p), true
	}
	hit := st.holder != 0 && (!op.Guarded || s.ops[st.holder-1].Token.Same(op.Token))
	if known && hit != (op.Outcome == lock.Done) || !known && !hit {
		return st, false
	}
	if op.Kind == lock.Renew {
		return s.renew(st, p, hit), true
	}
	return s.release(st, p, hit), true
}

func (s *keySearch) grant(st keyState, p keyPoint) keyState {
	for i := range s.ops {
		if st.live&(1<<i) != 0 && s.other(i, p.op) && answered(p.op) {
			st.done |= double
		}
	}
	st.live |= 1 << p.n
	st.holder = int8(p.n + 1)
	return s.lease(st, p.n, p)
}

// lease notes that the point sets the lease of a grant, which then ends no more as it
// would have.
func (s *keySearch) lease(st keyState, grant int, p keyPoint) keyState {
	if old := st.set[grant]; old != 0 {
		st = s.never(st, int(old-1))
	}
	st.set[grant] = int8(p.n + 1)
	if s.endOf[p.n] != 0 {
		st.ends[p.n] = st.now.Add(shortest(p.op))
	}
	return st
}

// never takes the end of a lease that an op set out of what is to come.
func (s *keySearch) never(st keyState, n int) keyState {
	if s.endOf[n] != 0 {
		st.moot |= 1 << (s.endOf[n] - 1)
		st.ends[n] = 0
	}
	return st
}

// end is the end of a lease by itself.
func (s *keySearch) end(st keyState, p keyPoint) keyState {
	for g, set := range st.set {
		if int(set) != p.n+1 {
			continue
		}
		st.live &^= 1 << g
		st.set[g] = 0
		if int(st.holder) == g+1 {
			st.holder = 0
		}
	}
	return st
}

func (s *keySearch) renew(st keyState, p keyPoint, hit bool) keyState {
	if !hit {
		return st
	}
	grant := int(st.holder - 1)
	if s.other(grant, p.op) && answered(p.op) {
		st.done |= extended
	}
	return s.lease(st, grant, p)
}

// release ends the leases of its token, or of whoever has the key.
func (s *keySearch) release(st keyState, p keyPoint, hit bool) keyState {
	if hit && answered(p.op) && s.other(int(st.holder-1), p.op) {
		st.done |= removed
	}
	for g, op := range s.ops {
		if st.live&(1<<g) == 0 || p.op.Guarded && !op.Token.Same(p.op.Token) || !p.op.Guarded && !hit {
			continue
		}
		st.live &^= 1 << g
	}
	if hit {
		st.holder = 0
	}
	return st
}

// lastOf returns the last grant of the client that sent the release.
func (s *keySearch) lastOf(p keyPoint) int {
	for i := p.n; i >= 0; i-- {
		if g := s.ops[i]; g.Actor == p.op.Actor && (g.Kind == lock.Acquire || g.Kind == lock.Store) {
			return i
		}
	}
	return mostOps
}

// other reports whether a grant is another client's, who heard of it.
func (s *keySearch) other(grant int, op *lock.Op) bool {
	g := s.ops[grant]
	return answered(g) && g.Actor != op.Actor
}

// KeyString writes a key's history down, one op a line.
func KeyString(ops []*lock.Op) (out string) {
	for _, op := range ops {
		out += fmt.Sprintf("%s %s %s guarded %v %v: %s [%d, %d]\n", op.Actor, op.Kind, op.Token.Hash[:min(4, len(op.Token.Hash))], op.Guarded, op.TTL, op.Outcome, op.F/1e6, op.R/1e6)
	}
	return out
}
