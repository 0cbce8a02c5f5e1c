package pgwire

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// What is expected of these statements is also held against Postgres's own
// grammar, by internal/oracle.
//
//go:embed testdata/statements.txt
var statementList string

// listed calls f with each statement of the list and what is expected of it.
func listed(t testing.TB, f func(want, sql string)) {
	t.Helper()
	n := 0
	for line := range strings.Lines(statementList) {
		if want, sql, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " | "); ok && line[0] != '#' {
			f(want, sql)
			n++
		}
	}
	if n < 100 {
		t.Fatalf("%d statements are listed", n)
	}
}

func (r Reading) line() string {
	parts := []string{orNone(string(r.Kind)), r.Verb}
	for _, name := range r.Tables {
		if slices.Contains(r.Writes, name) {
			name += "!"
		}
		parts = append(parts, name)
	}
	return strings.Join(parts, " ")
}

func TestReadListedStatements(t *testing.T) {
	listed(t, func(want, sql string) {
		list := Read(sql + ";select 1")
		if len(list) != 2 || list[0].line() != want || (sql + ";select 1")[list[0].From:list[0].To] != sql {
			t.Errorf("%s: read as %d, the first %q at %d to %d, want %q", sql, len(list), list[0].line(), list[0].From, list[0].To, want)
		}
	})
}

// A template says of its statement what its outline does, and its own table is
// one of them.
func TestTemplateTables(t *testing.T) {
	listed(t, func(want, sql string) {
		tm, r := readSQL(sql, false)[0], Read(sql)[0]
		names := []string{}
		for _, a := range tm.also {
			names = append(names, a.name)
		}
		if tm.shape.Table != "" {
			names = append(names, tm.shape.Table)
		}
		slices.Sort(names)
		if names = slices.Compact(names); !slices.Equal(names, r.Tables) && len(names)+len(r.Tables) > 0 {
			t.Errorf("%s: tables %q, want %q", sql, names, r.Tables)
		}
		if tm.kind == lock.Write && !slices.Contains(r.Writes, tm.shape.Table) {
			t.Errorf("%s: a write of %q, want one of %q", sql, tm.shape.Table, r.Writes)
		}
	})
}

// Code that cannot be seen may write.
func TestReadMaybe(t *testing.T) {
	for sql, want := range map[string]bool{
		"call p()": true, "do 'begin end'": true, "explain analyze execute p": true, "create table t as execute p": true,
		"explain execute p": false, "select 1 from t": false, "prepare p as select 1": false,
	} {
		if got := Read(sql)[0].Maybe; got != want {
			t.Errorf("%s: maybe %v, want %v", sql, got, want)
		}
	}
}
