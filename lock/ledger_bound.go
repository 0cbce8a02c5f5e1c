package lock

type renewal struct {
	op   *Op
	term *Term
}

// forget bounds the ledger: sections that nothing was heard of for long after
// their lease are over, and the oldest closed terms go.
func (l *Ledger) forget(now Instant) {
	for len(l.open) > 0 && (l.stale(l.open[0], now) || len(l.open) > maxTerms) {
		l.end(l.open[0], now, Abandoned)
	}
	if l.keepAll {
		return
	}
	for len(l.order) > maxTerms && !l.order[0].Open() {
		l.drop(l.order[0])
		l.order = l.order[1:]
	}
}

func (l *Ledger) stale(t *Term, now Instant) bool {
	end := t.LeaseEnd.Latest
	return end != Never && now.Sub(end) > max(abandonAfter, 4*t.TTL)
}

func (l *Ledger) drop(t *Term) {
	delete(l.terms, t.ID)
	if k := l.keys[t.Lock]; k != nil {
		remove(k.byToken, tokenText(t.Token), t)
	}
	remove(l.tokens, t.Token.Hash, t)
	if t.HasFence {
		remove(l.fences, fenceID(t.Fence), t)
	}
}

func remove[K comparable](m map[K][]*Term, key K, t *Term) {
	if left := without(m[key], t); len(left) > 0 {
		m[key] = left
	} else {
		delete(m, key)
	}
}

// forgetKeys drops the oldest keys that hold nothing, and keeps the others.
func (l *Ledger) forgetKeys() {
	if l.keepAll || len(l.keyLine) <= max(maxKeys, l.keyRoom) {
		return
	}
	kept := make([]LockID, 0, len(l.keyLine))
	for i, id := range l.keyLine {
		k := l.keys[id]
		if i < maxKeys/2 && len(k.terms) == 0 && !k.kept {
			l.candidates -= len(k.stores)
			delete(l.keys, id)
			continue
		}
		kept = append(kept, id)
	}
	l.keyLine = kept
	l.keyRoom = len(kept) + len(kept)/2 // if most are held, the next look may wait too
}

func (c *connState) renewing(op *Op, t *Term) {
	c.renewals = append(c.renewals, renewal{op, t})
}

// answered returns the term that a renewal had put in doubt, or nil.
func (c *connState) answered(op *Op) *Term {
	for i, r := range c.renewals {
		if r.op == op {
			c.renewals = append(c.renewals[:i], c.renewals[i+1:]...)
			return r.term
		}
	}
	return nil
}

// unsent takes the renewals that were never forwarded out of doubt.
func (c *connState) unsent() {
	for _, r := range c.renewals {
		if r.op.F == 0 {
			r.term.inflight--
			r.term.settle()
		}
	}
	c.renewals = nil
}
