package pgwire

import "github.com/lockfaultd/lockfaultd/lock"

// maxAdvised bounds the advisory locks of a session that are counted.
const maxAdvised = 4096

// advisedLocks counts how often the session holds each of its advisory locks:
// it can take one several times, and must give it back as often.
type advisedLocks struct {
	any    bool // it may hold one
	counts map[sharedKey]int
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
	case op.All && op.Outcome == lock.Done:
		a.counts = nil
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
