package lock

import (
	"slices"
	"strconv"
)

// A plain SET with an expiry excludes nobody, and most of them are no locks. It
// counts as a grant once its key behaves as a lock: its storer compares what it
// stored and deletes it, or moves its end. What was stored before is then read
// again. What somebody else compares and deletes is data: a cached value, say, that
// is only to be dropped if it is still the one that was seen.

// mostForeign is how many compare-and-deletes of a key may be by others than the
// storer, for each hundred that are by it.
const mostForeign = 25

func isData(owned, foreign int) bool { return foreign*100 > owned*mostForeign }

// requestStore treats a plain SET of a token that its client holds the lock with,
// or has let lapse, as a renewal in flight.
func (l *Ledger) requestStore(op *Op) {
	k := l.known(IDOf(op))
	if k == nil || !k.lock || !op.Token.Known() {
		return
	}
	t := k.ofToken(op)
	if t == nil || t.Votes != nil || t.Release != nil || t.Span != LeaseSpan || !sameClient(t.Session, t.Actor, op) {
		return
	}
	op.Term = Attribution{ID: t.ID, Confidence: 1}
	l.suspend(t, op)
}

// Renews reports whether a plain SET moves the lease of the term that it belongs to, rather than takes its lock: it
// stores the token once more. One that has no answer takes it if another has been granted the lock, or if the lease
// had certainly ended without it when it was read.
func (l *Ledger) Renews(op *Op) bool {
	t := l.terms[op.Term.ID]
	if op.Kind != Store || t == nil || t.Grant == op || slices.ContainsFunc(t.Votes, func(v *Vote) bool { return v.Grant == op }) {
		return false
	}
	return op.ReplySeq != 0 || !l.retakes(t, op)
}

// retakes reports whether a plain SET that has no answer will, by what is known, take a lock anew.
func (l *Ledger) retakes(t *Term, op *Op) bool {
	k := l.known(IDOf(op))
	return op.NX || k == nil || k.current != t || l.EndWithout(op, t).Latest < op.A
}

func (l *Ledger) replyStore(op *Op) {
	if t := l.terms[op.Term.ID]; t != nil {
		l.replyRenew(op)
		return
	}
	if op.Outcome != Done && op.Outcome != Granted {
		return
	}
	k := l.key(IDOf(op))
	if k.storing {
		l.grantStore(k, op)
		return
	}
	l.candidate(k, op)
}

func (l *Ledger) grantStore(k *keyState, op *Op) {
	if l.collects(k, op) {
		return
	}
	k.group.sortedBy(op)
	if cur := k.current; cur != nil && !op.NX && cur.Votes == nil && cur.Token.Same(op.Token) && cur.Session == op.Session {
		l.moved(cur, op)
		cur.Renewals++
		return
	}
	if !l.vote(k, op) {
		l.grant(k, op)
	}
}

// mostMembers is how many members a key may have at once that adds them directly: one
// with more is a set of things, such as of the users who are there, and no lock.
const mostMembers = 256

// collects reports whether a key turns out to be a set of things. Of what was taken
// for grants until then nothing is kept.
func (l *Ledger) collects(k *keyState, op *Op) bool {
	if !op.Member || l.decls.lock(k.id.Key) {
		return false
	}
	if len(k.terms) < mostMembers || k.living(op.F) < mostMembers {
		return l.data[k.id]
	}
	l.data.add(k.id)
	delete(l.promoted, k.id)
	k.lock, k.storing, k.current = false, false, nil
	for _, t := range slices.Clone(k.terms) {
		t.Marker = true
		l.end(t, op.F, Abandoned)
	}
	return true
}

// living counts the open terms of a key whose lease may still run.
func (k *keyState) living(at Instant) (n int) {
	for _, t := range k.terms {
		if !t.Dead(at) {
			n++
		}
	}
	return n
}

// candidate keeps a copy: by the time that the key turns out to be a lock, op is
// its recorder's, who may be reading it.
func (l *Ledger) candidate(k *keyState, op *Op) {
	own := *op
	op = &own
	if len(k.stores) == maxPerKey {
		k.stores = k.stores[1:]
		l.candidates--
	}
	k.stores = append(k.stores, op)
	l.storeLine = append(l.storeLine, k.id)
	l.candidates++
	for l.candidates > maxCandidates && len(l.storeLine) > 0 {
		l.dropCandidate()
	}
	if len(l.storeLine) > 4*maxCandidates {
		l.storeLine = slices.Clone(l.storeLine[len(l.storeLine)-2*maxCandidates:])
	}
}

func (l *Ledger) dropCandidate() {
	old := l.known(l.storeLine[0])
	l.storeLine = l.storeLine[1:]
	if old != nil && len(old.stores) > 0 {
		old.stores = old.stores[1:]
		l.candidates--
	}
}

// Promote says that a key is a lock. Its candidate Stores are read again as
// grants, each with its own instants; later ones are grants at once.
func (l *Ledger) Promote(upstream string, db int, key string) {
	if l.decls.ignored(key) {
		return
	}
	k := l.key(LockID{upstream, db, key})
	k.lock, k.storing = true, true
	l.promoted.add(k.id)
	stores := k.stores
	k.stores = nil
	l.candidates -= len(stores)
	current := k.current
	for _, op := range stores {
		l.grantStore(k, op)
		if t := l.terms[op.Term.ID]; t != nil && t.Grant == op {
			t.reread = true
			l.outdone(k, t)
		}
	}
	if current != nil && k.current != nil && current.Grant.ReplySeq > k.current.Grant.ReplySeq {
		k.current = current
	}
}

// outdone ends a term that is read again and whose client was granted the lock anew
// since.
func (l *Ledger) outdone(k *keyState, t *Term) {
	for _, o := range k.terms {
		if o != t && o.Session == t.Session && o.Grant.ReplySeq > t.Grant.ReplySeq && !o.Member {
			l.end(t, o.Grant.A, Superseded)
			return
		}
	}
}

// A keySet is a set of keys that are known to be locks. It is emptied when it is
// full: what is still used is soon found out again.
type keySet map[LockID]bool

func (s *keySet) add(id LockID) {
	if *s == nil || len(*s) > maxPromoted {
		*s = keySet{}
	}
	(*s)[id] = true
}

// comparedStore promotes a key of which a compare-and-delete, or -extend, names a
// token that was stored there by the same client.
func (l *Ledger) comparedStore(id LockID, op *Op) {
	k := l.known(id)
	if k == nil || k.storing && len(k.stores) == 0 || l.data[id] {
		return
	}
	own, any := k.stored(op)
	switch {
	case own:
		k.owned++
	case any:
		k.foreign++
		return
	default:
		return
	}
	if !isData(k.owned, k.foreign) {
		l.Promote(id.Upstream, id.DB, id.Key)
	}
}

// stored reports whether the token that an op names is one that its client stored,
// or that anyone did. A key that was created exclusively stores its tokens too.
func (k *keyState) stored(op *Op) (own, any bool) {
	for _, s := range k.stores {
		if s.Token.Same(op.Token) {
			any = true
			own = own || sameClient(s.Session, s.Actor, op)
		}
	}
	for _, t := range k.byToken[tokenText(op.Token)] {
		any = true
		own = own || sameClient(t.Session, t.Actor, op)
	}
	return own, any
}

// sameClient reports whether an op is of the connection, or of the process, or of
// one that is not known and may be.
func sameClient(session uint64, actor string, op *Op) bool {
	return session == op.Session || actor == op.Actor || AddressOnly(actor) || AddressOnly(op.Actor)
}

func tokenText(v Value) string {
	if v.Hash == "" && v.IsInt {
		return "n" + strconv.FormatInt(v.Int, 10)
	}
	return v.Hash
}
