package lock

import (
	"slices"
	"strings"
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
		conn.used = append(conn.used, t)
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

// byEvidence returns the terms whose token is among the statement's
// parameters, or whose fence is set on or compared with its fence column. A
// token that is a number is no evidence: numbers occur by chance. Those that are over
// and were found by their token alone are told apart.
func (l *Ledger) byEvidence(op *Op) (found, past []*Term) {
	consider := func(column string, v Value) {
		if v.Hash != "" && !v.IsInt {
			for _, t := range preferred(l.tokens[v.Hash], op.Actor) {
				if t.Open() {
					found = merge(found, []*Term{t})
				} else {
					past = merge(past, []*Term{t})
				}
			}
		}
		if v.IsInt {
			found = merge(found, preferred(l.revivals(l.byFence(op.SQL.Table, column, v.Int), op.Actor), op.Actor))
		}
	}
	for _, s := range op.SQL.Set {
		consider(s.Column, s.Value)
	}
	for _, c := range op.SQL.Where {
		consider(c.Column, c.Value)
	}
	return found, past
}

// orPast counts in that a statement names tokens of terms that are over: it came too
// late, or the token says who its writer is, and always did.
func (l *Ledger) orPast(a Attribution, past []*Term) Attribution {
	past = slices.DeleteFunc(past, l.named)
	switch {
	case len(past) == 0:
		return a
	case a.ID == 0:
		return l.among(past, 0.75)
	}
	a.Confidence = min(a.Confidence, 0.75)
	for _, t := range past {
		if len(a.Also) < mostAlso {
			a.Also = append(a.Also, t.ID)
		}
	}
	return a
}

// named reports whether the token of a term is its holder's name rather than its
// own: a row says who has it, or several holdings had it.
func (l *Ledger) named(t *Term) bool {
	return strings.HasPrefix(t.Lock.Key, "lease:") || slices.ContainsFunc(l.tokens[t.Token.Hash], func(o *Term) bool {
		return o != t && !o.Revived && !t.Revived
	})
}

// revivals puts, for each term of a process that it took again by its token once that had lapsed,
// the one that it has now: to the process it is the same, with the same fence.
func (l *Ledger) revivals(terms []*Term, actor string) []*Term {
	var out []*Term
	for _, t := range terms {
		if a := l.actors[actor]; a != nil && t.Actor == actor && !t.Open() {
			for _, o := range a.open {
				if o.revives(t) {
					t = o
				}
			}
		}
		out = merge(out, []*Term{t})
	}
	return out
}

// preferred narrows terms that share a token or a fence: those that are open in the
// process, else those that it had, else those that are open, else any. What the
// process itself was granted is its own, though another that was granted the same has
// it now: hosts' names are tokens of many terms, and the fences of two locks rise alike.
func preferred(terms []*Term, actor string) []*Term {
	var mine, had, open []*Term
	for _, t := range terms {
		own := t.Actor == actor
		switch {
		case t.Open() && own:
			mine = append(mine, t)
		case t.Open():
			open = append(open, t)
		case own && !AddressOnly(actor):
			had = append(had, t)
		}
	}
	switch {
	case len(mine) > 0:
		return mine
	case len(had) > 0:
		return latest(had)
	case len(open) > 0:
		return open
	}
	return latest(terms)
}

// latest leaves of each process and lock the term that was granted last.
func latest(terms []*Term) []*Term {
	var out []*Term
	for _, t := range slices.Backward(terms) {
		if !slices.ContainsFunc(out, func(o *Term) bool { return o.Lock == t.Lock && o.Actor == t.Actor }) {
			out = append(out, t)
		}
		if len(out) > mostAlso {
			break
		}
	}
	return out
}

func merge(into, terms []*Term) []*Term {
	for _, t := range terms {
		if !slices.Contains(into, t) {
			into = append(into, t)
		}
	}
	return into
}

// byDeclaration returns, for each lock that is declared to protect the table,
// its term if the process has exactly one open.
func (l *Ledger) byDeclaration(op *Op, open []*Term) []*Term {
	if AddressOnly(op.Actor) || len(open) == 0 {
		return nil
	}
	var found []*Term
	table := TableName(op.SQL.Table)
	for _, d := range l.decls {
		if d.Table == "" || TableName(d.Table) != table {
			continue
		}
		for _, t := range open {
			if d.Covers(t.Lock.Key) && l.only(t) {
				found = merge(found, []*Term{t})
			}
			if len(found) > mostAlso {
				return found
			}
		}
	}
	return found
}

// only reports whether the process has no other open term of the lock.
func (l *Ledger) only(t *Term) bool {
	k := l.keys[t.Lock]
	return k == nil || !slices.ContainsFunc(k.terms, func(o *Term) bool {
		return o != t && o.Actor == t.Actor && !o.Marker && o.Span != TxSpan
	})
}

// byTrace returns the terms of which a statement with the same trace was for sure,
// and whose release was not asked for. A trace goes from process to process, so
// only those of the statement's own count.
func (l *Ledger) byTrace(op *Op) []*Term {
	if op.SQL.Trace == "" {
		return nil
	}
	var found []*Term
	for _, t := range l.traces[op.SQL.Trace] {
		if t.Release == nil && t.Actor == op.Actor {
			found = append(found, t)
		}
	}
	return found
}

// How many traces of a term are remembered, and how many terms of a trace.
const (
	tracesKept = 8
	termsKept  = 4
)

// traced notes that a statement of the trace is the term's.
func (l *Ledger) traced(t *Term, a Attribution, op *Op) {
	trace := op.SQL.Trace
	if trace == "" || slices.Contains(t.traces, trace) || len(t.traces) == tracesKept || len(l.traces[trace]) == termsKept {
		return
	}
	t.traces = append(t.traces, trace)
	l.traces[trace] = append(l.traces[trace], t)
}

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
