package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/freezer"
)

// grace is how long a command that was asked to end may take.
const grace = 5 * time.Second

// A child is the wrapped command. It leads a process group of its own, below
// lockfaultd and so never above it, and has a child cgroup where that is
// allowed.
type child struct {
	cmd    *exec.Cmd
	cgroup *freezer.ChildCgroup // nil: not allowed here
	thaw   func()               // lets everything go, so that a signal is heard
}

// An ending is how the command ended.
type ending struct {
	status      int // its exit status, 128+N for signal N
	interrupted bool
	timedOut    bool
}

func startChild(argv, env []string, stdout, stderr io.Writer, thaw func(), log *slog.Logger) (*child, error) {
	c := &child{cmd: exec.Command(argv[0], argv[1:]...), thaw: thaw}
	c.cmd.Env = env
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = os.Stdin, stdout, stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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

// wait returns when the command has ended. Signals are passed on to its group;
// the second one, or the end of grace after the timeout, kills it.
func (c *child) wait(ctx context.Context, timeout time.Duration) ending {
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	var end ending
	late, kill := after(timeout), after(0)
	for {
		select {
		case err := <-done:
			end.status = exitStatus(err)
			return end
		case sig := <-signals:
			if sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 {
				if end.interrupted {
					sig = syscall.SIGKILL
				}
				end.interrupted = true
			}
			c.signal(sig.(syscall.Signal))
		case <-late:
			end.timedOut = true
			c.signal(syscall.SIGTERM)
			kill = after(grace)
		case <-kill:
			c.signal(syscall.SIGKILL)
		}
	}
}

func after(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// signal reaches the whole group. What is frozen would not hear it.
func (c *child) signal(sig syscall.Signal) {
	if sig != syscall.SIGUSR1 && sig != syscall.SIGUSR2 {
		c.thaw()
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, sig)
}

func (c *child) close() {
	if c.cgroup != nil {
		_ = c.cgroup.Close()
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
