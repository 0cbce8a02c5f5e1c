// Command bench measures what a hop costs, as ratios.
//
// It starts a Redis and a Postgres of its own and, in front of both, HAProxy,
// toxiproxy, a bare Go proxy that copies bytes, and lockfaultd in several
// variants (ways.go). Each workload (workloads.go) runs on every way in turn,
// in several interleaved rounds whose order rotates, so that whatever else the
// machine does falls on all of them alike (measure.go). It prints what each
// reached and what processor time it took, and beside them the ratios that
// docs/performance.md sets targets for (report.go).
//
//	bench [flags]               the comparison
//	bench copy LISTEN=UPSTREAM  the bare copying proxy (copy.go)
//	bench idle [flags]          what an idle connection takes of memory (idle.go)
//	bench judge [flags]         what it takes to judge a long history (judge.go)
//
// The freezer's own latencies are Go benchmarks: go test -bench . ./freezer
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// options are the flags.
type options struct {
	rounds   int
	requests int
	only     *regexp.Regexp
	ways     []string
	json     string
	perf     string
}

func main() {
	err := command(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "copy":
			return copyAll(args[1:])
		case "idle":
			return idle(args[1:])
		case "judge":
			return judge(args[1:])
		case "peer":
			return bePeer(args[1:])
		}
	}
	return compare(args)
}

func parse(args []string) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.IntVar(&o.rounds, "rounds", 5, "interleaved rounds")
	fs.IntVar(&o.requests, "requests", 100_000, "requests of a run with 50 Redis clients; the other workloads follow in proportion")
	only := fs.String("only", ".", "run the workloads whose name matches this `regexp`")
	ways := fs.String("ways", strings.Join(defaultWays, ","), "`list` of ways, comma-separated; 'named' too")
	fs.StringVar(&o.json, "json", "", "write every run to `FILE` as JSON")
	fs.StringVar(&o.perf, "perf", "", "in the first round, record each proxy with perf and write the profiles to `DIR`; its figures are then none")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if o.rounds < 1 || o.requests < 100 {
		return o, errors.New("expected at least one round and 100 requests")
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	o.ways = strings.Split(*ways, ",")
	return o, nil
}

func compare(args []string) (err error) {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "lockfaultd-bench-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// The user postgres has to pass through it.
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	s, err := startServers(ctx, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	return s.compare(ctx, dir, o)
}

// servers are what every way leads to.
type servers struct{ redis, postgres *testbed.Server }

func startServers(ctx context.Context, dir string) (*servers, error) {
	redis, err := testbed.StartRedis(ctx, dir)
	if err != nil {
		return nil, err
	}
	postgres, err := testbed.StartPostgres(ctx, dir)
	if err != nil {
		redis.Stop()
		return nil, err
	}
	return &servers{redis, postgres}, nil
}

func (s *servers) stop() {
	s.postgres.Stop()
	s.redis.Stop()
}

func (s *servers) compare(ctx context.Context, dir string, o options) error {
	open, err := openWays(ctx, dir, o.ways, s)
	if err != nil {
		return err
	}
	defer closeWays(open)
	direct := &way{name: "direct", redis: s.redis.Addr(), postgres: s.postgres.Addr()}
	if err := fill(ctx, direct); err != nil {
		return err
	}
	b := &bench{options: o, ways: open}
	return b.run(ctx, os.Stdout)
}
