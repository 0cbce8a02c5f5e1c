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
	said      string // the file of its stderr
	addresses [3]string
	database  string
	start     usage
	high      usage
}

func startDaemon(program, out string, servers []*testbed.Server) (*daemon, error) {
	d := &daemon{out: out, said: out + ".stderr"}
	args := []string{"--out", out}
	for i, flag := range []string{"--redis", "--redis", "--postgres"} {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		d.addresses[i] = address
		args = append(args, flag, address+"="+servers[i].Addr())
	}
	d.database = strings.Replace(servers[2].URL(), servers[2].Addr(), d.addresses[2], 1)
	stderr, err := os.Create(d.said)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	d.cmd = exec.Command(program, args...)
	d.cmd.Stderr = stderr
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start lockfaultd: %w", err)
	}
	for range 3000 {
		if bytes.Contains(d.stderr(), []byte("passing everything on")) {
			d.start, err = d.usage()
			return d, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = d.cmd.Process.Kill()
	return nil, fmt.Errorf("start lockfaultd: it does not serve:\n%s", d.stderr())
}

func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find free port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

func (d *daemon) stderr() []byte {
	b, _ := os.ReadFile(d.said)
	return b
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

// A usage is what lockfaultd takes of the machine. Of the files that are open
// only sockets belong to connections: a few pipes and pidfds are kept for later.
type usage struct {
	files, threads int
	sockets        int
	resident       int // KiB
	cpu            time.Duration
}

func (u usage) String() string {
	return fmt.Sprintf("%d files, %d of them sockets, %d threads, %d MiB, %s of processor time", u.files, u.sockets, u.threads, u.resident>>10, u.cpu.Round(time.Millisecond))
}

var status = regexp.MustCompile(`(?m)^(VmRSS|Threads):\s+(\d+)`)

// usage reads it from /proc.
func (d *daemon) usage() (u usage, err error) {
	dir := "/proc/" + strconv.Itoa(d.cmd.Process.Pid)
	fds, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return u, fmt.Errorf("lockfaultd has gone: %w:\n%s", err, d.stderr())
	}
	u.files = len(fds)
	for _, fd := range fds {
		if link, err := os.Readlink(dir + "/fd/" + fd.Name()); err == nil && strings.HasPrefix(link, "socket:") {
			u.sockets++
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
	d.high.files, d.high.resident = max(d.high.files, u.files), max(d.high.resident, u.resident)
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
func (d *daemon) end(ctx context.Context) (string, error) {
	u, err := d.drained(ctx)
	if err != nil {
		return "", err
	}
	if most := allInAll + d.high.files/2*perConnection; d.high.resident > most {
		err = fmt.Errorf("lockfaultd took %d MiB of memory, expected at most %d", d.high.resident>>10, most>>10)
	}
	if serr := d.cmd.Process.Signal(syscall.SIGTERM); serr != nil {
		return "", errors.Join(err, serr)
	}
	if werr := d.cmd.Wait(); werr != nil {
		err = errors.Join(err, fmt.Errorf("lockfaultd: %w:\n%s", werr, d.stderr()))
	}
	told, herr := d.history()
	return fmt.Sprintf("%s at the end, %d MiB at most; %s", u, d.high.resident>>10, told), errors.Join(err, herr)
}

// drained waits until hardly more is open than at the start: a socket to
// ask the kernel with, pipes and pidfds.
func (d *daemon) drained(ctx context.Context) (usage, error) {
	const kept = 250 // pipes and pidfds
	deadline := time.Now().Add(30 * time.Second)
	for {
		u, err := d.usage()
		if err != nil || u.sockets <= d.start.sockets+2 && u.files <= d.start.files+kept {
			return u, err
		}
		if time.Now().After(deadline) {
			return u, fmt.Errorf("lockfaultd has open after the last client has gone: %s; at the start it had: %s", u, d.start)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return u, ctx.Err()
		}
	}
}

var complaint = regexp.MustCompile(`(?m)^.*(desync|lacks|level=ERROR|panic).*$`)

// history reads what was recorded, and what lockfaultd itself says of it.
func (d *daemon) history() (string, error) {
	f, err := os.Open(filepath.Join(d.out, "history.jsonl"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		return "", err
	}
	said := map[string]int{}
	for _, line := range complaint.FindAll(d.stderr(), -1) {
		said[numbers.ReplaceAllString(string(line), "N")]++
	}
	text := fmt.Sprintf("%d ops and %d ends of sessions in its history, %d gaps", len(h.Ops), len(h.Ends), len(h.Gaps))
	for line, n := range said {
		text += fmt.Sprintf("\n  said %d times: %s", n, line)
	}
	if len(h.Ops) == 0 {
		return text, errors.New("no op is in the history")
	}
	return text, nil
}

var numbers = regexp.MustCompile(`\d+`)
