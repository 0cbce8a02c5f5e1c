package main

import (
	"fmt"
	"path/filepath"
)

// The rows.
const (
	clean  = "clean"
	late   = "late"
	freeze = "freeze"
	renew  = "renew"
	soak   = "soak" // of no library alone
)

var allRows = []string{clean, late, freeze, renew}

// A library is one kind of lock, and what is to come of it.
type library struct {
	name     string
	versions string   // of what is run, as docs/matrix.md has them
	golang   string   // package below clients/go
	argv     []string // else what to run, in the folder clients
	env      []string
	keys     string // glob of its locks' keys
	only     string // glob of the key that the rules are about, in parentheses; "": each key
	held     string // SQL that tells whether it is held; "": whether a key is there
	frozen   string // what the row freeze comes before; "": after SELECT(counter)
	second   bool   // B begins after A in the row clean, too
	rowed    bool   // each section writes a row of its own
	cleansUp bool   // it sends its release when it is refused, too
	slow     bool   // its services take their time
	alone    bool   // it renews by itself, and tells nobody
	each     int    // keys that one lock is made of, where it is not 1
	quick    []string
	rows     map[string]expected
}

// expected is how a row comes out.
type expected struct {
	says     string // A, of itself
	b        string // B, of itself; "": that it held the lock once, as it should
	ops      string // of the lock, without refusals
	verdicts string
}

func (e expected) other() string {
	if e.b != "" {
		return e.b
	}
	return "granted 1, released 1, wrote 1"
}

func (l library) program(t tools) string {
	if l.golang != "" {
		return filepath.Join(t.bin, l.golang)
	}
	return fmt.Sprintf("%s %s", l.argv[0], filepath.Join(t.source, "clients", l.argv[1]))
}

func (l library) freezeAt() string {
	if l.frozen != "" {
		return "--freeze-before"
	}
	return "--freeze-after"
}

func (l library) freezeOn() string {
	if l.frozen != "" {
		return l.frozen
	}
	return "SELECT(counter)"
}

const (
	python  = "/usr/bin/python3"
	counted = "lock:counter"
)

// What comes of a row, where it is much the same for several libraries.
var (
	// A takes its lock for held, works and loses an update.
	overruns = expected{
		says:     "granted 1, unreleased 1, wrote 1",
		ops:      "granted 2, released 1, unreleased 1",
		verdicts: "LF101, LF102, LF104, LF403",
	}
	// A is told that it cannot renew, and stops.
	gives = expected{
		says:     "granted 1, unrenewed 1, unreleased 1",
		ops:      "granted 2, unrenewed 1, released 1, unreleased 1",
		verdicts: "LF101, LF102",
	}
)

// byHand are the rows of a lock that believes every answer it gets.
func byHand() map[string]expected {
	return map[string]expected{clean: {}, late: overruns, freeze: overruns, renew: gives}
}

func libraries() []library {
	return []library{
		{
			name: "redsync", versions: "redsync 4.18.1, go-redis 9.23.0", golang: "redsync", keys: counted, cleansUp: true,
			quick: []string{clean, freeze},
			rows:  map[string]expected{clean: {}, freeze: overruns, renew: gives},
		},
		{
			name: "redislock", versions: "bsm/redislock 0.9.4, go-redis 9.23.0", golang: "redislock", keys: counted,
			quick: []string{clean, late},
			rows:  map[string]expected{clean: {}, late: overruns, freeze: overruns},
		},
		{
			name: "rueidislock", versions: "rueidislock 1.0.79", golang: "rueidislock", keys: "rueidislock:*", each: 3, alone: true, only: "(rueidislock:0:*)",
			rows: map[string]expected{clean: {}},
		},
		{
			name: "go-redis", versions: "go-redis 9.23.0, by hand", golang: "goredis", keys: counted,
			rows: byHand(),
		},
		{
			name: "redis-py", versions: "redis-py 4.3.4", argv: []string{python, "python/redispy.py"}, keys: counted,
			quick: []string{clean, late, renew},
			rows:  byHand(),
		},
		{
			name: "redis-py-asyncio", versions: "redis-py 4.3.4", argv: []string{python, "python/redisaio.py"}, keys: counted,
			rows: byHand(),
		},
		{
			name: "django-redis", versions: "django-redis 5.2.0, redis-py 4.3.4", argv: []string{python, "python/djangoredis.py"}, keys: ":1:counter",
			rows: byHand(),
		},
		{
			name: "redlock", versions: "redlock 5.0.0-beta.2, ioredis 5.11.1", argv: []string{"node", "node/redlock.mjs"}, keys: counted, cleansUp: true,
			quick: []string{clean, late},
			rows:  map[string]expected{clean: {}, late: overruns, freeze: overruns},
		},
		{
			name: "redlock-using", versions: "redlock 5.0.0-beta.2, ioredis 5.11.1", argv: []string{"node", "node/redlock.mjs"},
			env: []string{"MODE=using"}, keys: counted, alone: true, cleansUp: true,
			rows: map[string]expected{
				clean:  {},
				late:   {says: "granted 1, unreleased 1, lost 1", ops: "granted 2, released 1, unreleased 1", verdicts: "LF101, LF102"},
				freeze: {says: "granted 1, unreleased 1, lost 1", ops: "granted 2, released 1, unreleased 1", verdicts: "LF101, LF102"},
			},
		},
		{
			name: "ioredis", versions: "ioredis 5.11.1, by hand", argv: []string{"node", "node/ioredis.mjs"}, keys: counted,
			rows: byHand(),
		},
	}
}
