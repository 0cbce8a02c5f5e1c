package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startupLimit bounds how long a server may take until it answers.
const startupLimit = 60 * time.Second

// stopLimit bounds how long a server may take to end when asked.
const stopLimit = 15 * time.Second

// A MissingError says that a program is not installed, and what would install it.
type MissingError struct {
	Program string // such as redis-server
	Package string // name of its Debian package
	Install string // what to run instead, if it has none
}

func (e *MissingError) Error() string {
	if e.Install != "" {
		return fmt.Sprintf("find %s: not installed; run %s", e.Program, e.Install)
	}
	return fmt.Sprintf("find %s: not installed; on Debian: apt-get install %s", e.Program, e.Package)
}

// A Server is a running Redis or Postgres of our own. Whoever started it must
// call Stop. Its methods are safe for concurrent use.
type Server struct {
	name string
	addr string
	url  string
	log  string
	end  os.Signal
	cmd  *exec.Cmd

	ready func(context.Context) bool // whether it answers

	done chan struct{} // closed once the process has been waited for
	stop sync.Once
}

// Addr returns host and port on which the server listens.
func (s *Server) Addr() string { return s.addr }

// URL returns what a client takes as REDIS_URL or DATABASE_URL.
func (s *Server) URL() string { return s.url }

// PID returns the server's process; for Postgres that is the postmaster.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop ends the server and waits until it has gone. A server that a test left
// stopped by SIGSTOP is woken up first; one that does not end within 15 s is
// killed. Later calls only wait.
func (s *Server) Stop() {
	s.stop.Do(func() {
		s.signal(s.end)
		s.signal(syscall.SIGCONT)
		select {
		case <-s.done:
		case <-time.After(stopLimit):
			s.signal(syscall.SIGKILL)
		}
	})
	<-s.done
}

// Restart ends the server and starts it again at the same address, with what it
// keeps on disk. Nobody may use the other methods meanwhile.
func (s *Server) Restart(ctx context.Context) error {
	s.Stop()
	s.stop = sync.Once{}
	was := s.cmd
	cmd := exec.Command(was.Path, was.Args[1:]...)
	cmd.Dir, cmd.SysProcAttr = was.Dir, was.SysProcAttr
	if err := s.start(cmd, s.log); err != nil {
		return err
	}
	return s.await(ctx, s.ready)
}

// signal goes through os.Process, which knows whether the pid is still ours.
func (s *Server) signal(sig os.Signal) { _ = s.cmd.Process.Signal(sig) }

// start runs cmd with its output in logFile. The process group of its own
// keeps a terminal's ^C and a test runner's group signals away from the
// server; Pdeathsig ends it when we die without calling Stop.
func (s *Server) start(cmd *exec.Cmd, logFile string) error {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log of %s: %w", s.name, err)
	}
	defer out.Close()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	s.cmd, s.log, s.done = cmd, logFile, make(chan struct{})
	go func() {
		defer close(s.done)
		_ = cmd.Wait() // its status tells nothing that the log does not
	}()
	return nil
}

// await polls ready until it says yes, the server dies or ctx ends. A server
// that did not get there is stopped.
func (s *Server) await(ctx context.Context, ready func(context.Context) bool) error {
	s.ready = ready
	ctx, cancel := context.WithTimeout(ctx, startupLimit)
	defer cancel()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !ready(ctx) {
		select {
		case <-poll.C:
		case <-s.done:
			return &diedError{name: s.name, log: tail(s.log)}
		case <-ctx.Done():
			s.Stop()
			return fmt.Errorf("start %s: %w:\n%s", s.name, ctx.Err(), tail(s.log))
		}
	}
	return nil
}

// A diedError is a server that ended before it answered.
type diedError struct{ name, log string }

func (e *diedError) Error() string {
	return fmt.Sprintf("start %s: it ended at once:\n%s", e.name, e.log)
}

// onFreePort calls start with a port, and again with another when somebody
// took the first between our look and the server's.
func onFreePort(start func(port int) (*Server, error)) (*Server, error) {
	const tries = 3
	for n := 1; ; n++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s, err := start(port)
		var died *diedError
		if n < tries && errors.As(err, &died) && strings.Contains(died.log, "in use") {
			continue
		}
		return s, err
	}
}

// freePort returns a TCP port of 127.0.0.1 that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func hostPort(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// tail returns the last lines of a log, for an error's text.
func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// lookPath finds a program in PATH or one of the folders matched by globs,
// those first, and of several the one that sorts last by number.
func lookPath(program, pkg string, globs ...string) (string, error) {
	best, bestVersion := "", -1.0
	for _, g := range globs {
		found, _ := filepath.Glob(filepath.Join(g, program)) // the patterns are ours and well-formed
		for _, f := range found {
			if v := version(f); v > bestVersion {
				best, bestVersion = f, v
			}
		}
	}
	if best != "" {
		return best, nil
	}
	path, err := exec.LookPath(program)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", &MissingError{Program: program, Package: pkg}
	}
	return path, nil
}

// version reads N out of /usr/lib/postgresql/N/bin/program.
func version(path string) float64 {
	v, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(filepath.Dir(path))), 64)
	return v
}
