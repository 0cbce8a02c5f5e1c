package proxy

import (
	"context"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// shortFreeze is how long a freeze may last whose reply waits for it in the socket: a longer one could
// outlast the client's read timeout, which would decide what comes of it.
const shortFreeze = time.Second

// delivers reports whether a freeze is one after a grant that the process is to have read: it is
// delivered first, and what the process sends from then on waits.
func (in *injection) delivers() bool {
	return in.Act == fault.Freeze && in.phase == fault.After && in.op != nil &&
		(in.op.Kind == lock.Acquire || in.op.Kind == lock.Store) && (in.Until != "" || in.For > shortFreeze)
}

// deliver lets the reply go on and keeps what comes after it.
func (e *Engine) deliver(in *injection) {
	in.later = newGate()
	for _, c := range in.actor.conns {
		c.later.Store(in.later)
	}
	e.delivering.Add(1)
}

// Delivered tells that the reply of an op was handed over, to a client that may have gone (D is 0 then):
// a freeze may have waited for it.
func (e *Engine) Delivered(op *lock.Op, now lock.Instant) {
	if e.delivering.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, in := range e.undelivered() {
		switch {
		case in.op != op:
		case op.D == 0:
			e.gaveUp(in, now)
		default:
			in.delivered = true
			e.delivering.Add(-1)
			e.order(Order{Freeze: in})
		}
	}
}

// left ends the freezes whose grant a connection can take no more.
func (e *Engine) left(c *conn, now lock.Instant) {
	for _, in := range e.undelivered() {
		if in.conn == c {
			e.gaveUp(in, now)
		}
	}
}

// undelivered lists the freezes that wait until a grant was handed over.
func (e *Engine) undelivered() (out []*injection) {
	for _, in := range e.active {
		if in.later != nil && !in.delivered {
			out = append(out, in)
		}
	}
	return out
}

func (e *Engine) gaveUp(in *injection, now lock.Instant) {
	e.delivering.Add(-1)
	e.end(in, now, "client-gave-up", "the client closed the connection before it had its grant")
}

// readWithin is how long a process is given to read its grant before it is frozen all the same.
const readWithin = time.Second

// awaitRead returns when the client has read all that was sent to it, as far as can be seen.
func (in *injection) awaitRead(ctx context.Context) {
	unread := in.conn.peer.Unread
	if unread == nil || !in.delivered {
		return
	}
	enough := time.Now().Add(readWithin)
	for ctx.Err() == nil && unread() && time.Now().Before(enough) {
		time.Sleep(time.Millisecond)
	}
}
