package proxy

import (
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// An Order is something that the engine wants done. Exactly one field is set.
type Order struct {
	Freeze   *injection // stop the owner, then call Frozen
	Thaw     *injection // let it go, then call Thawed
	Release  *injection // a stall is over: see whether the client is still there, then call Released
	Baseline string     // read the invariants of this table, then call BaselineRead
}

// An injection is a decision that is being carried out.
type injection struct {
	fault.Decision
	conn      *conn // nil for a tick until its target's connection is chosen
	op        *lock.Op
	phase     fault.Phase
	actor     *Actor
	owner     *Owner
	gate      *Gate
	at        lock.Instant // decided
	confirmed lock.Instant // the kernel said that it is stopped, or the stall began
	ends      lock.Instant // when to let go; 0 while not confirmed
	ordered   bool         // its end has been ordered
	behind    []*Gate      // thaws that this freeze has to wait for
	over      *Gate        // opens when a freeze has been thawed, or never came about
	section   bool         // the process was in a critical section
	thaw      Thawer
}

// inject applies a decision; e.mu is held.
func (e *Engine) inject(in *injection, now lock.Instant) *Gate {
	in.actor, in.owner = in.conn.actor, in.conn.peer.Owner
	if in.Act == fault.Freeze {
		return e.freeze(in)
	}
	return e.stall(in, now)
}

func (e *Engine) stall(in *injection, now lock.Instant) *Gate {
	in.confirmed = now
	in.ends = now.Add(in.For)
	if in.For <= 0 {
		e.finish(in, now, "landed", "")
		return nil
	}
	in.gate = newGate()
	for _, c := range e.reach(in) {
		if g := c.stall.Load(); g == nil || g.Opened() {
			c.stall.Store(in.gate)
		}
	}
	e.active = append(e.active, in)
	e.kick()
	return in.gate
}

// reach lists the connections that a stall holds.
func (e *Engine) reach(in *injection) []*conn {
	if in.Scope == fault.ScopeConn {
		return []*conn{in.conn}
	}
	out := make([]*conn, 0, len(in.actor.conns))
	for _, c := range in.actor.conns {
		out = append(out, c)
	}
	return out
}

func (e *Engine) freeze(in *injection) *Gate {
	in.gate, in.over = newGate(), newGate()
	for _, a := range e.active {
		if a.Act == fault.Freeze && a.ordered {
			in.behind = append(in.behind, a.over)
		}
	}
	in.actor.held = in
	e.active = append(e.active, in)
	e.order(Order{Freeze: in})
	return in.gate
}

// Frozen reports what came of a Freeze order at the instant now. The reply that
// waited for it is let go: it reaches a process that is already stopped.
func (e *Engine) Frozen(in *injection, t Thawer, err error, now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.end(in, now, "refused", err.Error())
		return
	}
	in.thaw = t
	in.confirmed = now
	in.ends = now.Add(in.For)
	if in.phase == fault.After || in.op == nil {
		in.gate.Open()
	}
	e.kick()
}

// Thawed reports the end of a Thaw order. note is what was noticed, such as a
// SIGCONT that somebody else sent.
func (e *Engine) Thawed(in *injection, note string, err error, now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
		e.end(in, now, "landed", err.Error())
	case note != "":
		e.end(in, now, "cut short", note)
	default:
		e.end(in, now, "landed", "")
	}
}

// end takes an injection off the list and opens its gate; e.mu is held.
func (e *Engine) end(in *injection, now lock.Instant, outcome, reason string) {
	for i, a := range e.active {
		if a == in {
			e.active = append(e.active[:i], e.active[i+1:]...)
			break
		}
	}
	if in.actor.held == in {
		in.actor.held = nil
	}
	in.gate.Open()
	if in.over != nil {
		in.over.Open()
	}
	e.finish(in, now, outcome, reason)
}

func (e *Engine) finish(in *injection, now lock.Instant, outcome, reason string) {
	e.plan.Ended(in.Injection, now)
	h := history.Injection{
		ID: in.Injection, Rule: in.RuleText, Name: in.Name, Matched: in.Matched,
		Effect: string(in.Act), Phase: string(in.phase), Scope: string(in.Scope),
		Actor: in.actor.Label, For: in.For, At: in.at, Confirmed: in.confirmed, Ended: now,
		Outcome: outcome, Reason: reason, Section: in.section,
	}
	if in.op != nil {
		h.Op = in.op.Seq
	}
	e.finished = append(e.finished, h)
	e.kick()
}

// Released reports the end of a Release order; gone, that the client had closed
// its end before the stall was over, which makes the stall say nothing.
func (e *Engine) Released(in *injection, gone bool, now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if gone {
		e.end(in, now, "client-gave-up", "the client closed the connection during the stall")
		return
	}
	e.end(in, now, "landed", "")
}

// NextDeadline returns the next instant at which Advance has something to do,
// and false if there is none yet.
func (e *Engine) NextDeadline(now lock.Instant) (lock.Instant, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	next, ok := e.plan.NextTick(now)
	for _, in := range e.active {
		if in.ends == 0 || in.ordered {
			continue
		}
		if !ok || in.ends < next {
			next, ok = in.ends, true
		}
	}
	return next, ok
}

// Advance does what is due at the instant now: ends stalls, orders thaws, ticks.
func (e *Engine) Advance(now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
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
	next, ok := e.plan.NextTick(now)
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
		in.section = len(e.ledger.OpenTerms(a.Label)) > 0
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

// ReleaseAll opens every gate and orders every thaw: the end of the run.
func (e *Engine) ReleaseAll(now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, in := range append([]*injection(nil), e.active...) {
		switch {
		case in.Act != fault.Freeze:
			e.end(in, now, "cut short", "lockfaultd was stopped")
		case in.ends != 0 && !in.ordered:
			e.letGo(in, now)
		}
	}
	for _, g := range e.baselines {
		if g != nil {
			g.Open()
		}
	}
}

// Idle reports whether nothing is being held, frozen or thawed.
func (e *Engine) Idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.active) == 0 && len(e.orders) == 0 && len(e.finished) == 0
}

// Take returns the orders and the ended injections since the last call.
func (e *Engine) Take() ([]Order, []history.Injection) {
	e.mu.Lock()
	defer e.mu.Unlock()
	orders, ended := e.orders, e.finished
	e.orders, e.finished = nil, nil
	return orders, ended
}

// Wake returns a channel that receives when Take or NextDeadline has news.
func (e *Engine) Wake() <-chan struct{} { return e.wake }

func (e *Engine) order(o Order) {
	e.orders = append(e.orders, o)
	e.kick()
}

func (e *Engine) kick() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Await makes the first write to each table wait until BaselineRead, which is
// told of it by an Order.
func (e *Engine) Await(tables ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range tables {
		e.baselines[t] = nil
	}
}

// baseline returns the gate of the table that an op writes, if its first value
// is still to be read; e.mu is held.
func (e *Engine) baseline(op *lock.Op) *Gate {
	if len(e.baselines) == 0 || op.Kind != lock.Write || op.SQL == nil {
		return nil
	}
	g, awaited := e.baselines[op.SQL.Table]
	if !awaited {
		return nil
	}
	if g == nil {
		g = newGate()
		e.baselines[op.SQL.Table] = g
		e.order(Order{Baseline: op.SQL.Table})
	}
	return g
}

// BaselineRead lets the writes to a table go on. With again, the next one waits
// too: there was nothing to read yet.
func (e *Engine) BaselineRead(table string, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.baselines[table]; g != nil {
		g.Open()
	}
	delete(e.baselines, table)
	if again {
		e.baselines[table] = nil
	}
}
