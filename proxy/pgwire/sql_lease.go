package pgwire

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A lease is what a statement does to a row that stands for a lock, by its shape.
type lease struct {
	kind    lock.Kind
	key     []slot // what names the row; none: it cannot be told
	owner   string // column that says who has it; "" if none does
	token   value  // what is set there, or asked for
	until   *slot  // what is set to tell when it ends
	since   guard  // how far back that must be for another to take it
	guarded bool   // it acts on the row only if that is the holder's
	claim   bool   // of a row that the statement chooses
	fence   string // column that the statement counts up
	echo    *slot  // what RETURNING must say
	times   []string
	flag    slot // what it sets to say that the lock is taken
	version bool // the holder is known by fence, which moves with each renewal

	doubtful bool // it is a lease only if until is set to a time
}

// suspect reports whether the conditions of a write may tell that it is about a
// lease.
func (t *template) suspect(skips bool) bool {
	if t.guarded == 0 || t.shape.Table == "" {
		return false
	}
	if t.verb == "DELETE" || skips || t.shape.Opaque || lockTable(t.table) {
		return true
	}
	return slices.ContainsFunc(t.set, func(s slot) bool {
		return s.now != nil || timeName(s.column) || ownerName(s.column) || flagName(s.column) || t.below(s.column)
	})
}

// below reports whether the conditions ask that a column be less than something.
func (t *template) below(column string) bool {
	return slices.ContainsFunc(t.where, func(c slot) bool { return c.column == column && (c.op == "<" || c.op == "<=") })
}

// takesLeases reads what tells whether a write is about a lease.
func (t *template) takesLeases(o *outline, src string) {
	t.table = lock.TableName(t.shape.Table)
	t.skips = o.skips
	if t.kind != lock.Write || t.system || !slices.Contains([]string{"UPDATE", "INSERT", "DELETE"}, t.verb) {
		return
	}
	if t.suspect(o.skips) {
		t.readGuards(src)
	}
}

// supposes takes a write for one about a lease if it looks like it, whatever table
// it is of. Its values are sealed by then.
func (t *template) supposes() {
	if t.kind == lock.Write && !t.system {
		t.lease = t.leaseOf(&leaseTable{guess: true, hinted: lockTable(t.table)}, nil)
	}
}

// leaseOf returns what a write does to a lease, given what is known of its table;
// nil if it does nothing.
func (t *template) leaseOf(k *leaseTable, from binding) *lease {
	switch t.verb {
	case "INSERT":
		return t.leaseInsert(k)
	case "DELETE":
		return t.leaseDelete(k)
	case "UPDATE":
		return t.leaseUpdate(k, from)
	}
	return nil
}

// guardOn returns a condition on a column, by one of the operators.
func (t *template) guardOn(column string, ops ...string) (guard, bool) {
	for _, g := range t.guards {
		if g.column == column && slices.Contains(ops, g.op) {
			return g, true
		}
	}
	for _, c := range t.where {
		if c.column == column && slices.Contains(ops, c.op) {
			return guard{c.column, c.op, c.value}, true
		}
	}
	return guard{}, false
}

// must returns the condition that a column equals a value, if no row without that
// is changed.
func (t *template) must(column string) (slot, bool) {
	for _, c := range t.where {
		if c.column == column && c.op == "=" && (c.param > 0 || c.known) {
			return c, true
		}
	}
	return slot{}, false
}

// plain reports whether a value is a parameter or a literal other than NULL.
func (v value) plain() bool { return v.param > 0 || v.known }

// empty reports whether a value says that there is nobody.
func (v value) empty() bool {
	return v.null || v.says == 'e'
}

// roles sorts the columns that an UPDATE sets.
type roles struct {
	times  []*slot
	owners []*slot // set to somebody
	frees  []*slot // set to nobody
	flags  []*slot // set to one value where another is asked for
	steps  []*slot // counted up
	others []*slot
}

func (t *template) roles(k *leaseTable, set []slot) (r roles) {
	for i := range set {
		s := &set[i]
		_, lower := t.guardOn(s.column, "<", "<=")
		switch {
		case k.version && s.column == k.fence && s.null:
			r.frees = append(r.frees, s)
		case s.step > 0, s.says == '+', k.version && s.column == k.fence:
			r.steps = append(r.steps, s)
		case s.now != nil, k.isTime(s.column) && (s.plain() || s.null), lower && s.plain():
			r.times = append(r.times, s)
		case k.isOwner(s.column) && s.empty():
			r.frees = append(r.frees, s)
		case k.isOwner(s.column) && !s.truth():
			r.owners = append(r.owners, s)
		case t.flagged(k, s):
			r.flags = append(r.flags, s)
		default:
			r.others = append(r.others, s)
		}
	}
	return r
}

// truth reports whether a literal is TRUE or FALSE.
func (v value) truth() bool { return v.says == 't' || v.says == 'f' }

// flagged reports whether a column is set to what the conditions say it is not.
func (t *template) flagged(k *leaseTable, s *slot) bool {
	if versionName(s.column) || !s.plain() && !s.null {
		return false
	}
	if k.flag != "" && s.column == k.flag {
		return true
	}
	g, ok := t.guardOn(s.column, "=", "<>", "true", "false", "null")
	return ok && (g.op != "=" || g.value != s.value) || flagName(s.column) && s.truth()
}

func columnsOf(list []*slot) (out []string) {
	for _, s := range list {
		out = append(out, s.column)
	}
	return out
}

// ending returns, of the times that are set, the one that tells when the lease
// ends: one that must be over, one with an interval, or else one that is called
// so.
func (t *template) ending(times []*slot) *slot {
	rank := func(s *slot) int {
		_, guarded := t.guardOn(s.column, "<", "<=")
		switch {
		case guarded:
			return 0
		case s.now != nil && !s.now.plain():
			return 1
		case endName(s.column):
			return 2
		}
		return 3
	}
	var found *slot
	for _, s := range times {
		if !s.null && (found == nil || rank(s) < rank(found)) {
			found = s
		}
	}
	return found
}

// rowOf returns the conditions that name the row: those that say what a column
// must be, of columns that say nothing about the holder.
func (t *template) rowOf(k *leaseTable, set []slot) (key []slot) {
	for _, c := range t.where {
		if len(k.key) > 0 && !slices.Contains(k.key, c.column) {
			continue
		}
		if c.op != "=" || !c.plain() || k.isOwner(c.column) || k.isTime(c.column) || c.column == k.fence && k.fence != "" || versionName(c.column) || c.column == k.flag || flagName(c.column) {
			continue
		}
		if !slices.ContainsFunc(set, func(s slot) bool { return s.column == c.column }) {
			key = append(key, c)
		}
	}
	return key
}
