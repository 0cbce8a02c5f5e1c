package proxy

import (
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// Vain returns the waits for what cannot come about, or as it looks will not, that are new since the
// last call.
func (e *Engine) Vain() []fault.Vain {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.vain
	e.vain = nil
	return out
}

// vainly takes over what the plan has found.
func (e *Engine) vainly() {
	if found := e.plan.Vain(); len(found) > 0 {
		e.vain = append(e.vain, found...)
		e.kick()
	}
}

// early tells a gate that waits for a lease's end that the lock was given back before, and ends it.
func (e *Engine) early(in *injection, op *lock.Op, of lock.TermID, now lock.Instant) {
	if op.Kind != lock.Release || op.Outcome != lock.Done || of == 0 || of != in.wait.Own() {
		return
	}
	if t := e.ledger.Term(of); t == nil || t.Open() {
		return
	}
	in.wait.GaveBack(op.Session)
	if in.wait.Hopeless() && in.confirmed != 0 {
		in.ends = now
	}
	e.kick()
}

// settles reports whether an injection may end as soon as it has begun: its gate is open, or never will be.
func (in *injection) settles() bool { return in.opened != 0 || in.wait != nil && in.wait.Hopeless() }

// crowd says of a freeze that waits for others at a lock if all who are known to want that run in what is
// frozen: they cannot come while it is. Others may come that nobody knows yet, so it waits all the same.
func (e *Engine) crowd(in *injection) {
	if in.Act != fault.Freeze || !in.wait.NeedsOthers() {
		return
	}
	session, own, holders := uint64(0), in.conn.id, e.holders(in.wait.Lock())
	if t := e.ledger.Term(in.wait.Own()); t != nil {
		own = t.Session
	}
	for label, a := range e.labelled() {
		refused := e.ledger.Refused(label, in.wait.Lock())
		switch {
		case !in.freezes(a) && (refused != nil || holders[label]):
			return
		case in.freezes(a) && refused != nil && refused.Session != own:
			session = refused.Session
		}
	}
	if session != 0 {
		in.wait.Crowded(session)
		e.vain = append(e.vain, fault.Vain{At: in.at, Rule: in.RuleText, Name: in.Matched, Why: in.wait.Reason()})
	}
}

// labelled are the actors that have a label, by it.
func (e *Engine) labelled() map[string]*Actor {
	out := make(map[string]*Actor, len(e.actors))
	for _, a := range e.actors {
		if a.Label != "" {
			out[a.Label] = a
		}
	}
	return out
}

// holders are the processes that are known to have had a lock.
func (e *Engine) holders(id lock.LockID) map[string]bool {
	out := map[string]bool{}
	for _, t := range e.ledger.Terms() {
		if t.Lock == id {
			out[t.Actor] = true
		}
	}
	return out
}

// freezes reports whether a freeze stops an actor.
func (in *injection) freezes(a *Actor) bool {
	return a == in.actor || in.Scope == fault.ScopeCgroup && a.owner.Cgroup != "" && a.owner.Cgroup == in.owner.Cgroup
}
