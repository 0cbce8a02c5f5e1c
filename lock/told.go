package lock

import "slices"

// Told takes in an op that comes to be known when others have been seen since. That
// is of use for a release which tells whose it is by its token: whatever was granted
// meanwhile, it is that term's, and ends it.
func (l *Ledger) Told(op *Op) {
	k := l.known(IDOf(op))
	if op.Kind != Release || !op.names() || op.Depth > 0 || k == nil || l.Ignores(op) {
		return
	}
	t := k.ofToken(op)
	if t == nil || t.Release != nil || op.Outcome != Done && op.Outcome != NotHeld {
		return
	}
	op.Term = Attribution{ID: t.ID, Confidence: 1}
	l.apart(t, op)
	l.asked(t, op)
	l.gave(k, op, t)
}

// apart takes back what was made of a term that seemed to be held: what its process
// was granted once its release had been answered does not lie within it, and shows no
// other task.
func (l *Ledger) apart(t *Term, op *Op) {
	a := l.actors[t.Actor]
	if a == nil {
		return
	}
	for _, o := range a.open {
		if o.outer == t && o.Grant.A >= op.R {
			o.outer = t.outer
		}
	}
	if t.EndBy == Superseded && t.End >= op.R {
		a.left = without(a.left, t)
	}
}

// tasks reports whether the process is taken to have several.
func (a *actorState) tasks() bool { return a.several || len(a.left) > 0 }

// leave notes that a term was superseded whose release was not asked for.
func (a *actorState) leave(t *Term) {
	a.left = append(a.left, t)
	if len(a.left) > maxLeft {
		a.left, a.several = a.left[1:], true
	}
}

// back notes that the release of a term is asked for: if it had been left, there was
// another task that went on in it.
func (a *actorState) back(t *Term) {
	a.several = a.several || slices.Contains(a.left, t)
	a.left = without(a.left, t)
}
