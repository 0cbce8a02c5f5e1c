package service

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// locks are the terms that are open, as far as the lines of a history tell.
type locks struct {
	started time.Time // of the run: where its instants begin
	terms   map[lock.LockID]*Held
	now     lock.Instant

	upstreams map[string]bool
}

// mostHeld is how many locks are known at once. Those whose leases ended the longest ago are forgotten first.
const mostHeld = 4096

// A Held is a lock that is held.
type Held struct {
	Lock     string        `json:"lock"`
	Upstream string        `json:"upstream,omitempty"`
	Holder   string        `json:"holder,omitempty"` // the actor's label
	Since    time.Time     `json:"since"`            // the grant's delivery
	TTL      time.Duration `json:"ttl_ns,omitempty"` // 0: no lifetime
	EndsFrom time.Time     `json:"ends_from,omitzero"`
	EndsTo   time.Time     `json:"ends_to,omitzero"`
	Overrun  bool          `json:"overrun"` // the lease is over, and its holder has not given the lock back
	Waiters  int           `json:"waiters"` // that were refused since
	Fence    *int64        `json:"fence,omitempty"`

	token   lock.Value
	granted lock.Instant // certainly by then
	renewed lock.Instant
	ends    [2]lock.Instant
	refused map[string]bool
	term    lock.TermID
}

func newLocks() *locks { return &locks{terms: map[lock.LockID]*Held{}, upstreams: map[string]bool{}} }

// entry takes in a line.
func (l *locks) entry(e history.Entry) {
	if e.Op == nil {
		return
	}
	op := e.Op
	l.now = max(l.now, op.A, op.R, op.D)
	switch id := lock.IDOf(op); op.Kind {
	case lock.Acquire, lock.Store:
		l.acquire(id, op)
	case lock.Renew:
		if h := l.terms[id]; h != nil && op.Outcome == lock.Done {
			h.lasts(op)
		}
	case lock.Release:
		if h := l.terms[id]; h != nil && op.Depth == 0 && (op.Outcome == lock.Done || op.Term.ID == h.term) {
			delete(l.terms, id)
		}
	}
}

func (l *locks) acquire(id lock.LockID, op *lock.Op) {
	h := l.terms[id]
	switch {
	case op.Outcome == lock.Refused && h != nil && len(h.refused) < 1000:
		h.refused[op.Actor] = true
	case op.Outcome == lock.Granted && (h == nil || op.Depth <= 1):
		if h == nil && len(l.terms) >= mostHeld {
			l.forget()
		}
		n := &Held{Lock: id.String(), Upstream: id.Upstream, Holder: op.Actor, token: op.Token, granted: max(op.R, op.D), term: op.Term.ID, refused: map[string]bool{}}
		if op.HasFence {
			n.Fence = &op.Fence
		}
		n.lasts(op)
		l.terms[id], l.upstreams[id.Upstream] = n, true
	}
}

// lasts notes until when the lease lasts by a grant or a renewal.
func (h *Held) lasts(op *lock.Op) {
	if h.renewed = op.R; op.TTL == 0 {
		return
	}
	drift := 2*time.Millisecond + op.TTL/2000
	h.TTL, h.ends = op.TTL, [2]lock.Instant{op.F.Add(op.TTL - drift), op.R.Add(op.TTL + time.Millisecond + drift)}
}

// forget drops those whose leases ended longest ago.
func (l *locks) forget() {
	ids := make([]lock.LockID, 0, len(l.terms))
	for id := range l.terms {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b lock.LockID) int { return cmp.Compare(l.terms[a].renewed, l.terms[b].renewed) })
	for _, id := range ids[:len(ids)/8+1] {
		delete(l.terms, id)
	}
}

// forgotten is how long after its lease's end a lock is shown that nobody gave back.
const forgotten = time.Minute

// list returns those that are held at an instant of our clock.
func (l *locks) list(now time.Time) []Held {
	out := []Held{}
	for id, h := range l.terms {
		n := *h
		n.Since, n.Waiters, n.refused = l.started.Add(time.Duration(h.granted)), len(h.refused), nil
		if h.TTL > 0 {
			n.EndsFrom, n.EndsTo = l.started.Add(time.Duration(h.ends[0])), l.started.Add(time.Duration(h.ends[1]))
			n.Overrun = now.After(n.EndsTo)
			if now.Sub(n.EndsTo) > forgotten {
				delete(l.terms, id)
				continue
			}
		}
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b Held) int { return cmp.Or(cmp.Compare(a.Lock, b.Lock), a.Since.Compare(b.Since)) })
	return out
}

// granted returns when a lock was granted that nobody has given back since, by the database and the key of Redis.
func (l *locks) granted(key string, db int) (time.Time, bool) {
	for upstream := range l.upstreams {
		if h := l.terms[lock.LockID{Upstream: upstream, DB: db, Key: key}]; h != nil {
			return l.started.Add(time.Duration(h.granted)), true
		}
	}
	return time.Time{}, false
}

// lost forgets what is held: lines were lost that may tell of a release.
func (l *locks) lost() { clear(l.terms) }
