package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A MapEntry is a lock, or all those whose keys differ only in what looks like an
// identifier, with what it guards and for how long.
type MapEntry struct {
	Lock     string // its key; of several keys their common shape, * for what differs
	Keys     int    // how many there are (the first thousand are counted)
	Sort     lock.Sort
	Purpose  string // correctness or efficiency, as declared or as it seems; "" if neither can be said
	Declared bool   // it was declared
	Because  string // what Purpose was learned from
	Guards   []Guarded

	Sections int           // that were released by their holder
	Length   Quantiles     // of those, from the grant's delivery to the release's request
	Lifetime time.Duration // the longest that was asked for; 0: none
	Margin   Quantiles     // what was left of the lease when the last write took effect, or was refused; negative: it was over
	Suffices time.Duration // the lifetime that would have sufficed for all that was seen; 0: not known
}

// A Guarded is a table that is written under a lock.
type Guarded struct {
	Table     string
	Columns   []string // by name
	Where     string   // how the rows are chosen: "id = ..."
	Rows      int      // different ones (the first thousand are counted)
	Writes    int      // accepted ones, of this lock's sections for sure
	Elsewhere int      // of other locks' sections for sure, and none of this one's
	Nobodys   int      // of no section for sure
	Perhaps   int      // of those, the ones that may be of this lock's
	Sure      float64  // the lowest confidence of those that count as this lock's, else of those that may be
	Declared  bool     // the lock was declared to protect it
}

// Bounds of the map. Beyond them nothing new is noted.
const (
	mostMapped       = 512
	mostKeys         = 1000
	mostGuarded      = 32
	mostChartRows    = 1000
	mostChartColumns = 32
)

// A charted is what is kept of one entry.
type charted struct {
	id       lock.LockID // of the first key
	keys     map[lock.LockID]bool
	guards   map[string]*chartedTable
	sections int
	length   sketch
	margin   sketch
	lifetime time.Duration
	need     time.Duration
	wrote    int // sections that wrote something
	unsafe   int // of those, the ones with a write that would overwrite what it finds
	fences   int
}

type chartedTable struct {
	Guarded
	rows  map[string]bool
	put   map[string]bool // columns of which a write put a value, and did not only add to it or compare it
	least float64         // the lowest confidence of those that may be of the lock's sections
}

// A tableWrites is how many accepted writes a table had, by whom.
type tableWrites struct{ sure, nobodys int }

// chart notes what the terms that are due tell of their locks.
func (c *kase) chart() {
	for _, w := range c.writes {
		if w.state != accepted || !c.dueOp(w.op) {
			continue
		}
		t := c.mapped.table(lock.TableName(w.op.SQL.Table))
		if w.op.Term.Sure() {
			t.sure++
		} else {
			t.nobodys++
			c.chartPerhaps(w)
		}
	}
	for _, t := range c.all {
		if c.due(t) && !t.Marker {
			c.chartTerm(t)
		}
	}
}

// A chartBook is the map as it is drawn.
type chartBook struct {
	entries map[lock.LockID]*charted // by shape
	order   []lock.LockID
	perhaps map[lock.LockID]map[string]*chartedTable // by shape: see chartPerhaps
	tables  map[string]*tableWrites
}

func (m *chartBook) table(name string) *tableWrites {
	t := m.tables[name]
	if t == nil {
		if t = (&tableWrites{}); len(m.tables) < mostTables {
			m.tables[name] = t
		}
	}
	return t
}

func (m *chartBook) entry(id lock.LockID) *charted {
	shape := lock.LockID{Upstream: id.Upstream, DB: id.DB, Key: lock.Shape(id.Key)}
	e := m.entries[shape]
	if e == nil {
		if len(m.entries) >= mostMapped {
			return nil
		}
		e = &charted{id: id, keys: map[lock.LockID]bool{}, guards: map[string]*chartedTable{}}
		m.entries[shape] = e
		m.order = append(m.order, shape)
	}
	if len(e.keys) < mostKeys {
		e.keys[id] = true
	}
	return e
}

func (c *kase) chartTerm(t *lock.Term) {
	e := c.mapped.entry(t.Lock)
	if e == nil {
		return
	}
	e.lifetime = max(e.lifetime, t.TTL)
	if t.HasFence {
		e.fences++
	}
	if t.Release != nil && t.Grant.D != 0 && t.ReleaseAt > t.Grant.D {
		e.sections++
		e.length.add(t.ReleaseAt.Sub(t.Grant.D))
	}
	writes, unsafe := 0, false
	var last lock.Instant
	for _, w := range c.writesIn(t) {
		if w.state == refused { // a lifetime that had sufficed would have let it through
			last = max(last, w.op.R)
		}
		if w.state != accepted {
			continue
		}
		writes++
		c.chartWrite(e, w)
		last = max(last, w.hi)
		for _, a := range w.op.SQL.Set {
			unsafe = unsafe || w.op.Verb != "INSERT" && !c.safeByItself(w, a)
		}
	}
	e.wrote += one(writes > 0)
	e.unsafe += one(unsafe)
	c.chartLease(e, t, last)
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (c *kase) chartWrite(e *charted, w *write) {
	g := c.chartTable(e.guards, w)
	if g == nil {
		return
	}
	g.Writes++
	g.Sure = min(g.Sure, w.op.Term.Confidence)
	for _, a := range w.op.SQL.Set {
		if w.op.Verb != "INSERT" && !a.HasDelta && !c.versioned(w, a.Column) && len(g.put) < mostChartColumns {
			g.put[a.Column] = true
		}
	}
}

// chartLease notes how much of the lease was left at the last write, and which
// lifetime would have sufficed: each of them until it was set anew, and the last
// until the last write, or else the release.
func (c *kase) chartLease(e *charted, t *lock.Term, last lock.Instant) {
	if t.Span != lock.LeaseSpan {
		return
	}
	end := t.ReleaseAt
	if last != 0 {
		end = last
	}
	if end == 0 || end == lock.Never {
		return
	}
	from, left := t.Grant.F, lock.Lease(t.Grant, t.Grant.TTL).Earliest
	for _, op := range c.settings(t) {
		if op.Outcome != lock.Done || op.R > end {
			continue
		}
		e.needs(op.R.Sub(from))
		from, left = op.F, lock.Lease(op, op.TTL).Earliest
	}
	e.needs(end.Sub(from))
	if last != 0 && left != lock.Never {
		e.margin.add(left.Sub(end))
	}
}

// needs notes that a lifetime had to be so long, beside what clocks drift apart.
func (e *charted) needs(d time.Duration) {
	e.need = max(e.need, d+d/2000+3*time.Millisecond)
}

// lockMap puts the map together.
func (c *carry) lockMap() []MapEntry {
	var out []MapEntry
	for _, shape := range c.mapped.order {
		e := c.mapped.entries[shape]
		m := MapEntry{Lock: e.id.String(), Keys: len(e.keys), Sections: e.sections, Length: e.length.quantiles(),
			Lifetime: e.lifetime, Margin: e.margin.quantiles(), Suffices: e.need}
		if m.Keys > 1 {
			m.Lock = shape.String()
		}
		m.Sort = c.sortOf(e.id)
		m.Purpose, m.Declared, m.Because = c.purpose(e)
		e.join(c.mapped.perhaps[shape])
		for _, name := range slices.Sorted(maps.Keys(e.guards)) {
			m.Guards = append(m.Guards, c.guarded1(e, e.guards[name]))
		}
		slices.SortStableFunc(m.Guards, func(a, b Guarded) int { return cmp.Compare(b.Writes, a.Writes) })
		out = append(out, m)
	}
	return out
}

func (c *carry) guarded1(e *charted, t *chartedTable) Guarded {
	g, all := t.Guarded, c.mapped.table(t.Table)
	g.Rows, g.Elsewhere, g.Nobodys = len(t.rows), max(0, all.sure-g.Writes), all.nobodys
	if g.Writes == 0 {
		g.Sure = t.least
	}
	g.Declared = slices.ContainsFunc(c.setup.Declarations, func(d lock.Declaration) bool {
		return d.Table != "" && lock.TableName(d.Table) == t.Table && d.Covers(e.id.Key)
	})
	return g
}

// purpose says what the lock is for: as declared, else as its sections make it
// seem. It takes as many sections for the second as it takes to learn a step.
func (c *carry) purpose(e *charted) (purpose string, declared bool, because string) {
	said, declared := c.purposeOf(e.id.Key)
	switch {
	case declared || said == "correctness":
		return "correctness", true, ""
	case said == "efficiency":
		return said, true, ""
	case e.fences > 0:
		return "correctness", false, "it issues fences"
	}
	for _, name := range slices.Sorted(maps.Keys(e.guards)) {
		for _, column := range e.guards[name].Columns {
			if e.guards[name].put[column] && c.dependent(columnOf{name, column}, true) == yes {
				return "correctness", false, "its sections write " + name + "." + column + " from what they read"
			}
		}
	}
	if e.wrote >= cleanSections && e.unsafe == 0 {
		return "efficiency", false, "what its sections wrote would hold without it: rows inserted, increments, and writes with a guard of their own"
	}
	return "", false, ""
}
