package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A process is one of the proxies.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed once it has been waited for
}

// startProcess runs a program with its output in dir/name.log.
func startProcess(dir, name string, cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", name, err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // its log says why
	}()
	return p, nil
}

// answers waits until address accepts connections.
func (p *process) answers(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at once:\n%s", p.cmd.Path, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", address, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *process) tail() []byte {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(b[max(0, len(b)-2000):])
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// cpu returns the processor time that the process has used, user and system,
// of all its threads, those that have ended too: the kernel's own count in
// nanoseconds, where /proc/PID/stat rounds to 10 ms. None of the proxies leaves
// work to children.
func (p *process) cpu() (time.Duration, error) {
	const scheduled = 2 // CPUCLOCK_SCHED, for a whole process
	clock := int32(^p.cmd.Process.Pid<<3 | scheduled)
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, fmt.Errorf("read processor time of %d: %w", p.cmd.Process.Pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// freeAddresses returns addresses of 127.0.0.1 that were free a moment ago.
func freeAddresses(n int) ([]string, error) {
	var out []string
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find free port: %w", err)
		}
		defer ln.Close()
		out = append(out, ln.Addr().String())
	}
	return out, nil
}
