package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lockfaultd/lockfaultd/lock"
)

// locks are those declared so far, by name.
type locks map[string]lockEntry

type lockEntry struct {
	key    string
	tables []string
}

// lockFields are those of an entry of locks.
var lockFields = []string{"name", "key", "except", "ignore", "kind", "purpose", "quorum", "protects", "lease"}

// add reads one entry of locks. A lock is declared to guard correctness if it
// says so, or says what it protects without saying otherwise.
func (l locks) add(r *reader, n ast.Node) ([]lock.Declaration, Name) {
	m := r.mapping(n, lockFields...)
	name := r.need(m, "name")
	d := lock.Declaration{Key: r.scalar(r.need(m, "key"))}
	for _, p := range r.items(m.get("except")) {
		d.Except = append(d.Except, r.scalar(p))
	}
	d.Ignore = r.ignored(m)
	d.Purpose = r.unlessAuto(m.get("purpose"), "correctness", "efficiency")
	d.Kind = lock.Sort(r.unlessAuto(m.get("kind"), string(lock.Exclusive), string(lock.Reentrant), string(lock.ReadWrite), string(lock.Semaphore)))
	d.Quorum = r.quorum(m.get("quorum"))
	d.Lease = r.lease(m.get("lease"))
	if _, twice := l[r.scalar(name)]; twice {
		r.fail(name, "the lock %s is declared twice, expected a name of its own", r.scalar(name))
	}
	all, entry := []lock.Declaration{}, lockEntry{key: d.Key}
	for _, p := range r.items(m.get("protects")) {
		d.Table, d.FenceColumn = r.protected(p)
		all = append(all, d)
		entry.tables = append(entry.tables, d.Table)
	}
	if len(all) == 0 {
		all = append(all, d)
	}
	for i := range all {
		all[i].Declared = d.Purpose == "correctness" || d.Purpose == "" && all[i].Table != ""
	}
	l[r.scalar(name)] = entry
	return all, Name{r.scalar(name), all[0]}
}

// ignored reports whether an entry says that its keys are no locks, which leaves
// nothing else to be said of them.
func (r *reader) ignored(m mapping) bool {
	n := m.get("ignore")
	if n == nil || r.oneOf(n, "true", "false") != "true" {
		return false
	}
	for _, field := range []string{"kind", "purpose", "quorum", "protects", "lease"} {
		if v := m.get(field); v != nil {
			r.fail(v, "%s is superfluous, expected a lock that is ignored to say nothing else of itself", field)
		}
	}
	return true
}

// unlessAuto reads one of a few words, or auto, which is as good as none.
func (r *reader) unlessAuto(n ast.Node, words ...string) string {
	if n == nil {
		return ""
	}
	word := r.oneOf(n, append(words, "auto")...)
	if word == "auto" {
		return ""
	}
	return word
}

// mostServers is how many servers, or keys, can grant a lock together.
const mostServers = 31

func (r *reader) quorum(n ast.Node) int {
	if n == nil {
		return 0
	}
	of, err := strconv.Atoi(r.scalar(n))
	if err != nil || of < 2 || of > mostServers {
		r.fail(n, "expected how many servers grant the lock together, from 2 to %d, found %s", mostServers, show(r.scalar(n)))
	}
	return of
}

func (r *reader) protected(n ast.Node) (table, fence string) {
	m := r.mapping(n, "table", "fence")
	t := r.need(m, "table")
	table = r.identifier(t, 2, "a table, with or without its schema")
	if f := m.get("fence"); f != nil {
		fence = r.identifier(f, 1, "the name of a column")
	}
	return table, fence
}

// lease reads which columns of a table make its rows locks.
func (r *reader) lease(n ast.Node) *lock.LeaseTable {
	if n == nil {
		return nil
	}
	m := r.mapping(n, "table", "owner", "until", "key")
	column := func(n ast.Node) string { return r.identifier(n, 1, "the name of a column") }
	t := &lock.LeaseTable{
		Table: r.identifier(r.need(m, "table"), 2, "a table, with or without its schema"),
		Owner: column(r.need(m, "owner")),
	}
	if until := m.get("until"); until != nil {
		t.Until = column(until)
	}
	for _, k := range r.items(m.get("key")) {
		t.Key = append(t.Key, column(k))
	}
	return t
}

// identifier reads an SQL name of at most so many parts.
func (r *reader) identifier(n ast.Node, most int, what string) string {
	parts, ok := identifiers(r.scalar(n))
	if n != nil && (!ok || len(parts) > most) {
		r.fail(n, "expected %s, found %s", what, show(r.scalar(n)))
	}
	return strings.Join(parts, ".")
}

// named finds the lock that a field names.
func (l locks) named(r *reader, n ast.Node) lockEntry {
	e, ok := l[r.scalar(n)]
	if !ok {
		r.fail(n, "no lock is named %s, expected %s", show(r.scalar(n)), l.list())
	}
	return e
}

func (l locks) list() string {
	if len(l) == 0 {
		return "it to be declared under locks"
	}
	names := make([]string, 0, len(l))
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}
