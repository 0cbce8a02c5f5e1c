package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// An outcome is how one test of a suite ended.
type outcome string

const (
	passed  outcome = "passed"
	failed  outcome = "failed"
	skipped outcome = "skipped"
	missing outcome = "missing" // it did not run
)

// results are the outcomes of a suite's tests, by name.
type results map[string]outcome

// add takes in one more outcome. A suite may use a name twice.
func (r results) add(name string, o outcome) {
	unique := name
	for n := 2; r[unique] != ""; n++ {
		unique = fmt.Sprintf("%s (%d)", name, n)
	}
	r[unique] = o
}

func (r results) of(name string) outcome {
	if o, ok := r[name]; ok {
		return o
	}
	return missing
}

func (r results) count(o outcome) int {
	n := 0
	for name, have := range r {
		if have == o && name != endless {
			n++
		}
	}
	return n
}

// A suite is somebody's tests of a client or a server.
type suite struct {
	name     string
	protocol string                                              // redis or postgres
	prepare  func(ctx context.Context, c *cache) (string, error) // fetches and builds; returns the folder
	start    func(ctx context.Context, source, dir string) (*testbed.Server, error)
	setup    func(ctx context.Context, j job) error // of a fresh server; may be nil
	run      func(ctx context.Context, j job) (results, error)
	races    []string   // tests that do not wait for what they need
	expects  []expected // what lockfaultd has to complain of
}

// A job is one run of a suite.
type job struct {
	source     string // what prepare made; not to be written to
	dir        string // to work in
	host, port string // what to connect to
	log        *os.File
}

// runLimit bounds one run of one suite.
const runLimit = 15 * time.Minute

// endless is the test that fails when a run is stopped at the limit.
const endless = "(the suite ends)"

// A lab runs suites.
type lab struct {
	cache  *cache
	dir    string
	binary string
	ways   []way
}

// A verdict is what came out of a suite's runs.
type verdict struct {
	suite suite
	runs  map[way]results
	trace map[way]trace
}

// try runs a suite in every way, and through the bare copy where it matters.
func (l lab) try(ctx context.Context, s suite) (verdict, error) {
	v := verdict{suite: s, runs: map[way]results{}, trace: map[way]trace{}}
	source, err := s.prepare(ctx, l.cache)
	if err != nil {
		return v, err
	}
	for _, w := range l.ways {
		if err := l.runOnce(ctx, &v, w, source); err != nil {
			return v, err
		}
	}
	if v.runs[bare] == nil && len(v.changed()) > 0 {
		if err := l.runOnce(ctx, &v, bare, source); err != nil {
			return v, err
		}
	}
	v.explain(os.Stdout)
	return v, nil
}

func (l lab) runOnce(ctx context.Context, v *verdict, w way, source string) (err error) {
	dir := filepath.Join(l.dir, v.suite.name+"-"+string(w))
	for _, d := range []string{dir, filepath.Join(dir, "server"), filepath.Join(dir, "work")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	server, err := v.suite.start(ctx, source, filepath.Join(dir, "server"))
	if err != nil {
		return err
	}
	defer server.Stop()
	log, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return err
	}
	defer log.Close()
	j := job{source: source, dir: filepath.Join(dir, "work"), log: log}
	began := time.Now()
	if v.runs[w], v.trace[w], err = l.through(ctx, v.suite, w, j, server.Addr(), dir); err != nil {
		return fmt.Errorf("%s: %w", w, err)
	}
	row(os.Stdout, v, w, time.Since(began))
	return nil
}

// through sets a fresh server up, puts the way before it and runs the suite.
func (l lab) through(ctx context.Context, s suite, w way, j job, server, dir string) (results, trace, error) {
	var err error
	if j.host, j.port, err = net.SplitHostPort(server); err != nil {
		return nil, trace{}, err
	}
	if s.setup != nil {
		if err := s.setup(ctx, j); err != nil {
			return nil, trace{}, err
		}
	}
	c, err := w.open(ctx, l.binary, s.protocol, server, dir)
	if err != nil {
		return nil, trace{}, err
	}
	_, j.port, _ = net.SplitHostPort(c.addr) // an address that was listened on
	r, err := limited(ctx, s, j)
	t, closing := c.close()
	return r, t, errors.Join(err, closing)
}

// limited runs a suite, within its time.
func limited(ctx context.Context, s suite, j job) (results, error) {
	inTime, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	r, err := s.run(inTime, j)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if len(r) == 0 {
		return nil, errors.New("no test ran")
	}
	r.add(endless, passed)
	if inTime.Err() != nil {
		r[endless] = failed
	}
	return r, nil
}

// output runs a suite's program, keeps what it says and hands it to read line by
// line. That tests fail is not an error.
func (j job) output(ctx context.Context, env []string, read func(string), program string, args ...string) error {
	err := j.program(ctx, env, program, args...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	return eachLine(j.log.Name(), read)
}

// program runs one program of a suite. When the time is over, the programs
// that it started end with it.
func (j job) program(ctx context.Context, env []string, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = j.dir
	cmd.Env = append(environment(), env...)
	cmd.Stdout, cmd.Stderr = j.log, j.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
}

// changed lists the tests that did not end behind lockfaultd as they did
// directly, those that only failed directly left out. Where nothing ran directly
// every test is expected to pass.
func (v verdict) changed() []string {
	names := map[string]bool{}
	for w, r := range v.runs {
		if !w.proxied() {
			continue
		}
		for name := range both(r, v.runs[direct]) {
			if v.unlike(r, name) {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (v verdict) unlike(r results, name string) bool {
	o := r.of(name)
	if v.runs[direct] == nil {
		return o == failed
	}
	return o != passed && o != v.runs[direct].of(name)
}

func both(a, b results) map[string]bool {
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	return names
}

// excuse returns why a changed test does not count, or "".
func (v verdict) excuse(name string) string {
	if slices.Contains(v.suite.races, name) {
		return "it races by itself"
	}
	if r := v.runs[bare]; r != nil && v.unlike(r, name) {
		return "so it does through a bare copy"
	}
	return ""
}

// differs reports whether lockfaultd was noticed.
func (v verdict) differs() bool {
	for _, name := range v.changed() {
		if v.excuse(name) == "" {
			return true
		}
	}
	for _, t := range v.trace {
		if wrong, _ := v.suite.judge(t.complaints); len(wrong) > 0 || len(t.report.Different) > 0 || t.open {
			return true
		}
	}
	return false
}
