package freezer

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRefuseByIdentity(t *testing.T) {
	f := newFreezer(t)
	p := f.policy()
	kernel := 0
	pids, err := numbers("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if s, err := readStat(pid); err == nil && s.flags&kernelThread != 0 {
			kernel = pid
			break
		}
	}
	for _, c := range []struct {
		pid    int
		reason string
	}{
		{0, "another pid namespace"},
		{1, "pid 1"},
		{os.Getpid(), "daemon itself"},
		{f.GuardPID(), "guard"},
		{os.Getppid(), "has started this daemon"},
		{kernel, "kernel thread"},
	} {
		if c.pid == kernel && kernel == 0 {
			t.Log("no kernel thread in sight")
			continue
		}
		mustRefuse(t, p.identity(c.pid), c.reason)
	}
	if err := p.identity(1 << 30); !errors.Is(err, ErrGone) {
		t.Errorf("a pid that is not there: %v", err)
	}
}

func TestRefuseSelf(t *testing.T) {
	f := newFreezer(t)
	_, _, conn := dial(t, "127.0.0.1:0")
	client, server := ends(conn)
	o := lookup(t, f, client, server)
	_, err := f.Freeze(t.Context(), o, ScopeProcess, time.Second)
	mustRefuse(t, err, "daemon itself")
	mustRefuse(t, f.Check(o, ScopeProcess), "daemon itself")
}

// copySelf puts the test binary under another name.
func copySelf(t *testing.T, name string) string {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	exe := filepath.Join(t.TempDir(), name)
	out, err := os.OpenFile(exe, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return exe
}

func TestRefuseByName(t *testing.T) {
	f := newFreezer(t)
	for name, reason := range map[string]string{"pgbouncer": "relays", "containerd-x": "protected"} {
		v := newVictimOf(t, copySelf(t, name), "127.0.0.1:0", 0, nil)
		_, err := f.Freeze(t.Context(), lookup(t, f, v.client, v.server), ScopeProcess, time.Second)
		mustRefuse(t, err, reason)
		v.mustMove(t, "after a refusal")
	}
	for name, refused := range map[string]bool{
		"sshd": true, "sshd-session": true, "systemd-journald": true, "docker-proxy": true, "pgbouncer": true,
		"envoy": true, "dockerd": true, "containerd-shim-runc-v2": true, "toxiproxy-serve": true,
		"python3": false, "node": false, "java": false, "envoyage": false, "redis-cli": false, "": false,
	} {
		if got := reservedName(name) != ""; got != refused {
			t.Errorf("%q: refused %v, expected %v", name, got, refused)
		}
	}
}

// An upstream's server may be a client of the proxy, too, and so may what it
// started, as Postgres starts its backends.
func TestRefuseUpstream(t *testing.T) {
	needRoot(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, addr := start(t, nil, nil, self("server", l.Addr().String(), filepath.Join(t.TempDir(), "stamp"))...)
	f := newFreezer(t, func(o *Options) { o.Upstreams = []netip.AddrPort{netip.MustParseAddrPort(addr)} })
	pids := make(map[int]bool)
	for range 2 {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		client, server := ends(conn)
		o := lookup(t, f, client, server)
		pids[o.Processes[0].PID] = true
		_, err = f.Freeze(t.Context(), o, ScopeProcess, time.Second)
		mustRefuse(t, err, "upstream's server")
	}
	if len(pids) != 2 {
		t.Errorf("clients %v, expected the server and its child", pids)
	}
}

func TestRefuseStopped(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	o := lookup(t, f, v.client, v.server)
	if err := unix.Kill(v.pid(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the victim has stopped", func() bool {
		s, err := readStat(v.pid())
		return err == nil && s.state == 'T'
	})
	_, err := f.Freeze(t.Context(), o, ScopeProcess, time.Second)
	mustRefuse(t, err, "already stopped")
	if s, err := readStat(v.pid()); err != nil || s.state != 'T' {
		t.Errorf("state %c, %v: what somebody else stopped was resumed", s.state, err)
	}
}

func TestRefuseSecondFreeze(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	o := lookup(t, f, v.client, v.server)
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	mustRefuse(t, err, "already frozen")
	v.mustStand(t)
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
	z, err = f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatalf("after the thaw: %v", err)
	}
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
}

func TestRefuseScope(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	o := lookup(t, f, v.client, v.server)
	if _, err := f.Freeze(t.Context(), o, "pod", time.Second); err == nil {
		t.Error("an unknown scope was taken")
	}
	if _, err := f.Freeze(t.Context(), o, ScopeProcess, 0); err == nil {
		t.Error("a freeze without a maximum was taken")
	}
}

func TestRefuseCgroup(t *testing.T) {
	for _, version := range []version{v2, v1} {
		t.Run(string(version), func(t *testing.T) {
			c := inCgroup(t, version)
			f := newFreezer(t)
			v := victimIn(t, c, 0)
			o := lookup(t, f, v.client, v.server)

			// Frozen by somebody else, both for the cgroup and for the process alone.
			g, err := openCgroup(c.place)
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			defer g.thaw()
			if err := g.stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, s := range []Scope{ScopeCgroup, ScopeProcess} {
				_, err = f.Freeze(t.Context(), o, s, time.Second)
				mustRefuse(t, err, "already frozen")
			}
			if is, err := g.frozen(); err != nil || !is {
				t.Errorf("frozen %v, %v: what somebody else froze was thawed", is, err)
			}
			if err := g.thaw(); err != nil {
				t.Fatal(err)
			}

			// A member that must run.
			if err := c.Enter(f.GuardPID()); err != nil {
				t.Fatal(err)
			}
			mustRefuse(t, f.Check(o, ScopeCgroup), "guard")
			_, err = f.Freeze(t.Context(), o, ScopeCgroup, time.Second)
			mustRefuse(t, err, "guard")
			if err := (&ChildCgroup{place: place{dir: c.place.mount}}).Enter(f.GuardPID()); err != nil {
				t.Fatal(err)
			}

			// Nobody in it.
			v.kill()
			eventually(t, "the cgroup is empty", func() bool {
				pids, err := subtree(c.Path())
				return err == nil && len(pids) == 0
			})
			mustRefuse(t, f.policy().members(c.Path()), "empty")
		})
	}
}

func TestRefuseParentFrozen(t *testing.T) {
	c := inCgroup(t, v2)
	f := newFreezer(t)
	inner := filepath.Join(c.Path(), "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	below := &ChildCgroup{place: place{version: v2, dir: inner}}
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	if err := below.Enter(v.pid()); err != nil {
		t.Fatal(err)
	}
	// Registered last, so that it runs first.
	t.Cleanup(func() {
		v.kill()
		eventually(t, "the inner cgroup is removed", func() bool { return os.Remove(inner) == nil })
	})
	o := lookup(t, f, v.client, v.server)
	outer, err := openCgroup(c.place)
	if err != nil {
		t.Fatal(err)
	}
	defer outer.close()
	defer outer.thaw()
	if err := outer.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = f.Freeze(t.Context(), o, ScopeCgroup, time.Second)
	mustRefuse(t, err, "already frozen")
}

// The daemon may live in the client's cgroup, or in one below it.
func TestRefuseOwnCgroup(t *testing.T) {
	c := inCgroup(t, v2)
	v := victimIn(t, c, 0)
	inner := filepath.Join(c.Path(), "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		v.kill()
		eventually(t, "the inner cgroup is removed", func() bool { return os.Remove(inner) == nil })
	})
	for _, home := range []string{c.Path(), inner} {
		dir, err := os.Open(home)
		if err != nil {
			t.Fatal(err)
		}
		argv := self("daemon", filepath.Join(t.TempDir(), "journal"), v.client.String(), v.server.String(), string(ScopeCgroup), "1m")
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
		out, err := cmd.Output()
		dir.Close()
		if err == nil || !strings.Contains(string(out), "is the daemon's own cgroup, or above it") {
			t.Errorf("from %s: %v, %q", home, err, out)
		}
	}
	v.mustMove(t, "after a refusal")
}

func TestRefuseRoot(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	if g, err := f.mounts.cgroupOf(v.pid()); err == nil {
		t.Skipf("the tests run in %s, not in a root cgroup", g.dir)
	}
	_, err := f.Freeze(t.Context(), lookup(t, f, v.client, v.server), ScopeCgroup, time.Second)
	mustRefuse(t, err, "root")
}

// The nearest cgroup that does not have the daemon in it may be in the other hierarchy.
func TestFreezeInTheOtherHierarchy(t *testing.T) {
	shared, apart := inCgroup(t, v2), inCgroup(t, v1)
	v := victimIn(t, shared, 0)
	t.Cleanup(v.kill)
	if err := apart.Enter(v.pid()); err != nil {
		t.Fatal(err)
	}
	attr := new(syscall.SysProcAttr)
	shared.Configure(attr)
	d, line := start(t, attr, nil, self("daemon", filepath.Join(t.TempDir(), "journal"), v.client.String(), v.server.String(), string(ScopeCgroup), "1m")...)
	if !strings.HasPrefix(line, "guard ") {
		t.Fatalf("daemon said %q", line)
	}
	if b, err := os.ReadFile(filepath.Join(apart.Path(), "freezer.state")); err != nil || strings.TrimSpace(string(b)) != "FROZEN" {
		t.Errorf("its v1 cgroup is %q, %v", b, err)
	}
	v.mustStand(t)
	d.kill()
	v.mustMove(t, "after its daemon was killed")
}

func TestPlaces(t *testing.T) {
	own := place{version: v2, path: "/a/b"}
	for path, contains := range map[string]bool{"/": true, "/a": true, "/a/b": true, "/a/b/c": false, "/a/bc": false, "/x": false} {
		if got := (place{version: v2, path: path}).contains(own); got != contains {
			t.Errorf("%s contains %s: %v", path, own.path, got)
		}
	}
	if (place{version: v1, path: "/a"}).contains(own) {
		t.Error("a place of another hierarchy contains nothing of this one")
	}
	for path, out := range map[string]bool{"/../b": true, "/..": true, "/a": false, "/a..b": false} {
		if got := (place{path: path}).outside(); got != out {
			t.Errorf("%s outside: %v", path, got)
		}
	}
}

func TestParseMounts(t *testing.T) {
	const text = `24 1 0:5 / /proc rw - proc proc rw
30 23 0:26 /docker/abc /sys/fs/cgroup/freezer ro,nosuid master:9 - cgroup cgroup rw,freezer
31 23 0:27 / /sys/fs/cgroup/my\040unified rw - cgroup2 cgroup2 rw
32 23 0:28 / /elsewhere rw - cgroup2 cgroup2 rw
33 23 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
`
	m := parseMounts(text)
	if got, want := m.at[v2], (mount{root: "/", dir: "/sys/fs/cgroup/my unified"}); got != want {
		t.Errorf("v2 at %+v, expected %+v", got, want)
	}
	if got, want := m.at[v1], (mount{root: "/docker/abc", dir: "/sys/fs/cgroup/freezer"}); got != want {
		t.Errorf("v1 at %+v, expected %+v", got, want)
	}
	const cgroups = "7:cpu,freezer:/jobs\n1:name=systemd:/s:x\n0::/user.slice\n"
	for v, want := range map[version]string{v1: "/jobs", v2: "/user.slice"} {
		if got, ok := cgroupPath(cgroups, v); !ok || got != want {
			t.Errorf("%s path %q, expected %q", v, got, want)
		}
	}
	if _, ok := cgroupPath(strings.ReplaceAll(cgroups, "0::", "0:name=x:"), v2); ok {
		t.Error("found a v2 path where there is none")
	}
}
