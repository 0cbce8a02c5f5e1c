package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// A sidecar cuts its history into parts, of which none lacks a line, and goes on with it at its next start: the hashes of both are
// made with the same key.
func TestSidecarRotates(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const locks = 3000
	var runs []string
	serve := func() {
		redis := testbed.Redis(t) // has none of the locks
		cmd, address, said := sidecar(t, "--redis", "127.0.0.1:0="+redis.Addr(), "--out", dir, "--rotate", "64KiB", "--history-key", key)
		manyLocks(t, address, locks)
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err, said())
		}
		in, err := history.OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		h, err := history.Read(in)
		if err != nil {
			t.Fatal(err)
		}
		if len(h.Ops) != locks || len(h.Ends) != 1 || len(h.Gaps) != 0 {
			t.Errorf("%d ops, %d ends, gaps %v; want %d ops and an end", len(h.Ops), len(h.Ends), h.Gaps, locks)
		}
		runs = append(runs, h.Header.Run+" "+h.Header.KeyID+" "+h.Ops[0].Token.Hash)
	}
	serve()
	before, _ := filepath.Glob(filepath.Join(dir, "history-*.jsonl"))
	if len(before) < 5 {
		t.Errorf("only %d parts were made", len(before))
	}
	serve()
	first, second := strings.Fields(runs[0]), strings.Fields(runs[1])
	if first[0] == second[0] || first[1] != second[1] || first[2] != second[2] {
		t.Errorf("%v, then %v: want another run, the same key and the same hash of the same token", first, second)
	}
	f := history.FollowFrom(dir, first[0], 0)
	defer f.Close()
	ops := map[string]int{}
	for {
		lines, err := f.Next(100)
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) == 0 {
			break
		}
		for _, l := range lines {
			if strings.HasPrefix(string(l.Text), `{"type":"op"`) {
				ops[l.Run]++
			}
		}
	}
	if ops[first[0]] != locks || ops[second[0]] != locks {
		t.Errorf("followed: %v", ops)
	}
}
