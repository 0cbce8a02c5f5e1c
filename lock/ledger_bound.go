package lock

import (
	"cmp"
	"slices"
	"time"
)

// How much is kept by a ledger that runs for long.
const (
	maxTerms      = 8192    // closed ones that nothing needs
	maxOpen       = 1 << 16 // sections that are open
	maxKeys       = 8192
	maxTables     = 8192
	maxAsked      = 4096 // ops of one connection without an answer
	maxCandidates = 4096 // Stores that may turn out to be grants, over all keys
	maxPerKey     = 64   // of those, for one key
	abandonAfter  = 10 * time.Minute
	maxShared     = 256 // terms looked through for one token
)

// forget bounds the ledger: sections that nothing was heard of for long after
// their lease are over, and the oldest closed terms go.
func (l *Ledger) forget(now Instant) {
	for range min(2, len(l.open)) {
		l.swept = (l.swept + 1) % len(l.open)
		if t := l.open[l.swept]; stale(t, now) {
			l.end(t, now, Abandoned)
			if len(l.open) == 0 {
				break
			}
		}
	}
	if len(l.open) > maxOpen {
		l.abandon(now)
	}
	if l.keepAll {
		return
	}
	for len(l.retired) > 0 && len(l.terms) > maxTerms+len(l.open) {
		t := l.retired[0]
		l.retired = l.retired[1:]
		t.retired = false
		if !t.Open() && t.pins == 0 {
			l.drop(t)
		}
	}
}

func stale(t *Term, now Instant) bool {
	end := t.LeaseEnd.Latest
	return end != Never && now.Sub(end) > max(abandonAfter, 4*t.TTL)
}

// abandon ends an eighth of the open sections at once, markers first and then the
// oldest.
func (l *Ledger) abandon(now Instant) {
	list := slices.Clone(l.open)
	slices.SortFunc(list, func(a, b *Term) int {
		switch {
		case a.Marker && !b.Marker:
			return -1
		case b.Marker && !a.Marker:
			return 1
		}
		return cmp.Compare(a.ID, b.ID)
	})
	for _, t := range list[:maxOpen/8] {
		l.end(t, now, Abandoned)
	}
}

// retire lines a term up to be forgotten, if it is closed and nothing needs it.
func (l *Ledger) retire(t *Term) {
	if !t.Open() && t.pins == 0 && !t.retired && !l.keepAll {
		t.retired = true
		l.retired = append(l.retired, t)
	}
}

func (l *Ledger) unpinned(t *Term) {
	t.pins--
	l.retire(t)
}

// unpin lets go of the terms that a connection's transaction wrote in.
func (l *Ledger) unpin(c *connState) {
	for _, t := range c.wrote {
		l.unpinned(t)
	}
	c.wrote = nil
}

// A question is an op of a term that has no answer yet.
type question struct {
	op      *Op
	terms   []*Term
	guessed bool // what it is was a guess when it was asked for
}

// ask keeps the terms of an op from being forgotten until it is answered.
func (l *Ledger) ask(op *Op) {
	if op.Term.ID == 0 {
		return
	}
	conn := l.conns[op.Session]
	if conn == nil || len(conn.asked) == maxAsked {
		return
	}
	q := question{op: op, guessed: op.Guessed}
	l.pin(&q, op.Term.ID)
	for _, id := range op.Term.Also {
		l.pin(&q, id)
	}
	for _, id := range op.Term.Within {
		l.pin(&q, id)
	}
	conn.asked = append(conn.asked, q)
}

func (l *Ledger) pin(q *question, id TermID) {
	if t := l.terms[id]; t != nil {
		t.pins++
		q.terms = append(q.terms, t)
	}
}

func (l *Ledger) answer(op *Op) {
	conn := l.conns[op.Session]
	if conn == nil {
		return
	}
	conn.goesOn(op)
	i := slices.IndexFunc(conn.asked, func(q question) bool { return q.op == op })
	if i < 0 {
		return
	}
	for _, t := range conn.asked[i].terms {
		l.unpinned(t)
	}
	conn.asked = slices.Delete(conn.asked, i, i+1)
}

// guessed reports whether what an op is was a guess when it was asked for: then its
// request has ended nothing, however sure it is by now.
func (l *Ledger) guessed(op *Op) bool {
	conn := l.conns[op.Session]
	return conn != nil && slices.ContainsFunc(conn.asked, func(q question) bool { return q.op == op && q.guessed })
}

// unanswered lets go of what a connection that has ended was asked.
func (l *Ledger) unanswered(c *connState) {
	for _, q := range c.asked {
		for _, t := range q.terms {
			l.unpinned(t)
		}
	}
	c.asked = nil
	l.unsent(c)
}

func (l *Ledger) drop(t *Term) {
	delete(l.terms, t.ID)
	t.Again = nil
	if k := l.known(t.Lock); k != nil {
		k.drop(t)
	}
	for _, v := range t.Votes {
		if k := l.known(v.Lock); k != nil {
			k.drop(t)
		}
	}
	if t.ballot != nil {
		l.ballots.drop(t.ballot)
	}
	remove(l.tokens, t.Token.Hash, t)
	remove(l.tokens, t.first.Hash, t)
	if t.HasFence {
		remove(l.fences, fenceID(t.Fence), t)
	}
	for _, trace := range t.traces {
		remove(l.traces, trace, t)
	}
}

func (k *keyState) drop(t *Term) {
	remove(k.byToken, tokenText(t.Token), t)
	remove(k.byToken, tokenText(t.first), t)
	k.recent = without(k.recent, t)
	if k.current == t {
		k.current = nil
	}
	if k.latest == t {
		k.latest = nil
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
		if i < maxKeys/2 && len(k.terms) == 0 && len(k.byToken) == 0 {
			l.candidates -= len(k.stores)
			delete(l.keys, id)
			continue
		}
		kept = append(kept, id)
	}
	l.keyLine, l.near = kept, nil
	l.keyRoom = len(kept) + len(kept)/2 // if most are held, the next look may wait too
}
