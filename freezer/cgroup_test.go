package freezer

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A cgroup may be removed while it is frozen, when its last process was killed.
func TestCgroupRemovedWhileFrozen(t *testing.T) {
	c := inCgroup(t, v2)
	f := newFreezer(t)
	v := victimIn(t, c, 0)
	z := frozen(t, f, v, ScopeCgroup, time.Minute)
	v.kill()
	eventually(t, "it is removed", func() bool { return unix.Rmdir(c.Path()) == nil })
	if err := z.Thaw(); err != nil {
		t.Error(err)
	}
	if b := z.Broken(); !strings.Contains(b, "was removed while it was frozen") {
		t.Errorf("broken: %q", b)
	}
}

// What somebody else freezes above stays frozen, and the thaw of what is below it ends all the same.
func TestParentFrozenMeanwhile(t *testing.T) {
	for _, version := range []version{v2, v1} {
		t.Run(string(version), func(t *testing.T) {
			c := inCgroup(t, version)
			f := newFreezer(t)
			inner := filepath.Join(c.Path(), "inner")
			if err := os.Mkdir(inner, 0o700); err != nil {
				t.Fatal(err)
			}
			v := newVictim(t, "127.0.0.1:0", 0, nil)
			if err := (&ChildCgroup{place: place{version: version, dir: inner}}).Enter(v.pid()); err != nil {
				t.Fatal(err)
			}
			outer, err := openCgroup(c.place)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = outer.thaw()
				outer.close()
				v.kill()
				eventually(t, "the inner cgroup is removed", func() bool { return os.Remove(inner) == nil })
			})
			z := frozen(t, f, v, ScopeCgroup, time.Minute)
			if got := z.target.group.dir; got != inner {
				t.Fatalf("froze %s, expected %s", got, inner)
			}
			if err := outer.stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := z.Thaw(); err != nil {
				t.Error(err)
			}
			v.mustStand(t)
			mustBeEmpty(t, f.journal.dir)
			if err := outer.thaw(); err != nil {
				t.Fatal(err)
			}
			v.mustMove(t, "after somebody else's thaw")
		})
	}
}

// Of two clients in one cgroup, the first freezes it for both.
func TestRefuseSecondInCgroup(t *testing.T) {
	for _, version := range []version{v2, v1} {
		t.Run(string(version), func(t *testing.T) {
			c := inCgroup(t, version)
			f := newFreezer(t)
			a, b := victimIn(t, c, 0), victimIn(t, c, 0)
			o := lookup(t, f, b.client, b.server)
			z := frozen(t, f, a, ScopeCgroup, time.Minute)
			for _, s := range []Scope{ScopeCgroup, ScopeProcess, ScopeTree} {
				_, err := f.Freeze(t.Context(), o, s, time.Minute)
				mustRefuse(t, err, "already frozen")
			}
			b.mustStand(t)
			if err := z.Thaw(); err != nil {
				t.Fatal(err)
			}
			a.mustMove(t, "after the thaw")
			b.mustMove(t, "after the thaw")
		})
	}
}

// A cgroup whose processes fork all the time stops with all of them.
func TestFreezeCgroupThatForks(t *testing.T) {
	for _, version := range []version{v2, v1} {
		t.Run(string(version), func(t *testing.T) {
			c := inCgroup(t, version)
			f := newFreezer(t)
			h, _ := start(t, nil, nil, "sh", "-c", "echo ready; read x; echo go; while :; do /bin/true; (/bin/true) & wait; done")
			v := victimIn(t, c, 0)
			if err := c.Enter(h.pid()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(h.kill)
			if _, err := h.in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			h.line(t)
			for range 20 {
				z := frozen(t, f, v, ScopeCgroup, time.Minute)
				before, err := subtree(c.Path())
				if err != nil {
					t.Fatal(err)
				}
				v.mustStand(t)
				if after, err := subtree(c.Path()); err != nil || !slices.Equal(before, after) {
					t.Errorf("members %v and then %v, %v", before, after, err)
				}
				if err := z.Thaw(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A cgroup with a process that cannot be frozen is let go of: it must not freeze later, when that has ended its wait.
func TestCgroupThatCannotFreeze(t *testing.T) {
	c := inCgroup(t, v2)
	f := newFreezer(t)
	v := victimIn(t, c, 0)
	dir := frozenDisk(t)
	w, _ := start(t, nil, nil, "sh", "-c", "echo ready; read x; echo writing > '"+dir.path+"/file'; echo written; read x")
	t.Cleanup(func() { dir.thaw(); w.kill() })
	if err := c.Enter(w.pid()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits for the disk", func() bool { return stateOf(w.pid()) == 'D' })
	_, err := f.Freeze(t.Context(), lookup(t, f, v.client, v.server), ScopeCgroup, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "the kernel has not frozen it") {
		t.Fatalf("got %v, expected that it cannot be frozen", err)
	}
	b, err := os.ReadFile(filepath.Join(c.Path(), v2.file()))
	if err != nil || strings.TrimSpace(string(b)) != "0" {
		t.Errorf("the request is left: %q, %v", b, err)
	}
	dir.thaw()
	if line := w.line(t); line != "written" {
		t.Errorf("it says %q", line)
	}
	v.mustMove(t, "after the freeze was given up")
}

// disk is a file system of its own, frozen.
type disk struct{ path string }

func (d disk) thaw() { _ = exec.Command("fsfreeze", "-u", d.path).Run() }

func frozenDisk(t *testing.T) disk {
	t.Helper()
	needTools(t, "mkfs.ext4", "mount", "fsfreeze")
	image, d := filepath.Join(t.TempDir(), "image"), disk{t.TempDir()}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 8<<20); err != nil {
		t.Fatal(err)
	}
	do(t, "mkfs.ext4", "-q", image)
	do(t, "mount", "-o", "loop", image, d.path)
	t.Cleanup(func() { d.thaw(); _ = exec.Command("umount", d.path).Run() })
	do(t, "fsfreeze", "-f", d.path)
	return d
}

// Everything of the daemon's cgroup may be killed at once. The journal is what is left.
func TestCgroupOfBothKilled(t *testing.T) {
	c := inCgroup(t, v2)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	attr := new(syscall.SysProcAttr)
	c.Configure(attr)
	journal := filepath.Join(t.TempDir(), "journal")
	d, line := start(t, attr, nil, self("daemon", journal, v.client.String(), v.server.String(), string(ScopeProcess), "1m")...)
	guard, err := strconv.Atoi(strings.TrimPrefix(line, "guard "))
	if err != nil {
		t.Fatalf("daemon said %q", line)
	}
	if err := os.WriteFile(filepath.Join(c.Path(), "cgroup.kill"), []byte("1"), 0); err != nil {
		t.Skip("a kernel without cgroup.kill:", err)
	}
	d.kill()
	eventually(t, "the guard is gone", func() bool { return gone(guard) })
	if n, err := Replay(journal, nil); err != nil || n > 1 {
		t.Errorf("replay thawed %d, %v", n, err)
	}
	v.mustMove(t, "after the replay")
	mustBeEmpty(t, journal)
}
