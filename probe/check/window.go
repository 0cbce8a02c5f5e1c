package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// horizon is the instant before which nothing that goes on began. Where that lies
// further back than ops are kept, what began before is let go of.
func (j *Judging) horizon() lock.Instant {
	at := j.earliest()
	if len(j.ops) <= j.kept {
		return at
	}
	limit := j.ops[len(j.ops)-j.kept/2].A
	if at >= limit {
		return at
	}
	j.floor = limit
	for _, t := range j.terms {
		if t.Grant.A < limit && !j.pinned[t.ID] && !j.closed[t.ID] {
			j.pinned[t.ID] = true
			j.pins++
		}
	}
	for op := range j.asked {
		if op.A < limit {
			delete(j.asked, op)
		}
	}
	for session, tx := range j.txs {
		if tx.first.A < limit {
			delete(j.txs, session)
		}
	}
	return max(limit, j.earliest())
}

// earliest is the instant at which the first of what goes on began.
func (j *Judging) earliest() lock.Instant {
	at := j.now
	hold := func(id lock.TermID) {
		if t := j.term[id]; t != nil && !j.pinned[id] && !t.Marker {
			at = min(at, t.Grant.A)
		}
	}
	of := func(op *lock.Op) {
		at = min(at, op.A)
		hold(op.Term.ID)
		for _, id := range op.Term.Also {
			hold(id)
		}
		for _, id := range op.Term.Within {
			hold(id)
		}
	}
	for op := range j.asked {
		of(op)
	}
	for _, tx := range j.txs {
		of(tx.first)
	}
	for _, t := range j.terms {
		if t.Open() || j.leased(t) {
			hold(t.ID)
		}
	}
	return at
}

// leased reports whether a term's lease may still be running, as far as the
// clock tells.
func (j *Judging) leased(t *lock.Term) bool {
	return t.Released == nil && t.LeaseEnd.Latest != lock.Never && t.LeaseEnd.Latest >= j.now
}

// due reports whether the term is a subject of this case: it is over, and so is
// all that it met. Each term is a subject once.
func (c *kase) due(t *lock.Term) bool {
	if c.closed[t.ID] || c.held[t.ID] {
		return false
	}
	return c.horizon == lock.Never || (!t.Open() || t.Marker) && c.termEnd(t) < c.horizon
}

// dueOp reports whether the op is a subject of this case, as due does of a term.
func (c *kase) dueOp(op *lock.Op) bool {
	if c.subjects != nil {
		return c.subjects[op]
	}
	return c.isDue(op)
}

func (c *kase) isDue(op *lock.Op) bool {
	return !c.judged[op] && !c.waiting[op] && (c.horizon == lock.Never || c.opEnd(op) < c.horizon)
}

// opEnd is when what the op did was over: with its transaction, if it is part of one.
func (c *kase) opEnd(op *lock.Op) lock.Instant {
	end := max(op.A, op.R, op.Z)
	if op.Proto == lock.Redis || op.Tx == 0 || op.Implicit {
		return end
	}
	if t := c.txs[txID{op.Session, op.Tx}]; t != nil {
		if w, open := c.within[op.Session]; open && w.n == op.Tx && t.last == nil {
			return lock.Never
		}
		if t.last != nil {
			end = max(end, t.last.A, t.last.R)
		}
	}
	return end
}

// termEnd is when a term that is not open any more was over, with all that it did.
func (c *kase) termEnd(t *lock.Term) lock.Instant {
	end := max(t.End, t.Grant.R, t.Grant.D)
	if t.Marker {
		return end
	}
	if r := t.Release; r != nil {
		end = max(end, r.A, r.R)
	}
	if r := t.Released; r != nil {
		end = max(end, r.R)
	}
	if t.Released == nil && t.LeaseEnd.Latest != lock.Never {
		end = max(end, t.LeaseEnd.Latest)
	}
	if d := c.ofTerm[t.ID]; d != nil {
		end = max(end, d.end)
	}
	return end
}

// forget drops what nothing that goes on, and nothing that was not judged yet, can
// reach.
func (j *Judging) forget(c *kase) {
	from := j.marks(c)
	c.settleCells(from)
	k := &keeper{j: j, c: c, from: from, ops: map[*lock.Op]bool{}}
	k.terms()
	k.acts()
	k.chosen()
	c.leaveFences(k)
	for _, t := range c.tallies {
		t.leave(k)
	}
	for _, m := range c.risings {
		m.leave(c, from)
	}
	j.ops = slices.DeleteFunc(j.ops, func(op *lock.Op) bool {
		if k.keeps(op) {
			return false
		}
		delete(j.judged, op)
		delete(j.crowded, op)
		return true
	})
	j.strays = slices.DeleteFunc(j.strays, func(s stray) bool { return j.judged[s.op] || !k.keeps(s.op) })
}

// marks notes what was judged, and returns the instant at which the first of what
// was not began.
func (j *Judging) marks(c *kase) lock.Instant {
	from := c.horizon
	for _, t := range j.terms {
		switch {
		case c.due(t):
			j.closed[t.ID] = true
		case !j.closed[t.ID] && !j.pinned[t.ID] && !t.Marker:
			from = min(from, t.Grant.A)
		}
	}
	for _, op := range j.ops {
		switch {
		case c.dueOp(op):
			j.judged[op] = true
		case !j.judged[op] && !(op.Term.ID != 0 && j.pinned[op.Term.ID]):
			from = min(from, op.A)
		}
	}
	return max(from, j.floor)
}

// A keeper says what stays in view.
type keeper struct {
	j    *Judging
	c    *kase
	from lock.Instant
	ops  map[*lock.Op]bool // whatever their instants
}

// terms keeps the terms that were not judged, and those that met one of them.
func (k *keeper) terms() {
	j := k.j
	j.terms = slices.DeleteFunc(j.terms, func(t *lock.Term) bool {
		if !j.closed[t.ID] || k.c.termEnd(t) >= k.from && !j.pinned[t.ID] {
			k.term(t)
			return false
		}
		delete(j.term, t.ID)
		delete(j.closed, t.ID)
		delete(j.pinned, t.ID)
		return true
	})
}

// acts keeps what may have been done to the key of a term since its grant.
func (k *keeper) acts() {
	since := map[lock.LockID]lock.Instant{}
	for _, t := range k.j.terms {
		if at, ok := since[t.Lock]; !k.j.pinned[t.ID] && !t.Marker && (!ok || t.Grant.F < at) {
			since[t.Lock] = t.Grant.F
		}
	}
	for id, at := range since {
		if a := k.c.acts[id]; a != nil {
			a.since(at, k.ops)
		}
	}
}

// term keeps what a term did, and what set its lease. Of one that is pinned that is
// what is recent, and its last reads.
func (k *keeper) term(t *lock.Term) {
	k.ops[t.Grant] = true
	d := k.c.ofTerm[t.ID]
	if d == nil {
		return
	}
	if !k.j.pinned[t.ID] {
		for _, op := range slices.Concat(d.acts(), k.c.renewals()[t.ID]) {
			k.ops[op] = true
		}
		return
	}
	for _, r := range d.reads[max(0, len(d.reads)-fewReads):] {
		k.ops[r.op] = true
	}
}

// How much is kept beside what is recent.
const (
	fewReads  = 64   // of a term that went on for too long
	mostReads = 1024 // the last one of a row by a session, each
	mostLasts = 4096 // the writes that guards are compared with
	mostHangs = 1024 // what was forwarded and never answered
)

// A reading is of one row by one session.
type reading struct {
	session uint64
	row     tableRow
}

// chosen keeps what was never answered, the last read of each row by each session, and the
// writes that later guards are compared with.
func (k *keeper) chosen() {
	c := k.c
	hangs := 0
	for _, op := range slices.Backward(c.ops) {
		if op.F != 0 && !answered(op) && op.Kind != lock.Read {
			if hangs++; hangs <= mostHangs {
				k.hanging(op)
			}
		}
	}
	c.hung = max(c.hung, hangs-mostHangs)
	for _, op := range c.ops {
		if op.Kind == lock.Read && op.SQL != nil && !op.Term.Sure() {
			c.lastRead[reading{op.Session, tableRow{lock.TableName(op.SQL.Table), c.rowOf(op)}}] = op
		}
	}
	if len(c.lastRead) > mostReads {
		clear(c.lastRead)
	}
	for _, op := range c.lastRead {
		k.ops[op] = true
	}
	for _, t := range c.tallies {
		k.readSince(t)
	}
	k.lasts()
}

// hanging keeps an op that was never answered, with its transaction and its term's.
func (k *keeper) hanging(op *lock.Op) {
	k.ops[op] = true
	if d := k.c.ofTerm[op.Term.ID]; d != nil && op.Term.Sure() {
		for _, o := range d.ops[max(0, len(d.ops)-fewReads):] {
			k.ops[o] = true
		}
	}
	if t := k.c.txs[txID{op.Session, op.Tx}]; t != nil && op.Tx != 0 {
		for _, o := range t.ops[max(0, len(t.ops)-fewReads):] {
			k.ops[o] = true
		}
	}
}

// readSince keeps the writes of a counter since a session that is in no section read it.
func (k *keeper) readSince(t *tally) {
	since := lock.Never
	for _, op := range k.c.lastRead {
		if lock.TableName(op.SQL.Table) == lock.TableName(t.inv.Table) {
			since = min(since, op.F)
		}
	}
	list := k.c.writes
	for _, w := range list[max(0, len(list)-mostLasts):] {
		if w.hi >= since && w.of(t.inv.Table) {
			k.ops[w.op] = true
			if w.commit != nil {
				k.ops[w.commit] = true
			}
		}
	}
}

// lasts keeps, of each cell that guards compare, the last write and the highest.
func (k *keeper) lasts() {
	n := 0
	for _, cell := range sortedCells(k.c.written) {
		if !k.c.shapeOf(cell.table).guards(cell.column) || n >= mostLasts {
			continue
		}
		n++
		var last, highest *write
		for _, w := range k.c.written[cell] {
			a, _ := w.assigns(cell.column)
			if w.state != accepted {
				continue
			}
			last = w
			if b, _ := highest.assignsTo(cell.column); a.Value.IsInt && (highest == nil || a.Value.Int >= b.Int) {
				highest = w
			}
		}
		for _, w := range []*write{last, highest} {
			if w != nil {
				k.ops[w.op] = true
				if w.commit != nil {
					k.ops[w.commit] = true
				}
			}
		}
	}
}

func (k *keeper) keeps(op *lock.Op) bool {
	return k.ops[op] || !k.j.judged[op] || k.c.opEnd(op) >= k.from
}
