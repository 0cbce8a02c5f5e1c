package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Tally is how many rows of a table the server itself counted as written in the
// run, whoever wrote them.
type Tally struct {
	Upstream                   string // as of the ops: name and database
	Table                      string
	Inserted, Updated, Deleted int64
}

// A Bypass is a command on a lock's key by somebody who is not behind the proxies.
type Bypass struct {
	Upstream string
	At       lock.Instant
	DB       int
	Key      string
	Verb     string
	Address  string
}

// A tableOf is one table of one database.
type tableOf struct{ upstream, table string }

// A halfSeen is what was seen of one table's writes, as far as it tells what was not.
type halfSeen struct {
	accepted int       // writes
	from, to uint64    // the first and the last, by Seq, that was a section's for sure
	pending  []nobodys // of which it is not known yet that they were between those
	nobodys  int       // of which it is
	first    *lock.Op  // of those
	either   either    // may be of a stale section, or of another
	rows     int64     // that statements were answered to have written
	deleted  int64     // of those
	disputed int64     // inserts that may have met a row which another was inserting: see lostInserts
	unknown  int       // statements of which that is not told
}

// A nobodys is a write of nobody's for sure. It matters if a section wrote one of
// the cells, or in any case where none are named.
type nobodys struct {
	op    *lock.Op
	cells []cell
}

// mostNobodys is how many of one table wait for what tells of them.
const mostNobodys = 1 << 10

// blindness counts what writes, and calls of scripts, tell of what was not seen.
func (c *kase) blindness() {
	c.unknownScripts()
	for _, w := range slices.Concat(c.writes, c.beside) {
		if !c.dueOp(w.op) {
			continue
		}
		k := tableOf{w.op.Upstream, lock.TableName(w.op.SQL.Table)}
		b := c.blind[k]
		if b == nil {
			if len(c.blind) >= mostTables {
				continue
			}
			b = &halfSeen{}
			c.blind[k] = b
			c.blindOrder = append(c.blindOrder, k)
		}
		b.rowsOf(w)
		if w.state == accepted || w.state == uncertain {
			c.noteWriter(b, w)
		}
	}
}

// rowsOf adds how many rows the server counts for a statement, which it does for
// one whose transaction did not commit as well.
func (b *halfSeen) rowsOf(w *write) {
	switch op := w.op; {
	case op.F == 0 && op.R == 0 || op.Verb == "TRUNCATE": // nobody counts those rows
	case w.anywhere, op.SQL.Opaque, !answered(op), op.Outcome != lock.Done:
		b.rows += op.Rows
		b.unknown++
	case op.Verb == "DELETE":
		b.rows += op.Rows
		b.deleted += op.Rows
	default:
		b.rows += op.Rows
		if op.Verb == "INSERT" && (op.SQL.Upsert || op.Rows == 0) {
			b.disputed++
		}
	}
}

// lostInserts is of how many INSERT ... ON CONFLICT the server counted a row that it
// took back at once, as inserted and as deleted, since another had inserted one like it
// meanwhile: https://wiki.postgresql.org/wiki/UPSERT ("speculative insertion").
func (b *halfSeen) lostInserts(t Tally) int64 {
	put, deleted := t.Inserted+t.Updated-(b.rows-b.deleted), t.Deleted-b.deleted
	return max(0, min(put, deleted, t.Inserted, b.disputed))
}

func (c *kase) noteWriter(b *halfSeen, w *write) {
	b.accepted++
	if w.op.Term.Sure() {
		if b.from == 0 || w.op.Seq < b.from {
			b.from = w.op.Seq
		}
		b.to = max(b.to, w.op.Seq)
		return
	}
	if w.op.Term.ID != 0 {
		c.noteEither(b, w)
		return
	}
	if cells, unclear := c.unclear(w); unclear {
		b.pending = append(b.pending, nobodys{w.op, cells})
	}
	if len(b.pending) > mostNobodys {
		c.countNobodys(b)
		b.pending = b.pending[len(b.pending)/2:]
	}
}

// countNobodys counts the writes that were accepted between those of sections.
func (c *carry) countNobodys(b *halfSeen) {
	b.pending = slices.DeleteFunc(b.pending, func(n nobodys) bool {
		between := b.from < n.op.Seq && n.op.Seq < b.to
		if !between || n.cells != nil && !slices.ContainsFunc(n.cells, func(k cell) bool { return len(c.rowLocks[k]) > 0 }) {
			return false
		}
		if b.nobodys++; b.first == nil || n.op.Seq < b.first.Seq {
			b.first = n.op
		}
		return true
	})
}

// unclear reports whether a write of nobody's may have harmed a section: it is of what
// sections write. If cells are returned, it is so if a section wrote one of those.
func (c *kase) unclear(w *write) (cells []cell, is bool) {
	table := lock.TableName(w.op.SQL.Table)
	switch {
	case w.op.Verb == "INSERT" && !w.op.SQL.Upsert, c.lawless[w.op]:
		return nil, false
	case w.row == unknownRow:
		return nil, slices.ContainsFunc(c.setup.Declarations, func(d lock.Declaration) bool { return d.Table != "" && lock.TableName(d.Table) == table })
	}
	for _, a := range w.op.SQL.Set {
		cells = append(cells, cell{table, w.row, a.Column})
	}
	return cells, len(cells) > 0
}

// after lists the terms of the same lock that were granted later.
func (c *kase) after(t *lock.Term) []*lock.Term {
	terms := c.terms[t.Lock]
	return terms[slices.Index(terms, t)+1:]
}

// blindSpots finds LF402, once the whole is known.
func (c *carry) blindSpots() {
	for _, k := range c.blindOrder {
		b := c.blind[k]
		if c.countNobodys(b); b.nobodys*200 > b.accepted {
			c.nobodys(k, b)
		}
		c.eitherOf(k, b)
	}
	for _, t := range c.setup.Tallies {
		c.pastTheProxy(t)
	}
	for _, b := range c.setup.Bypasses {
		c.lockPastTheProxy(b)
	}
	for _, id := range c.lockOrder {
		if s := c.calls[id]; s != nil && c.isLock(id) {
			c.unknownScript(id, s)
		}
	}
}

// isLock reports whether a key was taken as a lock, and is none that is never
// released.
func (c *carry) isLock(id lock.LockID) bool {
	s := c.lockKnown[id]
	return s != nil && s.fact.Grants > 0 && !s.marker
}

// blindSpot files an LF402.
func (c *carry) blindSpot(id lock.LockID, v Verdict, p *proof, cited ...*lock.Op) *finding {
	v.Code = "LF402"
	return c.file(id, Inconclusive, with(v, p), cited...)
}

func (c *carry) nobodys(k tableOf, b *halfSeen) {
	p := let("T be the table %s, which sections write, and W be %s.", k.table, named(b.first))
	p.say("Then W belongs to no section that was seen: no lock kept it out of one.")
	p.say("However it was accepted between writes of sections, and so were %d such writes of %d.", b.nobodys, b.accepted)
	c.blindSpot(lock.LockID{}, Verdict{Level: Proven, Table: k.table, Count: b.nobodys}, p, b.first)
}

// pastTheProxy compares what the server counted with what was seen.
func (c *carry) pastTheProxy(t Tally) {
	k := tableOf{t.Upstream, lock.TableName(t.Table)}
	seen := halfSeen{}
	if b := c.blind[k]; b != nil {
		seen = *b
	}
	counted := t.Inserted + t.Updated + t.Deleted
	excess := counted - seen.rows - 2*seen.lostInserts(t)
	if excess <= int64(seen.unknown) || c.gap != 0 || c.blind[k] == nil && len(c.blind) >= mostTables {
		return
	}
	level := Proven
	p := let("T be the table %s.", k.table)
	p.say("Then the server counted %d rows of it as written (%d inserted, %d updated, %d deleted).", counted, t.Inserted, t.Updated, t.Deleted)
	p.say("However the statements that went through the proxy wrote %d: someone wrote past it, or a trigger or a function in the database did.", seen.rows)
	if seen.unknown > 0 {
		level = Possible
		p.say("Of %d statements it is not told how many rows they wrote.", seen.unknown)
	}
	c.blindSpot(lock.LockID{}, Verdict{Level: level, Table: k.table, Count: int(excess)}, p)
}

func (c *carry) lockPastTheProxy(b Bypass) {
	id := lock.LockID{Upstream: b.Upstream, DB: b.DB, Key: b.Key}
	if !c.isLock(id) {
		return
	}
	p := let("L be the lock %s.", id)
	p.say("Then what is seen of it is what goes through the proxy.")
	p.say("However the server showed a %s of its key by %s, at about %s, which did not: someone uses the lock past the proxy.", b.Verb, orUnknown(b.Address), ms(b.At))
	c.blindSpot(id, Verdict{Level: Proven}, p)
}

func orUnknown(address string) string {
	if address == "" {
		return "someone"
	}
	return address
}

// A calling counts the calls of scripts that were not seen, which named one key and
// carried no token of it.
type calling struct {
	n     int
	first *lock.Op
}

func (c *kase) unknownScripts() {
	for _, op := range c.ops {
		// A server that has not the script either has done nothing.
		if !op.Guessed || op.Term.ID != 0 || !answered(op) || op.Err == "NOSCRIPT" || shownIdle(op) || !c.dueOp(op) {
			continue
		}
		id := lock.IDOf(op)
		s := c.calls[id]
		if s == nil {
			if len(c.calls) >= mostLocks {
				continue
			}
			s = &calling{first: op}
			c.calls[id] = s
		}
		s.n++
	}
}

// shownIdle reports whether a witness saw that a call did nothing to the lock, though not what it was for.
func shownIdle(op *lock.Op) bool {
	return op.Outcome == lock.NotHeld && (op.Evidence == lock.FromMonitor || op.Evidence == lock.FromProbe)
}

// unknownScript tells of those that named the key of what turned out to be a lock.
func (c *carry) unknownScript(id lock.LockID, s *calling) {
	p := let("S be %s, a call of a script whose text was not seen.", named(s.first))
	p.say("Then what it did to %s is not known.", id)
	p.say("However it names the lock's key, and carries no token of the lock.")
	if s.n > 1 {
		p.say("There are %d such calls.", s.n)
	}
	c.blindSpot(id, Verdict{Level: Proven, Count: s.n}, p, s.first)
}
