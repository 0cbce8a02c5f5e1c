package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// idleBudget is what an idle connection may take of heap and stacks.
const idleBudget = 24 << 10

var perConnection = regexp.MustCompile(`(\d+) bytes`)

// TestIdleConnections asks the command, since the race detector would more than
// double what is measured.
func TestIdleConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("waits until connections are quiet")
	}
	program, err := build(t.Context(), t.TempDir(), "bench")
	if err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []string{"redis", "pg"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), program, "idle", "-connections", "3000", "-protocols", protocol).CombinedOutput()
			m := perConnection.FindSubmatch(out)
			if err != nil || m == nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
			if n, _ := strconv.Atoi(string(m[1])); n <= 0 || n > idleBudget {
				t.Errorf("%d bytes for an idle connection; at most %d", n, idleBudget)
			}
		})
	}
}

const (
	bigValue     = 512 << 20 // the longest that Redis takes
	bigRow       = 100 << 20
	growthBudget = 32 << 20
)

// TestC011BigFrames sends a value and a row of a size that nobody may keep, both
// ways.
func TestC011BigFrames(t *testing.T) {
	l := startLockfaultd(t, testbed.Redis(t).Addr(), testbed.Postgres(t).Addr())
	for _, c := range []struct {
		name string
		send func(*testing.T)
	}{
		{"Redis SET", func(t *testing.T) { bigSetTo(t, l.redis) }},
		{"Redis GET", func(t *testing.T) { bigGetFrom(t, l.redis) }},
		{"Postgres row", func(t *testing.T) { bigRowFrom(t, l.postgres) }},
		{"Postgres parameter", func(t *testing.T) { bigParameterTo(t, l.postgres) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := l.resident(t)
			c.send(t)
			growth := l.peak(t) - before
			t.Logf("lockfaultd grew by at most %d KiB", growth>>10)
			if growth > growthBudget {
				t.Errorf("lockfaultd grew by %d MiB; at most %d", growth>>20, growthBudget>>20)
			}
		})
	}
}

func bigSetTo(t *testing.T, address string) {
	c := dialTo(t, address)
	w := bufio.NewWriterSize(c, 64<<10)
	fmt.Fprintf(w, "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n", bigValue)
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for range bigValue / len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = w.WriteString("\r\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	hears(t, c, "+OK\r\n")
}

func bigGetFrom(t *testing.T, address string) {
	c := dialTo(t, address)
	if _, err := io.WriteString(c, "GET big\r\nPING\r\n"); err != nil {
		t.Fatal(err)
	}
	hears(t, c, fmt.Sprintf("$%d\r\n", bigValue))
	if _, err := io.CopyN(io.Discard, c, bigValue); err != nil {
		t.Fatal(err)
	}
	hears(t, c, "\r\n+PONG\r\n")
}

func bigRowFrom(t *testing.T, address string) {
	var s string
	if err := queryRow(t, address, &s, "SELECT repeat('x', $1)", bigRow); err != nil || len(s) != bigRow {
		t.Fatalf("%d bytes, %v; want %d", len(s), err, bigRow)
	}
}

func bigParameterTo(t *testing.T, address string) {
	var n int
	if err := queryRow(t, address, &n, "SELECT length($1::text)", strings.Repeat("x", bigRow)); err != nil || n != bigRow {
		t.Fatalf("the server counts %d, %v; want %d", n, err, bigRow)
	}
}

func queryRow(t *testing.T, address string, to any, sql string, args ...any) error {
	t.Helper()
	c, err := pgx.Connect(t.Context(), "postgres://postgres@"+address+"/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	return c.QueryRow(t.Context(), sql, args...).Scan(to)
}

func dialTo(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func hears(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

// A lockfault is a lockfaultd in a process of its own, with its history on.
type lockfault struct {
	*process
	redis, postgres string
}

func startLockfaultd(t *testing.T, redis, postgres string) *lockfault {
	t.Helper()
	dir := t.TempDir()
	program, err := build(t.Context(), dir, "cmd/lockfaultd")
	if err != nil {
		t.Fatal(err)
	}
	ports, err := freeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	l := &lockfault{redis: ports[0], postgres: ports[1]}
	cmd := exec.Command(program, "--redis", l.redis+"="+redis, "--postgres", l.postgres+"="+postgres, "--out", filepath.Join(dir, "out"))
	if l.process, err = startProcess(dir, "lockfaultd", cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.stop)
	if err := errors.Join(l.answers(t.Context(), l.redis), l.answers(t.Context(), l.postgres)); err != nil {
		t.Fatal(err)
	}
	return l
}

// resident returns the memory that the process has now, and makes the kernel
// forget the most that it ever had.
func (l *lockfault) resident(t *testing.T) int64 {
	t.Helper()
	const forgetPeak = "5"
	if err := os.WriteFile(l.proc("clear_refs"), []byte(forgetPeak), 0); err != nil {
		t.Fatal(err)
	}
	return l.status(t, "VmRSS")
}

// peak returns the most since then.
func (l *lockfault) peak(t *testing.T) int64 {
	t.Helper()
	return l.status(t, "VmHWM")
}

func (l *lockfault) proc(name string) string {
	return fmt.Sprintf("/proc/%d/%s", l.cmd.Process.Pid, name)
}

func (l *lockfault) status(t *testing.T, field string) int64 {
	t.Helper()
	b, err := os.ReadFile(l.proc("status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, field+": %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	t.Fatalf("no %s in the status of lockfaultd", field)
	return 0
}
