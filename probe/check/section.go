package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A section is what ought to look as if it had happened at once: what a term did,
// together with those within it, or one transaction of nobody's.
type section struct {
	n          int        // its place in the case, from 0
	term       *lock.Term // the outermost; nil: nobody's
	reads      []*read    // by request
	writes     []*write   // that were accepted, or may have been, and those that were refused
	undone     []*write   // that were rolled back with their transaction: they had the row's lock
	start, end lock.Instant
	answered   lock.Instant // end, but for what has no answer
	doubt      float64      // the lowest confidence with which something is its own; 1: all of it is
	rows       map[tableRow]bool
}

type tableRow struct{ table, row string }

func (k cell) of() tableRow { return tableRow{k.table, k.row} }

// who names a section in a proof.
func (s *section) who() string {
	if s.term != nil {
		return holder(s.term)
	}
	op := s.firstOp()
	return "the transaction of " + named(op) + " (" + cmp.Or(op.Actor, "session "+itoa(int64(op.Session))) + "), which is of no section"
}

func (s *section) firstOp() *lock.Op {
	var first *lock.Op
	for _, r := range s.reads {
		first = r.op
		break
	}
	if len(s.writes) > 0 && (first == nil || s.writes[0].op.Seq < first.Seq) {
		first = s.writes[0].op
	}
	return first
}

// sectionKey tells sections apart: by term, or by transaction.
type sectionKey struct {
	term lock.TermID
	tx   txID
	op   uint64 // of a statement that has no transaction
}

func keyOfSection(op *lock.Op) (sectionKey, float64) {
	a := op.Term
	switch {
	case a.ID == 0:
		k := sectionKey{tx: txID{op.Session, op.Tx}}
		if op.Tx == 0 {
			k.op = op.Seq
		}
		return k, 1
	case len(a.Also) > 0:
		return sectionKey{term: a.ID}, 0
	case len(a.Within) > 0:
		return sectionKey{term: slices.Min(append(slices.Clone(a.Within), a.ID))}, a.Confidence
	}
	return sectionKey{term: a.ID}, a.Confidence
}

// findSections sorts the reads and the writes in view by section.
func (c *kase) findSections() []*section {
	at := map[sectionKey]*section{}
	var all []*section
	of := func(op *lock.Op) *section {
		k, doubt := keyOfSection(op)
		s := at[k]
		if s == nil {
			s = &section{n: len(all), term: c.byID[k.term], doubt: 1, start: lock.Never, rows: map[tableRow]bool{}}
			at[k] = s
			all = append(all, s)
		}
		s.doubt = min(s.doubt, doubt)
		return s
	}
	for _, r := range c.reads {
		s := of(r.op)
		s.reads = append(s.reads, r)
		s.span(r.op.F, max(r.op.R, r.op.Z))
		s.start = min(s.start, c.readFrom(r))
		s.met(r.op, r.row)
	}
	for _, w := range c.writes {
		if w.state == void {
			if t := c.txs[txID{w.op.Session, w.op.Tx}]; t != nil && (t.undone || t.last == nil) && w.op.Outcome == lock.Done && w.op.Rows > 0 && !w.op.Implicit {
				s := of(w.op)
				s.undone = append(s.undone, w)
				s.span(w.op.F, w.op.R)
				s.met(w.op, w.row)
			}
			continue
		}
		s := of(w.op)
		s.writes = append(s.writes, w)
		s.span(w.op.F, max(w.op.R, w.op.Z))
		if w.state != refused {
			s.span(w.op.F, w.hi)
		}
		s.met(w.op, w.row)
	}
	return all
}

func (s *section) span(from, to lock.Instant) {
	s.start, s.end = min(s.start, from), max(s.end, to)
	if s.answered = max(s.answered, from); to != lock.Never {
		s.answered = max(s.answered, to)
	}
}

func (s *section) met(op *lock.Op, row string) {
	if row != unknownRow {
		s.rows[tableRow{lock.TableName(op.SQL.Table), row}] = true
	}
}

// lastMet returns when each row was last asked for by what is over.
func (c *kase) lastMet() map[tableRow]lock.Instant {
	if c.metLast != nil {
		return c.metLast
	}
	c.metLast = map[tableRow]lock.Instant{}
	met := func(op *lock.Op, row string) {
		if c.opEnd(op) < c.horizon {
			row := tableRow{lock.TableName(op.SQL.Table), row}
			c.metLast[row] = max(c.metLast[row], op.F)
		}
	}
	for _, r := range c.reads {
		met(r.op, r.row)
	}
	for _, w := range c.writes {
		met(w.op, w.row)
	}
	return c.metLast
}

// A cluster is sections that may have got between each other's reads and writes.
type cluster struct {
	sections   []*section // by place
	core       int        // how many of them it is about; the others only tell of their order
	rows       map[tableRow]bool
	start, end lock.Instant
}

// mostTogether is how many sections a cluster has at most that is looked at as a
// whole.
const mostTogether = 8

// clusters puts together the sections that met on a row, and at least one of which
// wrote there. What was never answered may be of any cluster that comes later, and
// is left out where those would become too large. Those of more than mostTogether
// sections are left out, and so is what they touch later.
func (c *kase) clusters(all []*section) []*cluster {
	byRow := map[tableRow][]*section{}
	for _, s := range all {
		for row := range s.rows {
			byRow[row] = append(byRow[row], s)
		}
	}
	var out []*cluster
	var again []*section
	for _, k := range c.grouped(all, byRow) {
		if c.fits(k) {
			out = append(out, k)
		} else {
			again = append(again, k.sections...)
		}
	}
	if len(again) == 0 {
		return out
	}
	byRow = map[tableRow][]*section{}
	for i, s := range again {
		if s.n = i; s.end == lock.Never {
			s.end = s.answered
		}
		for row := range s.rows {
			byRow[row] = append(byRow[row], s)
		}
	}
	for _, k := range c.grouped(again, byRow) {
		if c.fits(k) {
			out = append(out, k)
			continue
		}
		k.has(func(op *lock.Op) bool { c.crowded[op] = true; return false })
		c.tooMany(k)
	}
	return out
}

// tooMany counts the sections of a cluster that is left to what is certain, each once.
func (c *kase) tooMany(k *cluster) {
	for _, s := range k.sections {
		only := &cluster{sections: []*section{s}}
		if only.has(func(op *lock.Op) bool { return c.dueOp(op) }) {
			c.meet(boundCluster)
		}
	}
}

// fits reports whether a cluster can be looked at as a whole.
func (c *kase) fits(k *cluster) bool {
	return len(k.sections) <= mostTogether && !k.has(func(op *lock.Op) bool { return c.crowded[op] })
}

// grouped returns the clusters of sections that stand in their places.
func (c *kase) grouped(all []*section, byRow map[tableRow][]*section) []*cluster {
	g := newGroups(len(all))
	for row, list := range byRow {
		g.meetings(row, list)
	}
	var out []*cluster
	for _, members := range g.lists() {
		if len(members) < 2 {
			continue
		}
		k := &cluster{rows: map[tableRow]bool{}, start: lock.Never}
		for _, n := range members {
			k.add(all[n])
		}
		if len(members) <= mostTogether {
			k.complete(byRow)
		}
		out = append(out, k)
	}
	return out
}

func (k *cluster) add(s *section) {
	k.sections = append(k.sections, s)
	k.start, k.end = min(k.start, s.start), max(k.end, s.end)
	for row := range s.rows {
		k.rows[row] = true
	}
}

// complete adds the sections that stand between those of a cluster on a row of it
// without having met one of them, until there are too many.
func (k *cluster) complete(byRow map[tableRow][]*section) {
	for more := true; more; {
		more = false
		for _, row := range k.rowsInTurn() {
			for _, s := range byRow[row] {
				if s.start < k.end && s.end > k.start && !slices.Contains(k.sections, s) {
					k.add(s)
					if more = true; len(k.sections) > mostTogether {
						return
					}
				}
			}
		}
	}
	slices.SortFunc(k.sections, func(a, b *section) int { return cmp.Compare(a.n, b.n) })
}

// rowsInTurn lists the rows, always in the same order.
func (k *cluster) rowsInTurn() []tableRow {
	out := slices.Collect(maps.Keys(k.rows))
	slices.SortFunc(out, func(a, b tableRow) int { return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.row, b.row)) })
	return out
}

// has reports whether something of the cluster is so, and asks of all of it.
func (k *cluster) has(is func(*lock.Op) bool) bool {
	found := false
	for _, s := range k.sections {
		for _, r := range s.reads {
			found = is(r.op) || found
		}
		for _, w := range s.writes {
			found = is(w.op) || found
			if w.commit != nil {
				found = is(w.commit) || found
			}
		}
	}
	return found
}

// groups are disjoint sets of numbers.
type groups struct{ up []int }

func newGroups(n int) *groups {
	g := &groups{make([]int, n)}
	for i := range g.up {
		g.up[i] = i
	}
	return g
}

func (g *groups) root(i int) int {
	for g.up[i] != i {
		g.up[i] = g.up[g.up[i]]
		i = g.up[i]
	}
	return i
}

// meetings joins the sections of a row that overlap, if one of them wrote it.
func (g *groups) meetings(row tableRow, list []*section) {
	slices.SortFunc(list, func(a, b *section) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.n, b.n)) })
	var last *section // the one that ends latest
	wrote := false
	for _, s := range list {
		wrote = wrote || s.wrote(row)
	}
	if !wrote {
		return
	}
	for _, s := range list {
		if last != nil && s.start < last.end {
			g.up[g.root(s.n)] = g.root(last.n)
		}
		if last == nil || s.end > last.end {
			last = s
		}
	}
}

func (s *section) wrote(row tableRow) bool {
	return slices.ContainsFunc(s.writes, func(w *write) bool {
		return w.row == row.row && lock.TableName(w.op.SQL.Table) == row.table && w.state != refused
	})
}

// lists returns the sets, each by number.
func (g *groups) lists() [][]int {
	at := map[int]int{}
	var out [][]int
	for i := range g.up {
		root := g.root(i)
		if _, ok := at[root]; !ok {
			at[root] = len(out)
			out = append(out, nil)
		}
		out[at[root]] = append(out[at[root]], i)
	}
	return out
}
