package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/alarm"
	"github.com/lockfaultd/lockfaultd/internal/recorder"
)

// A way is what stands between a suite and its server.
type way string

const (
	direct way = "direct"
	plain  way = "plain" // lockfaultd without rules
	armed  way = "armed" // lockfaultd with rules that match and do nothing
	bare   way = "copy"  // a copying proxy
)

func (w way) proxied() bool { return w == plain || w == armed }

// harmless are rules that match and do nothing.
var harmless = []string{"--stall-after", "acquire=0s", "--stall-before", "UPDATE=0s"}

// drainLimit is how long connections may take to end after a suite.
const drainLimit = 15 * time.Second

// A chain is a way that is open.
type chain struct {
	addr         string
	outer, inner *recorder.Recorder // nil: none on that side
	daemon       *exec.Cmd          // nil: no lockfaultd
	log          string             // what lockfaultd said
	out          string             // folder of its history; "": none
}

// open puts a way in front of a server. Its files go into dir.
func (w way) open(ctx context.Context, binary, protocol, server, dir string) (*chain, error) {
	c := &chain{addr: server}
	if w == direct {
		return c, nil
	}
	var err error
	if c.inner, err = recorder.Start(server); err != nil {
		return nil, err
	}
	c.addr = c.inner.Addr()
	if w == bare {
		return c, nil
	}
	if err := c.startDaemon(ctx, w, binary, protocol, dir); err != nil {
		c.inner.Stop()
		return nil, err
	}
	if c.outer, err = recorder.Start(c.addr); err != nil {
		_ = c.stopDaemon() // the first error tells
		c.inner.Stop()
		return nil, err
	}
	c.addr = c.outer.Addr()
	return c, nil
}

// startDaemon starts lockfaultd before the chain as it is. The signal that we
// may die of goes to it as well. It has no witness, whose connections of its own
// would be in the record.
func (c *chain) startDaemon(ctx context.Context, w way, binary, protocol, dir string) error {
	args := []string{"--" + protocol, "127.0.0.1:0=" + c.addr, "--witness", "none"}
	if w == armed {
		c.out = filepath.Join(dir, "history")
		args = append(append(args, harmless...), "--out", c.out)
	}
	c.log = filepath.Join(dir, "lockfaultd.log")
	log, err := os.Create(c.log)
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer log.Close()
	c.daemon = exec.Command(binary, args...)
	c.daemon.Stderr = log
	c.daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := c.daemon.Start(); err != nil {
		return fmt.Errorf("start lockfaultd: %w", err)
	}
	addr, err := c.listening(ctx)
	if err != nil {
		return errors.Join(err, c.stopDaemon())
	}
	c.addr = addr
	return nil
}

// listening reads from the log where lockfaultd listens. Asking with a
// connection would leave that connection in the record.
func (c *chain) listening(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		b, err := os.ReadFile(c.log)
		if err != nil {
			return "", fmt.Errorf("read log: %w", err)
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) == 5 && f[0] == "lockfaultd:" && f[3] == "->" {
				return f[2], nil
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return "", fmt.Errorf("start lockfaultd: %w:\n%s", ctx.Err(), b)
		}
	}
}

func (c *chain) stopDaemon() error {
	if c.daemon == nil {
		return nil
	}
	_ = c.daemon.Process.Signal(syscall.SIGTERM) // Wait tells if it has gone already
	if err := c.daemon.Wait(); err != nil {
		b, _ := os.ReadFile(c.log) // what there is
		return fmt.Errorf("lockfaultd ended: %w:\n%s", err, b[max(0, len(b)-2000):])
	}
	return nil
}

// A trace is what a chain saw.
type trace struct {
	report     recorder.Report
	open       bool         // connections were open at the end
	warnings   []string     // of lockfaultd's log
	complaints []complained // what a run should have none of
	ops        int
	injections int
}

// close ends the chain, outside first, and tells what it saw.
func (c *chain) close() (trace, error) {
	var t trace
	if c.inner == nil {
		return t, nil
	}
	if c.outer == nil {
		c.inner.Drain(drainLimit)
		c.inner.Stop()
		return t, nil
	}
	outer := c.outer.Drain(drainLimit)
	inner := c.inner.Drain(drainLimit)
	t.open = !outer || !inner
	err := c.stopDaemon()
	t.report = recorder.Compare(c.outer.Stop(), c.inner.Stop())
	return t, errors.Join(err, c.readLog(&t), c.readHistory(&t))
}

func (c *chain) readLog(t *trace) error {
	return eachLine(c.log, func(line string) {
		line = strings.TrimSpace(line)
		if kind := alarm.Of(line); kind != "" {
			t.complaints = append(t.complaints, complained{kind, line})
		} else if strings.Contains(line, "level=WARN") {
			t.warnings = append(t.warnings, line)
		}
	})
}

func (c *chain) readHistory(t *trace) error {
	if c.out == "" {
		return nil
	}
	return eachLine(filepath.Join(c.out, "history.jsonl"), func(line string) {
		switch {
		case strings.HasPrefix(line, `{"type":"op"`):
			t.ops++
		case strings.HasPrefix(line, `{"type":"injection"`):
			t.injections++
		case strings.HasPrefix(line, `{"type":"gap"`):
			t.complaints = append(t.complaints, complained{alarm.Gap, strings.TrimSpace(line)})
		}
	})
}

func eachLine(file string, do func(string)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			do(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
