package pgwire

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// maxAdvised bounds the advisory locks of a session that are counted.
const maxAdvised = 4096

// advisedLocks counts how often the session holds each of its advisory locks:
// it can take one several times, and must give it back as often.
type advisedLocks struct {
	any    bool // it may hold one
	counts map[sharedKey]int
	tx     map[sharedKey]bool // those that end with the transaction
	seen   map[sharedKey]bool // those that a witness told of last
	calls  int                // that are not resolved
}

type sharedKey struct {
	key    string
	shared bool
}

// count follows an op that has its outcome, and says how often the lock is held
// behind it.
func (a *advisedLocks) count(l *held) {
	op := l.op
	id := sharedKey{op.Key, op.Shared}
	switch {
	case op.Span == lock.TxSpan:
		if op.Outcome == lock.Granted && op.Key != Unresolved && len(a.tx) < maxAdvised {
			if a.tx == nil {
				a.tx = map[sharedKey]bool{}
			}
			a.tx[id] = true
		}
	case op.All && op.Outcome == lock.Done:
		a.counts, a.seen = nil, nil
	case op.Key == Unresolved || op.Key == "":
	case op.Outcome == lock.Granted:
		if _, known := a.counts[id]; !known && len(a.counts) >= maxAdvised {
			return
		}
		if a.counts == nil {
			a.counts = map[sharedKey]int{}
		}
		a.counts[id] += int(max(1, l.yes))
		op.Depth = a.counts[id]
	case op.Kind == lock.Release && op.Outcome == lock.Done && a.counts[id] > 0:
		if a.counts[id] -= int(max(1, l.yes)); a.counts[id] <= 0 {
			delete(a.counts, id)
		}
		op.Depth = a.counts[id]
	}
}

// has reports whether the session is known to hold a lock.
func (a *advisedLocks) has(id sharedKey) bool { return a.counts[id] > 0 || a.tx[id] }

// compare returns which of the locks that the session holds were not known, and
// which of those that were known it does not hold for longer than a transaction.
func (a *advisedLocks) compare(held []Advisory) (came, went []sharedKey) {
	now := map[sharedKey]bool{}
	for _, h := range held {
		now[h.id()] = true
		if !a.has(h.id()) && !a.seen[h.id()] {
			came = append(came, h.id())
		}
	}
	for id := range a.seen {
		if !now[id] && !a.tx[id] {
			went = append(went, id)
		}
	}
	for id := range a.counts {
		if !now[id] && !a.seen[id] {
			went = append(went, id)
		}
	}
	a.seen = now
	for _, list := range [][]sharedKey{came, went} {
		slices.SortFunc(list, func(x, y sharedKey) int { return cmp.Compare(x.key, y.key) })
	}
	return came, went
}
