package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// manyMore is more entries than a proxy and a pipe keep for a disk that hangs.
const manyMore = 40_000

// A sidecar whose disk hangs goes on serving, and says afterwards what its
// history lacks.
func TestSidecarOutlivesAHangingDisk(t *testing.T) {
	redis := testbed.Redis(t)
	dir := t.TempDir()
	pipe := filepath.Join(dir, "history.jsonl") // a disk that hangs as long as nobody reads it
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, address, said := sidecar(t, "--redis", "127.0.0.1:0="+redis.Addr(), "--out", dir)
	manyLocks(t, address, manyMore)

	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(f)
		read <- b
	}()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	text := <-read
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	h, err := history.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for _, g := range h.Gaps {
		lost += g.Lost
	}
	if lost == 0 || len(h.Ops)+len(h.Ends)+lost != manyMore+1 {
		t.Errorf("%d ops and %d ends in the history, and %d lost in %d gaps; want %d in all, some of them lost", len(h.Ops), len(h.Ends), lost, len(h.Gaps), manyMore+1)
	}
	if want := fmt.Sprintf("the history lacks %d entries", lost); !strings.Contains(said(), want) {
		t.Errorf("it does not say that %s:\n%s", want, said())
	}
}

// sidecar starts lockfaultd with one proxy for Redis among its arguments, and
// returns where that listens and, for later, what was said.
func sidecar(t *testing.T, args ...string) (cmd *exec.Cmd, address string, said func() string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(program, args...)
	cmd.Args[0] = "lockfaultd" // by this name the test's binary is the command
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said = func() string {
		b, _ := os.ReadFile(out.Name())
		return string(b)
	}
	return cmd, awaitMatch(t, said, regexp.MustCompile(`lockfaultd: redis (\S+) ->`)), said
}

// awaitMatch waits until what was said matches, and returns the first group of it.
func awaitMatch(t *testing.T, said func() string, pattern *regexp.Regexp) string {
	t.Helper()
	for n := 0; ; n++ {
		if m := pattern.FindStringSubmatch(said()); m != nil {
			return m[1]
		}
		if n > 3000 {
			t.Fatalf("%s was not said: %s", pattern, said())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// manyLocks takes n locks, and has every reply.
func manyLocks(t *testing.T, address string, n int) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go func() {
		for i := range n {
			fmt.Fprintf(c, "SET lock%d token NX PX 60000\r\n", i)
		}
	}()
	in := bufio.NewReader(c)
	for i := range n {
		if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
			t.Fatalf("reply %d: %q, %v", i, line, err)
		}
	}
}
