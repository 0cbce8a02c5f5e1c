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
	lose   = "lose"
	soak   = "soak" // of no library alone
)

var allRows = []string{clean, late, freeze, renew, lose}

// A subject is one kind of lock, and what is to come of it.
type subject struct {
	name     string
	versions string   // of what is run, as docs/matrix.md has them
	golang   string   // package below clients/go
	argv     []string // else what to run, in the folder clients
	env      []string
	keys     string // glob of its locks' keys
	also     string // glob of the keys of other locks that it has
	only     string // glob of the key that the rules are about, in parentheses; "": each key
	held     string // SQL that tells whether it is held; "": whether a key is there
	granted  string // the event of a grant, where that is no acquire for sure
	renewed  string // the event of a renewal, with its selector, where that is no renew for sure
	frozen   string // what the row freeze comes before; "": after SELECT(counter)
	second   bool   // B begins after A in the row clean, too
	rowed    bool   // each section writes a row of its own
	cleansUp bool   // it sends its release when it is refused, too
	retries  bool   // it tries again by itself, and tells nobody how often
	tx       bool   // it ends with its transaction, without an op of its own
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
	or       []string // other verdicts, which there may be instead: what the library does first is not the rule's to say
}

// nothing is what a service reports that had no lock and wrote nothing, and no verdict.
const nothing = "nothing"

func (e expected) other() string {
	switch e.b {
	case "":
	case nothing:
		return ""
	default:
		return e.b
	}
	return "granted 1, released 1, wrote 1"
}

func (l subject) program(t tools) string {
	if l.golang != "" {
		return filepath.Join(t.bin, l.golang)
	}
	return fmt.Sprintf("%s %s", l.argv[0], filepath.Join(t.source, "clients", l.argv[1]))
}

// grantedAt is the event of a grant, as rules know it.
func (l subject) grantedAt() string {
	if l.granted != "" {
		return l.granted
	}
	return "acquire" + l.only
}

// renewsAt is the event of the first renewal.
func (l subject) renewsAt() string {
	if l.renewed != "" {
		return l.renewed
	}
	return "renew" + l.only + "#1"
}

func (l subject) freezeAt() string {
	if l.frozen != "" {
		return "--freeze-before"
	}
	return "--freeze-after"
}

func (l subject) freezeOn() string {
	if l.frozen != "" {
		return l.frozen
	}
	return "SELECT(counter)"
}

const (
	python  = "/usr/bin/python3"
	counted = "lock:counter"

	advisoryHeld = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')"
	txHeld       = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE state = 'idle in transaction' AND query !~* '^begin')"
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
	// B waits until A is done, however long that takes.
	waits    = expected{says: "granted 1, released 1, wrote 1", ops: "granted 2, released 2", verdicts: "LF401"}
	waitsTx  = expected{says: "granted 1, released 1, wrote 1", ops: "granted 2", verdicts: "LF401"}
	migrated = expected{says: "granted 3, released 3, wrote 1", b: "granted 2, released 2", ops: "granted 5, released 5", verdicts: "LF401"}
	// Both apply the migration, and A is told only when it releases its lock.
	migratesTwice = expected{says: "granted 1, unreleased 1, wrote 1", ops: "granted 2", verdicts: "LF101, LF102, LF104, LF403"}
	// A hears while it works, or when it is done, that its job is another's, and does it all the same.
	overrunsJob = expected{says: "granted 1, lost 1, wrote 1", ops: "granted 1", verdicts: "LF101, LF102, LF104, LF403"}
	lateRenewal = expected{says: "granted 1, lost 1, wrote 1", ops: "granted 2", verdicts: "LF101, LF102, LF104, LF403"}
	// A has a claim without an end, and B finds nothing to do.
	claims = expected{says: "granted 1, released 1, wrote 1", b: nothing, ops: "granted 1", verdicts: "LF401"}
	// A asks for several keys, and finds that there is no time left.
	refusesLate = expected{says: "refused 1", verdicts: "LF401", or: []string{"LF101"}}
	// A is told that its keys are gone, and stops: it gives back those of which it has not heard.
	loses   = expected{says: "granted 1, unreleased 1, lost 1", verdicts: "LF101 LIKELY, LF102", or: []string{"LF101 POSSIBLE", nothing}}
	upByOne = expected{says: "granted 1, released 1, wrote 1", b: "granted 1, released 1", ops: "granted 2, released 2", verdicts: "LF401"}
)

// byHand are the rows of a lock that believes every answer it gets.
func byHand() map[string]expected {
	return map[string]expected{clean: {}, late: overruns, freeze: overruns, renew: gives}
}

// untilReleased are the rows of a lock without an end of its own.
func untilReleased() map[string]expected {
	return map[string]expected{clean: {}, late: waits, freeze: waits}
}

// untilCommit are the rows of a lock that ends with its transaction.
func untilCommit() map[string]expected {
	return map[string]expected{clean: {}, late: waitsTx, freeze: waitsTx}
}

func subjects() []subject {
	return []subject{
		{
			name: "redsync", versions: "redsync 4.18.1, go-redis 9.23.0", golang: "redsync", keys: counted, cleansUp: true,
			quick: []string{clean, freeze},
			rows: map[string]expected{
				clean: {},
				// It may have asked for the release before it was noted that it has the answer.
				late:   {says: "refused 1", ops: "granted 2, released 1, unreleased 1", verdicts: "LF101, LF102", or: []string{"LF101"}},
				freeze: overruns,
				renew:  gives,
			},
		},
		{
			name: "redislock", versions: "bsm/redislock 0.9.4, go-redis 9.23.0", golang: "redislock", keys: counted,
			quick: []string{clean, late},
			rows:  byHand(),
		},
		{
			name: "rueidislock", versions: "rueidislock 1.0.79", golang: "rueidislock", keys: "rueidislock:*", each: 3, alone: true, only: "(rueidislock:0:*)",
			rows: map[string]expected{clean: {}, late: refusesLate, freeze: loses, renew: loses},
		},
		{
			name: "asynq", versions: "asynq 0.26.0 (Unique)", golang: "asynq", keys: "asynq:*unique*",
			rows: map[string]expected{
				clean: {},
				late:  {says: "granted 1, released 1, wrote 1", ops: "granted 2, released 2", verdicts: "LF401"},
				// A's task is done, and the claim is B's by then.
				freeze: {says: "granted 1, released 1, wrote 1", ops: "granted 2, released 1, unreleased 1", verdicts: "LF101, LF102, LF104, LF403"},
			},
		},
		{
			name: "rueidislock-loop", versions: "rueidislock 1.0.79", golang: "rueidislock", env: []string{"LOOP=1"}, keys: "rueidislock:*", each: 3, alone: true, only: "(rueidislock:0:*)",
			rows: map[string]expected{clean: {}, late: refusesLate, freeze: loses, renew: loses},
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
			rows:  byHand(),
		},
		{
			name: "redlock-using", versions: "redlock 5.0.0-beta.2, ioredis 5.11.1", argv: []string{"node", "node/redlock.mjs"},
			env: []string{"MODE=using"}, keys: counted, alone: true, cleansUp: true,
			rows: map[string]expected{
				clean:  {},
				late:   {says: "granted 1, unreleased 1, lost 1", ops: "granted 2, released 1, unreleased 1", verdicts: "LF101, LF102"},
				freeze: {says: "granted 1, unreleased 1, lost 1", ops: "granted 2, released 1, unreleased 1", verdicts: "LF101, LF102"},
				lose:   {says: "granted 1, unreleased 1, lost 1", ops: "granted 2, released 1, unreleased 1", verdicts: "LF101 LIKELY, LF102, LF305 LIKELY"},
				renew:  {says: "granted 1, unreleased 1, lost 1", ops: "granted 2, unrenewed 1, released 1, unreleased 1", verdicts: "LF101, LF102"},
			},
		},
		{
			name: "bullmq", versions: "bullmq 6.7.0, ioredis 5.11.1", argv: []string{"node", "node/bullmq.mjs"}, keys: "bull:count:*:lock",
			second: true, rowed: true, retries: true, alone: true, granted: "EVAL(bull:count:1:lock)",
			renewed: "EVALSHA(bull:count:stalled)#2", // #1 is B's, which looks for stalled jobs
			rows:    map[string]expected{clean: {}, late: overrunsJob, freeze: overrunsJob, renew: lateRenewal},
		},
		{
			name: "ioredis", versions: "ioredis 5.11.1, by hand", argv: []string{"node", "node/ioredis.mjs"}, keys: counted,
			rows: byHand(),
		},
		{
			name: "golang-migrate", versions: "golang-migrate 4.20.1, pgx 5.13.0", golang: "migrate", keys: "advisory:*", held: advisoryHeld, frozen: "UPDATE(counter)",
			rows: map[string]expected{clean: {}, late: migrated, freeze: migrated},
		},
		{
			name: "goose", versions: "goose 3.30.1, pgx 5.13.0", golang: "goose", keys: "advisory:*", held: advisoryHeld, retries: true,
			rows: map[string]expected{clean: {}, late: upByOne, freeze: upByOne},
		},
		{
			name: "activerecord", versions: "activerecord 6.1.7", argv: []string{"ruby", "ruby/advisory.rb"}, keys: "advisory:*", held: advisoryHeld,
			rows: untilReleased(),
		},
		{
			name: "psql-advisory", versions: "psql 15, by hand", argv: []string{"sh", "psql/lock.sh"}, env: []string{"LOCK=advisory"}, keys: "advisory:4711", held: advisoryHeld, slow: true,
			rows: untilReleased(),
		},
		{
			name: "psql-table", versions: "psql 15, by hand", argv: []string{"sh", "psql/lock.sh"}, env: []string{"LOCK=table"}, slow: true, keys: "table:locks", held: txHeld, tx: true,
			rows: untilCommit(),
		},
		{
			name: "psql-row", versions: "psql 15, by hand", argv: []string{"sh", "psql/lock.sh"}, env: []string{"LOCK=row"}, keys: "row:locks*", held: txHeld, tx: true, slow: true,
			rows: untilCommit(),
		},
		{
			name: "pgx-advisory", versions: "pgx 5.13.0, by hand", golang: "pgx", env: []string{"LOCK=advisory"}, keys: "advisory:4711", held: advisoryHeld,
			quick: []string{clean, freeze},
			rows:  untilReleased(),
		},
		{
			name: "pgx-xact", versions: "pgx 5.13.0, by hand", golang: "pgx", env: []string{"LOCK=xact"}, keys: "advisory:*", held: advisoryHeld, tx: true,
			rows: untilCommit(),
		},
		{
			name: "pgx-row", versions: "pgx 5.13.0, by hand", golang: "pgx", env: []string{"LOCK=row"}, keys: "row:counter*", held: txHeld, tx: true,
			quick: []string{clean},
			rows:  untilCommit(),
		},
		{
			name: "psycopg2-advisory", versions: "psycopg2 2.9.5, by hand", argv: []string{python, "python/postgres.py"}, env: []string{"LOCK=advisory"}, keys: "advisory:47:11", held: advisoryHeld,
			rows: untilReleased(),
		},
		{
			name: "psycopg2-row", versions: "psycopg2 2.9.5, by hand", argv: []string{python, "python/postgres.py"}, env: []string{"LOCK=row"}, keys: "row:locks*", held: txHeld, tx: true,
			quick: []string{clean},
			rows:  untilCommit(),
		},
		{
			name: "psql-lease", versions: "psql 15, by hand", argv: []string{"sh", "psql/lock.sh"}, env: []string{"LOCK=lease"}, keys: "lease:lease*",
			held: "SELECT EXISTS (SELECT FROM lease)", slow: true,
			rows: map[string]expected{clean: {}, late: overruns, freeze: overruns},
		},
		{
			name: "pgx-lease", versions: "pgx 5.13.0, by hand", golang: "pgx", env: []string{"LOCK=lease"}, keys: "lease:lease*",
			held:  "SELECT EXISTS (SELECT FROM lease)",
			quick: []string{clean, late},
			rows:  byHand(),
		},
		{
			name: "psycopg2-lease", versions: "psycopg2 2.9.5, by hand", argv: []string{python, "python/postgres.py"}, env: []string{"LOCK=lease"}, keys: "lease:locks*",
			held: "SELECT EXISTS (SELECT FROM locks WHERE owner IS NOT NULL)",
			rows: byHand(),
		},
		{
			name: "goose-table", versions: "goose 3.30.1, pgx 5.13.0", golang: "goose", env: []string{"LOCK=table"}, keys: "lease:goose_lock*",
			held: "SELECT EXISTS (SELECT FROM goose_lock WHERE locked)", retries: true, alone: true,
			rows: map[string]expected{clean: {}, late: migratesTwice, freeze: migratesTwice, renew: migratesTwice},
		},
		{
			name: "river", versions: "river 0.51.2, pgx 5.13.0", golang: "river", keys: "lease:river_job:*", also: "lease:river_leader:*",
			held: "SELECT EXISTS (SELECT FROM river_job WHERE state <> 'available')", second: true, rowed: true, retries: true, tx: true,
			rows: map[string]expected{clean: {}, late: claims, freeze: claims},
		},
	}
}
