package proxy

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// NextDeadline returns the next instant at which Advance has something to do,
// and false if there is none yet.
func (e *Engine) NextDeadline(now lock.Instant) (lock.Instant, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next, ok := e.nextTick(now)
	for _, in := range e.undelivered() {
		if !ok || in.by < next {
			next, ok = in.by, true
		}
	}
	for _, in := range e.active {
		if in.ends == 0 || in.ordered {
			continue
		}
		due := in.ends
		if end := e.leaseEnd(in); end < due {
			due = end + 1
		}
		if !ok || due < next {
			next, ok = due, true
		}
	}
	if turn := e.nextTurn(); turn != lock.Never && (!ok || turn < next) {
		next, ok = turn, true
	}
	return next, ok
}

// nextTick returns when the plan is to be asked next.
func (e *Engine) nextTick(now lock.Instant) (lock.Instant, bool) {
	if !e.rules {
		return 0, false
	}
	next, ok := e.plan.NextTick(now)
	if end := e.plan.NextExpiry(); end != lock.Never && (!ok || end < next) {
		return end, true
	}
	return next, ok
}

// Advance does what is due at the instant now: ends stalls, orders thaws, ticks.
func (e *Engine) Advance(now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lapse(now)
	e.letTurns(now)
	e.overdue(now)
	for _, in := range e.due(now) {
		if in.Act == fault.Freeze {
			e.letGo(in, now)
		} else {
			in.ordered = true
			e.order(Order{Release: in})
		}
	}
	e.tick(now)
}

// letGo orders a thaw. From here on the process may be frozen anew, since it
// may run, and send, before the thaw has been reported; that freeze then waits
// for the report.
func (e *Engine) letGo(in *injection, now lock.Instant) {
	in.ordered = true
	in.actor.held = nil
	e.plan.Ended(in.Injection, now)
	e.order(Order{Thaw: in})
}

func (e *Engine) due(now lock.Instant) []*injection {
	var out []*injection
	for _, in := range e.active {
		if in.ends != 0 && in.ends <= now && !in.ordered {
			out = append(out, in)
		}
	}
	return out
}

func (e *Engine) tick(now lock.Instant) {
	next, ok := e.nextTick(now)
	if !ok || next > now {
		return
	}
	byLabel := map[string]*Actor{}
	var labels []string
	for _, a := range e.actors {
		if a.Label != "" && len(a.conns) > 0 && a.freezable() {
			byLabel[a.Label] = a
			labels = append(labels, a.Label)
		}
	}
	for _, d := range e.plan.Tick(now, labels) {
		a := byLabel[d.Actor]
		if d.Act == fault.Pass || a == nil {
			continue
		}
		in := &injection{Decision: d, conn: a.anyConn(), phase: fault.After, at: now}
		in.section = e.inSection(a, d, in.conn)
		e.struck(in)
		e.inject(in, now)
	}
}

func (a *Actor) anyConn() *conn {
	var best *conn
	for _, c := range a.conns {
		if best == nil || c.id < best.id {
			best = c
		}
	}
	return best
}

// Disarm lets everything go and no rule act any more: the end of the run, or
// of the patience of whoever interrupts it. A freeze that is being confirmed
// ends as soon as it is. What cannot be taken back is done: a reset, which takes
// no time, and what a server has been asked to do, for which nobody waits.
func (e *Engine) Disarm(now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rules, e.over = false, true
	e.letAllGo(tooSoon, atEnd, now)
	for _, g := range e.baselines {
		if g != nil {
			g.Open()
		}
	}
	e.kick()
}

// letAllGo ends what goes on before its time, in the order in which it began. It returns how many that were.
func (e *Engine) letAllGo(why, turns string, now lock.Instant) (n int) {
	e.unsettle(turns, now, func(*settling) bool { return true })
	for _, in := range slices.Clone(e.active) {
		if e.cutShort(in, why, now) {
			n++
		}
	}
	return n
}

// cutShort ends an injection before its time, and reports whether it did: not where it cannot be taken back, or ends already.
func (e *Engine) cutShort(in *injection, why string, now lock.Instant) bool {
	if in.gate.cut != nil || in.ordered || in.early != "" {
		return false
	}
	in.early = why
	switch {
	case in.deed != nil:
		e.callOff(in, now)
	case in.Act != fault.Freeze:
		e.end(in, now, "cut short", in.early)
	case in.later != nil && !in.delivered:
		e.delivering.Add(-1)
		e.end(in, now, "cut short", in.early)
	case in.ends == 0:
		in.cancelled = true
	default:
		e.letGo(in, now)
	}
	return true
}
