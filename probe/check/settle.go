package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

type txID struct{ session, n uint64 }

// A tx is what became of a transaction.
type tx struct {
	first  *lock.Op // its first statement
	commit *lock.Op
	last   *lock.Op // what ended it
	ops    []*lock.Op
	undone bool // rolled back, or failed
	parts  []part
}

// A part of a transaction was undone by a ROLLBACK TO: its ops with a Seq in
// [from, to), if that is sure.
type part struct {
	from, to uint64
	sure     bool
}

// undid reports whether an op was undone though its transaction was not, and
// whether that is sure.
func (t *tx) undid(op *lock.Op) (undone, sure bool) {
	for _, p := range t.parts {
		if op.Seq >= p.from && op.Seq < p.to {
			undone, sure = true, sure || p.sure
		}
	}
	return undone, sure
}

// A state is what became of a write.
type state int

const (
	void      state = iota // it certainly had no effect
	uncertain              // it may have
	accepted
	refused // answered, and its guard let it change nothing
)

// A write is a statement that assigns or deletes, with where its effect lies.
type write struct {
	op     *lock.Op
	id     *lock.Op // the op in the record: another one for what a statement writes beside its own table
	row    string
	state  state
	commit *lock.Op // of an explicit transaction
	lo, hi lock.Instant

	anywhere bool // of whatever table
}

// of reports whether a write may have been of a table.
func (w *write) of(table string) bool {
	return w.anywhere || lock.TableName(w.op.SQL.Table) == lock.TableName(table)
}

// locked is the latest instant at which the write can have got its row's lock.
func (w *write) locked() lock.Instant {
	if w.op.R == 0 {
		return lock.Never
	}
	return w.op.R
}

// over is the instant from which a write of the same row comes after this one:
// whoever has a row's lock keeps it until its commit, so that one which commits
// later than this one got the lock got it later.
func (w *write) over() lock.Instant { return min(w.hi, w.locked()) }

// before reports whether x certainly took effect before w, both accepted and of
// one row. A transaction's writes have their instants from its commit: which of them
// came first, their connection tells.
func (x *write) before(w *write) bool {
	if x.op.Session == w.op.Session {
		return x.op.Seq < w.op.Seq
	}
	return x.over() <= w.lo
}

// A read is a statement that returned columns of a row.
type read struct {
	op    *lock.Op
	row   string
	claim bool // the RETURNING of a write
	vague bool // stands for one of several; its value is not known
}

func (r *read) value(column string) lock.Value {
	if r.vague {
		return lock.Value{}
	}
	for _, c := range r.op.Row {
		if c.Column == column {
			return c.Value
		}
	}
	return lock.Value{}
}

// settle finds out what became of each transaction and each write.
func (c *kase) settle() {
	for _, op := range c.ops {
		if op.Proto == lock.Redis || op.Tx == 0 {
			continue
		}
		c.txOf(op).note(op)
	}
	for _, op := range c.ops {
		if op.Kind == lock.Write && op.SQL != nil {
			w := c.judgeWrite(op)
			c.writes, c.writeOf[op] = append(c.writes, w), w
			c.judgeBeside(op)
		}
	}
}

// judgeBeside notes what a statement writes beside its own table.
func (c *kase) judgeBeside(op *lock.Op) {
	for _, table := range op.SQL.Also {
		w := c.judgeWrite(besideOf(op, table))
		w.id = op
		c.addBeside(w)
	}
	if op.SQL.Cascade {
		w := c.judgeWrite(besideOf(op, ""))
		w.id, w.anywhere = op, true
		c.addBeside(w)
	}
}

func (c *kase) addBeside(w *write) {
	c.beside = append(c.beside, w)
	if c.besideOf == nil {
		c.besideOf = map[*lock.Op][]*write{}
	}
	c.besideOf[w.id] = append(c.besideOf[w.id], w)
}

// besideOf makes an op of what a statement did to another table. But for a
// TRUNCATE that is as little known as what a MERGE does, and nobody counts it.
func besideOf(op *lock.Op, table string) *lock.Op {
	own := *op
	own.SQL = &lock.Statement{Table: table}
	if op.Verb != "TRUNCATE" {
		own.Verb, own.Rows, own.SQL.Opaque = "MERGE", 1, true
	}
	return &own
}

func (c *kase) txOf(op *lock.Op) *tx {
	id := txID{op.Session, op.Tx}
	t := c.txs[id]
	if t == nil {
		t = &tx{}
		c.txs[id] = t
	}
	return t
}

// began is the earliest instant at which a transaction can have taken its snapshot.
func (t *tx) began() lock.Instant { return t.ops[0].F }

func (t *tx) note(op *lock.Op) {
	t.ops = append(t.ops, op)
	if over(op) {
		t.last = op
	}
	switch op.Kind {
	case lock.Commit:
		t.commit = op
		t.undone = t.undone || op.Outcome == lock.RolledBack || op.Outcome == lock.Failed
	case lock.Rollback:
		if op.Savepoint && op.Outcome != lock.Failed {
			t.parts = append(t.parts, part{op.Since, op.Seq, op.Since != 0 && op.Outcome == lock.Done})
		} else if !op.Savepoint && t.commit == nil {
			t.undone = true
		}
	case lock.Read, lock.Write:
		if t.first == nil {
			t.first = op
		}
		t.undone = t.undone || op.Implicit && op.Outcome == lock.Failed
	}
}

func (c *kase) judgeWrite(op *lock.Op) *write {
	w := &write{op: op, id: op, row: c.rowOf(op)}
	t := &tx{}
	if op.Tx != 0 {
		t = c.txOf(op)
	}
	w.lo, w.hi = op.F, max(op.R, op.Z)
	if !op.Implicit && op.Tx != 0 {
		w.commit = t.commit
		w.lo, w.hi = lock.Never, lock.Never
		if t.commit != nil {
			w.lo, w.hi = t.commit.F, t.commit.R
		}
	}
	if w.hi == 0 {
		w.hi = lock.Never
	}
	w.state = stateOf(op, t)
	return w
}

func stateOf(op *lock.Op, t *tx) state {
	explicit := !op.Implicit && op.Tx != 0
	undone, sure := t.undid(op)
	switch {
	case op.F == 0 && op.R == 0:
		return void // never forwarded
	case op.Outcome == lock.Failed && rejects(op.Err):
		return refused
	case op.Outcome == lock.Failed, op.Outcome == lock.RolledBack:
		return void
	case answered(op) && op.Rows == 0 && op.Verb != "TRUNCATE": // whose rows nobody counts
		return refused
	case t.undone, sure:
		return void
	case explicit && (t.commit == nil || t.commit.F == 0 && t.commit.R == 0):
		return void // no COMMIT was ever sent
	case !answered(op), explicit && !answered(t.commit), undone:
		return uncertain
	}
	return accepted
}

// rejects reports whether an error is a defence against a stale writer at work.
func rejects(sqlstate string) bool {
	return sqlstate == "40001" || sqlstate == "23505"
}

// collect sorts reads and writes by row and by term.
func (c *kase) collect() {
	c.collectActs()
	for _, op := range c.ops {
		if op.Term.Sure() && (op.SQL != nil || op.Kind == lock.Commit) {
			d := c.did(op.Term.ID)
			d.ops = append(d.ops, op)
			d.end = max(d.end, c.opEnd(op))
			for _, id := range op.Term.Within {
				d := c.did(id)
				d.within, d.end = append(d.within, op), max(d.end, c.opEnd(op))
			}
		}
		if op.SQL != nil && answered(op) && op.Outcome == lock.Done {
			c.collectRead(op)
		}
	}
	for _, w := range c.writes {
		c.collectWrite(w)
	}
	for _, list := range c.written {
		slices.SortStableFunc(list, func(a, b *write) int { return cmp.Compare(a.lo, b.lo) })
	}
	for _, t := range c.all {
		c.terms[t.Lock] = append(c.terms[t.Lock], t)
		c.did(t.ID)
		c.state(t.Lock).met(t)
	}
}

// acts lists what a term did, or a term within it.
func (d *doings) acts() []*lock.Op { return slices.Concat(d.ops, d.within) }

func (c *kase) did(id lock.TermID) *doings {
	d := c.ofTerm[id]
	if d == nil {
		d = &doings{}
		c.ofTerm[id] = d
	}
	return d
}

func (c *kase) collectRead(op *lock.Op) {
	claim := op.Kind == lock.Write
	if claim && (!op.SQL.Returning || op.Rows == 0) || op.Kind != lock.Write && op.Kind != lock.Read {
		return
	}
	r := &read{op: op, row: c.rowOf(op), claim: claim}
	c.reads = append(c.reads, r)
	columns := c.columnsOf(r)
	c.index(r, columns)
	for _, column := range columns {
		k := cell{lock.TableName(op.SQL.Table), r.row, column}
		c.readsOf[k] = append(c.readsOf[k], r)
	}
	if op.Term.Sure() {
		c.did(op.Term.ID).reads = append(c.did(op.Term.ID).reads, r)
	}
}

// columnsOf lists the columns that a statement returned.
func (c *kase) columnsOf(r *read) []string {
	var out []string
	for _, v := range r.op.Row {
		out = append(out, v.Column)
	}
	for _, column := range r.op.SQL.Columns {
		if column == "*" {
			for m := range c.shapeOf(r.op.SQL.Table).mutable {
				out = append(out, m)
			}
			continue
		}
		out = append(out, column)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *kase) collectWrite(w *write) {
	if w.op.Term.Sure() {
		c.did(w.op.Term.ID).writes = append(c.did(w.op.Term.ID).writes, w)
	}
	if w.state != accepted && w.state != uncertain {
		return
	}
	for _, a := range w.op.SQL.Set {
		k := cell{lock.TableName(w.op.SQL.Table), w.row, a.Column}
		c.written[k] = append(c.written[k], w)
	}
}

// assignsTo returns the value that a write puts into a column, if there is a write.
func (w *write) assignsTo(column string) (lock.Value, bool) {
	if w == nil {
		return lock.Value{}, false
	}
	a, ok := w.assigns(column)
	return a.Value, ok && !a.HasDelta
}

func (w *write) assigns(column string) (lock.Assign, bool) {
	for _, a := range w.op.SQL.Set {
		if a.Column == column {
			return a, true
		}
	}
	return lock.Assign{}, false
}
