package proxy

import (
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
// request. One that has ended by then has the shortest there is.
func (k *clocks) place(op *lock.Op) {
	if op.Until == 0 || op.TTL != 0 {
		return
	}
	c, ok := k.looked[op.Upstream]
	if !ok {
		c = history.Clock{Wall: k.own}
	}
	if !c.Wall.IsZero() {
		op.TTL = max(1, time.UnixMilli(op.Until).Sub(c.Wall.Add(op.A.Sub(c.At))))
	}
}
