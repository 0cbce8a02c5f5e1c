package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// Why a run's rules cannot be changed.
var (
	ErrFixed     = errors.New("the rules of this run cannot be changed")
	ErrScheduled = errors.New("a schedule is repeated, which says all that happens: its rules cannot be changed")
	ErrOver      = errors.New("the run is about to end: no rule acts any more, and nothing is frozen")
)

// ErrNoActor says that no process with a connection has a label.
var ErrNoActor = errors.New("no process with that label is connected")

// Alters has rules come and go, and the engine keep what is only for those who look on. It is called once,
// before the first session.
func (e *Engine) Alters() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rules, e.alters = true, true
}

// changes returns why nothing can be changed, or nil.
func (e *Engine) changes() error {
	switch {
	case !e.alters:
		return ErrFixed
	case e.book != nil && e.book.Repeats():
		return ErrScheduled
	case e.over:
		return ErrOver
	}
	return nil
}

// Alter changes the plan. What rules have begun goes on. Sessions that are open follow from their next message on.
func (e *Engine) Alter(change func(p *fault.Plan) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.changes(); err != nil {
		return err
	}
	e.forgetSignals() // a rule may be off since its time or its number was over
	err := change(e.plan)
	e.forgetSignals()
	e.kick() // there may be another deadline
	return err
}

// Plan shows the plan, which is only to be read, as of an instant.
func (e *Engine) Plan(now lock.Instant, show func(p *fault.Plan)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.plan.Expire(now)
	show(e.plan)
}

// A ByHand is a freeze that somebody asked for.
type ByHand struct {
	ID uint64 // of the injection

	engine *Engine
	in     *injection
}

// Freeze freezes the process of a label, as a rule would. Its error says why it does not.
func (e *Engine) Freeze(label string, scope fault.Scope, length time.Duration, now lock.Instant) (*ByHand, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.changes(); err != nil {
		return nil, err
	}
	a := e.labelled()[label]
	if a == nil || len(a.conns) == 0 {
		return nil, ErrNoActor
	}
	d, err := e.plan.Hand(fault.Moment{Actor: label, Freezable: a.owner.Reason == "", Cannot: a.owner.Reason}, length, scope)
	if err != nil {
		return nil, err
	}
	in := &injection{Decision: d, conn: a.anyConn(), phase: fault.After, at: now, begun: newGate()}
	in.section = e.inSection(a, d, in.conn)
	e.inject(in, now)
	return &ByHand{d.Injection, e, in}, nil
}

// Begun waits until the process is stopped, and returns until when it will be. Its error says why it is not.
func (h *ByHand) Begun(ctx context.Context) (lock.Instant, error) {
	select {
	case <-h.in.begun.Done():
	case <-ctx.Done():
		return 0, fmt.Errorf("freeze: %w", ctx.Err())
	}
	h.engine.mu.Lock()
	defer h.engine.mu.Unlock()
	if h.in.confirmed == 0 {
		return 0, errors.New(h.in.refused)
	}
	return h.in.ends, nil
}

// Thaw lets go the process of a label, or every one that is frozen if that is empty, and returns how many freezes that ends.
// One that is about to be frozen is let go as soon as it is. What was frozen with its cgroup is let go with that.
func (e *Engine) Thaw(label string, now lock.Instant) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.labelled()[label]
	if label != "" && (a == nil || len(a.conns) == 0 && a.held == nil) {
		return 0, ErrNoActor
	}
	n := 0
	for _, in := range e.freezes() {
		if (label == "" || in.freezes(a)) && e.cutShort(in, thawed, now) {
			n++
		}
	}
	e.kick()
	return n, nil
}

// freezes lists those that are not being thawed yet.
func (e *Engine) freezes() (out []*injection) {
	for _, in := range e.active {
		if in.Act == fault.Freeze && !in.ordered {
			out = append(out, in)
		}
	}
	return out
}

// Stop disarms all rules and lets everything go that they hold, in the order in which it began, in one step: nothing
// is injected between the one and the other. It returns how much that was.
func (e *Engine) Stop(now lock.Instant) (rules, held int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, u := range e.plan.Uses() {
		if u.Armed {
			rules++
		}
	}
	e.plan.DisarmAll()
	clear(e.signals)
	held = e.letAllGo(stopped, atStop, now)
	e.kick()
	return rules, held
}
