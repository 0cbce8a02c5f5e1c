package main

import (
	"regexp"

	"github.com/lockfaultd/lockfaultd/internal/alarm"
)

// rubbish are the reasons why bytes are no requests.
var rubbish = regexp.MustCompile(`reason="request at byte \d+: (NUL in an inline request|multibulk count|unbalanced quotes|byte '.' before argument|length .* of argument)`)

// allSuites lists what can be run, the fastest first.
func allSuites() []suite {
	return []suite{
		{name: "libpq_pipeline", protocol: "postgres", start: startSame, prepare: builtPostgres, run: runPipeline, expects: []expected{
			{alarm.Gap, regexp.MustCompile(`the disk was slower than the traffic`), 0, "it writes rows by the ten thousand a second, and the history may lack what a busy disk does not take"},
			{alarm.Desync, regexp.MustCompile(`reason="at byte \d+: client's message '.': \d+ requests are unanswered`), 2, "it sends until its socket is full, and may have more unanswered by then than is kept in mind"},
		}},
		{name: "isolation", protocol: "postgres", start: startSame, prepare: builtPostgres, run: runIsolation},
		{name: "regress", protocol: "postgres", start: startSame, prepare: builtPostgres, run: runRegress},
		{name: "pgx", protocol: "postgres", start: startPostgres, prepare: fetchPgx, setup: setupPgx, run: runPgx},
		{name: "redis", protocol: "redis", start: startRedis, prepare: fetchRedis, run: runRedis, races: []string{
			"PUBLISH/SUBSCRIBE after UNSUBSCRIBE without arguments",
			"Blocking XREADGROUP: flushed DB",
			"BRPOPLPUSH does not affect WATCH while still blocked",
		}, expects: []expected{
			{alarm.Desync, regexp.MustCompile(`reason="request at byte \d+: SYNC: the replication stream`), 0, "a test reads the replication stream"},
			{alarm.Desync, rubbish, 11, "the tests of the protocol send what is none"},
			{alarm.Desync, regexp.MustCompile(`reason="reply at byte \d+: more than 128 levels of nesting`), 2, "two scripts answer with what holds itself"},
		}},
	}
}

// unavailable says what is not run, and why.
var unavailable = []string{
	"ioredis        not run: its package in the npm registry has no tests",
	"psycopg        not run: Debian's archive lists its source, but the files are not there",
}

func suiteNames() []string {
	var names []string
	for _, s := range allSuites() {
		names = append(names, s.name)
	}
	return names
}
