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
	g := l.groups[group(id)]
	return g != nil && g.handed
}

// A surveyedGrant is a grant whose token another process may use.
type surveyedGrant struct {
	holding
	by   string
	from Instant // F of the grant
}

// held notes whose a token is.
func (s *Survey) held(op *Op) {
	if op.Span != LeaseSpan || op.Outcome != Granted || !op.Token.Known() || AddressOnly(op.Actor) {
		return
	}
	k := s.holders.get(IDOf(op), func() *[]surveyedGrant { return &[]surveyedGrant{} })
	g := surveyedGrant{holding{IDOf(op), tokenText(op.Token)}, op.Actor, op.F}
	*k = slices.DeleteFunc(*k, func(o surveyedGrant) bool { return o.token == g.token && o.by == g.by })
	if *k = append(*k, g); len(*k) > maxRecent {
		*k = slices.Delete(*k, 0, 1)
	}
}

// used notes that a token was handed over, if it is another's, and the process that
// uses it has worked with the database since.
func (s *Survey) used(op *Op) {
	k, a := s.holders.all[IDOf(op)], s.actors.all[op.Actor]
	if k == nil || a == nil || !op.names() || AddressOnly(op.Actor) {
		return
	}
	var found *surveyedGrant
	for i := range *k {
		switch g := &(*k)[i]; {
		case g.token != tokenText(op.Token):
		case g.by == op.Actor:
			return
		case a.last >= g.from:
			found = g
		}
	}
	if found != nil {
		s.group(found.id).sorted.handed = true
		s.hand(found.holding, op.Actor)
	}
}

func (s *Survey) hand(h holding, to string) {
	list := s.handed[h]
	if len(list) == mostHanded || len(list) == 0 && len(s.handed) >= maxPromoted || slices.Contains(list, to) {
		return
	}
	s.handed[h] = append(list, to)
}
