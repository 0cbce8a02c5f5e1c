package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func env(name string) string {
	return map[string]string{"DATABASE_URL": "postgresql+asyncpg://u:secret@h/d"}[name]
}

// There is an example for each kind, and each can be read.
func TestProbeExamples(t *testing.T) {
	for _, kind := range WatchedKinds() {
		p, err := LoadProbe("../../configs/probe-" + kind + ".yaml")
		if err != nil {
			t.Error(err)
			continue
		}
		if len(p.Invariants) != 1 || p.Invariants[0].Kind != kind {
			t.Errorf("%s: %+v", kind, p)
		}
	}
	files, _ := filepath.Glob("../../configs/probe-*.yaml")
	if len(files) != len(WatchedKinds()) {
		t.Errorf("%v: expected one for each of %v", files, WatchedKinds())
	}
}

func TestProbe(t *testing.T) {
	p, err := ParseProbe("x.yaml", []byte(`
version: 1
source: {admin: http://127.0.0.1:8474/}
postgres:
  main: env:DATABASE_URL
  books: postgres://h/d
redis: {cache: redis://h:6379/3}
every: 500ms
locks:
  - {name: c, key: "lock:c", protects: [{table: t, fence: f}]}
invariants:
  - {name: a, kind: acked, postgres: main, query: "SELECT v FROM t;", lock: c, every: 2s}
  - {name: s, kind: sum, postgres: main, query: SELECT 1, equals: SELECT 2, equals_postgres: books}
  - {name: f, kind: fence, key: fence:c}
  - {name: l, kind: lock, pattern: "lock:*", except: [a, b], held: 1m, lifetime: any, tokens: unique}
`), env)
	if err != nil {
		t.Fatal(err)
	}
	a, s, f, l := p.Invariants[0], p.Invariants[1], p.Invariants[2], p.Invariants[3]
	switch {
	case p.Admin != "http://127.0.0.1:8474", len(p.Locks) != 1:
	case a.Every != 2*time.Second, a.Query != "SELECT v FROM t", a.Lock != "lock:c", a.Postgres.URL != env("DATABASE_URL"):
	case s.Every != 500*time.Millisecond, s.Postgres.Name != "main", s.EqualsAt.Name != "books", s.Equals != "SELECT 2":
	case f.Redis.URL != "redis://h:6379/3", f.Key != "fence:c", f.Query != "":
	case !slices.Equal(l.Except, []string{"a", "b"}), l.Held != time.Minute, !l.Lasting, !l.Unique:
	default:
		return
	}
	t.Errorf("%+v", p)
}

func TestBadProbe(t *testing.T) {
	const head = "version: 1\nsource: {admin: 'http://h:1'}\npostgres: {p: 'postgres://h/d'}\nredis: {r: 'redis://h'}\ninvariants:\n  - "
	for _, b := range []mistake{
		{"", "1:1: the file is empty, expected version: 1"},
		{"version: 1", "1:1: neither source nor invariants is given: there is nothing to watch"},
		{"version: 1\nproxies: {}", "2:1: unknown field proxies, expected one of version, source, postgres, redis, locks, every, invariants"},
		{"version: 1\nsource: {}", "2:9: expected one of admin, the URL of a daemon's admin API, and history, the folder of its histories"},
		{"version: 1\nsource: {admin: 'http://h:1', history: d}", "2:9: expected one of admin, the URL of a daemon's admin API, and history, the folder of its histories"},
		{"version: 1\nsource: {admin: '127.0.0.1:8474'}", "2:17: expected http://HOST:PORT, found 127.0.0.1:8474"},
		{"version: 1\nsource: {admin: 'http://u:secret@h:1'}", "2:17: expected http://HOST:PORT, found http://...@h:1"},
		{"version: 1\nsource: {history: ''}", "2:19: history is empty, expected a folder"},
		{"version: 1\npostgres: {p: 'mysql://u:secret@h/d'}", "2:15: expected a URL such as postgres://HOST:PORT/..., or env:NAME, found mysql://...@h/d"},
		{"version: 1\nredis: {r: env:NOWHERE}", "2:12: the variable NOWHERE is not set"},
		{"version: 1\nevery: 1ms", "2:8: expected a duration of at least 50ms, such as 1s, found 1ms"},
		{head + "{name: a, kind: counter, query: SELECT 1}", "6:21: expected one of acked, sum, zero, monotone, fence, lock, found counter"},
		{head + "{name: a, kind: zero}", "6:5: the field query is missing"},
		{head + "{name: a, kind: zero, query: ' ;'}", "6:34: query is empty, expected SQL"},
		{head + "{name: a, kind: zero, query: SELECT 1, equals: SELECT 2}", "6:44: equals means nothing for the kind zero, expected of name, kind, every, query, postgres, lock"},
		{head + "{name: a, kind: zero, query: SELECT 1, postgres: q}", "6:54: nothing is named q, expected p"},
		{head + "{name: a, kind: sum, query: SELECT 1}", "6:5: the field equals is missing"},
		{head + "{name: a, kind: fence}", "6:5: expected a query for the stored fence, a key from which fences are given out, or both"},
		{head + "{name: a, kind: lock, pattern: 'l:*', lifetime: any}", "6:5: nothing is asked of a: expected held, or a lifetime that is required"},
		{head + "{name: a, kind: lock, pattern: 'l:*', held: soon}", "6:49: expected a duration of at least 1ms, such as 1s, found soon"},
		{head + "{name: a, kind: zero, query: SELECT 1, lock: l}", "6:50: no lock is named l, expected it to be declared under locks"},
		{head + "{name: a, kind: zero, query: SELECT 1}\n  - {name: a, kind: zero, query: SELECT 1}", "7:12: the name a is taken, expected one of its own"},
		{"version: 1\npostgres: {p: 'postgres://h/d', q: 'postgres://h/e'}\ninvariants:\n  - {name: a, kind: zero, query: SELECT 1}", "4:5: the field postgres is missing, expected p or q"},
		{"version: 1\ninvariants:\n  - {name: a, kind: zero, query: SELECT 1}", "3:5: the field postgres is missing, expected it to be declared under postgres:"},
		{"version: 1\npostgres: {p: 'postgres://h/d'}\ninvariants:\n  - {name: a, kind: acked, query: SELECT 1}", "4:5: a is of kind acked, which needs the clock of the daemon: expected source: {admin: URL}"},
	} {
		err := b.refusedBy(t, func(text []byte) error {
			_, err := ParseProbe("x.yaml", text, env)
			return err
		})
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error has the password: %v", b.text, err)
		}
	}
}

func FuzzProbe(f *testing.F) {
	f.Add([]byte("version: 1\npostgres: {p: 'postgres://h/d'}\ninvariants:\n  - {name: a, kind: sum, query: SELECT 1, equals: SELECT 2}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := ParseProbe("x.yaml", text, env)
		hasItsPlace(t, err)
	})
}

// The files of the try-out in the README can be read, and speak of the same lock.
func TestStagingExample(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://h/d")
	t.Setenv("REDIS_URL", "redis://h")
	daemon, err := Load("../../examples/staging/lockfaultd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	probe, err := LoadProbe("../../examples/staging/probe.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(daemon.Locks) != 1 || len(probe.Locks) != 1 || daemon.Locks[0].Key != probe.Locks[0].Key || len(daemon.Rules) != 0 {
		t.Errorf("%+v and %+v", daemon.Locks, probe.Locks)
	}
}
