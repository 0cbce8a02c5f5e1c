package lock

import (
	"cmp"
	"slices"
	"time"
)

// mostRefusals is how many keys a process's refusals are remembered for: a
// service that takes a key for each message would add to them for ever.
const mostRefusals = 1024

// maxLeft is how many superseded terms of a process are kept in mind, and how
// many of a key that are its members.
const maxLeft = 16

func (l *Ledger) requestAcquire(op *Op) {
	if op.Proto == Redis {
		l.ghosts.asks(op, l.keepAll)
		l.votes(op)
	}
}

func (l *Ledger) replyAcquire(op *Op) {
	l.ghosts.answered(op)
	switch {
	case op.Outcome == Granted:
		l.granted(op)
	case op.Outcome == Unknown && op.R > 0: // its process was told, and may have the lock
		l.Forgive(op)
	default:
		l.refuse(op)
	}
}

func (l *Ledger) granted(op *Op) {
	a, k := l.actor(op.Actor), l.key(IDOf(op))
	delete(a.refused, k.id)
	k.group.sortedBy(op)
	k.lock = true
	if l.again(k, op) || l.vote(k, op) {
		return
	}
	l.grant(k, op)
}

func (l *Ledger) refuse(op *Op) {
	a, id := l.actor(op.Actor), IDOf(op)
	if k := l.known(id); k != nil {
		if op.Outcome == Refused && k.group.members {
			k.group.refusedBeside(k.certain(op))
		}
	}
	if op.Outcome == Refused {
		l.shown(op)
	}
	if severalThings(op.Key) || l.voteAgainst(op) || op.astray() {
		return // another such thing may have been free, or it is asked for again
	}
	a.refuse(id, op, l.keepAll)
}

// astray reports whether the server answered only that it is to be asked otherwise, or
// another one is: that says nothing of the lock.
func (op *Op) astray() bool {
	return op.Outcome == Failed && (op.Err == "NOSCRIPT" || op.Err == "MOVED" || op.Err == "ASK")
}

func (a *actorState) refuse(id LockID, op *Op, keepAll bool) {
	if len(a.refused) >= mostRefusals && !keepAll {
		clear(a.refused)
	}
	a.refused[id] = op
}

// certain counts the terms of a key that were certainly there all the time that an
// op may have taken effect.
func (k *keyState) certain(op *Op) (n int) {
	for _, t := range k.terms {
		if !t.Marker && t.Grant.R <= op.F && t.Held() >= op.R {
			n++
		}
	}
	return n
}

// again takes a grant for one more of what its holder has, and reports whether it
// is: the server says so, or nothing shows that the lock was free before.
func (l *Ledger) again(k *keyState, op *Op) bool {
	t := k.heldBy(op)
	if t == nil || t.Votes != nil {
		return false
	}
	if t.Span == LeaseSpan && op.Depth <= 1 && (op.Depth == 1 || provesAbsence(op) || t.Held() < op.R && !k.mayKeep(t, op)) {
		return false
	}
	k.group.twice = k.group.twice || op.Depth > 1 || t.Span == SessionSpan
	switch {
	case op.Depth > 1:
		t.Depth, t.told = op.Depth, true
	case t.counts():
		t.Depth++
	}
	if op.Shared && !t.Shared {
		t.readers++
	}
	if t.Span == LeaseSpan {
		l.moved(t, op)
	}
	op.Term = Attribution{ID: t.ID, Confidence: 1}
	return true
}

// mayKeep reports whether the holder may have had the lock all the time until an
// acquire: nobody else was granted it, and its lease may not have ended.
func (k *keyState) mayKeep(t *Term, op *Op) bool { return k.current == t && t.LeaseEnd.Latest >= op.F }

// counts reports whether a lock may keep count of how often its holder has taken it.
// One whose value says who has it and no more does not: what gives it back once
// gives all of it back.
func (t *Term) counts() bool { return t.Span != LeaseSpan || t.Member }

// Lasts returns the lifetime that the lease was set to last: by its grant, when its
// owner took it again, or by a renewal. 0 is none.
func (t *Term) Lasts() time.Duration {
	if t.lasts > 0 {
		return t.lasts
	}
	return t.TTL
}

// heldBy returns the open term of the key whose holder an acquire is of.
func (k *keyState) heldBy(op *Op) *Term {
	for _, t := range slices.Backward(k.terms) {
		if t.Span != op.Span || !t.Token.Same(op.Token) && t.Token.Known() {
			continue
		}
		switch op.Span {
		case SessionSpan:
			if t.Session == op.Session {
				return t
			}
		case TxSpan:
			if t.Session == op.Session && t.Tx == op.Tx {
				return t
			}
		default:
			if op.Token.Known() && (t.Session == op.Session || t.Actor == op.Actor) {
				return t
			}
		}
	}
	return nil
}

// grant opens the term of a granted acquire. What the same client held of the
// lock before is over: it asked again. If it never asked for the release of that,
// then it may have several tasks, of which one is still in that section.
func (l *Ledger) grant(k *keyState, op *Op) *Term {
	l.supersede(k, op)
	t := l.newTerm(k, op)
	if t.Marker = l.marks(k, t); t.Marker && l.Queue(k.id) {
		l.actor(op.Actor).several = true // it has jobs of which it does not tell when they are done
	}
	l.index(k, t)
	l.opened(t)
	k.overtaken(t)
	return t
}

// newTerm makes a term of a grant, and gives it its number.
func (l *Ledger) newTerm(k *keyState, op *Op) *Term {
	l.next++
	t := &Term{ID: l.next, Lock: k.id, Token: op.Token, Actor: op.Actor, Session: op.Session, TTL: op.TTL, Grant: op,
		Span: op.Span, Tx: op.Tx, Shared: op.Shared, Member: op.Member, Depth: max(1, op.Depth), told: op.Depth > 0,
		lease: leaseBy(op, op.TTL), group: k.group, sort: l.decls.sort(k.id.Key)}
	if old := k.before(op.Token); old != nil && old.Span == LeaseSpan {
		t.Again, t.Revived = old, old.Release == nil
	}
	l.hand(t, op)
	op.Term = Attribution{ID: t.ID, Confidence: 1}
	l.terms[t.ID] = t
	k.current = t
	if t.Span == LeaseSpan {
		l.since(&t.lease, op)
		l.inTx(op, effect{op: op, grant: t})
	} else {
		t.known = Interval{op.F, Never}
	}
	t.settle()
	return t
}

// before returns the last term that was granted with a token, nil for no token.
func (k *keyState) before(token Value) *Term {
	if list := k.byToken[tokenText(token)]; token.Known() && len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

// supersede ends what the client of a grant held of the lock before. Members of a
// key, readers and what spans a transaction do not end each other.
func (l *Ledger) supersede(k *keyState, op *Op) {
	for _, old := range slices.Clone(k.terms) {
		mine := old.Session == op.Session || old.Actor == op.Actor && l.conns[old.Session] == nil
		if old.Votes != nil { // on connections of their own
			mine = old.Actor == op.Actor && (old.Token.Same(op.Token) || old.Dead(op.A))
		}
		beside := (old.Member || old.Shared || op.Shared) && !old.Token.Same(op.Token)
		later := old.Grant.ReplySeq > op.ReplySeq // than what is read again
		if !mine || beside || later || old.Span != LeaseSpan || severalThings(k.id.Key) {
			continue
		}
		l.end(old, op.A, Superseded)
		if !old.Marker && !old.Token.Same(op.Token) {
			l.actor(old.Actor).leave(old)
		}
	}
}

// index makes a term findable by its key and its token.
func (l *Ledger) index(k *keyState, t *Term) {
	k.terms, k.latest = append(k.terms, t), t
	if t.Member {
		if k.recent = append(k.recent, t); len(k.recent) > maxLeft {
			k.recent = k.recent[1:]
		}
	}
	if k.byToken == nil {
		k.byToken = map[string][]*Term{}
	}
	token := tokenText(t.Token)
	k.byToken[token] = append(k.byToken[token], t)
	t.at = len(l.open)
	l.open = append(l.open, t)
	if t.Grant.HasFence {
		l.setFence(t, t.Grant)
	}
	l.forget(t.Grant.R)
}

// forsaken reports whether no process is left that could act under a term.
func (l *Ledger) forsaken(t *Term) bool { return l.actors[t.Actor] == nil && len(t.Handed) == 0 }

// opened lets a term own statements, unless it is a marker.
func (l *Ledger) opened(t *Term) {
	if t.Marker || !t.Open() {
		return
	}
	conn := l.conns[t.Session]
	if t.Span == TxSpan {
		l.spansTx(conn, t)
		return
	}
	if l.forsaken(t) {
		l.end(t, t.Grant.R, Closed) // a store that another's comparison shows to be a grant, once its process had gone
		return
	}
	a := l.actor(t.Actor)
	l.nest(a, conn, t)
	for _, label := range t.users() {
		u := l.actor(label)
		u.open = append(u.open, t)
	}
	if conn != nil {
		conn.used = append(conn.used, t)
		if t.Span == SessionSpan {
			conn.spans = append(conn.spans, t)
		}
	}
	if hash := t.Token.Hash; hash != "" && !t.Token.IsInt {
		list := append(l.tokens[hash], t)
		l.tokens[hash] = list[max(0, len(list)-maxShared):] // one that so many share tells nothing
	}
}

// end closes a section. The term stays known by its token and fence until it
// is forgotten, since what it sent may still come.
func (l *Ledger) end(t *Term, at Instant, by EndBy) {
	if !t.Open() {
		return
	}
	t.End, t.EndBy = max(at, 1), by
	last := len(l.open) - 1
	l.open[t.at], l.open[last].at = l.open[last], t.at
	l.open = l.open[:last]
	if k := l.known(t.Lock); k != nil {
		k.terms = without(k.terms, t)
	}
	l.eachUser(t, func(a *actorState) {
		a.open = without(a.open, t)
		a.unnest(t)
	})
	if conn := l.conns[t.Session]; conn != nil {
		conn.used, conn.spans, conn.inTx = without(conn.used, t), without(conn.spans, t), without(conn.inTx, t)
	}
	l.retire(t)
}

// reopen takes back that a release closed a section: it was only a step.
func (l *Ledger) reopen(t *Term) {
	k := l.known(t.Lock)
	if k == nil || t.EndBy != Released || l.terms[t.ID] != t || !t.Marker && l.forsaken(t) {
		return
	}
	t.End, t.EndBy, t.Release, t.ReleaseAt = 0, "", nil, 0
	t.Releases--
	k.terms = append(k.terms, t)
	slices.SortFunc(k.terms, func(a, b *Term) int { return cmp.Compare(a.ID, b.ID) })
	t.at = len(l.open)
	l.open = append(l.open, t)
	t.outer = nil
	if !t.Marker {
		l.eachUser(t, func(a *actorState) {
			a.open = append(a.open, t)
			slices.SortFunc(a.open, func(a, b *Term) int { return cmp.Compare(a.ID, b.ID) })
		})
	}
	if conn := l.conns[t.Session]; conn != nil && !t.Marker {
		conn.used = append(conn.used, t)
		if t.Span == SessionSpan {
			conn.spans = append(conn.spans, t)
		}
	}
}

func without(list []*Term, t *Term) []*Term {
	if i := slices.Index(list, t); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
