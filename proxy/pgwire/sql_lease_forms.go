package pgwire

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

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
