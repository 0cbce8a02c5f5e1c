package proxy

import (
	"context"
	"errors"
	"slices"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// errCut is that a rule has reset both connections of a session.
var errCut = errors.New("reset by a rule")

// cut has both connections of a session reset where a gate would have its message wait; e.mu is held.
func (e *Engine) cut(in *injection) *Gate {
	in.gate = newGate()
	in.gate.cut = in
	e.hold(in)
	return in.gate
}

// sends reports whether the message at hand goes on before the connections are reset.
func (in *injection) sends() bool { return in.Act == fault.Reset && in.At == fault.After }

// Cut tells that the connections were reset at the instant now; gone, that the client had closed
// its end before, so that it never knew; unsent, why what was to go on before could not be sent.
func (e *Engine) Cut(in *injection, gone bool, unsent error, now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.active, in) {
		return
	}
	if gone {
		e.end(in, now, "client-gave-up", "the client closed the connection before it was reset")
		return
	}
	in.confirmed = now
	said := ""
	if unsent != nil {
		said = "the upstream connection had broken before: " + unsent.Error()
	}
	e.end(in, now, "landed", said)
}

// uncut ends what was to reset a session that has ended without it.
func (e *Engine) uncut(c *conn, now lock.Instant) {
	for _, in := range slices.Clone(e.active) {
		if in.conn == c && in.gate.cut != nil {
			e.end(in, now, "cut short", "the connection ended before it was reset")
		}
	}
}

// lastOf returns the last step of a session that is reset at the mark at hand. From then on nothing is
// looked at, in either direction: what the server says until the reset is as lost as what it says later.
func (s *Session) lastOf(f *flow, g *Gate, now lock.Instant) Step {
	s.over = newGate()
	if g.cut.sends() {
		return s.last(f, g, now)
	}
	return f.cut(f.marks[0].Start, Step{Gate: g})
}

// last lets the mark at hand go on, with what else its message holds and what was read up to the
// next one, and nothing behind that.
func (s *Session) last(f *flow, g *Gate, now lock.Instant) Step {
	start := f.marks[0].Start
	s.pass(f, f.marks[0], now)
	f.marks = f.marks[1:]
	for len(f.marks) > 0 && f.marks[0].Start == start && f.marks[0].Kind == wire.Request {
		if m := f.marks[0]; s.engine.Cares(m.Op) {
			s.engine.Request(s.conn, m.Op, false, now)
		}
		s.pass(f, f.marks[0], now)
		f.marks = f.marks[1:]
	}
	f.known, f.decided = false, false
	end := f.clear
	if len(f.marks) > 0 {
		end = f.marks[0].Start
	}
	return f.cut(end, Step{Gate: g})
}

// sever takes the last step of a session: it forwards what is to go on, and resets both connections, the server's
// first, once each has what was written to it.
func (d *driver) sever(ctx context.Context, y *way, step Step, buf []byte) error {
	gone := d.conn.peer.gone()
	if ctx.Err() != nil {
		return errCut // the session ends by itself
	}
	unsent := y.last(buf[:step.Forward])
	if step.Report {
		d.record(y.dir)
	}
	settle(ctx, d.client)
	settle(ctx, d.upstream)
	if ctx.Err() != nil && !gone {
		return errCut // to write to one that has gone may end the session, too
	}
	// Both before either is closed: the other direction closes what it finds at its end.
	resets(d.client)
	resets(d.upstream)
	// Told before anybody can see it: for a command that ends by it, the run is over.
	d.session.engine.Cut(step.Gate.cut, gone, unsent, d.clock())
	transport(d.upstream).Close()
	transport(d.client).Close()
	d.halt()
	return errCut
}

// last passes on what comes before a reset. The other direction does not hear of it if to takes nothing any more: it
// would end the session before the reset.
func (y *way) last(b []byte) error {
	if y.dir == ToUpstream && len(b) > 0 {
		return y.out.write(b)
	}
	_ = y.write(b)
	return nil
}
