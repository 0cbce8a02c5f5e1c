package proxy

import (
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// clocks know the wall clocks by which leases with an absolute end are given.
type clocks struct {
	own    time.Time                // this machine's at Instant 0; zero: not told
	looked map[string]history.Clock // by upstream, the last look at each
}

// Started says what the wall clock showed at Instant 0. It is taken for that of
// each upstream whose own was not looked at.
func (e *Engine) Started(wall time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clocks.own = wall
}

// Sampled takes a look at an upstream's clock.
func (e *Engine) Sampled(c history.Clock) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clocks.looked == nil {
		e.clocks.looked = map[string]history.Clock{}
	}
	e.clocks.looked[c.Upstream] = c
}

// place fills in the lifetime of an op of which only the end is told, as of its
// request. One that has ended by then has the shortest there is, but that the
// holder of a row who moves its end there gives the lease back.
func (k *clocks) place(op *lock.Op) {
	if op.Until == 0 || op.TTL != 0 {
		return
	}
	c, ok := k.looked[op.Upstream]
	if !ok {
		c = history.Clock{Wall: k.own}
	}
	if c.Wall.IsZero() {
		return
	}
	left := time.UnixMilli(op.Until).Sub(c.Wall.Add(op.A.Sub(c.At)))
	if left <= clocksAgree && op.Kind == lock.Renew && strings.HasPrefix(op.Key, "lease:") {
		op.Kind, op.Until = lock.Release, 0
		return
	}
	op.TTL = max(1, left)
}

// clocksAgree is how far the clocks of a client and of its server may be apart, so
// that what is the present by one of them is so by the other.
const clocksAgree = 5 * time.Millisecond
