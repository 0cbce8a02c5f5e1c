// Command conformance runs the public test suites of Postgres and Redis through
// lockfaultd, and shows that it changes nothing.
//
// Every suite runs against a real server of its own, in several ways:
//
//	direct    the suite's client -> server
//	no rules  client -> recorder -> lockfaultd -> recorder -> server
//	armed     the same, with rules that match and do nothing, and the history on
//	copy      client -> a bare copying proxy -> server; only where a result differs
//
// A test that does not end behind lockfaultd as it does directly, or behind the bare
// copy, is a difference. So is a connection whose bytes at the one recorder are
// not those at the other, or that ended otherwise (package internal/recorder says what is
// compared). So is what lockfaultd complains of: a connection that went desync, a
// gap in the history, an error, a panic; but for what a suite is known to call for,
// which the table shows and counts. Any difference makes the exit status 1. Tests
// that are known to race, because they use two connections without waiting for
// replies, are named and do not.
//
// The suites' sources are not part of this project. They are fetched through
// apt and the Go module proxy into a folder of the user's cache, and built
// there; nothing of the system is changed. Sequence, ports and files are private
// to one run, so that two may run at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	o := options{}
	names := strings.Join(suiteNames(), ",")
	suites := flag.String("suites", names, "which suites to run")
	ways := flag.String("ways", "direct,plain,armed", "which ways to run them: direct, plain (no rules), armed, copy; copy is added where a result differs")
	flag.BoolVar(&o.keep, "keep", false, "keep the suites' output, and say where")
	flag.StringVar(&o.cache, "cache", "", "folder for fetched sources (default: lockfaultd/conformance in the user's cache)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := o.choose(*suites, *ways, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	differs, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
	if differs {
		os.Exit(1)
	}
}

type options struct {
	suites []suite
	ways   []way
	keep   bool
	cache  string
}

func (o *options) choose(suites, ways string, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("expected no arguments, got %q", rest)
	}
	for name := range strings.SplitSeq(suites, ",") {
		i := slices.IndexFunc(allSuites(), func(s suite) bool { return s.name == name })
		if i < 0 {
			return fmt.Errorf("-suites: what is %q? expected some of %s", name, strings.Join(suiteNames(), ", "))
		}
		o.suites = append(o.suites, allSuites()[i])
	}
	for name := range strings.SplitSeq(ways, ",") {
		w := way(name)
		if !slices.Contains([]way{direct, plain, armed, bare}, w) {
			return fmt.Errorf("-ways: what is %q? expected some of direct, plain, armed, copy", name)
		}
		o.ways = append(o.ways, w)
	}
	return nil
}

// run prepares everything, runs what was asked for and prints as it goes. It
// reports whether anything differs.
func run(ctx context.Context, o options) (differs bool, err error) {
	cache, err := openCache(o.cache)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "lockfaultd-conformance-")
	if err != nil {
		return false, fmt.Errorf("make folder: %w", err)
	}
	defer func() {
		if o.keep {
			fmt.Fprintln(os.Stderr, "conformance: kept", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	// The user postgres has to pass.
	if err := os.Chmod(dir, 0o755); err != nil {
		return false, err
	}
	binary := filepath.Join(dir, "lockfaultd")
	if err := buildProduct(ctx, binary); err != nil {
		return false, err
	}
	l := lab{cache: cache, dir: dir, binary: binary, ways: o.ways}
	header(os.Stdout)
	for _, s := range o.suites {
		v, err := l.try(ctx, s)
		if err != nil {
			return differs, fmt.Errorf("%s: %w", s.name, err)
		}
		differs = v.differs() || differs
	}
	for _, line := range unavailable {
		fmt.Println(line)
	}
	return differs, nil
}

func buildProduct(ctx context.Context, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/lockfaultd/lockfaultd/cmd/lockfaultd")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build lockfaultd: %w", err)
	}
	return nil
}
