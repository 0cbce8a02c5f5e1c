package proxy

import (
	"slices"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A Direction is one of the two streams of a session.
type Direction int

// The directions.
const (
	ToUpstream Direction = iota // requests
	ToClient                    // replies
)

// A Step tells the driver what to do with the bytes that it has read and not
// yet written: forward the first Forward bytes in one write, call Sent if Report
// says so, discard Drop bytes behind them, write Answer to the client, then wait
// for Gate if there is one, at most for Patience unless that is 0. With More or a
// Gate, Next has to be called again.
type Step struct {
	Forward  int
	Report   bool
	Drop     int
	Answer   []byte
	Gate     *Gate
	Patience time.Duration
	Held     int // how many bytes behind these are the request that waits
	More     bool
}

// A Session is one client connection and its upstream connection, without the
// connections. Feed and Next of one direction are called by one goroutine; the
// two directions may run at the same time.
type Session struct {
	conn *conn

	mu      sync.Mutex
	tracker wire.Tracker
	skipper wire.Skipper // the tracker, if it is one
	engine  *Engine
	flows   [2]flow
	asked   []*lock.Op // requests that passed and have no reply, or no end of their transaction; oldest first
	calls   []called   // that have no reply yet; oldest first
	owes    []*owed    // calls whose replies went on, and of which more may come to be known
	watcher Watcher    // nil: nobody tells what calls do
	blind   func(reason string)
	done    []*lock.Op // finished, for the recorder
	over    *Gate      // not nil: both connections are being reset, and all waits here
}

// A flow is one direction. Offsets count from the start of the stream.
type flow struct {
	base    int64 // first byte that the driver has not been told to forward
	fed     int64 // behind the last byte fed
	clear   int64 // what comes before may be forwarded
	marks   []wire.Mark
	known   bool         // the engine has seen the first mark's request
	decided bool         // the first mark's moment has been decided
	look    *Look        // what the witness was asked about the first mark's call
	asked   lock.Instant // when it was, if the mark waits
	kept    keptBack
	arrived []arrival
	landing []landing // replies handed to the driver and not reported as written

	// Requests that were let pass and go with those that are decided next, since
	// they begin at the same byte: several ops of one message.
	along     []*lock.Op
	alongAt   int64
	alongHeld time.Duration // what kept had come to when they went last
}

// keptBack is how long a direction has been held by rules.
type keptBack struct {
	since lock.Instant // 0: it is not held
	sum   time.Duration
}

func (k *keptBack) begin(now lock.Instant) {
	if k.since == 0 {
		k.since = now
	}
}

func (k *keptBack) end(now lock.Instant) {
	if k.since != 0 {
		k.sum += now.Sub(k.since)
		k.since = 0
	}
}

type arrival struct {
	end int64
	at  lock.Instant
}

type landing struct {
	op    *lock.Op
	end   int64
	place bool // op is an owed's, and goes into no record
}

// NewSession returns a session on an open connection of the engine. blind is
// told, at most once, why the stream is not read any further.
func NewSession(e *Engine, c *conn, t wire.Tracker, blind func(reason string)) *Session {
	s := &Session{conn: c, engine: e, tracker: t, blind: blind}
	s.skipper, _ = t.(wire.Skipper)
	return s
}

// Feed scans the next bytes of a direction, read at the instant now, and says
// what may go on. The chunk is not kept.
func (s *Session) Feed(dir Direction, chunk []byte, now lock.Instant) Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return Step{Gate: s.over}
	}
	f := &s.flows[dir]
	f.fed += int64(len(chunk))
	before := len(f.marks)
	if len(s.owes) > 0 {
		s.hear(dir == ToUpstream)
	}
	if dir == ToUpstream {
		f.marks, f.clear = s.tracker.Client(chunk, f.marks)
	} else {
		f.marks, f.clear = s.tracker.Upstream(chunk, f.marks)
	}
	if len(f.marks) == 0 && f.clear == f.fed && len(f.landing) == 0 && len(s.done) == 0 && s.waits(f) == nil {
		return f.whole()
	}
	f.arrived = append(f.arrived, arrival{f.fed, now})
	for _, m := range f.marks[before:] {
		s.stamp(m, f, now)
	}
	return s.next(f, now)
}

// waits returns the gate at which everything of a direction waits, or nil.
func (s *Session) waits(f *flow) *Gate {
	if g := s.conn.stall.Load(); g != nil && !g.Opened() {
		return g
	}
	if f != &s.flows[ToUpstream] {
		return nil
	}
	if g := s.conn.later.Load(); g != nil && !g.Opened() {
		return g
	}
	return nil
}

// whole lets everything go on: nothing in it concerns anybody.
func (f *flow) whole() Step {
	n := int(f.fed - f.base)
	f.base, f.arrived = f.fed, f.arrived[:0]
	return Step{Forward: n}
}

// Rest returns how many of the next bytes of a direction may be moved without
// being fed, if everything before them has been forwarded.
func (s *Session) Rest(dir Direction) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.flows[dir]
	if s.skipper == nil || f.base != f.fed || len(f.marks) > 0 || s.waits(f) != nil {
		return 0
	}
	return s.skipper.Rest(dir == ToUpstream)
}

// Skip notes that n bytes of a direction, at most Rest, were forwarded unseen.
func (s *Session) Skip(dir Direction, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.flows[dir]
	s.skipper.Skip(dir == ToUpstream, n)
	f.fed += n
	f.base, f.clear = f.fed, f.fed
}

func (s *Session) stamp(m wire.Mark, f *flow, now lock.Instant) {
	switch m.Kind {
	case wire.Request:
		m.Op.A, m.Op.Held = now, -f.kept.sum
		s.engine.Again(s.conn, m.Op)
	case wire.Reply:
		if m.Op.F != 0 {
			m.Op.R = f.arrivalOf(m.Start, now)
		}
	case wire.Settle:
		if m.Op.Kind == lock.Write {
			m.Op.Z = now
		}
	case wire.Called:
		s.calls = append(s.calls, called{Call: m.Call, a: now, held: -f.kept.sum})
	case wire.Answered:
		if c := s.callOf(m.Call); c != nil && c.f != 0 {
			c.r = f.arrivalOf(m.Start, now)
		}
	}
}

func (f *flow) arrivalOf(offset int64, now lock.Instant) lock.Instant {
	for _, a := range f.arrived {
		if offset < a.end {
			return a.at
		}
	}
	return now
}

// Next says what more may go on, after the gate of the last step has opened or
// where that step had more.
func (s *Session) Next(dir Direction, now lock.Instant) Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next(&s.flows[dir], now)
}

// next decides the moments found so far in a direction, as far as it can.
func (s *Session) next(f *flow, now lock.Instant) Step {
	f.kept.end(now)
	step := s.advance(f, now)
	step.Report = len(f.landing) > 0 || len(s.done) > 0
	return step
}

func (s *Session) advance(f *flow, now lock.Instant) Step {
	if s.over != nil {
		return Step{Gate: s.over}
	}
	if g := s.waits(f); g != nil {
		f.kept.begin(now)
		return Step{Gate: g}
	}
	for i := 0; i < len(f.marks); i++ {
		m := f.marks[i]
		if !f.decided {
			if g := s.decide(f, m, now); g != nil {
				f.marks = f.marks[i:]
				if g.cut != nil {
					return s.lastOf(f, g, now)
				}
				step := f.cut(m.Start, Step{Gate: g, Patience: s.patience(f)})
				if m.Kind == wire.Request {
					f.kept.begin(now)
					step.Held = int(m.End - f.base)
				}
				return step
			}
		}
		f.known, f.decided = false, false
		if m.Kind == wire.Answered {
			f.marks = slices.Replace(f.marks, i, i+1, s.resolve(f, m, now)...)
			i--
			continue
		}
		s.pass(f, m, now)
		if m.Kind == wire.Answer {
			f.marks = f.marks[i+1:]
			step := f.cut(m.Start, Step{Answer: m.Bytes, More: true})
			step.Drop = int(m.End - f.base)
			f.base = m.End
			return step
		}
	}
	f.marks = f.marks[:0]
	return f.cut(f.clear, Step{})
}

func (f *flow) cut(at int64, step Step) Step {
	if at > f.base {
		step.Forward = int(at - f.base)
		f.base = at
	}
	gone := 0
	for gone < len(f.arrived) && f.arrived[gone].end <= f.base {
		gone++
	}
	f.arrived = f.arrived[:copy(f.arrived, f.arrived[gone:])]
	return step
}

func (s *Session) decide(f *flow, m wire.Mark, now lock.Instant) *Gate {
	f.decided = true
	switch m.Kind {
	case wire.Request:
		if !s.engine.Cares(m.Op) {
			return nil
		}
		return s.ask(f, m, now)
	case wire.Reply:
		// Without F the request is still held: the server speaks unasked.
		if m.Op.Seq == 0 || m.Op.F == 0 {
			return nil
		}
		return s.engine.Reply(s.conn, m.Op, m.Start < m.End, now)
	case wire.Called, wire.Answered:
		return s.look(f, m, now)
	case wire.Blind:
		s.blind(m.Reason)
	}
	return nil
}

// ask has the engine decide the moment before a request.
func (s *Session) ask(f *flow, m wire.Mark, now lock.Instant) *Gate {
	s.conn.urgent = s.urgent(f, m)
	var g *Gate
	var again bool
	if f.known {
		g, again = s.engine.Before(s.conn, m.Op, now)
	} else {
		g, again = s.engine.Request(s.conn, m.Op, m.Start < m.End, now)
	}
	f.known, f.decided = true, !again
	return g
}

// urgent reports whether a request must not wait behind another's: it is of something that its session has begun, or what
// must never wait would wait with it. That is, of its message, what ends a transaction or a lock before it; and what was
// read behind it and renews or releases another lock than it asks for.
func (s *Session) urgent(f *flow, m wire.Mark) bool {
	if m.Begun || !s.engine.gated.Load() {
		return m.Begun
	}
	if m.Start == f.alongAt && slices.ContainsFunc(f.along, func(op *lock.Op) bool { return op.Kind == lock.Commit || op.Kind == lock.Rollback || keeping(op) }) {
		return true
	}
	return slices.ContainsFunc(f.marks, func(n wire.Mark) bool {
		return n.Kind == wire.Request && n.Start >= m.Start && keeping(n.Op) && n.Op.Key != m.Op.Key
	})
}

// keeping reports whether an op is of one who has a lock.
func keeping(op *lock.Op) bool { return op.Kind == lock.Renew || op.Kind == lock.Release }

func (s *Session) pass(f *flow, m wire.Mark, now lock.Instant) {
	switch m.Kind {
	case wire.Request:
		f.goes(m, now)
		if m.Op.Seq != 0 {
			s.asked = append(s.asked, m.Op)
			if s.watcher != nil {
				s.watcher.Passed(m.Op)
			}
		}
	case wire.Called:
		s.forwarded(f, m, now)
	case wire.Reply:
		if s.watcher != nil {
			s.watcher.Replied(m.Op)
		}
		if s.forget(m.Op) {
			f.landing = append(f.landing, landing{op: m.Op, end: m.End})
		}
	case wire.Settle:
		s.engine.Settled(m.Op, now)
		// One that is still to be delivered is finished there.
		if s.forget(m.Op) {
			s.done = append(s.done, m.Op)
		}
	}
}

// goes notes that a request goes on now, and with it those that begin at the same
// byte: what it waited for, they have waited for.
func (f *flow) goes(m wire.Mark, now lock.Instant) {
	if m.Start != f.alongAt {
		f.along, f.alongAt, f.alongHeld = f.along[:0], m.Start, 0
	}
	for _, op := range f.along {
		op.F, op.Held = now, op.Held+f.kept.sum-f.alongHeld
	}
	m.Op.F, m.Op.Held = now, m.Op.Held+f.kept.sum
	f.along, f.alongHeld = append(f.along, m.Op), f.kept.sum
}

// stopped returns the requests that wait at the mark at hand and were never sent.
func (f *flow) stopped() []*lock.Op {
	if !f.known || len(f.marks) == 0 {
		return nil
	}
	if m := f.marks[0]; m.Start == f.alongAt {
		return append(f.along, m.Op)
	}
	return []*lock.Op{f.marks[0].Op}
}
