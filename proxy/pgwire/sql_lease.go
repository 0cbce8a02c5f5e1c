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

// leaseUpdate tells what an UPDATE does.
func (t *template) leaseUpdate(k *leaseTable, from binding) *lease {
	r := t.roles(k, t.set)
	l := &lease{times: columnsOf(r.times), claim: t.skips}
	if len(r.steps) > 0 && !k.version {
		l.fence = r.steps[0].column
	}
	if len(r.owners) > 0 {
		l.owner, l.token = r.owners[0].column, r.owners[0].value
	}
	if len(r.flags) > 0 {
		l.flag = *r.flags[0]
	}
	l.until = t.ending(r.times)
	if l.until != nil {
		l.since, _ = t.guardOn(l.until.column, "<", "<=")
	}
	l.key = t.rowOf(k, t.set)
	switch {
	case t.skips && (len(r.owners)+len(r.times)+len(r.steps)+len(r.flags) > 0 || len(r.others) > 0 && t.shape.Returning):
		l.kind, l.guarded = lock.Acquire, true
		if len(r.flags) == 0 && len(r.others) > 0 && r.others[0].known {
			l.flag = *r.others[0]
		}
	case len(r.owners) == 0 && (len(r.frees) > 0 || t.drops(k, r, from)):
		l.kind = lock.Release
		t.heldBy(k, l)
	case t.stays(l):
		if len(r.times) > 0 && len(r.flags)+len(r.others) == 0 {
			l.kind = lock.Renew
			t.heldBy(k, l)
		}
	case t.acquires(k, r, l):
		l.kind, l.guarded = lock.Acquire, true
	case len(r.owners)+len(r.frees)+len(r.flags)+len(r.others) == 0 && k.moves(r):
		l.kind = lock.Renew
		t.heldBy(k, l)
		if l.until != nil && l.until.now != nil && l.until.now.plain() && endName(l.until.column) {
			l.kind = lock.Release
		}
	}
	if l.kind == "" || l.kind != lock.Acquire && k.guess && !(k.hinted && l.guarded) {
		return nil
	}
	return l
}

func columnsOf(list []*slot) (out []string) {
	for _, s := range list {
		out = append(out, s.column)
	}
	return out
}

// stays reports whether an UPDATE leaves a lease with its holder: it sets the
// owner that it asks for.
func (t *template) stays(l *lease) bool {
	c, ok := t.must(l.owner)
	return ok && l.owner != "" && !c.empty() && (c.value == l.token || c.param > 0)
}

// moves reports whether an UPDATE that sets nothing else moves the end of a lease.
func (k *leaseTable) moves(r roles) bool {
	if k.guess || len(r.times) == 0 {
		return len(r.times) > 0 || len(r.steps) > 0 && k.version
	}
	return slices.ContainsFunc(r.times, func(s *slot) bool { return slices.Contains(k.times, s.column) || endName(s.column) })
}

// acquires reports whether an UPDATE takes a lease: it says who has it or until
// when, where nobody has, or not any more.
func (t *template) acquires(k *leaseTable, r roles, l *lease) bool {
	if t.guarded == 0 {
		return false
	}
	if l.until != nil && t.lapsed(l.until) {
		if l.owner != "" {
			return true
		}
		if s := t.somebody(r.others); s != nil && (endName(l.until.column) || !timeName(l.until.column) || l.until.now != nil && !l.until.now.plain()) {
			l.owner, l.token, l.doubtful = s.column, s.value, l.until.now == nil
			return true
		}
		return false
	}
	if l.owner == "" || len(r.times) == 0 && !k.hinted && k.guess {
		return false
	}
	if _, free := t.guardOn(l.owner, "null"); free {
		return true
	}
	if g, ok := t.guardOn(l.owner, "="); ok && (g.value.empty() || g.value == l.token) {
		return true
	}
	return len(r.flags) > 0 && (flagName(l.flag.column) || k.hinted || !k.guess)
}

// lapsed reports whether the conditions ask that what a column held is over: it
// is less than now, or than a value other than the one that is set.
func (t *template) lapsed(s *slot) bool {
	g, ok := t.guardOn(s.column, "<", "<=")
	return ok && (g.now != nil || g.plain() && (g.param == 0 || g.param != s.param))
}

// somebody returns what may say who has a lease: the only column that is set to a
// plain value.
func (t *template) somebody(list []*slot) (found *slot) {
	for _, s := range list {
		if s.plain() && !s.truth() && !versionName(s.column) {
			if found != nil {
				return nil
			}
			found = s
		}
	}
	return found
}

// drops reports whether an UPDATE says that a lock is free, by its flag.
func (t *template) drops(k *leaseTable, r roles, from binding) bool {
	for _, s := range r.flags {
		if k.flag == s.column && k.flag != "" {
			if v := s.of(from); v.Known() && k.taken.Known() && !v.Same(k.taken) {
				return true
			}
			continue
		}
		if s.says == 'f' && flagName(s.column) {
			return true
		}
	}
	return false
}

// heldBy notes by what a renewal or a release knows its holder.
func (t *template) heldBy(k *leaseTable, l *lease) {
	for _, c := range t.where {
		if c.op != "=" || !c.plain() {
			continue
		}
		switch {
		case k.isOwner(c.column):
			l.owner, l.token, l.guarded = c.column, c.value, true
			return
		case k.fence != "" && c.column == k.fence, k.isTime(c.column) && slices.Contains(k.times, c.column):
			l.token, l.guarded = c.value, true
		}
		if k.version {
			l.token = value{}
		}
	}
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

// leaseDelete tells what a DELETE does: it gives a lease back, unless that is over.
func (t *template) leaseDelete(k *leaseTable) *lease {
	l := &lease{kind: lock.Release, key: t.rowOf(k, nil)}
	t.heldBy(k, l)
	over := slices.ContainsFunc(t.guards, func(g guard) bool {
		return (g.op == "<" || g.op == "<=") && (g.now != nil || k.isTime(g.column))
	})
	if over || len(l.key) == 0 && !l.guarded || k.guess && !(k.hinted && l.guarded) {
		return nil
	}
	return l
}

// leaseInsert tells what an INSERT does: it takes a lease if there is none, or if
// its conditions let it take one that is over.
func (t *template) leaseInsert(k *leaseTable) *lease {
	fresh := t.set[:t.inserted]
	r := t.roles(k, fresh)
	l := &lease{kind: lock.Acquire, guarded: true, times: columnsOf(r.times)}
	if len(r.owners) > 0 {
		l.owner, l.token = r.owners[0].column, r.owners[0].value
	}
	l.until = t.ending(r.times)
	if l.until != nil {
		l.since, _ = t.guardOn(l.until.column, "<", "<=")
	}
	l.key = t.inserts(k, fresh, r)
	for _, s := range t.set[t.inserted:] {
		if s.step > 0 {
			l.fence = s.column
		}
		if i := slices.IndexFunc(fresh, func(f slot) bool { return f.column == s.column && f.plain() }); i >= 0 && !s.plain() && s.now == nil && s.step == 0 {
			l.echoes(fresh[i])
		}
	}
	self := t.shape.Upsert && t.guarded > 0 && l.until != nil && t.lapsed(l.until)
	if self && l.owner == "" {
		if s := t.somebody(slices.DeleteFunc(r.others, func(s *slot) bool { return slices.Contains(t.target, s.column) })); s != nil {
			l.owner, l.token, l.doubtful = s.column, s.value, l.until.now == nil
		}
	}
	if g, ok := t.guardOn(l.owner, "="); ok && l.owner != "" && g.value == l.token && len(r.times) > 0 {
		self = true // its own holder may move it
	}
	blind := t.shape.Upsert && t.guarded == 0 && l.echo == nil
	known := (!k.guess || k.hinted) && l.owner != "" && (len(r.times) > 0 || l.echo != nil || !k.guess)
	if !self && (!known || blind) || l.owner == "" {
		return nil
	}
	if l.echo != nil && versionName(l.echo.column) {
		l.token, l.fence, l.version = value{}, l.echo.column, true
	}
	return l
}

// echoes notes a column that keeps what it was if somebody has the lease: what is
// returned of it must be what was sent. A version tells more than an owner, and
// that one more than any other.
func (l *lease) echoes(s slot) {
	rank := func(s *slot) int {
		switch {
		case versionName(s.column):
			return 0
		case ownerName(s.column):
			return 1
		}
		return 2
	}
	if l.echo == nil || rank(&s) < rank(l.echo) {
		l.echo = &s
	}
}

// inserts returns what names the row that is inserted: the columns that must not
// be there already, those that are known to, or else what is no holder's and no
// time's, one that is called so before others.
func (t *template) inserts(k *leaseTable, fresh []slot, r roles) (key []slot) {
	names := t.target
	if len(names) == 0 {
		names = k.key
	}
	for _, s := range fresh {
		if slices.Contains(names, s.column) && s.plain() {
			key = append(key, slot{column: s.column, op: "=", value: s.value})
		}
	}
	if len(names) > 0 {
		if len(key) < len(names) && len(t.target) == 0 {
			return nil
		}
		return key
	}
	for _, s := range r.others {
		if s.plain() && !s.truth() && oneOf(s.column, "name key id lock_name lock_key lock_id resource resource_id lockname lockkey region task_name") {
			key = append(key, slot{column: s.column, op: "=", value: s.value})
		}
	}
	if len(key) == 0 && len(r.others) > 0 && r.others[0].plain() {
		key = []slot{{column: r.others[0].column, op: "=", value: r.others[0].value}}
	}
	return key
}
