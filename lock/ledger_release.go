package lock

import (
	"cmp"
	"slices"
)

// tells reports whether the op tells which term it is meant for by its token, be it
// only that its client has seen it there.
func (op *Op) tells() bool { return op.names() || op.Racy && op.Token.Known() }

// names reports whether the op acts on the lock only if its token is there.
func (op *Op) names() bool { return op.Compares() || op.Member && op.Token.Known() }

func (l *Ledger) requestRelease(op *Op) {
	if op.All {
		l.releaseAll(op)
		return
	}
	id := IDOf(op)
	if op.tells() {
		l.comparedStore(id, op)
	}
	k := l.known(id)
	if k == nil {
		l.giveUp(op)
		return
	}
	t := l.owner(k, op)
	if t == nil {
		l.giveUp(op)
		return
	}
	op.Term = Attribution{ID: t.ID, Confidence: 1}
	switch {
	case op.Guessed: // that may as well ask how long the lease still is
	case t.Open() && t.Depth-t.steps > 1:
		t.steps++
	default:
		l.asked(t, op)
	}
}

// asked ends the section of a term, whose owner has asked for its release.
func (l *Ledger) asked(t *Term, op *Op) {
	t.Releases++
	t.group.kept()
	if t.Release == nil {
		t.Release, t.ReleaseAt = op, op.A
	}
	if a := l.actors[t.Actor]; a != nil {
		a.back(t)
	}
	l.end(t, op.A, Released)
}

// owner finds whose release or renewal this is: its token says so, or for an
// unguarded one the process's open term of the lock, or else the last that it
// had there. What spans a session is released on that; a process that asks on
// another one means its own all the same.
//
// What a client has read of the key by itself may be another's, from before it took
// the lock: then it means its own.
func (l *Ledger) owner(k *keyState, op *Op) *Term {
	if !op.tells() {
		return k.openOf(op)
	}
	t := k.ofToken(op)
	if !op.names() && (t == nil || !sameClient(t.Session, t.Actor, op)) {
		if own := k.openOf(op); own != nil {
			return own
		}
	}
	return t
}

// openOf returns the open term of the lock that an op's process has, on the op's
// connection before any other.
func (k *keyState) openOf(op *Op) *Term {
	var found *Term
	for _, t := range slices.Backward(k.terms) {
		mine := t.Actor == op.Actor && (op.Actor != "" || t.Session == op.Session)
		switch {
		case t.Span == TxSpan || !mine:
		case t.Session == op.Session:
			return t
		case found == nil:
			found = t
		}
	}
	if t := k.current; found == nil && t != nil && t.Votes != nil && t.Open() && t.Actor == op.Actor {
		return t
	}
	return found
}

// ofToken returns the term of the lock that was granted with the token. Where
// clients share a token it is the client's own, open or not, before any other's; a
// token that another client uses was handed over to it.
func (k *keyState) ofToken(op *Op) *Term {
	var own, open, any *Term
	list := k.byToken[tokenText(op.Token)]
	for _, t := range slices.Backward(list[max(0, len(list)-maxShared):]) {
		mine := t.Session == op.Session || t.Actor == op.Actor && op.Actor != ""
		switch {
		case mine && t.Open():
			return t
		case mine && own == nil:
			own = t
		case t.Open() && open == nil:
			open = t
		case any == nil:
			any = t
		}
	}
	return cmp.Or(own, open, any)
}

func (l *Ledger) replyRelease(op *Op) {
	if op.All {
		l.releasedAll(op)
		return
	}
	k := l.known(IDOf(op))
	own := l.terms[op.Term.ID]
	l.shown(op)
	if k != nil && own != nil {
		k.showsMany(own, op)
	}
	if own != nil && l.stepped(own, op) {
		return
	}
	if own != nil && l.guessed(op) && (op.Outcome == Done || op.Outcome == NotHeld) {
		l.asked(own, op)
	}
	l.gave(k, op, own)
}

// gave notes what a release was answered.
func (l *Ledger) gave(k *keyState, op *Op, own *Term) {
	switch {
	case op.Outcome == NotHeld && own != nil:
		l.found(own, op)
	case op.Outcome == Done && k != nil:
		l.removed(k, op, own)
	}
}

// stepped reports whether a release only took one of several holdings away.
func (l *Ledger) stepped(t *Term, op *Op) bool {
	step := t.steps > 0 && t.Release != op
	if step {
		t.steps--
	}
	switch {
	case op.Outcome == Done && op.Depth > 0:
		t.Depth, t.told = op.Depth, true
		if !t.Open() && t.Release == op {
			l.reopen(t)
		}
		return true
	case !step:
		return false
	case op.Outcome != Done:
		return op.Outcome != NotHeld
	case t.told:
		l.asked(t, op) // the server tells what is left, and nothing was
		return false
	}
	t.Depth--
	t.weakens(op)
	return true
}

// weakens notes that a step gave back what excluded others, where all that is left is
// a reader's.
func (t *Term) weakens(op *Op) {
	switch {
	case op.Shared:
		t.readers = max(0, t.readers-1)
	case t.readers >= t.Depth:
		t.Shared = true
	}
}

// found notes that the owner's release was answered that it held nothing. On
// another connection than its own a lock that spans a session is never found.
func (l *Ledger) found(own *Term, op *Op) {
	if own.Span != LeaseSpan && own.Session != op.Session {
		return
	}
	own.leaseOf(op).denies(op)
	own.settle()
	if own.Lost == nil && own.Release == op && own.Votes == nil {
		own.Lost = op
	}
}

// removed notes what a release took away: the owner's key if it was guarded,
// whatever was there if it was not.
func (l *Ledger) removed(k *keyState, op *Op, own *Term) {
	if own != nil && own.Votes != nil || k.current != nil && k.current.Votes != nil {
		l.unvote(k, op, own)
		return
	}
	gone := k.current
	switch {
	case op.names() || op.spans():
		gone = own
	case gone != nil && gone.Member:
		for _, t := range k.recent {
			t.lose(op)
		}
	}
	if gone == nil || op.spans() && gone.Session != op.Session {
		return
	}
	gone.lose(op)
	l.inTx(op, effect{op: op, lost: gone})
	if k.current == gone {
		k.current = nil
	}
}

func (t *Term) lose(op *Op) {
	if t.Released == nil {
		t.Released = op
	}
}
