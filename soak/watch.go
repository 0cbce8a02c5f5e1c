package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// A daemon is a lockfaultd before the three servers.
type daemon struct {
	cmd       *exec.Cmd
	out       string // its folder
	said      spoken
	groups    int // processes of clients that connect to it
	addresses [3]string
	upstreams [3]string
	database  string
	start     usage
	most      int // files open at a time
	high      int // KiB of resident memory
}

func startDaemon(program, out string, servers []*testbed.Server) (*daemon, error) {
	d := &daemon{out: out}
	// A witness keeps connections of its own, which would look like a leak.
	args := []string{"--out", out, "--witness", "none"}
	for i, flag := range []string{"--redis", "--redis", "--postgres"} {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		d.addresses[i], d.upstreams[i] = address, servers[i].Addr()
		args = append(args, flag, address+"="+servers[i].Addr())
	}
	d.database = strings.Replace(servers[2].URL(), servers[2].Addr(), d.addresses[2], 1)
	d.cmd = exec.Command(program, args...)
	d.cmd.Stderr = &d.said
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start lockfaultd: %w", err)
	}
	for range 3000 {
		if strings.Contains(d.said.text(), "passing everything on") {
			var err error
			d.start, err = d.usage()
			return d, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = d.cmd.Process.Kill()
	return nil, fmt.Errorf("start lockfaultd: it does not serve:\n%s", d.said.text())
}

func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find free port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// capacity is how many connections it may have at a time: two files each, and
// some room for those that are about to end.
func (d *daemon) capacity() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 400
	}
	return int(min(limit.Max, 1<<20)) * 9 / 20
}

// A usage is what lockfaultd takes of the machine.
type usage struct {
	open     files
	threads  int
	resident int // KiB
	cpu      time.Duration
}

func (u usage) String() string {
	return fmt.Sprintf("%s, %d threads, %d MiB, %s of processor time", u.open, u.threads, u.resident>>10, u.cpu.Round(time.Millisecond))
}

var status = regexp.MustCompile(`(?m)^(VmRSS|Threads):\s+(\d+)`)

// usage reads it from /proc.
func (d *daemon) usage() (u usage, err error) {
	dir := "/proc/" + strconv.Itoa(d.cmd.Process.Pid)
	fds, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return u, fmt.Errorf("lockfaultd has gone: %w:\n%s", err, d.said.text())
	}
	for _, fd := range fds {
		if link, err := os.Readlink(dir + "/fd/" + fd.Name()); err == nil {
			u.open.count(link)
		}
	}
	text, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, err
	}
	for _, m := range status.FindAllSubmatch(text, -1) {
		n, _ := strconv.Atoi(string(m[2]))
		if string(m[1]) == "VmRSS" {
			u.resident = n
		} else {
			u.threads = n
		}
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u, err
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	u.cpu = time.Duration(user+system) * 10 * time.Millisecond
	d.most, d.high = max(d.most, u.open.all()), max(d.high, u.resident)
	return u, nil
}

// What lockfaultd may take of resident memory at most, in KiB: the ledger and
// the caches, which are full after a few minutes, and for each connection two
// goroutines, two small buffers and what the parsers know; all of it with as
// much again for the collector.
const (
	allInAll      = 256 << 10
	perConnection = 64
)

// end sees whether everything was given back, ends lockfaultd and reads its
// history.
func (d *daemon) end(ctx context.Context, downs []down) (string, error) {
	u, err := d.drained(ctx)
	if err != nil {
		return "", err
	}
	if most := allInAll + d.most/2*perConnection; d.high > most {
		err = fmt.Errorf("lockfaultd took %d MiB of memory, expected at most %d", d.high>>10, most>>10)
	}
	if serr := d.cmd.Process.Signal(syscall.SIGTERM); serr != nil {
		return "", errors.Join(err, serr)
	}
	if werr := d.cmd.Wait(); werr != nil {
		err = errors.Join(err, fmt.Errorf("lockfaultd: %w:\n%s", werr, d.said.text()))
	}
	told, herr := d.history(downs)
	return fmt.Sprintf("%s at the end, %d MiB at most; %s", u, d.high>>10, told), errors.Join(err, herr)
}

// settling is how long lockfaultd may take to give things back. Connections go at
// once; a pool of pipes is emptied when the collector has come by twice, which it
// does every two minutes where there is nothing to do.
const settling = 5 * time.Minute

// drained waits until everything was given back.
func (d *daemon) drained(ctx context.Context) (usage, error) {
	deadline := time.Now().Add(settling)
	for {
		u, err := d.usage()
		if err != nil {
			return u, err
		}
		leaked := u.open.leaked(d.start.open, d.groups)
		if leaked == nil {
			return u, nil
		}
		if time.Now().After(deadline) {
			return u, fmt.Errorf("lockfaultd has open after the last client has gone: %w", leaked)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return u, ctx.Err()
		}
	}
}

// history reads what was recorded, and what lockfaultd itself says of it.
func (d *daemon) history(downs []down) (string, error) {
	f, err := os.Open(filepath.Join(d.out, "history.jsonl"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%d ops and %d ends of sessions in its history, %d gaps", len(h.Ops), len(h.Ends), len(h.Gaps))
	excused, err := d.said.judge(func(s said) bool { return d.unreachable(s, downs) })
	if excused > 0 {
		text += fmt.Sprintf("; said %d times that a server could not be reached that was down", excused)
	}
	if len(h.Ops) == 0 {
		err = errors.Join(err, errors.New("no op is in the history"))
	}
	for _, g := range h.Gaps {
		err = errors.Join(err, fmt.Errorf("the history has a gap: %d entries are missing at %d: %s", g.Lost, g.At, g.Why))
	}
	return text, err
}

// unreachable reports whether it was said of a server that it cannot be reached,
// while it was down.
func (d *daemon) unreachable(s said, downs []down) bool {
	return slices.ContainsFunc(downs, func(w down) bool {
		return strings.Contains(s.line, `level=ERROR msg="upstream cannot be reached" `) &&
			strings.Contains(s.line, " upstream="+d.upstreams[w.server]+" ") && w.covers(s.at)
	})
}
