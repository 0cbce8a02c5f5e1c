package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A way leads to the servers, directly or through one proxy for both.
type way struct {
	name     string
	redis    string
	postgres string
	proxy    *process // nil: direct
}

// The ways, in the order of the tables. The targets are for history, which is
// lockfaultd with all that a run has.
const (
	direct    = "direct"
	haproxy   = "haproxy"
	toxiproxy = "toxiproxy"
	copying   = "copy"
	bare      = "lockfaultd"    // no rule
	armed     = "lf+rules"      // 100 rules that match nothing
	recording = "lf+rules+hist" // and the history written
	named     = "lf+named"      // 100 rules for the workloads' own commands, with keys that do not occur
)

var (
	defaultWays = []string{direct, haproxy, toxiproxy, copying, bare, armed, recording}
	allWays     = append(slices.Clone(defaultWays), named)
)

// A builder makes the command of a proxy for both servers.
type builder struct {
	ctx               context.Context
	dir               string
	redis, postgres   string // upstream
	toRedis, toPg     string // where to listen
	lockfaultd, bench string // programs
}

// openWays starts the proxies that are asked for and waits until they answer.
func openWays(ctx context.Context, dir string, names []string, s *servers) ([]*way, error) {
	for _, n := range names {
		if !slices.Contains(allWays, n) {
			return nil, fmt.Errorf("unknown way %q; expected some of %s", n, strings.Join(allWays, ","))
		}
	}
	b := &builder{ctx: ctx, dir: dir, redis: s.redis.Addr(), postgres: s.postgres.Addr()}
	var err error
	if b.lockfaultd, err = build(ctx, dir, "cmd/lockfaultd"); err != nil {
		return nil, err
	}
	if b.bench, err = build(ctx, dir, "bench"); err != nil {
		return nil, err
	}
	var open []*way
	for _, n := range allWays {
		if !slices.Contains(names, n) {
			continue
		}
		w, err := b.open(n)
		if err != nil {
			closeWays(open)
			return nil, err
		}
		open = append(open, w)
	}
	return open, nil
}

func closeWays(open []*way) {
	for _, w := range open {
		if w.proxy != nil {
			w.proxy.stop()
		}
	}
}

// build builds a command as it is released, never under the race detector: a
// proxy that is measured is never the one that the tests run.
func build(ctx context.Context, dir, command string) (string, error) {
	program := filepath.Join(dir, filepath.Base(command))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, module+"/"+command)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, out)
	}
	return program, nil
}

func (b *builder) open(name string) (*way, error) {
	if name == direct {
		return &way{name: direct, redis: b.redis, postgres: b.postgres}, nil
	}
	ports, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	b.toRedis, b.toPg = ports[0], ports[1]
	cmd, err := b.command(name, ports[2])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p, err := startProcess(b.dir, name, cmd)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.answers(b.ctx, b.toRedis), p.answers(b.ctx, b.toPg)); err != nil {
		p.stop()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &way{name: name, redis: b.toRedis, postgres: b.toPg, proxy: p}, nil
}

func (b *builder) command(name, control string) (*exec.Cmd, error) {
	switch name {
	case haproxy:
		return b.haproxy()
	case toxiproxy:
		return b.toxiproxy(control)
	case copying:
		return exec.Command(b.bench, "copy", b.toRedis+"="+b.redis, b.toPg+"="+b.postgres), nil
	case armed:
		return b.lockfault(unrelatedRules()), nil
	case recording:
		return b.lockfault(append(unrelatedRules(), "--out", filepath.Join(b.dir, "out"))), nil
	case named:
		return b.lockfault(namedRules()), nil
	}
	return b.lockfault(nil), nil
}

func (b *builder) lockfault(args []string) *exec.Cmd {
	return exec.Command(b.lockfaultd, append(args, "--redis", b.toRedis+"="+b.redis, "--postgres", b.toPg+"="+b.postgres)...)
}

// unrelatedRules are 100 of the kind that people arm, for locks and tables that no
// workload touches.
func unrelatedRules() []string {
	return spell([]anchor{
		{"--stall-after", "acquire(other_lock-%d)"},
		{"--stall-before", "release(other_lock-%d)"},
		{"--stall-after", "SETNX(other_key-%d)"},
		{"--stall-before", "SET(other_key-%d)"},
		{"--stall-after", "DEL(other_key-%d)"},
		{"--stall-after", "EVAL(other_key-%d)"},
		{"--freeze-before", "UPDATE(other_table_%d)"},
		{"--freeze-before", "write(other_table_%d)"},
		{"--stall-after", "INSERT(other_table_%d)"},
		{"--stall-before", "COMMIT(other_table_%d)"},
	})
}

// namedRules are 100 for the commands that the workloads send.
func namedRules() []string {
	return spell([]anchor{
		{"--stall-before", "GET(other_key-%d)"},
		{"--stall-after", "GET(other_key-%d)"},
		{"--stall-before", "SET(other_key-%d)"},
		{"--stall-after", "SET(other_key-%d)"},
		{"--stall-before", "pg:SELECT(other_table_%d)"},
	})
}

// An anchor is a rule without its effect; its text has room for a number.
type anchor struct{ flag, text string }

func spell(anchors []anchor) []string {
	var out []string
	for i := range 100 {
		a := anchors[i%len(anchors)]
		out = append(out, a.flag, fmt.Sprintf(a.text, i)+"=800ms")
	}
	return out
}

// haproxy relays in TCP mode, with as many threads as there are processors,
// which is its default.
func (b *builder) haproxy() (*exec.Cmd, error) {
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy"
	}
	config := fmt.Sprintf(`global
  maxconn 2000
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
listen redis
  bind %s
  server redis %s
listen postgres
  bind %s
  server postgres %s
`, b.toRedis, b.redis, b.toPg, b.postgres)
	file := filepath.Join(b.dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return exec.Command(program, "-db", "-f", file), nil
}

const module = "github.com/lockfaultd/lockfaultd"

// toxiproxyProgram is where scripts/need.sh puts it.
const toxiproxyProgram = "bin/toxiproxy-v2.12.0/server"

func (b *builder) toxiproxy(control string) (*exec.Cmd, error) {
	type entry struct {
		Name     string `json:"name"`
		Listen   string `json:"listen"`
		Upstream string `json:"upstream"`
		Enabled  bool   `json:"enabled"`
	}
	config, err := json.Marshal([]entry{{"redis", b.toRedis, b.redis, true}, {"postgres", b.toPg, b.postgres, true}})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "toxiproxy.json")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	program, err := toxiproxyPath()
	if err != nil {
		return nil, err
	}
	host, port, _ := strings.Cut(control, ":")
	cmd := exec.Command(program, "-config", file, "-host", host, "-port", port)
	cmd.Env = append(os.Environ(), "LOG_LEVEL=fatal")
	return cmd, nil
}

func toxiproxyPath() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	program := filepath.Join(strings.TrimSpace(string(root)), toxiproxyProgram)
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("%w; run ./scripts/need.sh toxiproxy", err)
	}
	return program, nil
}
