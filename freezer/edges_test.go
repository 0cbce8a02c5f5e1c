package freezer

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The cgroup of a socket is the one that its maker was in when it made it. What is frozen is the one that he is in.
func TestLookupMovedAndCgroupGone(t *testing.T) {
	made, now := inCgroup(t, v2), inCgroup(t, v2)
	f := newFreezer(t)
	v := victimIn(t, made, 0)
	t.Cleanup(v.kill) // before the cgroup that it is moved to is removed
	if err := now.Enter(v.pid()); err != nil {
		t.Fatal(err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	o := lookup(t, f, v.client, v.server)
	if got := pidsOf(o.Processes); !slices.Equal(got, []int{v.pid()}) || o.Cgroup != now.Path() {
		t.Fatalf("holders %v in %s, expected %d in %s", got, o.Cgroup, v.pid(), now.Path())
	}
	z, err := f.Freeze(t.Context(), o, ScopeCgroup, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	v.mustStand(t)
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// A link-local address means another machine on each device, here and in another namespace.
func TestLookupLinkLocal(t *testing.T) {
	for name, elsewhere := range map[string]bool{"here": false, "elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			pid, in := newSpace(t)
			dev := fmt.Sprintf("lfl%d", pid)
			do(t, "ip", "link", "add", dev, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(pid))
			t.Cleanup(func() { _ = exec.Command("ip", "link", "del", dev).Run() })
			do(t, "ip", "addr", "add", "fe80::aaaa/64", "dev", dev, "nodad")
			do(t, "ip", "link", "set", dev, "up")
			do(t, in("ip", "link", "set", "eth0", "up")...)
			do(t, in("ip", "addr", "add", "fe80::bbbb/64", "dev", "eth0", "nodad")...)
			l, err := net.Listen("tcp6", "[fe80::aaaa%"+dev+"]:0")
			if err != nil {
				t.Skip("no link-local address:", err)
			}
			defer l.Close()
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			there := fmt.Sprintf("[fe80::aaaa%%%s]:%d", dev, l.Addr().(*net.TCPAddr).Port)
			argv := []string{exe, "victim", there, filepath.Join(t.TempDir(), "stamp"), "0"}
			if elsewhere {
				argv[2] = strings.Replace(there, "%"+dev, "%eth0", 1)
				argv = in(argv...)
			}
			v, _ := start(t, nil, nil, argv...)
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			client, server := ends(conn)
			o := lookup(t, newFreezer(t), client, server)
			if got := pidsOf(o.Processes); !slices.Equal(got, []int{v.pid()}) {
				t.Errorf("holders %v, expected %d", got, v.pid())
			}
		})
	}
}

// A socket bound to a device is known by it in another namespace, too.
func TestLookupBoundToDeviceElsewhere(t *testing.T) {
	t.Setenv(deviceEnv, "eth0")
	v := victimElsewhere(t)
	if got := pidsOf(lookup(t, newFreezer(t), v.client, v.server).Processes); !slices.Equal(got, []int{v.pid()}) {
		t.Errorf("holders %v, expected %d", got, v.pid())
	}
}

// A pid that another process has got since the look-up is not the client, and is left alone.
func TestPIDGivenToAnother(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	o := lookup(t, f, v.client, v.server)
	pid := v.pid()
	v.kill()
	other := processWithPID(t, pid)
	if z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute); err == nil {
		t.Errorf("froze %v", pidsOf(z.Processes()))
		_ = z.Thaw()
	}
	if s := stateOf(other); s == 'T' {
		t.Error("another process has been stopped under the same pid")
	}
	mustBeEmpty(t, f.journal.dir)
}

// processWithPID starts a process that has a pid, or skips.
func processWithPID(t *testing.T, pid int) int {
	t.Helper()
	for range 50 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Skip("pids cannot be chosen:", err)
		}
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if cmd.Process.Pid == pid {
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			return pid
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Skip("others are faster to take the pid")
	return 0
}

// Who is traced stops for the tracer, and runs when that lets him: so he is not frozen, and not left stopped.
func TestTraced(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	o := lookup(t, f, v.client, v.server)
	runtime.LockOSThread() // the tracer is a thread
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(v.pid()); err != nil {
		t.Skip("cannot trace:", err)
	}
	eventually(t, "its tracer has stopped it", func() bool { return stateOf(v.pid()) == 't' })
	_, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	mustRefuse(t, err, "already stopped")
	if s := stateOf(v.pid()); s != 't' {
		t.Errorf("state %c: what its tracer has stopped was resumed", s)
	}
	if err := unix.PtraceDetach(v.pid()); err != nil {
		t.Fatal(err)
	}
	v.mustMove(t, "once it is traced no more")
	if err := unix.PtraceSeize(v.pid()); err != nil {
		t.Fatal(err)
	}
	_, err = f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "is in state t and has not stopped") {
		t.Errorf("got %v, expected the state", err)
	}
	mustBeEmpty(t, f.journal.dir)
	if err := unix.PtraceDetach(v.pid()); err != nil {
		t.Fatal(err)
	}
	v.mustMove(t, "after its freeze has failed")
}

// Of several holders one that cannot be stopped, or has died, keeps none of the others.
func TestOneOfSeveralHolders(t *testing.T) {
	f := newFreezer(t)
	exe := compile(t, "vforker")
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	first, _ := start(t, nil, []*os.File{file}, self("holder")...)
	second, _ := start(t, nil, []*os.File{file}, self("holder")...)
	client, server := ends(conn)
	slow, _ := start(t, nil, []*os.File{file}, exe)
	file.Close()
	c.Close()
	eventually(t, "one waits for its vfork child", func() bool { return stateOf(slow.pid()) == 'D' })
	o := lookup(t, f, client, server)
	if _, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute); err == nil || !strings.Contains(err.Error(), "state D") {
		t.Fatalf("got %v, expected the one that cannot stop", err)
	}
	for _, h := range []*child{first, second} {
		if s := stateOf(h.pid()); s == 'T' {
			t.Errorf("%d is still stopped", h.pid())
		}
	}
	slow.kill()
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	first.kill()
	if err := z.Thaw(); err != nil {
		t.Error(err)
	}
	if s := stateOf(second.pid()); s == 'T' {
		t.Error("it is still stopped, since another has died")
	}
	if b := z.Broken(); !strings.Contains(b, "ended while it was stopped") {
		t.Errorf("broken: %q", b)
	}
}

// Signals that come meanwhile act after the thaw; only SIGKILL, and but for v1, acts at once.
func TestSignalsWhileFrozen(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
			f := newFreezer(t)
			v := k.victim(t)
			z := frozen(t, f, v, k.scope, time.Minute)
			if err := unix.Kill(v.pid(), sig); err != nil {
				t.Fatal(err)
			}
			if sig == unix.SIGTERM {
				v.mustStand(t)
				if gone(v.pid()) {
					t.Error("it has ended though it was frozen")
				}
			}
			if err := z.Thaw(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it has ended", func() bool { return gone(v.pid()) })
			mustBeEmpty(t, f.journal.dir)
		}
	})
}

// Whoever has started the daemon may be its client. It is told why it is not frozen.
func TestRefuseAncestor(t *testing.T) {
	needRoot(t)
	_, _, conn := dial(t, "127.0.0.1:0")
	client, server := ends(conn)
	argv := self("daemon", filepath.Join(t.TempDir(), "journal"), client.String(), server.String(), string(ScopeProcess), "1m")
	out, err := exec.Command(argv[0], argv[1:]...).Output()
	if err == nil || !strings.Contains(string(out), "has started this daemon") {
		t.Errorf("%v, %q", err, out)
	}
}

// A daemon that panics is one that has died.
func TestDaemonPanics(t *testing.T) {
	needRoot(t)
	t.Setenv(panicEnv, "1")
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	d := newDaemon(t, v, ScopeProcess, time.Minute)
	v.mustStand(t)
	d.in.Close()
	v.mustMove(t, "after its daemon's panic")
	mustBeEmpty(t, d.journal)
}

// fillPipe writes until nothing more goes in.
func fillPipe(t *testing.T, w *os.File) {
	t.Helper()
	if err := w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{4096, 1} {
		for {
			if _, err := w.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	if err := w.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// A log that nobody reads, since its reader is what is frozen, keeps nothing from its thaw.
func TestNothingIsLoggedBetween(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	f := newFreezer(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	fillPipe(t, w)
	z := frozen(t, f, v, ScopeProcess, 50*time.Millisecond)
	v.mustMove(t, "after its maximum")
	<-z.Done()
	if err := z.Thaw(); err != nil {
		t.Error(err)
	}
	z = frozen(t, f, v, ScopeProcess, time.Minute)
	if err := z.Thaw(); err != nil {
		t.Error(err)
	}
	v.mustMove(t, "after its thaw")
}

// ofNobody puts the test binary where nobody may run it, in a directory of his own.
func ofNobody(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lockfaultd-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Chown(dir, 65534, 65534), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "nobody")
	if err := os.Link(copySelf(t, "nobody"), exe); err != nil {
		t.Skip("another file system:", err)
	}
	if err := os.Chmod(exe, 0o755); err != nil {
		t.Fatal(err)
	}
	return exe
}

// A /proc that hides the processes of others shows them to whoever may trace them.
func TestHiddenProcesses(t *testing.T) {
	needRoot(t)
	needTools(t, "unshare", "setpriv")
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	for caps, says := range map[string]string{
		"-all":                        "no process found that holds socket",
		"-all,+dac_read_search,+kill": "no process found that holds socket",
		"-all,+sys_ptrace,+dac_read_search,+kill": "guard ",
	} {
		exe := ofNobody(t)
		cmd := exec.Command("unshare", "-m", "sh", "-c",
			`mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "$0" --ambient-caps "$0" "$@"`,
			caps, exe, "daemon", filepath.Join(filepath.Dir(exe), "journal"), v.client.String(), v.server.String(), string(ScopeProcess), "1m")
		cmd.Stdin = strings.NewReader("")
		out, err := cmd.Output()
		if !strings.Contains(string(out), says) {
			t.Errorf("with %s: %q, %v; expected %q", caps, out, err, says)
		}
		v.mustMove(t, "after a freeze that was not allowed, or is over")
	}
}

// What may not be done is said, with what it would take, and is not waited for.
func TestWithoutPrivileges(t *testing.T) {
	needRoot(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	for _, x := range []struct {
		caps []uintptr
		says string
	}{
		{nil, "whether its addresses were translated could not be asked (that takes CAP_NET_ADMIN)"},
		{nil, "could not be read (that takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH)"},
		{[]uintptr{unix.CAP_SYS_PTRACE}, "could not be read (that takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH)"},
		{[]uintptr{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH}, "operation not permitted"},
		{[]uintptr{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH, unix.CAP_KILL}, "guard "},
	} {
		exe := ofNobody(t)
		attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: x.caps}
		client, server := v.client.String(), v.server.String()
		if strings.Contains(x.says, "translated") {
			client, server = "10.1.2.3:4", "10.1.2.4:5"
		}
		cmd := exec.Command(exe, "daemon", filepath.Join(filepath.Dir(exe), "journal"), client, server, string(ScopeProcess), "1m")
		cmd.SysProcAttr, cmd.Stdin = attr, strings.NewReader("")
		out, _ := cmd.Output()
		if !strings.Contains(string(out), x.says) {
			t.Errorf("with %v: %q, expected %q", x.caps, out, x.says)
		}
		v.mustMove(t, "after a freeze that was not allowed, or is over")
	}
}
