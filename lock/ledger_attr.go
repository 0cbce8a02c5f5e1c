package lock

import (
	"slices"
)

// attribute says whose a statement is, best evidence first: of the locks that span
// its transaction, and of the section around those.
func (l *Ledger) attribute(op *Op) {
	conn := l.conns[op.Session]
	outer := l.verdictOn(op)
	op.Term = l.around(conn.exactly(op), outer)
	t := l.terms[outer.ID]
	if op.Term.ID == 0 {
		return
	}
	l.meet(op)
	conn = l.conns[op.Session]
	if t != nil && outer.Confidence >= 0.98 && len(outer.Also) == 0 && t.Open() && !slices.Contains(conn.used, t) {
		conn.used = append(slices.DeleteFunc(conn.used, func(o *Term) bool { return !o.Open() }), t)
	}
	if t != nil && outer.Sure() {
		conn.last = t
		l.traced(t, outer, op)
	}
	if op.Kind == Write && !op.Implicit && op.Tx != 0 {
		l.writes(conn, op)
	}
}

// around makes a statement of the terms that span its session and transaction, and
// of what it is of beside those, if that is sure. ID is the innermost of those that
// outlast the transaction: what spans only that comes after it.
func (l *Ledger) around(spans []*Term, outer Attribution) Attribution {
	if len(spans) == 0 {
		return outer
	}
	a := Attribution{Confidence: 1}
	add := func(id TermID) {
		switch {
		case a.ID == 0:
			a.ID = id
		case id != a.ID && !slices.Contains(a.Within, id):
			a.Within = append(a.Within, id)
		}
	}
	for _, t := range slices.Backward(spans) {
		if t.Span == SessionSpan {
			add(t.ID)
			a.Confidence = 0.98
		}
	}
	if outer.Sure() {
		add(outer.ID)
		for _, id := range outer.Within {
			add(id)
		}
		a.Confidence = min(a.Confidence, outer.Confidence)
	}
	for _, t := range slices.Backward(spans) {
		if add(t.ID); t.doubt {
			a.Confidence = min(a.Confidence, 0.75)
		}
	}
	return a
}

// exactly returns the terms that span the session or the transaction of an op.
func (c *connState) exactly(op *Op) []*Term {
	tx := c.ofTx(op)
	if c == nil || len(c.spans) == 0 || op.SQL == nil {
		return tx
	}
	return slices.Concat(c.spans[:min(len(c.spans), maxWithin)], tx)
}

// verdictOn says whose a statement is but for the locks of its session and transaction.
func (l *Ledger) verdictOn(op *Op) Attribution {
	if op.SQL == nil || op.SQL.Lease {
		return Attribution{}
	}
	by, past := l.byEvidence(op)
	if len(by) > 0 {
		return l.among(by, 1)
	}
	return l.orPast(l.byCircumstance(op), past)
}

// byCircumstance says whose a statement is that names no token and no fence.
func (l *Ledger) byCircumstance(op *Op) Attribution {
	open := l.elsewhere(op)
	if by := l.byDeclaration(op, open); len(by) > 0 {
		return l.orLeft(op, l.handOver(l.among(by, 0.98)))
	}
	if by := l.byTrace(op); len(by) > 0 {
		return l.among(by, 0.95)
	}
	return l.orLeft(op, l.handOver(l.byProcess(op, open)))
}

// elsewhere returns the open terms of an op's process, but for those that span its
// own session.
func (l *Ledger) elsewhere(op *Op) []*Term {
	a, conn := l.actors[op.Actor], l.conns[op.Session]
	switch {
	case a == nil:
		return nil
	case conn == nil || len(conn.spans) == 0:
		return a.open
	}
	return slices.DeleteFunc(slices.Clone(a.open), func(t *Term) bool { return slices.Contains(conn.spans, t) })
}

// orLeft counts in that the statement may be of a section which its process never
// asked to end: of the one that used the connection last.
func (l *Ledger) orLeft(op *Op, a Attribution) Attribution {
	actor, conn := l.actors[op.Actor], l.conns[op.Session]
	if actor == nil || len(actor.left) == 0 || AddressOnly(op.Actor) {
		return a
	}
	a.Confidence = min(a.Confidence, 0.75)
	if conn == nil || conn.last == nil || !slices.Contains(actor.left, conn.last) {
		return a
	}
	if a.ID == 0 {
		return Attribution{ID: conn.last.ID, Confidence: 0.60}
	}
	a.Also = append(a.Also, conn.last.ID)
	return a
}

// among makes an attribution to terms for each of which there is the same evidence.
// If they are sections of one task, each within the next, it belongs to all of
// them; else it may belong to any one.
func (l *Ledger) among(terms []*Term, confidence float64) Attribution {
	inner := terms[0]
	for _, t := range terms[1:] {
		if l.within(t, inner) {
			inner = t
		}
	}
	a := Attribution{ID: inner.ID, Confidence: confidence}
	for _, t := range terms {
		switch {
		case t == inner, l.within(inner, t):
		case len(a.Also) < mostAlso:
			a.Also = append(a.Also, t.ID)
		}
	}
	if len(a.Also) > 0 {
		return a
	}
	for o := l.around1(inner); o != nil; o = l.around1(o) {
		a.Within = append(a.Within, o.ID)
		a.Confidence = min(a.Confidence, 0.90)
	}
	return a
}

// mostAlso is how many other candidates an attribution names.
const mostAlso = 8

func merge(into, terms []*Term) []*Term {
	for _, t := range terms {
		if !slices.Contains(into, t) {
			into = append(into, t)
		}
	}
	return into
}

// How many traces of a term are remembered, and how many terms of a trace.
const (
	tracesKept = 8
	termsKept  = 4
)

// byProcess returns the process's open term, and how sure that is.
func (l *Ledger) byProcess(op *Op, open []*Term) Attribution {
	a := l.actors[op.Actor]
	if a == nil || len(open) == 0 {
		return Attribution{}
	}
	innermost := open[len(open)-1]
	if AddressOnly(op.Actor) {
		if len(open) > 1 {
			return Attribution{}
		}
		return Attribution{ID: innermost.ID, Confidence: 0.40}
	}
	a.acts(op)
	switch conn := l.conns[op.Session]; {
	case !a.tasks():
		return l.among(open, 0.90)
	case len(open) == 1:
		return Attribution{ID: innermost.ID, Confidence: 0.75}
	case conn != nil && len(conn.used) == 1 && slices.Contains(open, conn.used[0]):
		return others(open, conn.used[0], 0.75)
	default:
		return others(open, innermost, 0.60)
	}
}

// others makes an unsure attribution, with the other open terms as candidates.
func others(open []*Term, t *Term, confidence float64) Attribution {
	a := Attribution{ID: t.ID, Confidence: confidence}
	for _, o := range slices.Backward(open) {
		if o != t && len(a.Also) < mostAlso {
			a.Also = append(a.Also, o.ID)
		}
	}
	return a
}

// writes adds a statement to what its transaction wrote.
func (l *Ledger) writes(c *connState, op *Op) {
	l.enter(c, op)
	c.writes = union(c.writes, op.Term)
	for _, id := range slices.Concat([]TermID{op.Term.ID}, op.Term.Within, op.Term.Also) {
		if t := l.terms[id]; t != nil && !slices.Contains(c.wrote, t) && len(c.wrote) < maxAsked {
			t.pins++
			c.wrote = append(c.wrote, t)
		}
	}
}

// union says whose the end of a transaction is that has writes of both.
func union(a, b Attribution) Attribution {
	if a.ID == 0 {
		return b
	}
	c := min(a.Confidence, b.Confidence)
	if len(a.Also)+len(b.Also) == 0 {
		switch {
		case b.Of(a.ID) && !slices.ContainsFunc(a.Within, func(id TermID) bool { return !b.Of(id) }):
			b.Confidence = c
			return b
		case a.Of(b.ID) && !slices.ContainsFunc(b.Within, func(id TermID) bool { return !a.Of(id) }):
			a.Confidence = c
			return a
		}
	}
	u := Attribution{ID: a.ID, Confidence: c}
	for _, id := range slices.Concat(a.Within, a.Also, []TermID{b.ID}, b.Within, b.Also) {
		if id != u.ID && !slices.Contains(u.Also, id) && len(u.Also) < maxWithin {
			u.Also = append(u.Also, id)
		}
	}
	return u
}

// replyWrite learns which tables are protected and which columns keep fences.
func (l *Ledger) replyWrite(op *Op) {
	if a := l.actors[op.Actor]; a != nil {
		a.wrote(op.Session)
	}
	if op.SQL == nil || op.SQL.Lease || op.Outcome != Done || !op.Term.Sure() {
		return
	}
	for _, id := range slices.Concat(op.Term.Within, []TermID{op.Term.ID}) {
		t := l.terms[id]
		if t == nil || t.Span == TxSpan { // every transaction takes row locks
			continue
		}
		if len(l.tables) < maxTables {
			l.tables[TableName(op.SQL.Table)] = true
		}
		if t.HasFence {
			l.learnFence(t, op)
		}
	}
}
