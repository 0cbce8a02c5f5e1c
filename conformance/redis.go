package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// startRedis allows what Redis's own tests use.
func startRedis(ctx context.Context, _, dir string) (*testbed.Server, error) {
	return testbed.StartRedis(ctx, dir, "--enable-protected-configs", "yes", "--enable-debug-command", "yes", "--enable-module-command", "yes")
}

func fetchRedis(ctx context.Context, c *cache) (string, error) { return c.source(ctx, "redis") }

func runRedis(ctx context.Context, j job) (results, error) {
	for _, part := range []string{"tests", "utils", "runtest", "redis.conf"} {
		if err := command(ctx, j.dir, nil, "cp", "-r", filepath.Join(j.source, part), j.dir); err != nil {
			return nil, err
		}
	}
	if err := linkPrograms(filepath.Join(j.dir, "src")); err != nil {
		return nil, err
	}
	r := results{}
	return r, j.output(ctx, []string{"TERM=dumb"}, r.readTcl, "./runtest", "--host", j.host, "--port", j.port, "--tags", "-slow")
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
