package lock

import "slices"

// Ownership follows the token, and not the process: where another process than the
// one that was granted the lock releases or renews it by its token, and works with
// the database meanwhile, the token was handed over to it, as by a producer of jobs to
// a worker. From when on is not told. So what either does while the term is open may
// be of it, and is so for sure only where the token itself, the session, the
// transaction or a trace says it.

// mostHanded is how many processes one token is handed to, as far as is noted.
const mostHanded = 4

// unsureHanded is how sure a statement is at most of a term that was handed over.
const unsureHanded = 0.75

// hand notes the processes to which the token of a new term will be handed.
func (l *Ledger) hand(t *Term, op *Op) {
	if t.Span == LeaseSpan && t.Token.Known() {
		t.Handed = l.handed[holding{IDOf(op), tokenText(t.Token)}]
	}
}

// users returns the processes that may act under a term, but for those that it has
// lost. The ledger need not have heard of all of them yet.
func (t *Term) users() []string {
	return slices.DeleteFunc(append([]string{t.Actor}, t.Handed...), func(label string) bool { return slices.Contains(t.left, label) })
}

// leftBy notes that a process has gone, and reports whether it was the last that
// may act under the term.
func (t *Term) leftBy(label string) bool {
	if len(t.Handed) == 0 {
		return true
	}
	t.left = append(t.left, label)
	return len(t.users()) == 0
}

// eachUser calls f with the processes that may act under a term and are there.
func (l *Ledger) eachUser(t *Term, f func(*actorState)) {
	if a := l.actors[t.Actor]; a != nil {
		f(a)
	}
	for _, label := range t.Handed {
		if a := l.actors[label]; a != nil && label != t.Actor {
			f(a)
		}
	}
}

// handOver lessens an attribution by process to terms that were handed over.
func (l *Ledger) handOver(a Attribution) Attribution {
	of := func(id TermID) bool { t := l.terms[id]; return t != nil && len(t.Handed) > 0 }
	if of(a.ID) || slices.ContainsFunc(a.Within, of) || slices.ContainsFunc(a.Also, of) {
		a.Confidence = min(a.Confidence, unsureHanded)
	}
	return a
}

// HandsOver reports whether tokens of such a lock are known to go from process to
// process.
func (l *Ledger) HandsOver(id LockID) bool {
	g := l.groups[l.names.of(id)]
	return g != nil && g.handed
}

// A handedTokens is what was seen of the last tokens of a key. An op is noted when
// its answer was delivered, so a token may be used before its grant is.
type handedTokens struct {
	granted []handling // from when it was forwarded
	used    []handling // by whom, and until when that one had worked with the database
}

type handling struct {
	token, by string
	at        Instant
}

// held notes whose a token is.
func (s *Survey) held(op *Op) {
	if op.Span != LeaseSpan || op.Outcome != Granted || !op.Token.Known() || AddressOnly(op.Actor) {
		return
	}
	k := s.tokensOf(op)
	g := handling{tokenText(op.Token), op.Actor, op.F}
	k.granted = addUse(k.granted, g)
	for _, u := range k.used {
		s.match(op, g, u)
	}
}

func (s *Survey) tokensOf(op *Op) *handedTokens {
	return s.holders.get(IDOf(op), func() *handedTokens { return &handedTokens{} })
}

func addUse(list []handling, u handling) []handling {
	list = slices.DeleteFunc(list, func(o handling) bool { return o.token == u.token && o.by == u.by })
	if list = append(list, u); len(list) > maxRecent {
		list = slices.Delete(list, 0, 1)
	}
	return list
}

// used notes that a token was handed over, if it is another's, and the process that
// uses it has worked with the database since.
func (s *Survey) used(op *Op) {
	a := s.actors.all[op.Actor]
	if a == nil || !op.names() || AddressOnly(op.Actor) {
		return
	}
	k := s.tokensOf(op)
	u := handling{tokenText(op.Token), op.Actor, a.last}
	own := func(g handling) bool { return g.token == u.token && g.by == u.by }
	if slices.ContainsFunc(k.granted, own) {
		return
	}
	k.used = addUse(k.used, u)
	for _, g := range k.granted {
		s.match(op, g, u)
	}
}

// match notes a token that one process was granted and another used, if that one had
// worked with the database in between.
func (s *Survey) match(op *Op, granted, used handling) {
	if granted.token == used.token && granted.by != used.by && used.at >= granted.at {
		id := IDOf(op)
		s.group(id).sorted.handed = true
		s.hand(holding{id, granted.token}, used.by)
	}
}

func (s *Survey) hand(h holding, to string) {
	list := s.handed[h]
	if len(list) == mostHanded || len(list) == 0 && len(s.handed) >= maxPromoted || slices.Contains(list, to) {
		return
	}
	s.handed[h] = append(list, to)
}
