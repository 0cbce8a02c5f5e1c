package proxy

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/schedule"
)

// Keep has a book kept of what is decided, and its schedule repeated if it has one. It is called once,
// before the first session.
func (e *Engine) Keep(b *schedule.Book) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.book = b
	if b.Repeats() {
		e.plan.Repeat(func(rule int, number int64, actors []string) string { return b.Tick(rule, int(number), actors) })
	}
}

// Diverged returns the first thing that was not as in the schedule which is repeated, or nil.
func (e *Engine) Diverged() *schedule.Divergence {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.book == nil {
		return nil
	}
	return e.book.Diverged()
}

// Steps returns what was decided; a step of a repeated schedule that has not come diverges now.
func (e *Engine) Steps() []schedule.Step {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.book == nil {
		return nil
	}
	return e.book.Close()
}

// Unkept returns how many decisions were too many to be among the Steps.
func (e *Engine) Unkept() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.book == nil {
		return 0
	}
	return e.book.Unkept()
}

// place tells the book of a moment, and returns which rule is due there.
func (e *Engine) place(c *conn, phase fault.Phase, op *lock.Op) (schedule.Place, int) {
	if e.book == nil {
		return schedule.Place{}, 0
	}
	ev := schedule.Event{Actor: c.actor, Op: op, At: string(phase)}
	switch {
	case op.Term.Sure():
		ev.Lock, ev.Term = e.subject(op)
	case op.Key != "":
		ev.Lock = e.ledger.LockOf(op)
	}
	p, due := e.book.Moment(ev)
	e.tellDiverged()
	return p, due
}

// entered writes an injection into the book.
func (e *Engine) entered(in *injection, p schedule.Place) {
	if e.book == nil {
		return
	}
	f := schedule.Fault{Rule: in.Rule + 1, Do: string(in.Act), Scope: string(in.Scope), Until: string(in.Until)}
	if f.For = schedule.Duration(in.For); in.Until != "" {
		f.For, f.Timeout = 0, f.For
	}
	in.entry = e.book.Decided(p, f)
	e.tellDiverged()
}

// struck writes an injection of a tick into the book.
func (e *Engine) struck(in *injection) {
	if e.book != nil {
		e.entered(in, e.book.Struck(in.Rule+1, int(in.Tick), in.Decision.Actor))
	}
}

// passed tells the book that nothing was decided at a moment.
func (e *Engine) passed(p schedule.Place) {
	if e.book != nil {
		e.book.Passed(p, e.plan.Barred())
		e.tellDiverged()
	}
}

// cameTo tells the book how an injection has ended.
func (e *Engine) cameTo(in *injection, outcome string) {
	if in.entry != nil {
		e.book.Ended(in.entry, outcome)
		e.tellDiverged()
	}
}

// tellDiverged wakes the runner, once.
func (e *Engine) tellDiverged() {
	if !e.strayed && e.book.Diverged() != nil {
		e.strayed = true
		e.kick()
	}
}

// ID implements schedule.Actor.
func (a *Actor) ID() string { return a.Label }

// Called implements schedule.Actor: what the process calls itself on its oldest connection that has a
// name, and the program that it is.
func (a *Actor) Called() (name, program string) {
	program = "?"
	if a.owner.Exe != "" {
		program = path.Base(a.owner.Exe)
	}
	ids := make([]uint64, 0, len(a.conns))
	for id := range a.conns {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if of := a.conns[id].peer.Name; of != nil && a.keeps(of()) {
			return of(), program
		}
	}
	return "", program
}

// keeps reports whether a name is one that the process will have in another run, too.
func (a *Actor) keeps(name string) bool {
	return !lock.AddressOnly(name) && (a.owner.PID == 0 || !strings.Contains(name, strconv.Itoa(a.owner.PID)))
}
