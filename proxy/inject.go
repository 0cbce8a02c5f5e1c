package proxy

import (
	"cmp"
	"strings"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/schedule"
)

// An Order is something that the engine wants done. Exactly one field is set.
type Order struct {
	Freeze   *injection // stop the owner, then call Frozen
	Thaw     *injection // let it go, then call Thawed
	Release  *injection // a stall is over: see whether the client is still there, then call Released
	Deed     *injection // do to a server what a rule assumes, then call Did
	Baseline string     // read the invariants of this table, then call BaselineRead
}

// An injection is a decision that is being carried out.
type injection struct {
	fault.Decision
	conn      *conn // nil for a tick until its target's connection is chosen
	op        *lock.Op
	kind      lock.Kind // of the op, as rules see it
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
	cancelled bool         // it is to end as soon as it has begun
	early     string       // why it ends before its time; "": it does not
	begun     *Gate        // of what is done by hand: opens when it is known whether it has begun
	refused   string       // then: why it has not
	section   bool         // the process was in a critical section
	wait      *fault.Wait  // nil: it lasts For
	later     *Gate        // what its process sends after the grant waits here; nil: the grant itself waits
	delivered bool         // the grant has gone on, or was waited for long enough
	by        lock.Instant // how long that is
	unread    string       // why it is not known that the client has read its grant
	gaveUp    string       // how the client gave up on the request while it was held; "": it did not
	opened    lock.Instant // its gate's conditions had come about; 0: they have not
	outlived  bool         // another was granted the lock, so that the lease is over
	settled   bool         // the order behind it has been fixed
	thaw      Thawer
	deed      *deed           // of what is done to a server
	entry     *schedule.Entry // in the book; nil: none is kept
}

// inject applies a decision; e.mu is held.
func (e *Engine) inject(in *injection, now lock.Instant) *Gate {
	in.actor, in.owner = in.conn.actor, in.conn.peer.Owner
	e.listen(in)
	g := e.begin(in, now)
	if in.wait != nil {
		e.opened(in, now) // a signal may have been kept for it
	}
	return g
}

func (e *Engine) begin(in *injection, now lock.Instant) *Gate {
	switch in.Act {
	case fault.Freeze:
		return e.freeze(in, now)
	case fault.Drop, fault.Reset:
		return e.cut(in)
	case fault.Lose, fault.Kill:
		return e.do(in, now)
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
		if g := c.stall.Load(); g == nil || g.Opened() || c.stalled < in.ends {
			c.stall.Store(in.gate)
			c.stalled = in.ends
		}
	}
	e.hold(in)
	e.kick()
	return in.gate
}

// reach lists the connections that a stall holds in both directions. What a hold keeps waits at its gate
// alone.
func (e *Engine) reach(in *injection) []*conn {
	switch {
	case in.Act == fault.Hold:
		return nil
	case in.Scope == fault.ScopeConn:
		return []*conn{in.conn}
	}
	out := make([]*conn, 0, len(in.actor.conns))
	for _, c := range in.actor.conns {
		out = append(out, c)
	}
	return out
}

func (e *Engine) freeze(in *injection, now lock.Instant) *Gate {
	in.gate, in.over = newGate(), newGate()
	for _, a := range e.active {
		if a.Act == fault.Freeze && a.ordered {
			in.behind = append(in.behind, a.over)
		}
	}
	in.actor.held = in
	e.hold(in)
	if in.delivers() {
		e.deliver(in, now)
		return nil
	}
	e.order(Order{Freeze: in})
	return in.gate
}

// Frozen reports what came of a Freeze order at the instant now. The reply that
// waited for it is let go: it reaches a process that is already stopped.
func (e *Engine) Frozen(in *injection, t Thawer, err error, now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil && in.gaveUp != "":
		e.end(in, now, clientGaveUp, in.gaveUp)
		return
	case err != nil:
		e.end(in, now, "refused", err.Error())
		return
	}
	in.thaw = t
	in.confirmed = now
	in.ends = now.Add(in.For)
	if in.settles() {
		in.ends = now
	}
	if in.gaveUp != "" {
		in.ends = now
	}
	if in.cancelled {
		e.letGo(in, now)
	}
	if in.begun != nil {
		in.begun.Open()
	}
	if in.phase == fault.After || in.op == nil {
		in.gate.Open()
	}
	e.kick()
}

// Why an injection ends before its time.
const (
	tooSoon = "let go early, since the run or the command was to end"
	thawed  = "thawed by hand"
	stopped = "let go by hand, with all that rules held"
)

// Thawed reports the end of a Thaw order. note is what was noticed, such as a
// SIGCONT that somebody else sent.
func (e *Engine) Thawed(in *injection, note string, err error, now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	outcome, why := "landed", []string{}
	switch {
	case in.gaveUp != "":
		outcome, why = clientGaveUp, []string{in.gaveUp}
	case now < in.ends:
		outcome, why = "cut short", []string{cmp.Or(in.early, tooSoon)}
	case in.shut():
		outcome, why = closed, []string{in.wait.Why()}
	case note != "":
		outcome = "cut short"
	case in.unread != "":
		why = []string{in.unread}
	}
	if note != "" {
		why = append(why, note)
	}
	if err != nil {
		why = append(why, err.Error())
	}
	e.end(in, now, outcome, strings.Join(why, "; "))
}

// shut reports whether it had a gate that has not opened.
func (in *injection) shut() bool { return in.wait != nil && in.opened == 0 }

// end takes an injection off the list and opens its gate; e.mu is held.
func (e *Engine) end(in *injection, now lock.Instant, outcome, reason string) {
	for i, a := range e.active {
		if a == in {
			e.active = append(e.active[:i], e.active[i+1:]...)
			break
		}
	}
	e.holding.Store(int32(len(e.active)))
	if in.actor.held == in {
		in.actor.held = nil
	}
	in.gate.Open()
	if in.later != nil {
		in.later.Open()
	}
	if in.over != nil {
		in.over.Open()
	}
	if in.begun != nil && in.confirmed == 0 {
		in.refused = reason
		in.begun.Open()
	}
	if in.phase == fault.After || outcome == clientGaveUp || outcome == "refused" {
		e.unsettle("", now, func(s *settling) bool { return s.in == in })
	}
	e.finish(in, now, outcome, reason)
}

// side is on which side of its op an injection is done.
func (in *injection) side() fault.Phase {
	if in.Act == fault.Reset {
		return in.At // it was decided before
	}
	return in.phase
}

func (e *Engine) finish(in *injection, now lock.Instant, outcome, reason string) {
	e.plan.Ended(in.Injection, now)
	e.cameTo(in, outcome)
	h := history.Injection{
		ID: in.Injection, Rule: in.RuleText, Name: in.Name, Matched: in.Matched,
		Effect: string(in.Act), Phase: string(in.side()), Scope: string(in.Scope),
		Actor: in.actor.Label, For: in.For, At: in.at, Confirmed: in.confirmed, Ended: now,
		Outcome: outcome, Reason: reason, Section: in.section,
	}
	if in.op != nil {
		h.Op = in.op.Seq
	}
	h.Asked = in.gate != nil && in.gate.cut != nil && !in.section && in.op.Kind == lock.Acquire
	in.account(&h)
	e.finished = append(e.finished, h)
	e.kick()
}

// Released reports the end of a Release order; gone, that the client had closed
// its end before the stall was over, which makes the stall say nothing.
func (e *Engine) Released(in *injection, gone bool, now lock.Instant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if gone {
		in.gaveUp = closedIt
	}
	if in.gaveUp != "" {
		e.end(in, now, clientGaveUp, in.gaveUp+" during the stall")
		return
	}
	if in.shut() {
		e.end(in, now, closed, in.wait.Why())
		return
	}
	e.end(in, now, "landed", "")
}

// Idle reports whether nothing is being held, frozen or thawed.
func (e *Engine) Idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.active) == 0 && len(e.orders) == 0 && len(e.finished) == 0 && len(e.deeds) == 0 && len(e.turned) == 0
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
