package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An Unmet is a declaration that nothing seen answers to, by the first part of it
// that did not come: a name that is not spelled as the service spells it declares
// nothing.
type Unmet struct {
	Key, Table, Fence string
	What              UnmetPart
	Columns           []string // with UnmetFence: those that statements on the table name
}

// An UnmetPart is a part of a declaration.
type UnmetPart string

// The parts.
const (
	UnmetKey   UnmetPart = "key"   // no such lock was granted or refused
	UnmetTable UnmetPart = "table" // no statement is about it
	UnmetFence UnmetPart = "fence" // no statement names it
)

// A namedTable is a table that was declared, and what statements name of it.
type namedTable struct {
	seen    bool
	vague   bool // some had parts that were not understood, and may name any column
	columns []string
}

func declaredTables(list []lock.Declaration) map[string]*namedTable {
	out := map[string]*namedTable{}
	for _, d := range list {
		if d.Table != "" {
			out[lock.TableName(d.Table)] = &namedTable{}
		}
	}
	return out
}

// names notes what a statement names of the tables that were declared.
func (c *carry) names(s *lock.Statement) {
	if len(c.declared) == 0 {
		return
	}
	for _, also := range s.Also {
		if t := c.declared[lock.TableName(also)]; t != nil {
			t.seen, t.vague = true, true
		}
	}
	if t := c.declared[lock.TableName(s.Table)]; t != nil {
		t.see(s)
	}
}

func (t *namedTable) see(s *lock.Statement) {
	t.seen, t.vague = true, t.vague || s.Opaque || len(s.Aside) > 0
	for _, a := range s.Set {
		t.name(a.Column)
	}
	for _, w := range s.Where {
		t.name(w.Column)
	}
	for _, column := range s.Columns {
		t.name(column)
	}
}

func (t *namedTable) name(column string) {
	if len(t.columns) < mostColumns && column != "*" && !slices.Contains(t.columns, column) {
		t.columns = append(t.columns, column)
	}
}

// sumUnmet finds the declarations that nothing answers to, each key, table and
// column once.
func (c *carry) sumUnmet() {
	type part struct {
		what UnmetPart
		name string
	}
	told := map[part]bool{}
	for _, d := range c.setup.Declarations {
		u, missing := c.unmet(d)
		p := part{u.What, map[UnmetPart]string{UnmetKey: u.Key, UnmetTable: u.Table, UnmetFence: u.Table + "." + u.Fence}[u.What]}
		if missing && !told[p] {
			told[p] = true
			c.out.Facts.Unmet = append(c.out.Facts.Unmet, u)
		}
	}
}

func (c *carry) unmet(d lock.Declaration) (u Unmet, missing bool) {
	u = Unmet{Key: d.Key, Table: d.Table, Fence: d.FenceColumn}
	t := c.declared[lock.TableName(d.Table)]
	switch {
	case d.Ignore:
		return u, false
	case !c.took(d):
		u.What = UnmetKey
	case d.Table != "" && !t.seen:
		u.What = UnmetTable
	case d.FenceColumn != "" && !t.vague && !slices.Contains(t.columns, d.FenceColumn):
		u.What, u.Columns = UnmetFence, slices.Sorted(slices.Values(t.columns))
	default:
		return u, false
	}
	return u, true
}

// took reports whether a lock that the declaration speaks of was granted or
// refused, as far as locks were told apart.
func (c *carry) took(d lock.Declaration) bool {
	return c.limits[boundLocks] > 0 || len(c.lockOrder) >= mostLocks || slices.ContainsFunc(c.lockOrder, func(id lock.LockID) bool {
		f := c.lockKnown[id].fact
		return d.Covers(id.Key) && f.Grants+f.Refusals > 0
	})
}
