package lock

import "time"

type fenceID int64

// learnedAfter is how many sections must have compared a column with their fence.
const learnedAfter = 3

type columnID struct{ group, table, column string }

type columnState struct {
	hits, misses int
	last         TermID
}

// counters are the keys that INCR was used on.
type counters struct {
	expiring map[string]bool // shapes of those that are made to expire
	issued   map[LockID]*Term
}

// longest is the longest lifetime of a counter that only limits a rate: numbers
// that start again when nobody comes are no fences.
const longest = 24 * time.Hour

// expires notes that a key was made to expire, and takes back the fence that it
// issued, if it was taken for a counter of those.
func (c *counters) expires(l *Ledger, op *Op) {
	id := IDOf(op)
	t, counted := c.issued[id]
	if !counted || op.TTL == 0 || op.TTL > longest {
		return
	}
	c.limit(group(id))
	if t.HasFence && t.FenceOp != nil && t.FenceOp.Key == id.Key && t.FenceOp.Kind == Fence {
		remove(l.fences, fenceID(t.Fence), t)
		t.Fence, t.HasFence, t.FenceOp = 0, false, nil
	}
	delete(c.issued, id)
}

func (c *counters) limit(shape string) {
	if c.expiring == nil || len(c.expiring) > maxKeys {
		c.expiring = map[string]bool{}
	}
	c.expiring[shape] = true
}

func (c *counters) issues(op *Op, t *Term) {
	if c.issued == nil || len(c.issued) > maxKeys {
		c.issued = map[LockID]*Term{}
	}
	c.issued[IDOf(op)] = t
}

func (l *Ledger) requestFence(op *Op) {
	if len(l.counters.expiring) > 0 && l.counters.expiring[group(IDOf(op))] {
		return
	}
	if a := l.byProcess(op, l.elsewhere(op)); a.Confidence >= 0.75 {
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
	l.counters.issues(op, t)
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

// learnFence counts the columns that a section compares with its own fence.
// An equal number that is only assigned is no sign: values rise as fences do.
func (l *Ledger) learnFence(t *Term, op *Op) {
	for _, c := range op.SQL.Where {
		if !c.Value.Known() || c.Op == ">" || c.Op == ">=" || c.Op == "<>" {
			continue
		}
		s := l.column(t, op.SQL.Table, c.Column)
		switch {
		case s == nil:
		case !c.Value.IsInt || c.Value.Int != t.Fence:
			s.misses++
		case s.last != t.ID:
			s.hits++
			s.last = t.ID
		}
	}
}

// column returns what is known of a column, nil where there is no room for it.
func (l *Ledger) column(t *Term, table, column string) *columnState {
	id := columnID{l.names.of(t.Lock), TableName(table), column}
	s := l.columns[id]
	if s == nil && (l.keepAll || len(l.columns) < maxKeys) {
		s = &columnState{}
		l.columns[id] = s
	}
	return s
}

// FenceColumn reports whether a column keeps the fences of the lock: it was
// declared, or three sections compared it with their own fence and none with
// another number.
func (l *Ledger) FenceColumn(id LockID, table, column string) bool {
	for _, d := range l.decls {
		if d.FenceColumn == column && d.FenceColumn != "" && TableName(d.Table) == TableName(table) && d.Covers(id.Key) {
			return true
		}
	}
	s := l.columns[columnID{l.names.of(id), TableName(table), column}]
	return s != nil && s.hits >= learnedAfter && s.misses == 0
}

// MayBeFence reports whether a column keeps the fences of the lock, or may turn out
// to: so far its sections compared it with their own fence and with nothing else.
func (l *Ledger) MayBeFence(id LockID, table, column string) bool {
	s := l.columns[columnID{l.names.of(id), TableName(table), column}]
	return s != nil && s.hits > 0 && s.misses == 0 || l.FenceColumn(id, table, column)
}

// IsFence reports whether a column keeps the fences of any lock.
func (l *Ledger) IsFence(table, column string) bool {
	for _, d := range l.decls {
		if d.FenceColumn == column && d.FenceColumn != "" && TableName(d.Table) == TableName(table) {
			return true
		}
	}
	for id, s := range l.columns {
		if id.table == TableName(table) && id.column == column && s.hits >= learnedAfter && s.misses == 0 {
			return true
		}
	}
	return false
}
