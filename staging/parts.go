package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// A part is a process that can be started again as it was.
type part struct {
	name string
	argv []string
	log  string
	cmd  *exec.Cmd
	pid  atomic.Int64  // of the process
	done chan struct{} // closed once the process has been waited for
}

// start runs the part, what it says added to its log.
func (p *part) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", p.name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd, p.done = cmd, make(chan struct{})
	p.pid.Store(int64(cmd.Process.Pid))
	go func(done chan struct{}) {
		defer close(done)
		_ = cmd.Wait() // how it ended is in its log
	}(p.done)
	return nil
}

// end sends a signal and waits until the process has gone.
func (p *part) end(sig syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// alive reports whether the process runs.
func (p *part) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// A theatre is everything that was started.
type theatre struct {
	options
	dir             string
	redis, postgres *testbed.Server
	daemon, probe   *part
	services        []*part
	admin, watcher  string // URLs
	addresses       [4]string
}

// set starts all parts.
func (s *theatre) set(ctx context.Context) (err error) {
	if s.redis, err = testbed.StartRedis(ctx, s.dir, "--appendonly", "yes", "--appendfsync", "always"); err != nil {
		return err
	}
	if s.postgres, err = testbed.StartPostgres(ctx, s.dir); err != nil {
		return err
	}
	for i := range s.addresses {
		if s.addresses[i], err = freeAddress(); err != nil {
			return err
		}
	}
	s.admin, s.watcher = "http://"+s.addresses[2], "http://"+s.addresses[3]
	if err := s.build(ctx); err != nil {
		return err
	}
	if err := s.configure(); err != nil {
		return err
	}
	s.daemon = s.part("lockfaultd", "--config", filepath.Join(s.dir, "lockfaultd.yaml"), "--admin", s.addresses[2], "--out", filepath.Join(s.dir, "history"))
	s.probe = s.part("probe", "serve", "--config", filepath.Join(s.dir, "probe.yaml"), "--listen", s.addresses[3], "--state", filepath.Join(s.dir, "state"))
	if err := s.daemon.start(); err != nil {
		return err
	}
	if err := s.ready(ctx, s.admin); err != nil {
		return err
	}
	return s.serve(ctx)
}

// serve starts the services, and probe once their tables are there.
func (s *theatre) serve(ctx context.Context) error {
	redis := strings.Replace(s.redis.URL(), s.redis.Addr(), s.addresses[0], 1)
	database := strings.Replace(s.postgres.URL(), s.postgres.Addr(), s.addresses[1], 1)
	load := func(table, fence, work, workers string) *part {
		p := s.part("probe", "load", "--redis", redis, "--database", database, "--table", table, "--key", "lock:"+table,
			"--fence", fence, "--work", work, "--workers", workers, "--lease", "400ms", "--duration", "24h", "--json")
		p.name, p.log = table, filepath.Join(s.dir, table+".log")
		return p
	}
	s.services = []*part{load("counter", "none", "10ms", "3"), load("busy", "claim", "0s", fmt.Sprint(s.Busy))}
	for _, p := range s.services {
		if err := p.start(); err != nil {
			return err
		}
	}
	time.Sleep(2 * time.Second) // in which they make their tables
	if err := s.probe.start(); err != nil {
		return err
	}
	return s.ready(ctx, s.watcher)
}

func (s *theatre) part(program string, args ...string) *part {
	return &part{name: program, argv: append([]string{filepath.Join(s.dir, program)}, args...), log: filepath.Join(s.dir, program+".log")}
}

func (s *theatre) build(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "build", "-o", s.dir+"/", "./cmd/...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// end stops all parts, the services first. A probe or a lockfaultd that had ended by itself is an error.
func (s *theatre) end() error {
	var errs []error
	for _, p := range []*part{s.daemon, s.probe} {
		if p != nil && p.cmd != nil && !p.alive() {
			errs = append(errs, fmt.Errorf("%s had ended by itself: see %s", p.name, p.log))
		}
	}
	for _, p := range append(s.services, s.probe, s.daemon) {
		if p != nil {
			p.end(syscall.SIGTERM)
		}
	}
	for _, server := range []*testbed.Server{s.redis, s.postgres} {
		if server != nil {
			server.Stop()
		}
	}
	return errors.Join(errs...)
}

func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find free port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}
