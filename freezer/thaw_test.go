package freezer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func frozen(t *testing.T, f *Freezer, v *victim, s Scope, max time.Duration) *Frozen {
	t.Helper()
	z, err := f.Freeze(t.Context(), lookup(t, f, v.client, v.server), s, max)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestThawIsIdempotent(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	z := frozen(t, f, v, ScopeProcess, time.Minute)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := z.Thaw(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// A later Thaw must not resume what somebody else has stopped since.
	if err := unix.Kill(v.pid(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the victim has stopped", func() bool {
		s, err := readStat(v.pid())
		return err == nil && s.state == 'T'
	})
	if err := z.Thaw(); err != nil {
		t.Error(err)
	}
	if s, err := readStat(v.pid()); err != nil || s.state != 'T' {
		t.Errorf("state %c, %v", s.state, err)
	}
}

func TestMaximum(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		v := k.victim(t)
		f := newFreezer(t)
		begun := time.Now()
		z := frozen(t, f, v, k.scope, 50*time.Millisecond)
		v.mustMove(t, "after the maximum")
		select {
		case <-z.Done():
		case <-time.After(watchdog):
			t.Fatal("not done")
		}
		late := time.Since(begun) > 50*time.Millisecond+guardGrace // then the guard may have come first
		if b := z.Broken(); b != "" && !(late && b == guardThawed) {
			t.Errorf("a freeze of its full length is not broken: %s", b)
		}
		if err := z.Thaw(); err != nil {
			t.Error(err)
		}
		mustBeEmpty(t, f.journal.dir)
	})
}

func TestCloseThaws(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	z := frozen(t, f, v, ScopeProcess, time.Minute)
	guard := f.GuardPID()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if b := z.Broken(); b != "" {
		t.Errorf("Close left the thaw to others: %s", b)
	}
	v.mustMove(t, "after Close")
	if !gone(guard) {
		t.Error("the guard is still there")
	}
	if err := z.Thaw(); err != nil {
		t.Error(err)
	}
	o := &Owner{}
	if _, err := f.Freeze(t.Context(), o, ScopeProcess, time.Second); err == nil {
		t.Error("a closed freezer froze")
	}
}

func TestForeignResume(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	z := frozen(t, f, v, ScopeProcess, time.Minute)
	if err := unix.Kill(v.pid(), unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	v.mustMove(t, "after somebody else's SIGCONT")
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
	if b := z.Broken(); !strings.Contains(b, "resumed by somebody else") {
		t.Errorf("broken: %q", b)
	}
}

func TestForeignThaw(t *testing.T) {
	for _, version := range []version{v2, v1} {
		t.Run(string(version), func(t *testing.T) {
			c := inCgroup(t, version)
			f := newFreezer(t)
			v := victimIn(t, c, 0)
			z := frozen(t, f, v, ScopeCgroup, time.Minute)
			g, err := openCgroup(c.place)
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			if err := g.thaw(); err != nil {
				t.Fatal(err)
			}
			v.mustMove(t, "after somebody else's thaw")
			if err := z.Thaw(); err != nil {
				t.Fatal(err)
			}
			if b := z.Broken(); !strings.Contains(b, "thawed by somebody else") {
				t.Errorf("broken: %q", b)
			}
		})
	}
}

func TestVictimDies(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		if k.home == v1 {
			t.Skip("a v1 cgroup does not let its processes die before the thaw")
		}
		f := newFreezer(t)
		v := k.victim(t)
		o := lookup(t, f, v.client, v.server)
		z, err := f.Freeze(t.Context(), o, k.scope, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		v.kill()
		if err := z.Thaw(); err != nil {
			t.Fatal(err)
		}
		if k.scope == ScopeProcess && !strings.Contains(z.Broken(), "ended while it was stopped") {
			t.Errorf("broken: %q", z.Broken())
		}
		if o.Cgroup != "" {
			// Whoever is put there next must not be born frozen.
			b, err := os.ReadFile(filepath.Join(o.Cgroup, k.home.file()))
			if err != nil || strings.TrimSpace(string(b)) != "0" {
				t.Errorf("the cgroup reads %q, %v", b, err)
			}
		}
		if _, err := f.Freeze(t.Context(), o, k.scope, time.Minute); err == nil {
			t.Error("a dead client was frozen")
		}
	})
}

// The holder may have changed since the look-up; then whoever holds the
// connection now is frozen, and nobody else.
func TestHolderChanged(t *testing.T) {
	f := newFreezer(t)
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	first, _ := start(t, nil, []*os.File{file}, self("holder")...)
	c.Close()
	client, server := ends(conn)
	file2 := file
	o := lookup(t, f, client, server) // the test itself and first
	second, _ := start(t, nil, []*os.File{file2}, self("holder")...)
	file.Close()
	first.kill()
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := pidsOf(z.Processes()); len(got) != 1 || got[0] != second.pid() {
		t.Errorf("froze %v, expected %d", got, second.pid())
	}
	everyThread(t, second.pid(), 'T')
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// A child that inherited the connection since the look-up is frozen too.
func TestHolderForked(t *testing.T) {
	f := newFreezer(t)
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	parent, _ := start(t, nil, []*os.File{file}, self("parent")...)
	file.Close()
	c.Close()
	client, server := ends(conn)
	o := lookup(t, f, client, server)
	if len(o.Processes) != 1 {
		t.Fatalf("holders %v", o.Processes)
	}
	if _, err := parent.in.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	parent.line(t) // of the child
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := pidsOf(z.Processes()); len(got) != 2 {
		t.Errorf("froze %v, expected %d and its child", got, parent.pid())
	}
	for _, p := range z.Processes() {
		everyThread(t, p.PID, 'T')
	}
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// Two processes may have the same pid, one after the other. A handle on the
// first never reaches the second.
func TestPIDReuse(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	o := lookup(t, f, v.client, v.server)
	p := o.Processes[0]
	if p.same() != nil {
		t.Fatal("not the same though nothing changed")
	}
	other := p
	other.Start++
	if other.same() == nil || lives(other) {
		t.Error("a process with another start time passes for it")
	}
	if stillHeld([]Process{other}, o.Inode) == nil {
		t.Error("a process with another start time passes for the holder")
	}
	dead, err := p.dup()
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll([]Process{dead})
	v.kill()
	if err := stopProcesses(t.Context(), []Process{dead}, nil); !errors.Is(err, ErrGone) {
		t.Errorf("stop of a dead process: %v", err)
	}
	if err := thawProcesses([]Process{dead}); err != nil {
		t.Errorf("thaw of a dead process: %v", err)
	}
}

// What the journal names must still be that process, that cgroup and that
// boot, or it is not touched.
func TestReplayKnowsWhoItWas(t *testing.T) {
	needRoot(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	d := newDaemon(t, v, ScopeProcess, time.Minute)
	killBoth(t, d)
	names, err := filepath.Glob(filepath.Join(d.journal, "*"+recordSuffix))
	if err != nil || len(names) != 1 {
		t.Fatalf("journal %v, %v", names, err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what   string
		change func(r *record)
		kept   bool
	}{
		{"another start time", func(r *record) { r.Target.Processes[0].Start++ }, false},
		{"another boot", func(r *record) { r.Boot = "x" }, false},
		{"another pid namespace", func(r *record) { r.PIDSpace = "pid:[1]" }, true},
		{"a living daemon", func(r *record) { r.Daemon = livingSelf(t) }, true},
		{"a newer schema", func(r *record) { r.Schema++ }, true},
		{"no cgroup", func(r *record) { r.Target = note{Version: v2, Dir: t.TempDir(), Inode: 1} }, false},
		{"an unknown kind", func(r *record) { r.Target = note{Version: "v3", Dir: t.TempDir()} }, true},
	} {
		var r record
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		c.change(&r)
		changed, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(names[0], changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if n, _ := Replay(d.journal, nil); n != 0 {
			t.Errorf("%s: thawed %d", c.what, n)
		}
		if _, err := os.Stat(names[0]); (err == nil) != c.kept {
			t.Errorf("%s: record kept %v, expected %v", c.what, err == nil, c.kept)
		}
		if s, err := readStat(v.pid()); err != nil || s.state != 'T' {
			t.Errorf("%s: state %c, %v", c.what, s.state, err)
		}
	}
	// A process may run another program, by another name, and still be itself.
	b = bytes.ReplaceAll(b, []byte(`"comm":"exe"`), []byte(`"comm":"other"`))
	if !bytes.Contains(b, []byte("other")) {
		t.Fatalf("the record %s has another name", b)
	}
	if err := os.WriteFile(names[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := Replay(d.journal, nil); n != 1 || err != nil {
		t.Errorf("unchanged but for its name: thawed %d, %v", n, err)
	}
	v.mustMove(t, "after the replay")
}

func livingSelf(t *testing.T) Process {
	t.Helper()
	s, err := readStat(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return Process{PID: s.pid, Start: s.start}
}

// A replay writes into the files that the journal names, so these must be a
// cgroup's.
func TestReplayWritesOnlyToCgroups(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	for _, name := range []string{"cgroup.freeze", "cgroup.events", "freezer.state", "freezer.parent_freezing"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	for _, version := range []version{v2, v1} {
		if _, err := (note{Version: version, Dir: dir, Inode: st.Ino}).end(); err == nil {
			t.Errorf("%s: taken for a cgroup", version)
		}
		if b, err := os.ReadFile(filepath.Join(dir, version.file())); err != nil || string(b) != "precious" {
			t.Errorf("%s: now %q, %v", version, b, err)
		}
	}
}

func TestJournalIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := openJournal(dir); err == nil {
		t.Error("a journal that anybody can write to was opened")
	}
	if _, err := Replay(dir, nil); err == nil {
		t.Error("a journal that anybody can write to was replayed")
	}
	if n, err := Replay(filepath.Join(dir, "none"), nil); n != 0 || err != nil {
		t.Errorf("no journal: %d, %v", n, err)
	}
	if _, err := openJournal(""); err == nil {
		t.Error("a journal without a directory was opened")
	}
}

// A freeze that is given up leaves nothing stopped.
func TestFreezeGivenUp(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		f := newFreezer(t)
		v := k.victim(t)
		o := lookup(t, f, v.client, v.server)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		z, err := f.Freeze(ctx, o, k.scope, time.Minute)
		if err == nil {
			// The kernel was faster than the first look at ctx.
			if err := z.Thaw(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		v.mustMove(t, "after the freeze was given up")
		mustBeEmpty(t, f.journal.dir)
	})
}

// A thread in an uninterruptible wait cannot stop. Its process must not be
// left to stop later by itself.
func TestFreezeTimesOut(t *testing.T) {
	f := newFreezer(t)
	exe := compile(t, "vforker")
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	h, _ := start(t, nil, []*os.File{file}, exe)
	file.Close()
	c.Close()
	eventually(t, "the parent waits for its vfork child", func() bool {
		s, err := readStat(h.pid())
		return err == nil && s.state == 'D'
	})
	client, server := ends(conn)
	o := lookup(t, f, client, server)
	_, err = f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "is in state D and has not stopped") {
		t.Fatalf("got %v, expected the thread and its state", err)
	}
	h.in.Close() // lets the child go, and then the parent
	if line := h.line(t); line != "child done" {
		t.Errorf("helper said %q: it is stopped", line)
	}
	mustBeEmpty(t, f.journal.dir)
}

func TestConcurrentUse(t *testing.T) {
	f := newFreezer(t)
	var wg sync.WaitGroup
	for range 4 {
		v := newVictim(t, "127.0.0.1:0", 0, nil)
		wg.Go(func() {
			for range 10 {
				o, err := f.Lookup(t.Context(), v.client, v.server)
				if err != nil {
					t.Error(err)
					return
				}
				z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if err := z.Thaw(); err != nil {
					t.Error(err)
				}
				o.Close()
			}
		})
	}
	wg.Wait()
}

// Close may come at any step of a freeze; nothing stays stopped or recorded.
func TestCloseDuringFreeze(t *testing.T) {
	for range 10 {
		f := newFreezer(t)
		v := newVictim(t, "127.0.0.1:0", 1, nil)
		o := lookup(t, f, v.client, v.server)
		var wg sync.WaitGroup
		wg.Go(func() {
			if z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute); err == nil {
				<-z.Done()
			}
		})
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		v.mustMove(t, "after Close")
		mustBeEmpty(t, f.journal.dir)
		v.kill()
	}
}

// What could not be resumed is named, for a human to resume.
func TestThawNamesWhatIsLeft(t *testing.T) {
	needRoot(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	p, err := openProcess(v.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll([]Process{p})
	if err := stopProcesses(t.Context(), []Process{p}, nil); err != nil {
		t.Fatal(err)
	}
	err = p.awaitRunning(time.Now().Add(-time.Second))
	if err == nil || !strings.Contains(err.Error(), p.String()) || !strings.Contains(err.Error(), "SIGCONT by hand") {
		t.Errorf("got %v, expected its pid and what to do", err)
	}
	if err := thawProcesses([]Process{p}); err != nil {
		t.Fatal(err)
	}
}
