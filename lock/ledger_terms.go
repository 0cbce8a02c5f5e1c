package lock

import (
	"cmp"
	"slices"
)

// mostRefusals is how many keys a process's refusals are remembered for: a
// service that takes a key for each message would add to them for ever.
const mostRefusals = 1024

func (l *Ledger) replyAcquire(op *Op) {
	a, id := l.actor(op.Actor), IDOf(op)
	if op.Outcome != Granted {
		if len(a.refused) >= mostRefusals && !l.keepAll {
			clear(a.refused)
		}
		a.refused[id] = op
		return
	}
	delete(a.refused, id)
	k := l.key(id)
	k.lock = true
	k.stores = nil
	l.grant(k, op)
}

// grant opens the term of a granted acquire. What the same client held of the
// lock before is over: it asked again. If it never asked for the release of that,
// then it may have several tasks, of which one is still in that section.
func (l *Ledger) grant(k *keyState, op *Op) {
	id := IDOf(op)
	for _, old := range slices.Clone(k.terms) {
		if old.Session == op.Session || old.Actor == op.Actor && l.conns[old.Session] == nil {
			l.end(old, op.A, Superseded)
			if !old.Marker && !old.Token.Same(op.Token) {
				l.actor(old.Actor).leave(old)
			}
		}
	}
	l.next++
	t := &Term{ID: l.next, Lock: id, Token: op.Token, Actor: op.Actor, Session: op.Session, TTL: op.TTL,
		Grant: op, known: Lease(op, op.TTL)}
	t.settle()
	t.Marker = l.lapsed(k, t)
	op.Term = Attribution{ID: t.ID, Confidence: 1}
	l.terms[t.ID] = t
	l.order = append(l.order, t)
	k.current = t
	l.index(k, t)
	if op.HasFence {
		l.setFence(t, op)
	}
	l.forget(op.R)
}

// maxLeft is how many superseded terms of a process are kept in mind.
const maxLeft = 16

func (a *actorState) leave(t *Term) {
	a.hadTwo = true
	a.left = append(a.left, t)
	if len(a.left) > maxLeft {
		a.left = a.left[1:]
	}
}

func (l *Ledger) index(k *keyState, t *Term) {
	k.terms = append(k.terms, t)
	if k.byToken == nil {
		k.byToken = map[string][]*Term{}
	}
	k.byToken[tokenText(t.Token)] = append(k.byToken[tokenText(t.Token)], t)
	l.open = append(l.open, t)
	if t.Marker {
		return
	}
	a := l.actor(t.Actor)
	a.open = append(a.open, t)
	a.hadTwo = a.hadTwo || len(a.open) > 1
	if conn := l.conns[t.Session]; conn != nil {
		conn.used = append(conn.used, t)
	}
	if t.Token.Hash != "" && !t.Token.IsInt {
		l.tokens[t.Token.Hash] = append(l.tokens[t.Token.Hash], t)
	}
}

// end closes a section. The term stays known by its token and fence until it
// is forgotten, since what it sent may still come.
func (l *Ledger) end(t *Term, at Instant, by EndBy) {
	if !t.Open() {
		return
	}
	t.End, t.EndBy = max(at, 1), by
	l.open = without(l.open, t)
	if k := l.keys[t.Lock]; k != nil {
		k.terms = without(k.terms, t)
	}
	if a := l.actors[t.Actor]; a != nil {
		a.open = without(a.open, t)
	}
	if conn := l.conns[t.Session]; conn != nil {
		conn.used = without(conn.used, t)
	}
}

func (l *Ledger) requestRelease(op *Op) {
	id := IDOf(op)
	if op.Compares() {
		l.promoteBy(id, op.Token)
	}
	k := l.keys[id]
	if k == nil {
		return
	}
	t := l.owner(k, op)
	if t == nil {
		return
	}
	op.Term = Attribution{ID: t.ID, Confidence: 1}
	if !op.Guessed { // that may as well ask how long the lease still is
		l.asked(t, op)
	}
}

// asked ends the section of a term, whose owner has asked for its release.
func (l *Ledger) asked(t *Term, op *Op) {
	t.Releases++
	l.groupOf(t.Lock).kept()
	if t.Release == nil {
		t.Release, t.ReleaseAt = op, op.A
	}
	if a := l.actors[t.Actor]; a != nil {
		a.left = without(a.left, t)
	}
	l.end(t, op.A, Released)
}

// owner finds whose release or renewal this is: its token says so, or for an
// unguarded one the process's open term of the lock, or else the last that it
// had there.
func (l *Ledger) owner(k *keyState, op *Op) *Term {
	if op.Compares() {
		return k.ofToken(op)
	}
	for _, t := range slices.Backward(k.terms) {
		if t.Actor == op.Actor && (op.Actor != "" || t.Session == op.Session) {
			return t
		}
	}
	return nil
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
	k := l.keys[IDOf(op)]
	own := l.terms[op.Term.ID]
	if op.Guessed && own != nil && (op.Outcome == Done || op.Outcome == NotHeld) {
		l.asked(own, op)
	}
	switch {
	case op.Outcome == NotHeld && own != nil:
		own.gone(op)
		if own.Lost == nil && own.Release == op {
			own.Lost = op
		}
	case op.Outcome == Done && k != nil:
		l.removed(k, op, own)
	}
}

// removed notes what a release took away: the owner's key if it was guarded,
// whatever was there if it was not.
func (l *Ledger) removed(k *keyState, op *Op, own *Term) {
	gone := k.current
	if op.Compares() {
		gone = own
	}
	if gone == nil {
		return
	}
	if gone.Released == nil {
		gone.Released = op
	}
	if k.current == gone {
		k.current = nil
	}
}

func (l *Ledger) requestRenew(op *Op) {
	k := l.keys[IDOf(op)]
	if k == nil {
		return
	}
	t := l.owner(k, op)
	if t != nil {
		op.Term = Attribution{ID: t.ID, Confidence: 1}
		l.groupOf(t.Lock).kept()
	}
	if moved := l.renewed(k, op); moved != nil {
		l.suspend(moved, op)
	}
}

// renewed returns the term whose lease a renewal moves, if it takes effect.
func (l *Ledger) renewed(k *keyState, op *Op) *Term {
	if op.Compares() || op.Kind == Store {
		return l.terms[op.Term.ID]
	}
	return k.current
}

// suspend makes the lease's end unknown until the renewal is answered.
func (l *Ledger) suspend(t *Term, op *Op) {
	early := Lease(&Op{F: op.A, R: op.A}, op.TTL).Earliest
	if t.inflight == 0 || early < t.inEarly {
		t.inEarly = early
	}
	t.inflight++
	t.settle()
	if conn := l.conns[op.Session]; conn != nil {
		conn.renewing(op, t)
	}
}

func (l *Ledger) replyRenew(op *Op) {
	conn := l.conns[op.Session]
	if conn == nil {
		return
	}
	t := conn.answered(op)
	k := l.keys[IDOf(op)]
	if t != nil {
		t.inflight--
		t.settle()
	}
	if own := l.terms[op.Term.ID]; own != nil && op.Outcome == NotHeld {
		own.gone(op)
	}
	if op.Outcome != Done || k == nil {
		return
	}
	if moved := l.renewed(k, op); moved != nil && moved.Lock == IDOf(op) {
		moved.set(op)
		moved.GuessedLease = op.Guessed
		if moved.TTL == 0 {
			moved.TTL = op.TTL
		}
		moved.Renewals++
		moved.settle()
	}
}

func without(list []*Term, t *Term) []*Term {
	if i := slices.Index(list, t); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
