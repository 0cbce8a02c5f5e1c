package lock

import (
	"slices"
	"strings"
)

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
	k := l.known(t.Lock)
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

// traced notes that a statement of the trace is the term's.
func (l *Ledger) traced(t *Term, a Attribution, op *Op) {
	trace := op.SQL.Trace
	if trace == "" || slices.Contains(t.traces, trace) || len(t.traces) == tracesKept || len(l.traces[trace]) == termsKept {
		return
	}
	t.traces = append(t.traces, trace)
	l.traces[trace] = append(l.traces[trace], t)
}
