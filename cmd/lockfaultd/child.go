package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfaultd/lockfaultd/freezer"
)

// grace is how long a command that was asked to end may take.
const grace = 5 * time.Second

// A child is the wrapped command. It leads a process group of its own, below
// lockfaultd and so never above it, and has a child cgroup where that is
// allowed. Where stdin is a terminal its group is the foreground one.
type child struct {
	cmd    *exec.Cmd
	cgroup *freezer.ChildCgroup // nil: not allowed here
	tty    bool
	log    io.Writer
}

// An ending is how the command ended.
type ending struct {
	status   int // its exit status, 128+N for signal N
	timedOut bool
}

func startChild(argv, env []string, stdout, stderr io.Writer, log *slog.Logger) (*child, error) {
	c := &child{cmd: exec.Command(argv[0], argv[1:]...), log: stderr}
	c.cmd.Env = env
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = os.Stdin, stdout, stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		c.tty = true
		c.cmd.SysProcAttr.Foreground, c.cmd.SysProcAttr.Ctty = true, 0
	}
	atBirth := true
	cg, err := freezer.NewChildCgroup(fmt.Sprintf("lockfaultd-run-%d", os.Getpid()))
	if err != nil {
		log.Info("the command gets no cgroup of its own", "reason", err)
	} else {
		c.cgroup = cg
		atBirth = cg.Configure(c.cmd.SysProcAttr)
	}
	if err := c.cmd.Start(); err != nil {
		c.close()
		return nil, usagef("run: cannot start %q: %v", argv[0], err)
	}
	if !atBirth {
		if err := c.cgroup.Enter(c.cmd.Process.Pid); err != nil {
			log.Info("the command is not in a freezer cgroup of its own", "reason", err)
		}
	}
	return c, nil
}

// wait returns when the command has ended. Once the timeout is over, or stop is
// closed, it is asked to end, and killed after a grace.
func (c *child) wait(timeout time.Duration, stop <-chan struct{}, expired func()) ending {
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	var end ending
	late, kill := after(timeout), after(0)
	for {
		select {
		case err := <-done:
			end.status = exitStatus(err)
			return end
		case <-late:
			end.timedOut = true
			kill = c.end(expired)
		case <-stop:
			stop = nil
			kill = c.end(expired)
		case <-kill:
			c.signal(syscall.SIGKILL)
		}
	}
}

// end asks the command to end, and returns when to kill it.
func (c *child) end(expired func()) <-chan time.Time {
	expired()
	c.signal(syscall.SIGTERM)
	return after(grace)
}

func after(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// signal reaches the whole group.
func (c *child) signal(sig syscall.Signal) { _ = syscall.Kill(-c.cmd.Process.Pid, sig) }

// close takes the terminal back and removes the cgroup. Processes that the
// command has left behind stay as they are, and are named.
func (c *child) close() {
	if c.tty {
		signal.Ignore(syscall.SIGTTOU)
		_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp())
		signal.Reset(syscall.SIGTTOU)
	}
	if c.cgroup == nil {
		return
	}
	if err := c.cgroup.Close(); err != nil {
		fmt.Fprintf(c.log, "lockfaultd: the command left processes behind, which go on without a proxy: %v\n", err)
	}
}

func exitStatus(err error) int {
	var x *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &x):
		if ws, ok := x.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal())
		}
		return x.ExitCode()
	}
	return 1
}

// A switchboard passes signals on for as long as a run lasts: to the command
// while there is one, and to cut short what comes before and after it.
type switchboard struct {
	signals chan os.Signal
	stop    chan struct{}
	ended   sync.WaitGroup
	hurry   func() // called at each signal that asks for the end: lets go what is held, and cuts waits short

	mu          sync.Mutex
	child       *child
	interrupted int
}

func newSwitchboard(hurry func()) *switchboard {
	s := &switchboard{signals: make(chan os.Signal, 8), stop: make(chan struct{}), hurry: hurry}
	signal.Notify(s.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	s.ended.Go(s.run)
	return s
}

func (s *switchboard) run() {
	for {
		select {
		case sig := <-s.signals:
			s.take(sig.(syscall.Signal))
		case <-s.stop:
			return
		}
	}
}

func (s *switchboard) take(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 {
		if s.interrupted++; s.interrupted > 1 {
			sig = syscall.SIGKILL
		}
		s.hurry()
	}
	if s.child != nil {
		s.child.signal(sig)
	}
}

// connect names the command that signals go to; nil when it has ended. A
// command that starts after somebody asked for the end is asked at once.
func (s *switchboard) connect(c *child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child = c
	if c != nil && s.interrupted > 0 {
		c.signal(syscall.SIGTERM)
	}
}

// note records that the terminal interrupted the command itself.
func (s *switchboard) note(status int) {
	if status == 128+int(syscall.SIGINT) || status == 128+int(syscall.SIGQUIT) {
		s.mu.Lock()
		s.interrupted++
		s.mu.Unlock()
	}
}

func (s *switchboard) wasInterrupted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.interrupted > 0
}

func (s *switchboard) close() {
	signal.Stop(s.signals)
	close(s.stop)
	s.ended.Wait()
}
