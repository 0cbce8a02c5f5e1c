package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// startRedis allows what Redis's own tests use.
func startRedis(ctx context.Context, _, dir string) (*testbed.Server, error) {
	return testbed.StartRedis(ctx, dir, "--enable-protected-configs", "yes", "--enable-debug-command", "yes", "--enable-module-command", "yes")
}

func fetchRedis(ctx context.Context, c *cache) (string, error) {
	return c.source(ctx, "redis", "redis-server")
}

func runRedis(ctx context.Context, j job) (results, error) {
	for _, part := range []string{"tests", "utils", "runtest", "redis.conf"} {
		if err := command(ctx, j.dir, nil, "cp", "-r", filepath.Join(j.source, part), j.dir); err != nil {
			return nil, err
		}
	}
	if err := patient(filepath.Join(j.dir, "tests/support/redis.tcl")); err != nil {
		return nil, err
	}
	if err := linkPrograms(filepath.Join(j.dir, "src")); err != nil {
		return nil, err
	}
	r := results{}
	return r, j.output(ctx, []string{"TERM=dumb"}, r.readTcl, "./runtest", "--host", j.host, "--port", j.port, "--tags", "-slow",
		"--baseport", strconv.Itoa(ports()), "--portcount", "1600")
}

// ports is where the ports begin that the tests may take. Their own look for a free one
// does not notice another run of them.
func ports() int { return 21200 + os.Getpid()%50*100 }

// patient changes the client of Redis's tests. They send a command on one connection,
// do not wait for its reply, and count on it being there before the next
// command on another, which no proxy can promise; some would hang for ever. So
// the client waits a little after such commands, on every way.
func patient(client string) error {
	b, err := os.ReadFile(client)
	if err != nil {
		return err
	}
	const before = "        if {!$deferred} {\n"
	const wait = "        if {$deferred && [string tolower $method] in {" +
		"blpop brpop brpoplpush blmove blmpop bzpopmin bzpopmax bzmpop xread xreadgroup wait exec unsubscribe punsubscribe sunsubscribe" +
		"}} {after 20}\n"
	if bytes.Count(b, []byte(before)) != 1 {
		return fmt.Errorf("change %s: it is not the client that was expected", client)
	}
	return os.WriteFile(client, bytes.Replace(b, []byte(before), []byte(wait+before), 1), 0o644)
}

// linkPrograms puts the installed programs where the tests look for them.
func linkPrograms(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"redis-server", "redis-cli", "redis-benchmark"} {
		path, err := exec.LookPath(name)
		if err != nil {
			return err
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

var (
	tclLine  = regexp.MustCompile(`^\[(ok|err|ignore|skip|exception|TIMEOUT)\]: (.*?)(?: \(\d+ ms\))?\s*$`)
	tclPlace = regexp.MustCompile(` in tests/\S+\.tcl$`)
)

// readTcl reads a line of Redis's test runner.
func (r results) readTcl(line string) {
	m := tclLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	name := tclPlace.ReplaceAllString(m[2], "")
	switch m[1] {
	case "ok":
		r.add(name, passed)
	case "ignore", "skip":
		r.add(name, skipped)
	default:
		r.add(name, failed)
	}
}
