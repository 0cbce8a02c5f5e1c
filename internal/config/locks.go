package config

import (
	"slices"
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

// add reads one entry of locks. A lock is declared to guard correctness if it
// says so, or says what it protects without saying otherwise.
func (l locks) add(r *reader, n ast.Node) []lock.Declaration {
	m := r.mapping(n, "name", "key", "purpose", "protects")
	name := r.need(m, "name")
	d := lock.Declaration{Key: r.scalar(r.need(m, "key"))}
	if p := m.get("purpose"); p != nil {
		d.Purpose = r.oneOf(p, "correctness", "efficiency")
	}
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
	return all
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
