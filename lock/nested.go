package lock

import "slices"

// Two locks of one section both own what it writes, and a process that never had
// two sections open at once is as good as one with a single lock. So a term is
// said to lie within another where nothing speaks against their being of one task:
// it was taken on the connection that took the other, or that the other's section
// is known to have used, while that was open.
//
// A process is taken to have several tasks, from then on, when it has two sections
// open that do not lie within each other, when the outer one ends first and the
// process goes on in the inner one, when one section has had two within it (a
// leader's, say, that lasts for many jobs), or when it writes on two connections at
// once. Then what it does under any of its locks is not certain, unless a token, a
// transaction, a session or a trace tells.

// nest finds the section of the same task in which a new term was taken.
func (l *Ledger) nest(a *actorState, conn *connState, t *Term) {
	if a.tasks() || AddressOnly(t.Actor) || len(t.Handed) > 0 {
		return
	}
	var o *Term // the innermost that is the process's own
	for _, p := range a.open {
		if p.alone {
			a.several = true
			return
		}
		if len(p.Handed) == 0 {
			o = p
		}
	}
	if o == nil {
		return
	}
	same := o.Session == t.Session || conn != nil && slices.Contains(conn.used, o)
	if o.inner++; o.Lock == t.Lock || !same || o.inner > 1 {
		a.several = true
		return
	}
	t.outer = o
}

// unnest notes that a section has ended. Two locks may well be released in the
// order in which they were taken, if that is all that the process does meanwhile.
func (a *actorState) unnest(t *Term) {
	for _, o := range a.open {
		if o.outer == t {
			o.alone, o.outer = true, t.outer
		}
	}
}

// acts notes that the process sends a statement: not in a section that outlived the
// one around it, if it has but one task.
func (a *actorState) acts(*Op) {
	for _, o := range a.open {
		a.several = a.several || o.alone
	}
}

// within reports whether a term is one of a section that lies within the other's.
func (l *Ledger) within(t, other *Term) bool {
	for o := l.around1(t); o != nil; o = l.around1(o) {
		if o == other {
			return true
		}
	}
	return false
}

// around1 returns the section around a term's, nil where that is not certain.
func (l *Ledger) around1(t *Term) *Term {
	if a := l.actors[t.Actor]; a == nil || a.tasks() || a.parallel {
		return nil
	}
	return t.outer
}

// requestWrite notes a write in flight.
func (l *Ledger) requestWrite(op *Op) {
	a := l.actor(op.Actor)
	if a.writing[op.Session]++; len(a.writing) > 1 {
		a.parallel = true
	}
}

func (a *actorState) wrote(session uint64) {
	if a.writing[session]--; a.writing[session] <= 0 {
		delete(a.writing, session)
	}
}
