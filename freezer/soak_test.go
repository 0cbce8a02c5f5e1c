package freezer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// soakEnv says how many cycles of freeze and thaw TestSoak goes through; soakKills and soakGuards how often the
// daemon and the guard are killed meanwhile, at random.
const (
	soakEnv    = "LOCKFAULT_CYCLES"
	soakKills  = "LOCKFAULT_DAEMON_KILLS"
	soakGuards = "LOCKFAULT_GUARD_KILLS"
)

func number(name string, unless int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return unless
}

// cycleRole freezes and thaws one client for ever, counts how often, and lives with a guard that dies: journal,
// client, server, scope, count.
func cycleRole(args []string) error {
	ctx := context.Background()
	f, err := New(ctx, Options{JournalDir: args[0], GuardCommand: []string{"/proc/self/exe", "guard"}})
	if err != nil {
		return err
	}
	count, err := openStamp(args[4])
	if err != nil {
		return err
	}
	guard, err := openStamp(args[4] + ".guard")
	if err != nil {
		return err
	}
	o, err := f.Lookup(ctx, netip.MustParseAddrPort(args[1]), netip.MustParseAddrPort(args[2]))
	if err != nil {
		return err
	}
	fmt.Println("guard", f.GuardPID())
	go func() { // whoever started it has gone
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		guard.Store(uint64(f.GuardPID()))
		z, err := f.Freeze(ctx, o, Scope(args[3]), time.Minute)
		var busy *Refusal // by a thaw that a guard's death has begun
		switch {
		case errors.Is(err, ErrGuard), errors.As(err, &busy):
			time.Sleep(time.Millisecond)
			continue
		case err != nil:
			return err
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		if err := z.Thaw(); err != nil {
			return err
		}
		count.Add(1)
	}
}

// A soaked is one victim that daemons freeze and thaw, one after the other.
type soaked struct {
	*victim
	kind    kind
	journal string
	stamp   string
	count   *atomic.Uint64
	guard   *atomic.Uint64
	daemon  *child
}

func newSoaked(t *testing.T, k kind) *soaked {
	dir := t.TempDir()
	s := &soaked{victim: k.victim(t), kind: k, journal: filepath.Join(dir, "journal"), stamp: filepath.Join(dir, "count")}
	var err error
	if s.count, err = openStamp(s.stamp); err != nil {
		t.Fatal(err)
	}
	if s.guard, err = openStamp(s.stamp + ".guard"); err != nil {
		t.Fatal(err)
	}
	s.begin(t)
	return s
}

func (s *soaked) begin(t *testing.T) {
	s.daemon, _ = start(t, nil, nil, self("cycle", s.journal, s.client.String(), s.server.String(), string(s.kind.scope), s.stamp)...)
}

func (s *soaked) killGuard() bool {
	pid := int(s.guard.Load())
	return pid > 0 && !gone(pid) && unix.Kill(pid, unix.SIGKILL) == nil
}

// killDaemon kills it, and now and then its guard with it: then only the next daemon's start thaws.
func (s *soaked) killDaemon(t *testing.T) {
	both := rand.IntN(4) == 0
	if both {
		_ = s.daemon.cmd.Process.Signal(syscall.SIGSTOP) // so that neither sees the other die
		s.killGuard()
	}
	s.daemon.kill()
	if both {
		s.begin(t)
		s.mustGoOn(t, "after daemon and guard were killed")
		return
	}
	s.mustRun(t, "after its daemon was killed")
	s.begin(t)
}

// mustRun waits until nothing of the victim is stopped.
func (s *soaked) mustRun(t *testing.T, when string) {
	t.Helper()
	s.mustMove(t, when)
	eventually(t, s.kind.name+": nobody is stopped "+when, func() bool {
		for _, pid := range append(descendants(s.pid()), s.pid()) {
			if stateOf(pid) == 'T' {
				return false
			}
		}
		return true
	})
}

// mustGoOn waits until the daemon has gone through another cycle.
func (s *soaked) mustGoOn(t *testing.T, when string) {
	t.Helper()
	from := s.count.Load()
	eventually(t, s.kind.name+": it is frozen and thawed "+when, func() bool { return s.count.Load() > from })
}

// Freezes and thaws of every scope, under load, with the daemon and the guard killed at random: nothing is left
// frozen, nothing stopped, and nobody is stopped who was not asked for.
func TestSoak(t *testing.T) {
	needRoot(t)
	cycles, kills, guards := number(soakEnv, 200), number(soakKills, 8), number(soakGuards, 4)
	aside := newVictim(t, "127.0.0.1:0", 0, nil)
	newVictim(t, "127.0.0.1:0", 2, nil) // the load
	var all []*soaked
	for _, k := range kinds {
		all = append(all, newSoaked(t, k))
	}
	done := func() (n int) {
		for _, s := range all {
			n += int(s.count.Load())
		}
		return n
	}
	began, killed, guardless := time.Now(), 0, 0
	for done() < cycles || killed < kills || guardless < guards {
		time.Sleep(time.Duration(rand.IntN(40)) * time.Millisecond)
		s := all[rand.IntN(len(all))]
		switch due := done() * (kills + guards) / max(cycles, 1); {
		case killed+guardless > due: // they are spread over the cycles
		case killed < kills && rand.IntN(kills+guards) < kills:
			s.killDaemon(t)
			killed++
		case guardless < guards && s.killGuard():
			guardless++
			s.mustGoOn(t, "after its guard was killed")
		case killed < kills:
			s.killDaemon(t)
			killed++
		}
		if state := stateOf(aside.pid()); state == 'T' {
			t.Fatalf("somebody is stopped whom nobody has asked for")
		}
	}
	for _, s := range all {
		s.daemon.kill()
		s.mustRun(t, "at the end")
		eventually(t, "its guard leaves", func() bool { return gone(int(s.guard.Load())) })
		if n, err := Replay(s.journal, nil); n != 0 || err != nil {
			t.Errorf("%s: %d were left frozen, %v", s.kind.name, n, err)
		}
		mustBeEmpty(t, s.journal)
	}
	aside.mustMove(t, "at the end")
	t.Logf("%d cycles in %s, the daemon killed %d times, the guard %d times", done(), time.Since(began).Round(time.Second), killed, guardless)
}
