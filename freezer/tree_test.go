package freezer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// broodEnv makes a victim have children, which start others all the time.
const broodEnv = "LOCKFAULT_TEST_BROOD"

// breed starts children that end with the victim's stdin.
func breed(n int) error {
	for range n {
		kid := exec.Command("/proc/self/exe", "brood")
		kid.Stdin = os.Stdin
		if err := kid.Start(); err != nil {
			return err
		}
	}
	return nil
}

// broodRole has one child that stays, and others that come and go.
func broodRole([]string) error {
	stays := exec.Command("/proc/self/exe", "holder")
	stays.Stdin = os.Stdin
	if err := stays.Start(); err != nil {
		return err
	}
	go func() {
		for {
			_ = exec.Command("/bin/true").Run()
		}
	}()
	return waitForEnd()
}

// stateOf returns the state of a process, 0 if it has gone.
func stateOf(pid int) byte {
	s, err := readStat(pid)
	if err != nil {
		return 0
	}
	return s.state
}

func kidsOf(t testing.TB, pid int) []int {
	t.Helper()
	kids, err := children(pid)
	if err != nil {
		t.Fatal(err)
	}
	return kids
}

// bred starts a victim whose brood is complete.
func bred(t *testing.T) *victim {
	t.Helper()
	t.Setenv(broodEnv, "1")
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	var kids []int
	eventually(t, "it has children", func() bool { kids = kidsOf(t, v.pid()); return len(kids) == 2 })
	for _, kid := range kids {
		// The one that stays is the first, so that it is there when there is another.
		eventually(t, "they have children", func() bool { return len(kidsOf(t, kid)) >= 2 })
	}
	return v
}

// Whoever descends from the holder stops with it, although some are born while that is done.
func TestFreezeTree(t *testing.T) {
	f := newFreezer(t)
	v := bred(t)
	o := lookup(t, f, v.client, v.server)
	for range 10 {
		z, err := f.Freeze(t.Context(), o, ScopeTree, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		all := descendants(v.pid())
		if len(all) < 4 {
			t.Errorf("descendants %v, expected four or more", all)
		}
		for _, pid := range append(all, v.pid()) {
			if s := stateOf(pid); s != 'T' && s != 'Z' && !(Process{PID: pid}).waitsForChild(thread{pid, s}) {
				t.Errorf("%d is in state %c", pid, s)
			}
		}
		if again := descendants(v.pid()); !slices.Equal(all, again) {
			t.Errorf("they were %v and are %v", all, again)
		}
		if got := pidsOf(z.Processes()); !slices.Equal(got, []int{v.pid()}) {
			t.Errorf("holders %v", got)
		}
		if err := z.Thaw(); err != nil {
			t.Fatal(err)
		}
		if b := z.Broken(); b != "" {
			t.Errorf("broken: %s", b)
		}
		for _, pid := range all {
			eventually(t, fmt.Sprintf("%d runs again", pid), func() bool { return stateOf(pid) != 'T' })
		}
	}
}

// What somebody else has stopped is none of the freeze's, and stays.
func TestFreezeTreeLeavesTheStopped(t *testing.T) {
	f := newFreezer(t)
	v := bred(t)
	kid := kidsOf(t, v.pid())[0]
	if err := syscall.Kill(kid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is stopped", func() bool { return stoppedWhole(kid) })
	below := kidsOf(t, kid)
	z, err := f.Freeze(t.Context(), lookup(t, f, v.client, v.server), ScopeTree, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if len(below) == 0 {
		t.Error("it has started nobody")
	}
	for _, pid := range below {
		// One that has ended meanwhile stays a zombie, since its parent is stopped.
		if s := stateOf(pid); s != 'T' && s != 'Z' {
			t.Errorf("%d, which it started, is in state %c", pid, s)
		}
	}
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
	if s := stateOf(kid); s != 'T' {
		t.Errorf("what somebody else stopped is in state %c", s)
	}
	if err := syscall.Kill(kid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// A tree with somebody in it who must run is left alone.
func TestRefuseTree(t *testing.T) {
	f := newFreezer(t)
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	guarded := copySelf(t, "sshd")
	l, c, conn := dial(t, "127.0.0.1:0")
	_ = l
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	h, line := start(t, nil, []*os.File{file}, shell, "-c", "exec 5<&0; "+guarded+" holder <&5 >/dev/null & echo $!; wait")
	file.Close()
	c.Close()
	kid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("the shell said %q", line)
	}
	t.Cleanup(func() { _ = syscall.Kill(kid, syscall.SIGKILL) })
	eventually(t, "it is what it is called", func() bool { s, err := readStat(kid); return err == nil && s.comm == "sshd" })
	client, server := ends(conn)
	_, err = f.Freeze(t.Context(), lookup(t, f, client, server), ScopeTree, time.Minute)
	mustRefuse(t, err, "sshd")
	if stateOf(kid) == 'T' || stateOf(h.pid()) == 'T' {
		t.Error("some of it is stopped")
	}
}

// A tree that is larger than one message to the guard is given to it in several.
func TestFreezeLargeTree(t *testing.T) {
	f := newFreezer(t)
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	n := atOnce + 20
	h, _ := start(t, nil, []*os.File{file}, "sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 1000 3>&- & i=$((i+1)); done; echo ready; wait", n))
	file.Close()
	c.Close()
	t.Cleanup(func() {
		for _, pid := range kidsOf(t, h.pid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	client, server := ends(conn)
	eventually(t, "none has the connection any more", func() bool {
		return !slices.ContainsFunc(kidsOf(t, h.pid()), func(pid int) bool {
			s, err := readStat(pid)
			return err == nil && s.comm != "sleep"
		})
	})
	z, err := f.Freeze(t.Context(), lookup(t, f, client, server), ScopeTree, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range kidsOf(t, h.pid()) {
		if s := stateOf(pid); s != 'T' {
			t.Errorf("%d is in state %c", pid, s)
		}
	}
	// The guard knows them all: it alone is left to thaw them.
	if err := syscall.Kill(f.GuardPID(), 0); err != nil {
		t.Error(err)
	}
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
	if b := z.Broken(); b != "" {
		t.Errorf("broken: %s", b)
	}
}

// withFiles runs something while no more than n files can be opened beside those that are open.
func withFiles(t *testing.T, n int, try func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	var some []int // so that the next n numbers are the lowest that are free
	for range n {
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		some = append(some, fd)
	}
	least := was
	least.Cur = 1
	if n > 0 {
		least.Cur = uint64(some[n-1]) + 1
	}
	for _, fd := range some {
		unix.Close(fd)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &least); err != nil {
		t.Fatal(err)
	}
	try()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
}

// A process that cannot be looked at has not ended: a tree of which some is left running is no tree that is frozen.
func TestWhatCannotBeLookedAtHasNotEnded(t *testing.T) {
	f := newFreezer(t)
	v := bred(t)
	o := lookup(t, f, v.client, v.server)
	kid := kidsOf(t, v.pid())[0]
	p, err := openProcess(v.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll([]Process{p})
	z := &Frozen{f: f, scope: ScopeTree, target: target{procs: []Process{p}}}
	var errs []error
	note := func(_ any, err error) { errs = append(errs, err) }
	for n := range 2 { // pidfd_open takes one and reading beside it another
		withFiles(t, n, func() {
			note(z.leaves(kid))
			note(nil, z.join([]int{kid}))
			note(f.search(t.Context(), socket{inode: o.Inode}, true))
		})
	}
	withFiles(t, 0, func() {
		note(z.descended())
		note(p.threads())
		note(nil, f.policy().identity(kid))
		note(nil, stillHeld([]Process{p}, o.Inode))
		note(nil, p.awaitRunning(time.Now()))
		h := hunt{freezer: f, inode: o.Inode, began: time.Now(), seen: map[int]bool{}}
		h.look(t.Context(), []int{v.pid()})
		note(nil, h.failed)
	})
	for i, err := range errs {
		if !errors.Is(err, unix.EMFILE) || errors.Is(err, ErrGone) {
			t.Errorf("%d: %v, expected that no file can be opened", i, err)
		}
	}
	if len(z.kin) != 0 {
		t.Errorf("%v were joined", z.kin)
	}
}
