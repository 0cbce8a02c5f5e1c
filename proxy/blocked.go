package proxy

import (
	"context"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// Blocked tells, from beside the wire, which backends of a Postgres wait for a row that another has locked.
type Blocked interface {
	// Blocked returns, for each backend that waits, those that it waits for. upstream is a route's.
	Blocked(ctx context.Context, upstream string) (map[int32][]int32, error)
}

// lookout is how long it is asked who waits for whom before a gate that stayed shut is let go.
const lookout = 500 * time.Millisecond

// explain finds out, before a gate that did not open lets go, whether the others wait for a row that what
// is held has locked: nothing of that shows on the wire.
func (r *Runner) explain(ctx context.Context, in *injection) {
	if r.Blocked == nil || !r.Engine.unexplained(in, r.Clock()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookout)
	defer cancel()
	for _, upstream := range r.Engine.upstreams() {
		if by, err := r.Blocked.Blocked(ctx, upstream); err == nil {
			r.Engine.blocked(in, upstream, by)
		}
	}
}

// unexplained reports whether a gate stayed shut for want of others, all its time.
func (e *Engine) unexplained(in *injection, now lock.Instant) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now >= in.ends && in.shut() && in.wait.NeedsOthers()
}

// upstreams lists the Postgres servers that sessions lead to.
func (e *Engine) upstreams() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for _, c := range e.conns {
		if c.peer.Backend != nil && !slices.Contains(out, c.peer.Upstream) {
			out = append(out, c.peer.Upstream)
		}
	}
	slices.Sort(out)
	return out
}

// blocked takes in who waits for whom on one server.
func (e *Engine) blocked(in *injection, upstream string, by map[int32][]int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting, holding := uint64(0), uint64(0)
	for _, c := range e.conns {
		if c.peer.Backend == nil || c.peer.Upstream != upstream || in.holds(c) {
			continue
		}
		for _, pid := range by[c.peer.Backend()] {
			if h := e.heldBackend(in, upstream, pid); h != 0 && (waiting == 0 || c.id < waiting) {
				waiting, holding = c.id, h
			}
		}
	}
	if waiting != 0 {
		in.wait.Blocked(waiting, holding)
	}
}

// heldBackend returns the session of a backend among those that an injection holds, or 0.
func (e *Engine) heldBackend(in *injection, upstream string, pid int32) uint64 {
	for _, c := range e.conns {
		if c.peer.Backend != nil && c.peer.Upstream == upstream && in.holds(c) && c.peer.Backend() == pid {
			return c.id
		}
	}
	return 0
}

// holds reports whether an injection keeps a connection from going on.
func (in *injection) holds(c *conn) bool {
	switch {
	case in.Act == fault.Freeze:
		return in.freezes(c.actor)
	case in.Scope == fault.ScopeConn:
		return c == in.conn
	}
	return c.actor == in.actor
}
