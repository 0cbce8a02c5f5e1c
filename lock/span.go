package lock

import (
	"slices"
	"strings"
)

// maxWithin is how many locks of one transaction a statement is said to be of:
// the first ones that it took.
const maxWithin = 32

// An effect is what a statement did to a lease table, which holds once its
// transaction commits.
type effect struct {
	op    *Op
	grant *Term // it opened this
	lost  *Term // it removed this
}

// An ending is the end of a transaction that has no answer yet.
type ending struct {
	op     *Op
	spans  []*Term
	leases []effect
}

// spans reports whether an op is about a lock that nothing but its session, or its
// transaction, can hold on to.
func (op *Op) spans() bool {
	return op.Span != LeaseSpan || op.Proto == Postgres && strings.HasPrefix(op.Key, "advisory:")
}

func (c *connState) begin(op *Op) { c.begun = op }

// since places a lease that was set in a transaction: now() is when that began, as
// far as is known.
func (l *Ledger) since(lease *lease, op *Op) {
	if op.Proto != Postgres || op.Implicit || op.Tx == 0 || op.TTL <= 0 || op.Until != 0 {
		return
	}
	if conn := l.conns[op.Session]; conn != nil && conn.begun != nil && conn.begun.Tx == op.Tx {
		lease.known.Earliest -= op.F - conn.begun.F
	} else {
		lease.known.Earliest = 0
	}
}

// inTx notes what a statement of a transaction did to a lease table.
func (l *Ledger) inTx(op *Op, e effect) {
	conn := l.conns[op.Session]
	if op.Proto != Postgres || op.Implicit || op.Tx == 0 || conn == nil || len(conn.leases) == maxAsked {
		return
	}
	l.enter(conn, op)
	conn.leases = append(conn.leases, e)
}

// enter notes which transaction a connection is in, and that the one before is
// over, of which no end was seen.
func (l *Ledger) enter(conn *connState, op *Op) {
	if op.Tx == 0 || op.Tx == conn.tx {
		return
	}
	for _, t := range slices.Clone(conn.inTx) {
		t.last(0, Never)
		l.end(t, op.A, Released)
	}
	l.unpin(conn)
	conn.tx, conn.writes, conn.leases = op.Tx, Attribution{}, nil
}

// spansTx makes a term own the statements of its transaction, from here on.
func (l *Ledger) spansTx(conn *connState, t *Term) {
	if conn == nil {
		l.end(t, t.Grant.R, Closed)
		return
	}
	l.enter(conn, t.Grant)
	conn.inTx = append(conn.inTx, t)
}

// ofTx returns the terms that span the transaction of an op.
func (c *connState) ofTx(op *Op) []*Term {
	if c == nil || op.Tx == 0 || op.Tx != c.tx {
		return nil
	}
	return c.inTx[:min(len(c.inTx), maxWithin)]
}

// lastsOn reports whether a term outlasts the statement that took it.
func (t *Term) lastsOn() bool { return !t.Grant.Implicit }

// goesOn notes that an answer showed a session, and a transaction, to go on: what
// spans them was there when its request was forwarded.
func (c *connState) goesOn(op *Op) {
	if op.Proto != Postgres || op.Outcome == Failed || op.Outcome == Unknown || op.Outcome == Pending {
		return
	}
	for _, t := range c.spans {
		t.last(op.F, Never)
	}
	for _, t := range c.ofTx(op) {
		t.last(op.F, Never)
	}
}

// last notes that what spans a session or transaction was last seen to be there at
// from, and has gone by to.
func (t *Term) last(from, to Instant) {
	t.known = Interval{max(t.known.Earliest, from), to}
	t.settle()
}

// requestEnd closes the sections that span a transaction whose end is asked for,
// and gives the end to the terms whose writes the transaction has.
func (l *Ledger) requestEnd(op *Op) {
	conn := l.conns[op.Session]
	var writes Attribution
	if conn.tx == op.Tx {
		writes = conn.writes
	}
	op.Term = l.around(conn.ofTx(op), writes)
	if op.Savepoint {
		return
	}
	if op.Tx == conn.tx {
		e := ending{op: op, spans: slices.Clone(conn.inTx), leases: conn.leases}
		if len(e.spans)+len(e.leases) > 0 && len(conn.endings) < maxAsked {
			conn.endings = append(conn.endings, e)
		}
		for _, t := range e.spans {
			l.asked(t, op)
		}
		l.unpin(conn)
		conn.tx, conn.writes, conn.leases, conn.begun = 0, Attribution{}, nil, nil
	}
}

func (l *Ledger) replyEnd(op *Op) {
	conn := l.conns[op.Session]
	if conn == nil {
		return
	}
	if op.Savepoint {
		l.rollBackTo(conn, op)
		return
	}
	i := slices.IndexFunc(conn.endings, func(e ending) bool { return e.op == op })
	if i < 0 {
		return
	}
	e := conn.endings[i]
	conn.endings = slices.Delete(conn.endings, i, i+1)
	committed := op.Kind == Commit && op.Outcome == Done
	for _, t := range e.spans {
		if committed {
			t.last(op.F, op.R)
		} else {
			t.last(0, op.R) // an error before may have ended it
		}
		t.lose(op)
	}
	if !committed {
		l.undo(e.leases, op.R)
	}
}

// rollBackTo ends the locks that a part of a transaction took which is undone.
func (l *Ledger) rollBackTo(conn *connState, op *Op) {
	if op.Outcome != Done || op.Tx != conn.tx {
		return
	}
	for _, t := range slices.Clone(conn.inTx) {
		switch {
		case op.Since == 0:
			t.doubt = true
		case t.Grant.Seq >= op.Since:
			t.last(0, op.R)
			t.lose(op)
			l.asked(t, op)
		}
	}
	kept := conn.leases[:0]
	for _, e := range conn.leases {
		if op.Since != 0 && e.op.Seq >= op.Since {
			l.undo([]effect{e}, op.R)
			continue
		}
		kept = append(kept, e)
	}
	conn.leases = kept
}

// undo takes back what a transaction that was rolled back did to lease tables.
func (l *Ledger) undo(effects []effect, at Instant) {
	for _, e := range effects {
		if t := e.grant; t != nil {
			t.known = Interval{0, Never} // never held, and nothing of it shows when it was over
			t.settle()
			l.end(t, at, Undone)
		}
		if t := e.lost; t != nil && t.Released == e.op {
			t.Released = nil
			if k := l.known(t.Lock); k != nil && k.current == nil {
				k.current = t
			}
		}
	}
}

// releaseAll closes every section that spans the session.
func (l *Ledger) releaseAll(op *Op) {
	conn := l.conns[op.Session]
	spans := slices.Clone(conn.spans)
	op.Term = l.around(spans, Attribution{})
	if len(spans) > 0 && len(conn.endings) < maxAsked {
		conn.endings = append(conn.endings, ending{op: op, spans: spans})
	}
	for _, t := range spans {
		l.asked(t, op)
	}
}

func (l *Ledger) releasedAll(op *Op) {
	conn := l.conns[op.Session]
	if conn == nil {
		return
	}
	i := slices.IndexFunc(conn.endings, func(e ending) bool { return e.op == op })
	if i < 0 {
		return
	}
	if op.Outcome == Done {
		for _, t := range conn.endings[i].spans {
			t.lose(op)
		}
	}
	conn.endings = slices.Delete(conn.endings, i, i+1)
}

// tookOwn gives a statement to the locks of its transaction that were granted
// since it was asked: mostly it took them itself.
func (l *Ledger) tookOwn(op *Op) {
	conn := l.conns[op.Session]
	if op.SQL == nil || op.Outcome == Failed {
		return
	}
	if conn == nil {
		return
	}
	spans := conn.exactly(op)
	if !slices.ContainsFunc(spans, func(t *Term) bool { return !op.Term.Of(t.ID) }) {
		return
	}
	op.Term = l.around(spans, op.Term)
	if op.Kind == Write && !op.Implicit {
		l.writes(conn, op)
	}
}
