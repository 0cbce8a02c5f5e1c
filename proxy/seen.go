package proxy

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A Snapshot is what the engine sees at one instant. It shares nothing with the engine.
type Snapshot struct {
	Locks  []LockSeen  // those that are held, and those that were a while ago; by name
	Ended  []TermSeen  // the last first
	Actors []ActorSeen // those that are connected, by label
	Acting []ActSeen   // in the order of their beginning
}

// A LockSeen is a lock.
type LockSeen struct {
	Lock    lock.LockID
	Terms   []TermSeen // those that are open
	Left    *TermSeen  // no term is: that of a holder who went away without giving the lock back, which may last still
	Waiters []string   // labels of those who have asked for it and were not granted it, sorted
	// Stranger: nobody is known to hold it, and one of those was refused it all the same.
	Stranger bool
	Margin   *time.Duration
}

// Held lists the holdings on account of which others are refused the lock.
func (l LockSeen) Held() []TermSeen {
	if l.Left != nil {
		return []TermSeen{*l.Left}
	}
	return l.Terms
}

// A TermSeen is a holding of a lock.
type TermSeen struct {
	Lock    lock.LockID
	Actor   string
	Session uint64
	Since   lock.Instant  // when the grant was read
	TTL     time.Duration // as it was set last; 0: none
	Ends    lock.Interval // of its lease by the clock; zeros where it has none, or that is not known
	Dead    bool          // its lease has certainly ended
	Fence   *int64
	End     lock.Instant // 0: it is open
	EndBy   lock.EndBy
}

// The states of an actor.
const (
	Running = "running"
	Stalled = "stalled" // a connection of it is held
	Frozen  = "frozen"
)

// An ActorSeen is a process.
type ActorSeen struct {
	Label, State string
	Until        lock.Instant // when that ends at the latest; 0: it runs, or is about to be frozen
	By           string       // what the rule is called
	PID          int
	Exe, Address string
	Cannot       string // why it cannot be frozen
	Sessions     int
	Holds        []lock.LockID
}

// A SessionSeen is a connection.
type SessionSeen struct {
	ID       uint64
	Protocol lock.Protocol
	Upstream string
	Actor    string // "" before it has done anything
	Name     string // what its client calls itself
	Address  string // of the client's host
	PID      int
	Since    lock.Instant
	Held     bool // a rule holds it
}

// An ActSeen is an injection that goes on.
type ActSeen struct {
	Act       fault.Act
	Rule      string // what it is called
	Actor     string
	Lock      string // the key or table that the event was about
	At        lock.Instant
	Confirmed lock.Instant // 0: not yet
	Ends      lock.Instant // at the latest; 0: not known yet
}

// recently is how many terms that have ended are shown.
const recently = 256

// mostMargins bounds the locks whose margins are known.
const mostMargins = 1024

// Snapshot returns what there is now; what has ended since an instant is among it.
func (e *Engine) Snapshot(now, since lock.Instant) Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Snapshot{Locks: e.locksSeen(now, since), Actors: e.actorsSeen()}
	for _, t := range e.ledger.Ended(since, recently) {
		if !t.Marker {
			s.Ended = append(s.Ended, seenOf(t, now))
		}
	}
	for _, in := range e.active {
		s.Acting = append(s.Acting, ActSeen{in.Act, in.Called, in.actor.Label, in.Matched, in.at, in.confirmed, in.ends})
	}
	return s
}

// Stopped returns how many processes are stopped now.
func (e *Engine) Stopped() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, in := range e.active {
		if in.Act == fault.Freeze && in.confirmed != 0 {
			n++
		}
	}
	return n
}

func (e *Engine) locksSeen(now, since lock.Instant) []LockSeen {
	all := map[lock.LockID]*LockSeen{}
	of := func(id lock.LockID) *LockSeen {
		if all[id] == nil {
			all[id] = &LockSeen{Lock: id}
			if m, ok := e.margins[id]; ok {
				all[id].Margin = &m
			}
		}
		return all[id]
	}
	for _, t := range e.ledger.Open() {
		if !t.Marker {
			l := of(t.Lock)
			l.Terms = append(l.Terms, seenOf(t, now))
		}
	}
	for _, t := range e.ledger.Ended(since, recently) {
		if !t.Marker {
			of(t.Lock)
		}
	}
	for id, w := range e.waiting() {
		l := of(id)
		l.Waiters, l.Stranger = w.labels, w.stranger
	}
	for id, l := range all {
		if t := e.ledger.Left(id, now); t != nil && len(l.Terms) == 0 {
			s := seenOf(t, now)
			l.Left = &s
		}
		l.Stranger = l.Stranger && len(l.Held()) == 0
	}
	return sorted(all)
}

func sorted(all map[lock.LockID]*LockSeen) []LockSeen {
	out := make([]LockSeen, 0, len(all))
	for _, l := range all {
		slices.Sort(l.Waiters)
		l.Waiters = slices.Compact(l.Waiters)
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b LockSeen) int {
		return cmp.Or(cmp.Compare(a.Lock.String(), b.Lock.String()), cmp.Compare(a.Lock.Upstream, b.Lock.Upstream))
	})
	return out
}

func seenOf(t *lock.Term, now lock.Instant) TermSeen {
	s := TermSeen{Lock: t.Lock, Actor: t.Actor, Session: t.Session, Since: t.Grant.R, TTL: t.Lasts(), Dead: t.Open() && t.Dead(now), End: t.End, EndBy: t.EndBy}
	if c := t.Clock(); c.Latest != lock.Never {
		s.Ends = c
	}
	if t.HasFence {
		fence := t.Fence
		s.Fence = &fence
	}
	return s
}

// A wanted is who wants a lock.
type wanted struct {
	labels   []string
	stranger bool // one was refused it on account of somebody who was not seen
}

// waiting lists by lock who is connected and wants it: those that have no answer, and those whose last one was no.
func (e *Engine) waiting() map[lock.LockID]*wanted {
	out := map[lock.LockID]*wanted{}
	of := func(id lock.LockID) *wanted {
		if out[id] == nil {
			out[id] = &wanted{}
		}
		return out[id]
	}
	for _, c := range e.conns {
		if op := c.wants; op != nil {
			w := of(e.ledger.LockOf(op))
			w.labels = append(w.labels, op.Actor)
		}
	}
	for label, a := range e.labelled() {
		if len(a.conns) > 0 {
			for id, op := range e.ledger.Refusals(label) {
				w := of(id)
				w.labels, w.stranger = append(w.labels, label), w.stranger || e.ledger.Stranger(op)
			}
		}
	}
	return out
}

// asks notes that somebody asks for a lock.
func (c *conn) asks(op *lock.Op) {
	if op.Kind == lock.Acquire {
		c.wants = op
	}
}

// answered notes an answer, and how much of the lease was left at a protected write.
func (e *Engine) answered(c *conn, op *lock.Op) {
	if c.wants == op {
		c.wants = nil
	}
	if !e.alters || op.Kind != lock.Write || op.Outcome != lock.Done || !op.Term.Sure() {
		return
	}
	t := e.ledger.Term(op.Term.ID)
	if t == nil || t.Held() == lock.Never {
		return
	}
	if _, known := e.margins[t.Lock]; !known && len(e.margins) >= mostMargins {
		clear(e.margins)
	}
	e.margins[t.Lock] = t.Held().Sub(op.R)
}

func (e *Engine) actorsSeen() (out []ActorSeen) {
	holds := map[string][]lock.LockID{}
	for _, t := range e.ledger.Open() {
		if !t.Marker {
			holds[t.Actor] = append(holds[t.Actor], t.Lock)
		}
	}
	for label, a := range e.labelled() {
		if len(a.conns) == 0 {
			continue
		}
		s := ActorSeen{Label: label, State: Running, PID: a.owner.PID, Exe: a.owner.Exe, Address: a.owner.Address, Cannot: a.owner.Reason, Sessions: len(a.conns), Holds: holds[label]}
		for _, in := range e.active {
			s.heldBy(in, a)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b ActorSeen) int { return cmp.Compare(a.Label, b.Label) })
	return out
}

// heldBy takes in what an injection does to an actor. A freeze is more than a stall.
func (s *ActorSeen) heldBy(in *injection, a *Actor) {
	switch {
	case in.Act == fault.Freeze && in.freezes(a):
		s.State = Frozen
	case s.State == Running && in.actor == a && in.Act.Lasts():
		s.State = Stalled
	default:
		return
	}
	s.Until, s.By = in.ends, in.Called
}

// Sessions lists the connections, by ID.
func (e *Engine) Sessions() []SessionSeen {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]SessionSeen, 0, len(e.conns))
	for _, c := range e.conns {
		o := c.peer.Owner
		s := SessionSeen{ID: c.id, Protocol: c.peer.Protocol, Upstream: c.peer.Upstream, Actor: c.actor.Label, Address: o.Address, PID: o.PID, Since: c.peer.Opened}
		if c.peer.Name != nil {
			s.Name = c.peer.Name()
		}
		s.Held = slices.ContainsFunc(e.active, func(in *injection) bool { return in.Act.Lasts() && in.holds(c) })
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b SessionSeen) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
