package freezer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// kills is how often each way of dying is tried.
func kills(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("LOCKFAULT_KILLS"))
	if err != nil {
		return 3
	}
	t.Logf("%d tries", n)
	return n
}

// kind is a way to freeze a victim.
type kind struct {
	name  string
	scope Scope
	home  version // "": no cgroup of its own
}

var kinds = []kind{{"process", ScopeProcess, ""}, {"tree", ScopeTree, ""}, {"v2", ScopeCgroup, v2}, {"v1", ScopeCgroup, v1}}

func eachKind(t *testing.T, try func(t *testing.T, k kind)) {
	needRoot(t)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { try(t, k) })
	}
}

func (k kind) victim(t *testing.T) *victim {
	if k.scope == ScopeTree {
		t.Setenv(broodEnv, "1")
	}
	if k.home == "" {
		return newVictim(t, "127.0.0.1:0", 0, nil)
	}
	return victimIn(t, inCgroup(t, k.home), 0)
}

// daemon is another process that has frozen a victim.
type daemon struct {
	*child
	guard   int
	journal string
}

func newDaemon(t *testing.T, v *victim, s Scope, max time.Duration) *daemon {
	t.Helper()
	d := &daemon{journal: filepath.Join(t.TempDir(), "journal")}
	c, line := start(t, &syscall.SysProcAttr{Setpgid: true}, nil,
		self("daemon", d.journal, v.client.String(), v.server.String(), string(s), max.String())...)
	d.child = c
	guard, err := strconv.Atoi(strings.TrimPrefix(line, "guard "))
	if err != nil {
		t.Fatalf("daemon said %q", line)
	}
	d.guard = guard
	return d
}

func gone(pid int) bool {
	s, err := readStat(pid)
	return err != nil || s.ended()
}

// Nothing is left frozen, and nothing in the journal, when the daemon is killed.
func TestDaemonKilled(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		v := k.victim(t)
		for range kills(t) {
			d := newDaemon(t, v, k.scope, time.Minute)
			v.mustStand(t)
			d.kill()
			v.mustMove(t, "after its daemon was killed")
			mustBeEmpty(t, d.journal)
			eventually(t, "the guard leaves", func() bool { return gone(d.guard) })
		}
	})
}

// A daemon may be killed at any step. Then nothing is left stopped, and what is
// left in the journal is no more than a record of nothing.
func TestDaemonKilledAtAnyStep(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		v := k.victim(t)
		for i := range 2 * kills(t) {
			journal := filepath.Join(t.TempDir(), "journal")
			d, line := start(t, nil, nil, self("churn", journal, v.client.String(), v.server.String(), string(k.scope))...)
			guard, err := strconv.Atoi(strings.TrimPrefix(line, "guard "))
			if err != nil {
				t.Fatalf("daemon said %q", line)
			}
			time.Sleep(time.Duration(i) * 1400 * time.Microsecond) // which step it is does not matter
			d.kill()
			eventually(t, "the guard leaves", func() bool { return gone(guard) })
			if n, err := Replay(journal, nil); n != 0 || err != nil {
				t.Errorf("the guard left %d frozen, %v", n, err)
			}
			v.mustMove(t, "after its daemon was killed")
			mustBeEmpty(t, journal)
		}
	})
}

// Somebody may have inherited the daemon's end of the socket, so that its death
// does not close it. The guard sees the death itself.
func TestDaemonKilledSocketLeaked(t *testing.T) {
	needRoot(t)
	t.Setenv(leakEnv, "1")
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	d := newDaemon(t, v, ScopeProcess, time.Minute)
	if err := d.cmd.Process.Kill(); err != nil { // its heir stays, until stdin ends
		t.Fatal(err)
	}
	v.mustMove(t, "after its daemon was killed")
	mustBeEmpty(t, d.journal)
}

// Signals that end a terminal's or a supervisor's whole group do not end the guard.
func TestGuardOutlivesSignals(t *testing.T) {
	needRoot(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	d := newDaemon(t, v, ScopeProcess, time.Minute)
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGTSTP, unix.SIGQUIT} {
		if err := unix.Kill(d.guard, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Kill(-d.pid(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	v.mustMove(t, "after the daemon's group was killed")
	mustBeEmpty(t, d.journal)
}

// A guard that dies takes its freezes with it: nothing is frozen unguarded.
func TestGuardKilled(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		v := k.victim(t)
		for range kills(t) {
			d := newDaemon(t, v, k.scope, time.Minute)
			v.mustStand(t)
			if err := unix.Kill(d.guard, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			v.mustMove(t, "after its guard was killed")
			mustBeEmpty(t, d.journal)
			d.kill()
		}
	})
}

func TestGuardIsReplaced(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	o := lookup(t, f, v.client, v.server)
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	first := f.GuardPID()
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-z.Done():
	case <-time.After(watchdog):
		t.Fatal("the freeze goes on without a guard")
	}
	if b := z.Broken(); !strings.Contains(b, "guard died") {
		t.Errorf("broken: %q", b)
	}
	if err := z.Thaw(); err != nil {
		t.Errorf("thaw afterwards: %v", err)
	}
	z, err = f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if pid := f.GuardPID(); pid == first || pid == 0 || gone(pid) {
		t.Errorf("guard %d after %d", pid, first)
	}
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// Without a guard nothing is frozen.
func TestNoGuardNoFreeze(t *testing.T) {
	f := newFreezer(t, func(o *Options) { o.Lazy, o.GuardCommand = true, []string{"/bin/false"} })
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	if z, err := f.Freeze(t.Context(), lookup(t, f, v.client, v.server), ScopeProcess, time.Minute); err == nil {
		z.Thaw()
		t.Fatal("frozen without a guard")
	} else if !errors.Is(err, ErrGuard) {
		t.Errorf("got %v, want %v", err, ErrGuard)
	}
	if s, err := readStat(v.pid()); err != nil || s.stopped() {
		t.Errorf("state %c, %v", s.state, err)
	}
	mustBeEmpty(t, f.journal.dir)
}

// Both killed: the journal is what is left, and the next daemon acts on it.
func TestBothKilled(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		v := k.victim(t)
		for range kills(t) {
			d := newDaemon(t, v, k.scope, time.Minute)
			if n, err := Replay(d.journal, nil); n != 0 || err != nil {
				t.Fatalf("replay thawed %d of a living daemon, %v", n, err)
			}
			killBoth(t, d)
			v.mustStand(t)
			n, err := Replay(d.journal, nil)
			if n != 1 || err != nil {
				t.Fatalf("replay thawed %d, %v", n, err)
			}
			v.mustMove(t, "after the replay")
			mustBeEmpty(t, d.journal)
		}
	})
}

// stoppedWhole reports whether every thread of a process is stopped.
func stoppedWhole(pid int) bool {
	for _, tid := range liveThreads(pid) {
		if s, err := readThread(pid, tid); err == nil && !s.stopped() {
			return false
		}
	}
	return true
}

// killBoth ends the guard and the daemon before either can act for the other:
// a guard that is stopped does nothing, and so does a daemon.
func killBoth(t *testing.T, d *daemon) {
	t.Helper()
	for _, pid := range []int{d.guard, d.pid()} {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it has stopped", func() bool { return stoppedWhole(pid) })
	}
	if err := unix.Kill(d.guard, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.kill()
	eventually(t, "the guard is gone", func() bool { return gone(d.guard) })
}

// New replays before anything else.
func TestNewReplays(t *testing.T) {
	needRoot(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	d := newDaemon(t, v, ScopeProcess, time.Minute)
	killBoth(t, d)
	newFreezer(t, func(o *Options) { o.JournalDir = d.journal })
	v.mustMove(t, "after another daemon began")
}

// A daemon that is itself stopped misses the maximum; the guard does not.
func TestDaemonStopped(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		v := k.victim(t)
		d := newDaemon(t, v, k.scope, time.Second)
		if err := unix.Kill(d.pid(), unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		v.mustMove(t, "though its daemon is stopped")
		mustBeEmpty(t, d.journal)
		if gone(d.guard) {
			t.Error("the guard has left a living daemon")
		}
	})
}

func TestGuardByHand(t *testing.T) {
	t.Setenv(guardEnv, "")
	if err := RunGuard(); err == nil {
		t.Error("ran")
	}
}

func TestGuardRefusesNonsense(t *testing.T) {
	g := guard{armed: make(map[uint64]*ward)}
	for _, o := range []order{
		{Op: opArm, ID: 1}, {Op: opMove, ID: 1}, {Op: opDisarm, ID: 1}, {Op: "sing", ID: 1},
		{Op: opArm, ID: 1, Target: note{Processes: make([]Process, 2)}},
		{Op: opArm, ID: 1, Target: note{Version: v2}},
	} {
		if a := g.obey(o, nil); a.Error == "" {
			t.Errorf("%+v was obeyed", o)
		}
	}
	if len(g.armed) != 0 {
		t.Errorf("armed: %v", g.armed)
	}
}

func TestChildCgroup(t *testing.T) {
	for _, version := range []version{v2, v1} {
		t.Run(string(version), func(t *testing.T) {
			c := inCgroup(t, version)
			v := victimIn(t, c, 0)
			if pids, err := subtree(c.Path()); err != nil || !slices.Contains(pids, v.pid()) {
				t.Fatalf("members %v, %v; expected %d", pids, err, v.pid())
			}
			v.kill()
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(c.Path()); !os.IsNotExist(err) {
				t.Errorf("still there: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("closed twice: %v", err)
			}
		})
	}
	needRoot(t)
	c, err := NewChildCgroup("lockfaultd-test")
	if err != nil {
		t.Skip(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
