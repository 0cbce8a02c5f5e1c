package proxy

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// Signal tells each gate that waits for a signal of that name, and returns how many did and how many of
// those it opened. One that nobody waits for is kept for the first gate that comes to: who gives it
// cannot know whether the gate has been reached. Names that no rule has should not come here.
func (e *Engine) Signal(name string, now lock.Instant) (heard, opened int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, in := range e.active {
		if in.wait == nil || !in.wait.Waits(fault.OfSignal(name)) {
			continue
		}
		heard++
		in.wait.Signal(name, now)
		if e.opened(in, now); in.opened != 0 {
			opened++
		}
	}
	if heard == 0 {
		e.signals[name] = true
	}
	return heard, opened
}

// Signals lists the names of the signals that armed rules wait for, and gates that are shut, sorted.
func (e *Engine) Signals() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := e.plan.Signals()
	for _, in := range e.active {
		if in.wait != nil {
			names = append(names, in.wait.Signals()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Waiting returns how many gates wait for a signal, and whether it is kept for the next that will.
func (e *Engine) Waiting(name string) (gates int, kept bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, in := range e.active {
		if in.wait != nil && in.wait.Waits(fault.OfSignal(name)) {
			gates++
		}
	}
	return gates, e.signals[name]
}

// forgetSignals drops those that were kept for rules which are gone or off; e.mu is held.
func (e *Engine) forgetSignals() {
	if len(e.signals) == 0 {
		return
	}
	names := e.plan.Signals()
	for name := range e.signals {
		if !slices.Contains(names, name) {
			delete(e.signals, name)
		}
	}
}

// signalled gives a new gate the signals that were kept for it; e.mu is held.
func (e *Engine) signalled(in *injection) {
	for name := range e.signals {
		if in.wait.Waits(fault.OfSignal(name)) {
			delete(e.signals, name)
			in.wait.Signal(name, in.at)
		}
	}
}
