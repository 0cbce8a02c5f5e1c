package resp

import (
	"sync"
	"sync/atomic"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A client may compare a lock's token itself: it reads the key with GET, and then
// removes it or moves its end. Between WATCH and EXEC that is as good as a
// comparison of the server's; without, another may have come between. So of a
// key that is watched, or known as a lock's, the answer to GET is heeded.

const (
	maxNotes   = 4       // keys that a connection has read of late
	maxWatched = 16      // keys that it watches, of which more are not known
	maxLocks   = 1 << 12 // keys that are known as locks, of all connections
)

// A note is what a GET has told.
type note struct {
	sum   uint64 // of the key and its database; 0: nothing is noted
	seq   uint16 // of the GET
	null  bool   // there was no such key
	token lock.Value
}

// heeds reports whether the answer to a GET of the key matters.
func (t *Tracker) heeds(key []byte) bool {
	return len(t.watched) > 0 && t.watches(sumOfKey(t.asked, key)) || t.opt.Scripts.keys.has(t.asked, key)
}

func (t *Tracker) watches(sum uint64) bool {
	for _, w := range t.watched {
		if w == sum {
			return true
		}
	}
	return false
}

// watch takes in a WATCH.
func (t *Tracker) watch() {
	for i := 1; i < len(t.req.args) && len(t.watched) < maxWatched; i++ {
		if key := t.req.arg(i); key != nil {
			t.watched = append(t.watched, sumOfKey(t.asked, key))
		}
	}
}

// unwatch takes in what ends all watching.
func (t *Tracker) unwatch() { t.watched, t.multi, t.pledged = t.watched[:0], false, false }

// heed makes room for what the GET at hand will be answered.
func (t *Tracker) heed(e *entry) {
	key := t.req.arg(1)
	if key == nil || t.req.argc != 2 || !t.heeds(key) {
		return
	}
	sum := sumOfKey(t.asked, key)
	for i := range t.notes {
		if t.notes[i].sum == sum {
			t.notes[i] = note{}
		}
	}
	t.gets++
	t.notes[t.gets%maxNotes] = note{sum: sum, seq: t.gets}
	e.act, e.num = reads, t.gets
}

// noted takes in the answer to a GET.
func (t *Tracker) noted(seq uint16, a *answer) {
	n := &t.notes[seq%maxNotes]
	if n.seq != seq || n.sum == 0 || a.isError() {
		return
	}
	n.null = a.isNull()
	if !n.null && a.n < maxText {
		n.token = t.hash(a.text())
	}
}

// heeding completes ops by what the client has read of their keys. A read serves
// once.
func (t *Tracker) heeding(d *ask) *ask {
	if d == nil || t.gets == 0 {
		return d
	}
	for _, op := range d.ops {
		sum := sumOfKey(op.DB, []byte(op.Key))
		for i := range t.notes {
			if n := &t.notes[i]; n.sum == sum {
				d.compared(op, n, t.multi && t.watches(sum))
				*n = note{}
			}
		}
	}
	return d
}

// outdated forgets what was read of the keys that a request is to take: what stands
// there afterwards is another value.
func (t *Tracker) outdated(d *ask) {
	if t.gets == 0 {
		return
	}
	for _, op := range d.ops {
		if op.Kind != lock.Acquire && op.Kind != lock.Store {
			continue
		}
		for i := range t.notes {
			if n := &t.notes[i]; n.sum == sumOfKey(op.DB, []byte(op.Key)) {
				*n = note{}
			}
		}
	}
}

// compared takes in that the client has read the op's key before it.
func (d *ask) compared(op *lock.Op, n *note, watched bool) {
	switch {
	case op.Kind == lock.Store && watched && n.null:
		op.Kind, op.NX, d.optimistic = lock.Acquire, true, true
	case op.Kind != lock.Release && op.Kind != lock.Renew, op.Token.Known(), !n.token.Known():
	default:
		op.Token, op.Guarded, op.Racy = n.token, watched, !watched
	}
}

// A keySet is of keys that were seen in use as locks, by their sums. It is safe
// for concurrent use.
type keySet struct {
	lengths atomic.Uint64 // a bit for each length that they have
	mu      sync.RWMutex
	known   map[uint64]bool
	line    []uint64
}

func (s *keySet) has(db int, key []byte) bool {
	if key == nil || s.lengths.Load()>>(len(key)&63)&1 == 0 {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[sumOfKey(db, key)]
}

func (s *keySet) add(db int, key string) {
	sum := sumOfKey(db, []byte(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[sum] {
		return
	}
	if s.known == nil {
		s.known = make(map[uint64]bool)
	}
	if len(s.line) >= maxLocks {
		delete(s.known, s.line[0])
		s.line = s.line[1:]
	}
	s.known[sum] = true
	s.line = append(s.line, sum)
	s.lengths.Or(1 << (len(key) & 63))
}

// sumOfKey is never 0.
func sumOfKey(db int, key []byte) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	sum := uint64(offset)
	for _, c := range key {
		sum = (sum ^ uint64(c)) * prime
	}
	return max(1, (sum^uint64(db))*prime)
}
