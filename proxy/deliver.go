package proxy

import (
	"context"
	"fmt"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// shortFreeze is how long a freeze may last whose reply waits for it in the socket: a longer one could
// outlast the client's read timeout, which would decide what comes of it.
const shortFreeze = time.Second

// readWithin is how long the client may take to make room for its grant, and then to read it, before it
// is frozen all the same.
const readWithin = time.Second

// delivers reports whether a freeze is one after a grant that the process is to have read: it is
// delivered first, and what the process sends from then on waits.
func (in *injection) delivers() bool {
	return in.Act == fault.Freeze && in.phase == fault.After &&
		(in.kind == lock.Acquire || in.kind == lock.Store) && (in.Until != "" || in.For > shortFreeze)
}

// deliver lets the reply go on and keeps what comes after it.
func (e *Engine) deliver(in *injection, now lock.Instant) {
	in.later, in.by = newGate(), now.Add(readWithin)
	for _, c := range in.actor.conns {
		c.later.Store(in.later)
	}
	e.delivering.Add(1)
	e.kick()
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
			e.leave(in, closedIt, now)
		default:
			e.handedOver(in)
		}
	}
}

// handedOver freezes a process whose grant has gone on, or will not.
func (e *Engine) handedOver(in *injection) {
	in.delivered = true
	e.delivering.Add(-1)
	e.order(Order{Freeze: in})
}

// overdue freezes those whose grant does not go on: the client reads nothing, and may never.
func (e *Engine) overdue(now lock.Instant) {
	for _, in := range e.undelivered() {
		if in.by <= now {
			in.unread = fmt.Sprintf("its grant could not be handed over within %s, and it was frozen all the same", readWithin)
			e.handedOver(in)
		}
	}
}

// left ends the freezes whose grant a connection can take no more.
func (e *Engine) left(c *conn, now lock.Instant) {
	for _, in := range e.undelivered() {
		if in.conn == c {
			e.leave(in, closedIt, now)
		}
	}
}

// undelivered lists the freezes that wait until a grant was handed over.
func (e *Engine) undelivered() (out []*injection) {
	if e.delivering.Load() == 0 {
		return nil
	}
	for _, in := range e.active {
		if in.later != nil && !in.delivered {
			out = append(out, in)
		}
	}
	return out
}

// leave ends a freeze whose client did not wait for its grant.
func (e *Engine) leave(in *injection, how string, now lock.Instant) {
	e.delivering.Add(-1)
	e.end(in, now, clientGaveUp, how+" before it had its grant")
}

// awaitRead returns when the client has read all that was sent to it, or what is to be said of it if not.
func (in *injection) awaitRead(ctx context.Context) {
	peer := in.conn.peer
	if in.later == nil || in.unread != "" || peer.Unread == nil {
		return
	}
	for enough := time.Now().Add(readWithin); ctx.Err() == nil && !peer.gone(); time.Sleep(time.Millisecond) {
		unread, err := peer.Unread()
		if err == nil && !unread {
			return
		}
		if time.Now().After(enough) {
			in.unread = whyUnread(err)
			return
		}
	}
}

func whyUnread(err error) string {
	if err != nil {
		return fmt.Sprintf("whether it had read its grant could not be told, and it was frozen all the same: %v", err)
	}
	return fmt.Sprintf("it had not read its grant within %s, and was frozen all the same", readWithin)
}
