package lock

import "slices"

type renewal struct {
	op   *Op
	term *Term
}

func (l *Ledger) requestRenew(op *Op) {
	l.counters.expires(l, op)
	if op.tells() {
		l.comparedStore(IDOf(op), op)
	}
	k := l.known(IDOf(op))
	if k == nil {
		return
	}
	t := l.owner(k, op)
	if t != nil {
		op.Term = Attribution{ID: t.ID, Confidence: 1}
		t.group.kept()
	}
	for _, t := range l.renewed(k, op) {
		l.suspend(t, op)
	}
}

// renewed lists the terms of which a renewal moves the end of one, if it takes effect.
// One that names no token moves that of whoever has the key: by the replies that is
// the current term, but another's grant or release may have taken effect in between.
func (l *Ledger) renewed(k *keyState, op *Op) []*Term {
	if op.names() || op.Kind == Store {
		if t := l.terms[op.Term.ID]; t != nil {
			return []*Term{t}
		}
		return nil
	}
	var out []*Term
	for _, t := range k.terms {
		if t == k.current || t.Span == LeaseSpan && t.Votes == nil && !t.Dead(op.A) {
			out = append(out, t)
		}
	}
	if k.current != nil && (!k.current.Open() || k.current.Votes != nil) {
		out = append(out, k.current)
	}
	return out
}

// suspend makes the lease's end unknown until the renewal is answered.
func (l *Ledger) suspend(t *Term, op *Op) {
	t.leaseOf(op).suspend(op)
	t.settle()
	if conn := l.conns[op.Session]; conn != nil {
		t.pins++
		conn.renewals = append(conn.renewals, renewal{op, t})
	}
}

// EndWithout returns where the lease of a term ends as long as a request, which was read and not
// answered, has no effect: LeaseEnd, unless it is a renewal.
func (l *Ledger) EndWithout(op *Op, t *Term) Interval {
	conn := l.conns[op.Session]
	if conn == nil || !slices.Contains(conn.renewals, renewal{op, t}) {
		return t.LeaseEnd
	}
	of := t.leaseOf(op)
	of.inflight--
	defer func() { of.inflight++ }()
	return t.ends()
}

func (l *Ledger) replyRenew(op *Op) {
	conn := l.conns[op.Session]
	if conn == nil {
		return
	}
	k, own := l.known(IDOf(op)), l.terms[op.Term.ID]
	doubted := conn.answered(op) // some may have ended since it was asked for
	for _, t := range doubted {
		l.unpinned(t)
		t.leaseOf(op).inflight--
		t.settle()
	}
	l.shown(op)
	if k != nil && own != nil {
		k.showsMany(own, op)
	}
	if own != nil && op.Outcome == NotHeld {
		own.leaseOf(op).denies(op)
		own.settle()
	}
	if op.Outcome != Done || k == nil {
		return
	}
	moved := l.renewed(k, op)
	for _, t := range doubted {
		if !slices.Contains(moved, t) {
			moved = append(moved, t)
		}
	}
	if len(moved) == 1 && (op.names() || op.Kind == Store || moved[0] == k.current) {
		if t := moved[0]; t.Lock == k.id || t.Votes != nil {
			l.renew(k, t, op)
		}
		return
	}
	for _, t := range moved {
		t.widen(op)
	}
}

// widen notes that a renewal may have moved the end of the term's lease, or another's.
func (t *Term) widen(op *Op) {
	if t.TTL == 0 {
		return
	}
	t.known.Latest = max(t.known.Latest, Lease(op, op.TTL).Latest)
	t.settle()
}

// overtaken notes that a renewal which named no token may have met the key of t, that
// was granted meanwhile, and not that of the term which had it by the replies.
func (k *keyState) overtaken(t *Term) {
	for _, o := range k.terms {
		if by := o.blind; o != t && by != nil && by.R > t.Grant.F {
			o.known.Earliest = min(o.known.Earliest, o.sure)
			o.settle()
			t.widen(by)
		}
	}
}

// renew moves a lease's end. What was answered to a holder whose lease had certainly
// ended re-created the lock: a server moves the end of nothing. So did a plain SET
// over the key of another, and one that creates only.
func (l *Ledger) renew(k *keyState, t *Term, op *Op) {
	lapsed := op.names() && !op.Guessed && t.Span == LeaseSpan && t.TTL > 0 && t.Grant.Evidence != FromArguments
	if t.Votes == nil && (lapsed && t.Dead(op.F) || op.Kind == Store && (op.NX || t.Dead(op.F) || k.current != t)) {
		l.grant(k, op)
		return
	}
	l.moved(t, op)
	t.GuessedLease = op.Guessed
	if k.current == t && !op.tells() && op.Kind == Renew && op.Token.Known() && sameClient(t.Session, t.Actor, op) {
		k.rename(t, op.Token)
	}
	if t.TTL == 0 {
		t.TTL = op.TTL
	}
	t.Renewals++
}

// rename notes that a renewal stored another token: from here on the lock is
// released by that, and what was sent before may still name the first.
func (k *keyState) rename(t *Term, token Value) {
	if t.Token.Same(token) {
		return
	}
	if old := tokenText(t.Token); old != tokenText(t.first) && t.first.Known() {
		remove(k.byToken, old, t)
	} else {
		t.first = t.Token
	}
	t.Token = token
	k.byToken[tokenText(token)] = append(k.byToken[tokenText(token)], t)
}

// moved notes that an answered op set the lease anew.
func (l *Ledger) moved(t *Term, op *Op) {
	lease := t.leaseOf(op)
	lease.set(op, op.TTL)
	l.since(lease, op)
	t.settle()
}

// answered returns the terms that a renewal had put in doubt.
func (c *connState) answered(op *Op) []*Term {
	var out []*Term
	c.renewals = slices.DeleteFunc(c.renewals, func(r renewal) bool {
		if r.op == op {
			out = append(out, r.term)
		}
		return r.op == op
	})
	return out
}

// unsent takes the renewals that were never forwarded out of doubt.
func (l *Ledger) unsent(c *connState) {
	for _, r := range c.renewals {
		if r.op.F == 0 {
			r.term.leaseOf(r.op).inflight--
			r.term.settle()
		}
		l.unpinned(r.term)
	}
	c.renewals = nil
}
