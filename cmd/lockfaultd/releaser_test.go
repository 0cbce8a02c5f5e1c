package main

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A releaser has this binary be a client that takes its lock by a plain command, for
// the lease of the variable lifetime, and gives it back by a script that the server
// knows, as client libraries do.
const (
	releaser = "releaser"
	lifetime = "LOCKFAULT_LIFETIME"
)

// rounds is how often it takes its lock.
const rounds = 12

func releasing(redisURL string) error {
	u, err := url.Parse(redisURL)
	if err != nil {
		return err
	}
	w, err := wired(u.Host)
	if err != nil {
		return err
	}
	sum := sha1.Sum([]byte(lockScripts["release"]))
	for i := range rounds {
		token := fmt.Sprintf("token-of-round-%d", i)
		if got, err := w.ask("SET", "lock:held", token, "NX", "PX", os.Getenv(lifetime)); err != nil || got != "+OK" {
			return fmt.Errorf("acquire: %s, %w", got, err)
		}
		if _, err := w.ask("EVALSHA", hex.EncodeToString(sum[:]), "1", "lock:held", token); err != nil {
			return fmt.Errorf("release: %w", err)
		}
	}
	return nil
}

// A client whose script nobody has seen gives its lock back as any other does: what is
// known while it runs is what the history has.
func TestRunSeesReleasesByAScriptThatWasThereBefore(t *testing.T) {
	for _, how := range []string{"monitor", "probe", "none"} {
		for lease, want := range map[time.Duration]lock.Outcome{time.Minute: lock.Done, 40 * time.Millisecond: lock.NotHeld} {
			t.Run(fmt.Sprint(how, " ", lease), func(t *testing.T) {
				h := releases(t, how, lease)
				expectReleases(t, h, want)
				if len(h.Injections) != rounds {
					t.Errorf("%d injections", len(h.Injections))
				}
				for _, in := range h.Injections {
					if !in.Section {
						t.Errorf("injection %d landed outside of the section whose grant it was at", in.ID)
					}
				}
			})
		}
	}
}

// releases runs the releaser, each grant of which is held up for longer than a short
// lease.
func releases(t *testing.T, how string, lease time.Duration) *history.History {
	t.Helper()
	server := testbed.Redis(t)
	w, err := wired(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ask("SCRIPT", "LOAD", lockScripts["release"]); err != nil {
		t.Fatal(err)
	}
	w.c.Close()
	t.Setenv("REDIS_URL", "redis://"+server.Addr()+"/0")
	t.Setenv("DATABASE_URL", "")
	t.Setenv(lifetime, fmt.Sprint(lease.Milliseconds()))
	out := t.TempDir()
	var said testbed.Log
	if code := Main([]string{"lockfaultd", "run", "--witness", how, "--stall-after", "SETNX=100ms", "--out", out, "--", os.Args[0], releaser}, &said, &said); code != 0 && code != 11 {
		t.Fatalf("exit status %d\n%s", code, said.String())
	}
	return readHistory(t, filepath.Join(out, "history.jsonl"))
}

// expectReleases wants one op of each call, with that outcome unless its witness was
// late.
func expectReleases(t *testing.T, h *history.History, want lock.Outcome) {
	t.Helper()
	ops := map[lock.Kind]int{}
	for _, op := range h.Ops {
		ops[op.Kind]++
		if op.Kind == lock.Release && op.Outcome != want && op.Outcome != lock.Unknown {
			t.Errorf("a release is %s, want %s", op.Outcome, want)
		}
	}
	if ops[lock.Acquire] != rounds || ops[lock.Release] != rounds || ops[lock.Other] != 0 {
		t.Errorf("%v", ops)
	}
}
