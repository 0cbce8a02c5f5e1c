package pgwire

import (
	"fmt"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A doing is one execution of a statement that matters: what it does to locks,
// and behind that the op of its own, if it has one.
type doing struct {
	locks []held
	call  *Call // nil: the wire tells it all
	op    *lock.Op
}

// A held is what an execution does to one lock.
type held struct {
	*hold
	op      *lock.Op
	yes, no int64      // rows that said so
	sent    lock.Value // what RETURNING must say
}

func (d *doing) none() bool { return d.op == nil && len(d.locks) == 0 }

// pending reports whether the ops have no outcome yet.
func (d *doing) pending() bool {
	return d.op != nil && d.op.Outcome == lock.Pending || len(d.locks) > 0 && d.locks[0].op.Outcome == lock.Pending
}

// burden is the weight of the ops.
func (d *doing) burden() int32 {
	n := int32(len(d.locks))
	if d.op != nil {
		n += weighs(d.op.SQL, nil)
	}
	return n
}

// wantsRow reports whether the first row is looked at.
func (d *doing) wantsRow() bool {
	if d == nil {
		return false
	}
	return len(d.locks) > 0 || d.returns()
}

// returns reports whether the statement's own op has a row.
func (d *doing) returns() bool {
	return d.op != nil && (d.op.Kind == lock.Read || d.op.Kind == lock.Write && d.op.SQL.Returning)
}

// wantsAll reports whether each row is looked at.
func (d *doing) wantsAll() bool {
	if d == nil {
		return false
	}
	for i := range d.locks {
		if d.locks[i].tells == byTruth {
			return true
		}
	}
	return false
}

// do makes the ops of one execution of a statement, of which sql is what it says.
func (t *Tracker) do(tm *template, from binding, sql *lock.Statement) doing {
	var d doing
	for i := range tm.holds {
		if op := t.lockOp(&tm.holds[i], tm, from); op != nil {
			d.locks = append(d.locks, held{hold: &tm.holds[i], op: op})
		}
	}
	if l, ok := t.leased(tm, from); ok {
		d.locks = append(d.locks, l)
		sql.Lease = true
	}
	for i := range d.locks {
		d.locks[i].op.Path = t.pathOfKey(d.locks[i].op.Key)
	}
	d.call = t.call(&d)
	if t.mattersItself(tm) {
		d.op = t.op(tm, sql)
	}
	return d
}

// lockOp makes the op of what a statement does to a lock. A row's lock that ends
// with its statement is none, nor is giving back all where there can be nothing.
func (t *Tracker) lockOp(h *hold, tm *template, from binding) *lock.Op {
	switch {
	case h.tells == byRows || h.tells == bySkip:
		if h.span == lock.TxSpan && h.class != "advisory" && !t.tx.explicit {
			return nil
		}
	case h.all && !t.advised.any:
		return nil
	}
	op := &lock.Op{
		Session: t.opt.Session, Upstream: t.opt.Upstream, Proto: lock.Postgres, Kind: h.kind, Verb: h.verb,
		Key: h.key(t.opt.Hash, from), NX: h.kind == lock.Acquire, Guarded: h.kind != lock.Acquire,
		Shared: h.shared, Span: h.span, All: h.all, Token: t.self(),
	}
	if h.span == lock.SessionSpan {
		t.advised.any = !h.all
	}
	t.tx.assign(op, tm)
	return op
}

// self is the token of what the session holds: nobody else can.
func (t *Tracker) self() lock.Value {
	if t.token.Hash == "" {
		t.token = t.opt.Hash.Of(fmt.Appendf(nil, "postgres session %d", t.opt.Session))
	}
	return t.token
}

// markAll says that the requests of all ops are whole.
func (t *Tracker) markAll(d *doing, begun bool, start, end int64) {
	for i := range d.locks {
		t.mark(d.locks[i].op, begun, start, end)
	}
	if d.op != nil {
		t.mark(d.op, begun, start, end)
	}
	if d.call == nil {
		return
	}
	if end-start > wire.MaxHeld {
		start = end
	}
	t.marks = append(t.marks, wire.Mark{Kind: wire.Called, Call: d.call, Start: start, End: end})
}

// sees takes a row.
func (d *doing) sees(body []byte, f formats) {
	for i := range d.locks {
		l := &d.locks[i]
		if l.tells != byTruth {
			continue
		}
		switch truth(body, l.cell, f) {
		case 't':
			l.yes++
		case 'f':
			l.no++
		}
	}
}

// truth returns t or f for the boolean in a cell of a DataRow, or what a
// boolean was cast to; 0 if it is NULL, or neither.
func truth(body []byte, cell int, f formats) byte {
	c := cursor{b: body}
	if n := c.count(); cell >= n || f.unknown {
		return 0
	}
	for range cell {
		c.field()
	}
	b, null := c.field()
	if null || c.bad {
		return 0
	}
	if f.binary(cell) && len(b) < len("true") || f.binary(cell) && len(b) == 4 && b[0] == 0 {
		for _, c := range b {
			if c != 0 {
				return 't'
			}
		}
		return 'f'
	}
	if v, ok := parseBool(b); ok {
		return boolText(v)
	}
	return 0
}

// settleLocks fills in what became of the locks of a statement that came to its
// end, with so many rows.
func (t *Tracker) settleLocks(d *doing, rows int64) {
	for i := range d.locks {
		l := &d.locks[i]
		l.op.Rows = rows
		l.op.Outcome = l.outcome(rows)
		l.told(t.opt.Hash, t.reply.row, rows, t.reply.rows)
		if l.class == "advisory" || l.all {
			t.advised.count(l)
		}
	}
}

// outcome tells what became of the lock.
func (l *held) outcome(rows int64) lock.Outcome {
	yes, no := lock.Granted, lock.Refused
	if l.kind != lock.Acquire {
		yes, no = lock.Done, lock.NotHeld
	}
	switch l.tells {
	case byEnd:
		return yes
	case byTruth:
		switch {
		case l.yes > 0:
			return yes
		case l.no > 0:
			return no
		}
		return lock.Done
	case byNone:
		return lock.Unknown
	}
	switch {
	case rows > 0:
		return yes
	case l.tells == bySkip || l.tells == byOnly:
		return no
	case l.tells == byFilter && len(l.args) > 0:
		return lock.Unknown
	}
	return lock.Done
}

// failLocks notes that the statement failed. One that asked for a lock and was
// told so in time was refused it.
func (d *doing) failLocks(state string) {
	for i := range d.locks {
		op := d.locks[i].op
		op.Outcome, op.Err = lock.Failed, state
		if op.Kind == lock.Acquire && (refuses(state) || state == uniqueViolation && d.locks[i].lease != nil) {
			op.Outcome = lock.Refused
		}
	}
}

const uniqueViolation = "23505"

// refuses reports whether an error says that somebody else has the lock: not
// available, cancelled while it waited, a deadlock, or another's change.
func refuses(state string) bool {
	switch state {
	case "55P03", "57014", "40P01", "40001":
		return true
	}
	return false
}

// finish marks the end of the reply to an execution's ops.
func (t *Tracker) finish(d *doing, tm *template, m *message) {
	start := t.reply.start
	if start == none {
		start = m.start
	}
	if m.end-start > wire.MaxHeld {
		start = m.end
	}
	t.answeredCall(d, start, m.end)
	for i := range d.locks {
		t.marks = append(t.marks, wire.Mark{Kind: wire.Reply, Op: d.locks[i].op, Start: start, End: m.end})
	}
	if d.op != nil {
		t.marks = append(t.marks, wire.Mark{Kind: wire.Reply, Op: d.op, Start: start, End: m.end})
	}
	t.reply = reply{start: none}
	end := &message{typ: m.typ, start: start, end: m.end}
	for i := range d.locks {
		if t.phase == running {
			t.answered(d.locks[i].op, tm, end)
		}
	}
	if d.op != nil && t.phase == running {
		t.answered(d.op, tm, end)
	}
}
