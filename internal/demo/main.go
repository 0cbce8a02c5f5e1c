// Command demo is what `make demo` runs: the project's main job on real servers.
//
// It starts a Redis and a Postgres of its own in a temporary folder (or uses
// those that REDIS_URL and DATABASE_URL name), builds both commands, runs
// `probe load` as the service under test below `lockfaultd run` once for each
// row of the table, prints the table and removes everything. With the argument
// "broken" that is the table of services that are broken in one way each, with
// the sound twin of each; words behind it choose the rows that contain one, and -quick
// those of make test: one for each code, and some more. With "gates" it is that of services whose
// write waits until its lease is over and another has done his part, each -n times: it must come
// out the same each time; with -libraries of services with redsync and with redlock. "aimed" arms -n faults at
// each place of a section, and counts in the histories how many landed in one. "replay" records runs and repeats them by their schedule, -n times each, and "sweep"
// compares the tables of `lockfaultd sweep` with golden ones; -worker has them run a service of yours. Each row is judged
// by lockfaultd from the wire alone; a row that did not come out as it must is
// marked and makes the exit status 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "lockfaultd-demo-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	servers, err := start(ctx, dir)
	if err != nil {
		return err
	}
	defer servers.stop()
	progress("building")
	d, err := tableOf(os.Args[1:])
	if err != nil {
		return err
	}
	d.dir, d.servers = dir, servers
	if err := d.build(ctx); err != nil {
		return err
	}
	if len(os.Args) > 1 {
		if other := others()[os.Args[1]]; other != nil {
			return other(ctx, d, os.Args[2:])
		}
	}
	return d.table(ctx)
}

// others are the tables that have their own flags.
func others() map[string]func(context.Context, *demo, []string) error {
	return map[string]func(context.Context, *demo, []string) error{"gates": gates, "aimed": aimed, "replay": replay, "sweep": sweeps}
}

// tableOf returns the table that the arguments name.
func tableOf(args []string) (*demo, error) {
	switch {
	case len(args) == 0:
		return &demo{rows: rows(), duration: "10s", legend: legend}, nil
	case slices.Equal(args, []string{"broken", "-quick"}):
		return &demo{rows: quickly(brokenRows()), duration: "6s", legend: brokenLegend}, nil
	case others()[args[0]] != nil:
		return &demo{}, nil
	case args[0] == "broken":
		return &demo{rows: chosen(brokenRows(), args[1:]), duration: "6s", legend: brokenLegend}, nil
	}
	return nil, fmt.Errorf("unexpected argument %q, expected broken, gates, aimed, replay, sweep or nothing", args[0])
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "  "+format+"\n", args...) }

// servers are the Redis and the Postgres that the rows run on.
type servers struct {
	redis, database string
	own             []*testbed.Server // Redis, and Postgres
}

// forget has an own Redis know no scripts, as at the start of most test runs. On one that has them already,
// what an unseen script does is told by a witness, and by no more than that: on a machine that is very busy too late for a gate.
func (s *servers) forget(ctx context.Context) error {
	if len(s.own) == 0 {
		return nil
	}
	return s.own[0].FlushScripts(ctx)
}

func start(ctx context.Context, dir string) (*servers, error) {
	s := &servers{redis: os.Getenv("REDIS_URL"), database: os.Getenv("DATABASE_URL")}
	if s.redis != "" && s.database != "" {
		progress("using REDIS_URL and DATABASE_URL")
		return s, nil
	}
	progress("starting a private Redis and Postgres")
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	redis, err := testbed.StartRedis(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	s.own = append(s.own, redis)
	postgres, err := testbed.StartPostgres(ctx, dir)
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	s.own = append(s.own, postgres)
	s.redis, s.database = redis.URL(), postgres.URL()
	return s, nil
}

func (s *servers) stop() {
	for _, own := range s.own {
		own.Stop()
	}
}

// report is what the demo reads of report.json.
type report struct {
	Exit    int
	Why     string
	Counter struct {
		Change     int
		NetDeficit int `json:"net_deficit"`
	}
	Fences     []fence
	Verdicts   []verdict
	Injections injections
	Facts      struct{ Overlap int }
}

type fence struct{ Regressions int }

type injections struct{ List []injection }

type injection struct {
	Op     uint64
	Reason string
}

type verdict struct {
	Code, Level, Class string
	Harm               bool
	Count              int
	Proofs             []string
}

// load is what the demo reads of the service's own summary.
type load struct{ Writes, Rejected, Overlaps, Lost int }

func (d *demo) file(name string) string { return filepath.Join(d.dir, name) }
