package lock

import "slices"

// attribute says whose a statement is, best evidence first.
func (l *Ledger) attribute(op *Op) {
	op.Term = l.verdictOn(op)
	t := l.terms[op.Term.ID]
	if t == nil {
		return
	}
	l.meet(op)
	conn := l.conns[op.Session]
	if op.Term.Confidence >= 0.98 && len(op.Term.Also) == 0 && t.Open() && !slices.Contains(conn.used, t) {
		conn.used = append(conn.used, t)
	}
	if op.Term.Sure() {
		conn.last = t
	}
	if op.Kind == Write && !op.Implicit && op.Tx != 0 {
		conn.wrote(op, t)
	}
}

func (l *Ledger) verdictOn(op *Op) Attribution {
	if op.SQL == nil {
		return Attribution{}
	}
	if by := l.byEvidence(op); len(by) > 0 {
		return attribution(by, 1)
	}
	if by := l.byDeclaration(op); len(by) > 0 {
		return l.orLeft(op, attribution(by, 0.98))
	}
	return l.orLeft(op, l.byProcess(op.Actor, op.Session))
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

func attribution(terms []*Term, confidence float64) Attribution {
	a := Attribution{ID: terms[0].ID, Confidence: confidence}
	for _, t := range terms[1:] {
		a.Also = append(a.Also, t.ID)
	}
	return a
}

// byEvidence returns the terms whose token is among the statement's
// parameters, or whose fence is set on or compared with its fence column. A
// token that is a number is no evidence: numbers occur by chance.
func (l *Ledger) byEvidence(op *Op) []*Term {
	var found []*Term
	consider := func(column string, v Value) {
		if v.Hash != "" && !v.IsInt {
			found = merge(found, preferred(l.tokens[v.Hash], op.Actor))
		}
		if v.IsInt {
			found = merge(found, preferred(l.byFence(op.SQL.Table, column, v.Int), op.Actor))
		}
	}
	for _, s := range op.SQL.Set {
		consider(s.Column, s.Value)
	}
	for _, c := range op.SQL.Where {
		consider(c.Column, c.Value)
	}
	return found
}

// preferred narrows terms that share a token or a fence: those that are open
// in the process, else those that are open, else the latest.
func preferred(terms []*Term, actor string) []*Term {
	var mine, open []*Term
	for _, t := range terms {
		if t.Open() {
			open = append(open, t)
			if t.Actor == actor {
				mine = append(mine, t)
			}
		}
	}
	switch {
	case len(mine) > 0:
		return mine
	case len(open) > 0:
		return open
	case len(terms) > 0:
		return terms[len(terms)-1:]
	}
	return nil
}

func merge(into, terms []*Term) []*Term {
	for _, t := range terms {
		if !slices.Contains(into, t) {
			into = append(into, t)
		}
	}
	return into
}

func (l *Ledger) byFence(table, column string, n int64) []*Term {
	var found []*Term
	for _, d := range l.decls {
		if d.FenceColumn != column || TableName(d.Table) != TableName(table) {
			continue
		}
		for _, t := range l.fences[fenceID(n)] {
			if d.Covers(t.Lock.Key) {
				found = merge(found, []*Term{t})
			}
		}
	}
	return found
}

// byDeclaration returns, for each lock that is declared to protect the table,
// its term if the process has exactly one open.
func (l *Ledger) byDeclaration(op *Op) []*Term {
	a := l.actors[op.Actor]
	if a == nil || AddressOnly(op.Actor) {
		return nil
	}
	var found []*Term
	table := TableName(op.SQL.Table)
	for _, d := range l.decls {
		if d.Table == "" || TableName(d.Table) != table {
			continue
		}
		for _, t := range a.open {
			if d.Covers(t.Lock.Key) && only(a.open, t) {
				found = merge(found, []*Term{t})
			}
		}
	}
	return found
}

func only(open []*Term, t *Term) bool {
	return !slices.ContainsFunc(open, func(o *Term) bool { return o != t && o.Lock == t.Lock })
}

// byProcess returns the process's open term, and how sure that is.
func (l *Ledger) byProcess(actor string, session uint64) Attribution {
	a := l.actors[actor]
	if a == nil || len(a.open) == 0 {
		return Attribution{}
	}
	if len(a.open) == 1 {
		switch t := a.open[0]; {
		case AddressOnly(actor):
			return Attribution{ID: t.ID, Confidence: 0.40}
		case a.hadTwo:
			return Attribution{ID: t.ID, Confidence: 0.75}
		default:
			return Attribution{ID: t.ID, Confidence: 0.90}
		}
	}
	if AddressOnly(actor) {
		return Attribution{}
	}
	if conn := l.conns[session]; conn != nil && len(conn.used) == 1 {
		return Attribution{ID: conn.used[0].ID, Confidence: 0.75}
	}
	return Attribution{ID: a.open[len(a.open)-1].ID, Confidence: 0.60}
}

// endTx gives a Commit or Rollback to the term whose writes it ends.
func (l *Ledger) endTx(op *Op) {
	conn := l.conns[op.Session]
	if conn.tx == op.Tx && len(conn.writes) > 0 {
		op.Term = attribution(conn.writes, conn.sure)
	}
	if !op.Savepoint {
		conn.writes, conn.sure = nil, 0
	}
}

func (c *connState) wrote(op *Op, t *Term) {
	if c.tx != op.Tx || len(c.writes) == 0 {
		c.tx, c.writes, c.sure = op.Tx, nil, op.Term.Confidence
	}
	c.writes = merge(c.writes, []*Term{t})
	c.sure = min(c.sure, op.Term.Confidence)
}

// replyWrite learns which tables are protected and which columns keep fences.
func (l *Ledger) replyWrite(op *Op) {
	t := l.terms[op.Term.ID]
	if t == nil || op.SQL == nil || op.Outcome != Done || !op.Term.Sure() {
		return
	}
	l.tables[TableName(op.SQL.Table)] = true
	if t.HasFence {
		l.learnFence(t, op)
	}
}

func (l *Ledger) requestFence(op *Op) {
	if a := l.byProcess(op.Actor, op.Session); a.Confidence >= 0.75 {
		op.Term = a
	}
}

// replyFence gives a number that was issued inside a section to its term: the
// first one after the grant.
func (l *Ledger) replyFence(op *Op) {
	t := l.terms[op.Term.ID]
	if t == nil || t.HasFence || op.Outcome != Done || !op.HasFence {
		return
	}
	l.setFence(t, op)
}

func (l *Ledger) setFence(t *Term, op *Op) {
	t.Fence, t.HasFence, t.FenceOp = op.Fence, true, op
	id := fenceID(t.Fence)
	l.fences[id] = append(l.fences[id], t)
	if n := len(l.fences[id]); n > 64 && !l.keepAll {
		l.fences[id] = l.fences[id][n-64:]
	}
}
