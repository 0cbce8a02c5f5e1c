package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/internal/config"
)

const serveExample = `lockfaultd [flags]                 stand between clients and their servers
lockfaultd run [flags] -- COMMAND  run a command behind the proxies and judge it
lockfaultd sweep -- COMMAND        run it with every fault that could matter, and print one table

Examples:
  lockfaultd --stall-after SETNX=800ms
  lockfaultd --redis 127.0.0.1:16379=10.0.0.5:6379 --freeze-before 'UPDATE(counter)#*/20=800ms'
  lockfaultd --postgres '127.0.0.1:15432=db:5432?sslmode=verify-full&sslrootcert=ca.pem'

With no proxy named: 127.0.0.1:16379 -> 127.0.0.1:6379 (Redis) and
127.0.0.1:15432 -> 127.0.0.1:5432 (Postgres).

` + rulesHelp

const runExample = `lockfaultd run [flags] -- COMMAND [ARGUMENT...]

Examples:
  lockfaultd run -- make integration
  lockfaultd run --stall-after SETNX=800ms -- make integration
  lockfaultd run --counter 'SELECT value FROM counter WHERE id = 1' \
      --freeze-before 'UPDATE(counter)#*/20=ttl+300ms' -- ./service
  lockfaultd run --freeze-after 'read(counter)#*/20=ttl+300ms' \
      --require 'lease-expired-while-held>=3' -- make integration
  lockfaultd run --baseline 3s --freeze-after 'read(counter)#*/20=ttl+300ms' -- ./service
  lockfaultd run --repeat 20 --freeze-before 'write#1=until:lease-expired+next-write' -- ./service
  lockfaultd run --out lf-out --junit lf-out/junit.xml --github -- make integration

REDIS_URL, DATABASE_URL, REDIS_HOST/REDIS_PORT and PGHOST/PGPORT, where they are
set, are rewritten for the command so that it connects through lockfaultd.`

const rulesHelp = `A rule is EVENT[(GLOB)][#SELECT][@PERCENT%]=EFFECT[,KEY=VALUE...], such as
SETNX=800ms, 'write(counter)#*/20=ttl+300ms' or 'tick(1.5s)#1-6=800ms'. Of its
characters a shell changes only ( ) # and *: quote a rule that has one of them.
The grammar: docs/rules.md.

  --stall-before 'write#1=until:next-acquire'   hold the connection until another has the lock
  --stall-after acquire=800ms                   each grant comes 800 ms late
  --freeze-before 'UPDATE(counter)#*/20=800ms'  stop the process before every 20th
  --freeze-after acquire=ttl+20%                stop each holder for longer than its lease
  --hold 'renew#1=until:next-acquire'           the renewal waits, replies go on
  --hold-reply 'commit#3=2s'                    the reply waits, requests go on
  --drop-reply 'commit#3'                       it is done, and the client never hears
  --reset-before 'SETNX#1'                      the server never gets it
  --reset-after 'write#2'                       nobody knows whether it was done
  --lose-key 'acquire#1'                        assumes a failover: the server forgets the key
  --kill-backend 'acquire#1'                    assumes that the server ends the lock's connection

What each of them means: docs/faults.md.`

// ruleFlags are the flags of rules, in the order of the help. All of them feed
// one list, in the order typed.
var ruleFlags = []struct{ name, usage string }{
	{"stall-before", "stall the connection before its request `RULE` goes to the server"},
	{"stall-after", "stall the connection when the server has answered `RULE`, before the reply goes on"},
	{"freeze-before", "freeze the client's process before its request `RULE` goes to the server"},
	{"freeze-after", "freeze the client's process when the server has answered `RULE`, before the reply reaches it"},
	{"hold", "hold the request `RULE` and what follows it on its connection; replies go on"},
	{"hold-reply", "hold the reply `RULE` and what follows it on its connection; requests go on"},
	{"drop-reply", "lose the reply `RULE`: the server did it, and the connection is reset before the client hears"},
	{"reset-before", "reset the connection before the request `RULE` goes to the server"},
	{"reset-after", "reset the connection when the request `RULE` has gone to the server, before it answers"},
	{"lose-key", "once the server has answered `RULE`, remove the key of the lock, as a failover that forgot it would"},
	{"kill-backend", "once the server has answered `RULE`, end the Postgres backend that has the lock"},
}

// A typed rule is a flag as the user wrote it.
type typedRule struct{ flag, text string }

// options are what the flags of serve and run say.
type options struct {
	configPath string
	redis      cli.StringSlice
	postgres   cli.StringSlice
	tls        config.ClientLeg
	relayed    bool
	locks      cli.StringSlice
	typed      []typedRule
	seed       uint64
	maxFrozen  int
	maxFreeze  time.Duration
	out        string
	key        string
	rotate     string
	keep       string
	witness    string
	admin      string
	effects    bool // for tests: what scripts do is told by witnesses alone
	verbose    bool

	// run alone
	command   []string
	given     []string // the flags as typed, to say how to repeat the run
	replay    string
	counters  cli.StringSlice
	fences    cli.StringSlice
	monotones cli.StringSlice
	env       cli.StringSlice
	database  string
	timeout   time.Duration
	expect    cli.StringSlice
	failOn    string
	require   cli.StringSlice
	accept    string
	junit     string
	github    bool
	repeat    int
	baseline  time.Duration
}

func newOptions() *options { return &options{} }

// A ruleValue appends what one rule flag was given to the list of all.
type ruleValue struct {
	name string
	list *[]typedRule
}

func (v *ruleValue) Set(text string) error {
	*v.list = append(*v.list, typedRule{v.name, text})
	return nil
}

func (v *ruleValue) String() string { return "" }

// flagsOfRules are those that append to a list.
func flagsOfRules(list *[]typedRule) (out []cli.Flag) {
	for _, f := range ruleFlags {
		out = append(out, &cli.GenericFlag{Name: f.name, Usage: f.usage, Value: &ruleValue{f.name, list}, Category: "rules"})
	}
	return out
}

func (o *options) ruleFlags() []cli.Flag {
	return append(flagsOfRules(&o.typed),
		&cli.Uint64Flag{Name: "seed", Usage: "`N` makes every random choice; 0: choose one and print it", Destination: &o.seed, Category: "rules"},
		&cli.IntFlag{Name: "max-frozen", Value: 1, Usage: "most processes frozen at a time: `N`", Destination: &o.maxFrozen, Category: "rules"},
		&cli.DurationFlag{Name: "max-freeze", Usage: "no freeze is longer than `DURATION`", DefaultText: "30s or twice the lease, whichever is more", Destination: &o.maxFreeze, Category: "rules"},
	)
}

func (o *options) commonFlags() []cli.Flag {
	return append(o.ruleFlags(),
		&cli.StringFlag{Name: "config", Usage: "read proxies, locks, rules and invariants from `FILE` (YAML); a daemon reads the rules again on SIGHUP, or when the file has changed", Destination: &o.configPath, Action: notEmpty("config")},
		&cli.StringSliceFlag{Name: "redis", Usage: "proxy Redis: `LISTEN=UPSTREAM`, such as 127.0.0.1:16379=rediss://cache:6380; LISTEN may be unix:PATH; repeatable", Destination: &o.redis},
		&cli.StringSliceFlag{Name: "postgres", Usage: "proxy Postgres: `LISTEN=UPSTREAM`, such as '127.0.0.1:15432=db:5432?sslmode=verify-full'; LISTEN may be unix:PATH; repeatable", Destination: &o.postgres},
		&cli.StringFlag{Name: "tls-cert", Usage: "listeners of --redis and --postgres speak TLS, with the certificate in `FILE`", Destination: &o.tls.Cert, Action: notEmpty("tls-cert")},
		&cli.StringFlag{Name: "tls-key", Usage: "the key of --tls-cert, in `FILE`", Destination: &o.tls.Key, Action: notEmpty("tls-key")},
		&cli.StringFlag{Name: "tls-client-ca", Usage: "these listeners want a certificate of a CA in `FILE` from clients", Destination: &o.tls.ClientCA, Action: notEmpty("tls-client-ca")},
		&cli.BoolFlag{Name: "proxy-protocol", Usage: "listeners of --redis and --postgres take clients through a relay alone, which says first who they are (PROXY protocol, version 1 or 2)", Destination: &o.relayed},
		&cli.StringSliceFlag{Name: "lock", Usage: "declare a lock and what it protects: `KEY=TABLE[.FENCE]`; repeatable", Destination: &o.locks},
		&cli.StringFlag{Name: "witness", Usage: "how it is found out what scripts do: `HOW` is auto, monitor, probe or none", Destination: &o.witness, Action: notEmpty("witness")},
		&cli.BoolFlag{Name: "effects-only", Usage: "for tests: what scripts do is told by the witness alone, and never by their text", Hidden: true, Destination: &o.effects},
		&cli.StringFlag{Name: "admin", Usage: "serve the admin API at `ADDRESS`, such as 127.0.0.1:8474; one that is not loopback's needs a token in LOCKFAULTD_ADMIN_TOKEN", Destination: &o.admin, Action: notEmpty("admin")},
		&cli.StringFlag{Name: "out", Usage: "keep history.jsonl (and of a run, report.html, report.json and report.md) in `DIR`", Destination: &o.out, Action: notEmpty("out")},
		&cli.StringFlag{Name: "history-key", Usage: "make the history's hashes with the key in `FILE`, so that they compare across restarts and daemons", Destination: &o.key, Action: notEmpty("history-key")},
	)
}

func (o *options) verboseFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: "verbose", Usage: usage, Destination: &o.verbose}
}

// notEmpty refuses an empty value, such as a shell makes of a variable that is
// not set: it would mean as much as no flag at all.
func notEmpty(name string) func(*cli.Context, string) error {
	return func(_ *cli.Context, value string) error {
		if value == "" {
			return usagef("--%s: its value is empty; expected one, or no --%s", name, name)
		}
		return nil
	}
}

// someTime refuses a bound that would be over at once.
func someTime(name string) func(*cli.Context, time.Duration) error {
	return func(_ *cli.Context, d time.Duration) error {
		if d <= 0 {
			return usagef("--%s %s: expected more than none, such as 10m, or no --%s for no bound", name, d, name)
		}
		return nil
	}
}

// someTimes refuses one that would be used up at once.
func someTimes(name string) func(*cli.Context, int) error {
	return func(_ *cli.Context, n int) error {
		if n < 1 {
			return usagef("--%s %d: expected 1 or more, or no --%s for no bound", name, n, name)
		}
		return nil
	}
}

func noneEmpty(name string) func(*cli.Context, []string) error {
	return func(c *cli.Context, values []string) error {
		for _, v := range values {
			if err := notEmpty(name)(c, v); err != nil {
				return err
			}
		}
		return nil
	}
}

func (o *options) serveFlags() []cli.Flag {
	return append(o.commonFlags(),
		&cli.StringFlag{Name: "rotate", Usage: "cut history.jsonl into parts of `SIZE`, such as 64MiB", Destination: &o.rotate, Action: notEmpty("rotate")},
		&cli.StringFlag{Name: "keep", Usage: "keep the newest `N|SIZE` of the histories and parts that are over, such as 20 or 2GiB, and remove the others", Destination: &o.keep, Action: notEmpty("keep")},
		o.verboseFlag("log each connection, and not only each injection"))
}

func (o *options) runFlags() []cli.Flag {
	return append(o.commonFlags(),
		o.verboseFlag("log each connection and injection"),
		&cli.StringFlag{Name: "replay", Usage: "decide what the schedule.json in `FILE` says and nothing else, and stop where that does not come about", Destination: &o.replay, Category: "rules", Action: notEmpty("replay")},
		&cli.StringSliceFlag{Name: "counter", Usage: "a number that must rise by what was acknowledged: `SQL`, such as 'SELECT value FROM counter WHERE id = 1'", Destination: &o.counters, Category: "invariants"},
		&cli.StringSliceFlag{Name: "fence", Usage: "a fence that must never fall: `SQL`", Destination: &o.fences, Category: "invariants"},
		&cli.StringSliceFlag{Name: "monotone", Usage: "a number that must never fall, by whatever it moves: `SQL`", Destination: &o.monotones, Category: "invariants"},
		&cli.StringFlag{Name: "database", Usage: "read invariants from `URL` rather than DATABASE_URL or PGHOST", Destination: &o.database, Category: "invariants", Action: notEmpty("database")},
		&cli.StringSliceFlag{Name: "env", Usage: "rewrite the variable `NAME` too", Destination: &o.env, Category: "command"},
		&cli.DurationFlag{Name: "timeout", Usage: "end the command after `DURATION`", DefaultText: "no bound", Destination: &o.timeout, Category: "command"},
		&cli.DurationFlag{Name: "baseline", Usage: "let no rule act before `D` has passed since the first lock was held; end with 11 if the service is broken already then", Destination: &o.baseline, Category: "rules"},
		&cli.IntFlag{Name: "repeat", Value: 1, Usage: "run the command `N` times, and say how stable the verdicts are", Destination: &o.repeat, Category: "command"},
		&cli.StringSliceFlag{Name: "expect", Usage: "fail unless `CODE` is found, and forgive it", Destination: &o.expect, Category: "verdict", Action: noneEmpty("expect")},
		&cli.StringFlag{Name: "fail-on", Usage: "fail on these too: `CODES`, comma-separated, or 'hazard' or 'any'", Destination: &o.failOn, Category: "verdict", Action: notEmpty("fail-on")},
		&cli.StringSliceFlag{Name: "require", Usage: "a run that does not count this shows nothing (exit 11): `FACT`, such as 'lease-expired-while-held>=1', which rules bring along; repeatable", Destination: &o.require, Category: "verdict", Action: noneEmpty("require")},
		&cli.StringFlag{Name: "accept", Usage: "do not fail on the known findings in `FILE` (YAML)", Destination: &o.accept, Category: "verdict", Action: notEmpty("accept")},
		&cli.StringFlag{Name: "junit", Usage: "write the verdicts as JUnit XML to `FILE`", Destination: &o.junit, Category: "verdict", Action: notEmpty("junit")},
		&cli.BoolFlag{Name: "github", Usage: "annotate the job of GitHub Actions, and write its step summary", Destination: &o.github, Category: "verdict"},
	)
}
