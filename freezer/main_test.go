package freezer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watchdog is how long a test waits for an event before it fails.
const watchdog = 10 * time.Second

// TestMain lets the test binary play the other processes of a test.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		roles := map[string]func(args []string) error{
			"guard":   func([]string) error { return RunGuard() },
			"victim":  victimRole,
			"daemon":  daemonRole,
			"holder":  func([]string) error { return waitForEnd() },
			"server":  serverRole,
			"parent":  parentRole,
			"churn":   churnRole,
			"loop":    loopRole,
			"connect": connectRole,
			"pass":    passRole,
			"take":    takeRole,
			"brood":   broodRole,
			"cycle":   cycleRole,
			"crowd":   crowdRole,
		}
		if role, ok := roles[os.Args[1]]; ok {
			if err := role(os.Args[2:]); err != nil {
				fmt.Println("error:", err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	// The race detector makes every process sleep for a second before it ends.
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// waitForEnd returns when the test lets go of stdin.
func waitForEnd() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// deviceEnv names the device that a victim binds its socket to.
const deviceEnv = "LOCKFAULT_TEST_DEVICE"

// victimRole connects (addr "-": not at all; "unix:PATH": to a Unix socket), counts in every thread into a
// file that the test reads, and starts the children that it is told to.
func victimRole(args []string) error {
	addr, stamp, threads := args[0], args[1], args[2]
	if addr != "-" {
		var d net.Dialer
		if dev := os.Getenv(deviceEnv); dev != "" {
			d.Control = func(_, _ string, c syscall.RawConn) (err error) {
				cerr := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), dev) })
				return errors.Join(cerr, err)
			}
			d.SetMultipathTCP(false)
		}
		network := "tcp"
		if path, ok := strings.CutPrefix(addr, "unix:"); ok {
			network, addr = "unix", path
		}
		c, err := d.Dial(network, addr)
		if err != nil {
			return err
		}
		defer c.Close()
	}
	mem, err := openStamp(stamp)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(threads)
	if err != nil {
		return err
	}
	for range n {
		go func() {
			runtime.LockOSThread()
			for {
				mem.Add(1)
			}
		}()
	}
	if os.Getenv(broodEnv) != "" {
		if err := breed(2); err != nil {
			return err
		}
	}
	go func() { // one thread counts slowly, so that an idle victim moves too
		for {
			mem.Add(1)
			time.Sleep(time.Millisecond)
		}
	}()
	return waitForEnd()
}

// serverRole listens, connects as a client, and starts a child that connects too.
func serverRole(args []string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if len(args) > 0 {
		c, err := net.Dial("tcp", args[0])
		if err != nil {
			return err
		}
		defer c.Close()
		child := exec.Command("/proc/self/exe", "victim", args[0], args[1], "0")
		child.Stdin = os.Stdin
		if err := child.Start(); err != nil {
			return err
		}
	}
	fmt.Println(l.Addr())
	return waitForEnd()
}

// leakEnv makes a daemon give its end of the guard's socket to a process that
// outlives it.
const leakEnv = "LOCKFAULT_TEST_LEAK"

// panicEnv makes a daemon panic when its stdin ends.
const panicEnv = "LOCKFAULT_TEST_PANIC"

// daemonRole freezes one client and waits: journal, client, server, scope, max.
func daemonRole(args []string) error {
	ctx := context.Background()
	f, err := New(ctx, Options{JournalDir: args[0], GuardCommand: []string{"/proc/self/exe", "guard"}})
	if err != nil {
		return err
	}
	defer f.Close()
	o, err := f.Lookup(ctx, netip.MustParseAddrPort(args[1]), netip.MustParseAddrPort(args[2]))
	if err != nil {
		return err
	}
	max, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	if _, err := f.Freeze(ctx, o, Scope(args[3]), max); err != nil {
		return err
	}
	if os.Getenv(leakEnv) != "" {
		file, err := f.guard.conn.File()
		if err != nil {
			return err
		}
		heir := exec.Command("/proc/self/exe", "holder")
		heir.Stdin, heir.ExtraFiles = os.Stdin, []*os.File{file}
		if err := heir.Start(); err != nil {
			return err
		}
	}
	fmt.Println("guard", f.GuardPID())
	err = waitForEnd()
	if os.Getenv(panicEnv) != "" {
		os.Stderr.Close()
		go panic("as told")
		select {}
	}
	return err
}

// churnRole freezes and thaws one client for ever: journal, client, server, scope.
func churnRole(args []string) error {
	ctx := context.Background()
	f, err := New(ctx, Options{JournalDir: args[0], GuardCommand: []string{"/proc/self/exe", "guard"}})
	if err != nil {
		return err
	}
	o, err := f.Lookup(ctx, netip.MustParseAddrPort(args[1]), netip.MustParseAddrPort(args[2]))
	if err != nil {
		return err
	}
	fmt.Println("guard", f.GuardPID())
	for {
		z, err := f.Freeze(ctx, o, Scope(args[3]), time.Minute)
		if err != nil {
			return err
		}
		if err := z.Thaw(); err != nil {
			return err
		}
	}
}

// connectRole connects to a Unix socket, gives the connection to a child, and ends.
func connectRole(args []string) error {
	c, err := net.Dial("unix", args[0])
	if err != nil {
		return err
	}
	file, err := c.(*net.UnixConn).File()
	if err != nil {
		return err
	}
	heir := exec.Command("/proc/self/exe", "holder")
	heir.Stdin, heir.Stdout, heir.ExtraFiles = os.Stdin, os.Stdout, []*os.File{file}
	return heir.Start()
}

// parentRole has the connection as descriptor 3, and gives it to a child when
// it is told to.
func parentRole([]string) error {
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	heir := exec.Command("/proc/self/exe", "holder")
	heir.Stdin, heir.Stdout, heir.ExtraFiles = os.Stdin, os.Stdout, []*os.File{os.NewFile(3, "connection")}
	if err := heir.Run(); err != nil {
		return err
	}
	return nil
}

func openStamp(name string) (*atomic.Uint64, error) {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 4096); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*atomic.Uint64)(unsafe.Pointer(&mem[0])), nil
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("reads other processes' descriptors, and signals them: needs root")
	}
}

// child is a process that the test started.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	once  sync.Once
	stamp *atomic.Uint64
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// start runs a program and reads its first line.
func start(t testing.TB, attr *syscall.SysProcAttr, files []*os.File, argv ...string) (*child, string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.ExtraFiles, cmd.Stderr = attr, files, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(c.kill)
	return c, c.line(t)
}

func (c *child) line(t testing.TB) string {
	t.Helper()
	text, err := c.out.ReadString('\n')
	if err != nil || strings.HasPrefix(text, "error") {
		t.Fatalf("child %d: %q, %v", c.pid(), text, err)
	}
	return strings.TrimSpace(text)
}

// kill ends the child for good, and reaps it.
func (c *child) kill() {
	c.once.Do(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
		c.in.Close()
	})
}

// self is the test binary in a role.
func self(role string, args ...string) []string {
	return append([]string{"/proc/self/exe", role}, args...)
}

// victim starts a process that counts, and connects it to a listener.
type victim struct {
	*child
	client, server netip.AddrPort
	conn           net.Conn
}

func newVictim(t testing.TB, listen string, threads int, attr *syscall.SysProcAttr) *victim {
	t.Helper()
	return newVictimOf(t, "/proc/self/exe", listen, threads, attr)
}

func newVictimOf(t testing.TB, exe, listen string, threads int, attr *syscall.SysProcAttr) *victim {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	name := filepath.Join(t.TempDir(), "stamp")
	c, _ := start(t, attr, nil, exe, "victim", l.Addr().String(), name, strconv.Itoa(threads))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if c.stamp, err = openStamp(name); err != nil {
		t.Fatal(err)
	}
	v := &victim{child: c, conn: conn}
	v.client, v.server = ends(conn)
	v.mustMove(t, "before anything")
	return v
}

// ends returns the addresses as Lookup wants them.
func ends(c net.Conn) (client, server netip.AddrPort) {
	return c.RemoteAddr().(*net.TCPAddr).AddrPort(), c.LocalAddr().(*net.TCPAddr).AddrPort()
}

// mustMove waits until the victim has counted on.
func (v *victim) mustMove(t testing.TB, when string) {
	t.Helper()
	from := v.stamp.Load()
	eventually(t, "the victim runs "+when, func() bool { return v.stamp.Load() != from })
}

// mustStand fails if the victim counts while other processes are scheduled.
func (v *victim) mustStand(t testing.TB) {
	t.Helper()
	from := v.stamp.Load()
	for range 3 {
		exec.Command("/bin/true").Run()
	}
	if now := v.stamp.Load(); now != from {
		t.Fatalf("the victim counted from %d to %d while it was frozen", from, now)
	}
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(watchdog); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", watchdog, what)
		}
	}
}

func newFreezer(t testing.TB, change ...func(*Options)) *Freezer {
	t.Helper()
	needRoot(t)
	o := Options{JournalDir: filepath.Join(t.TempDir(), "journal"), GuardCommand: self("guard"), Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&o)
	}
	f, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		mustBeEmpty(t, f.journal.dir)
	})
	return f
}

func mustBeEmpty(t testing.TB, journal string) {
	t.Helper()
	eventually(t, "the journal is empty", func() bool {
		es, err := os.ReadDir(journal)
		if err != nil {
			t.Fatal(err)
		}
		return len(es) == 0
	})
}

func lookup(t testing.TB, f *Freezer, client, server netip.AddrPort) *Owner {
	t.Helper()
	o, err := f.Lookup(t.Context(), client, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func pidsOf(ps []Process) []int {
	pids := make([]int, len(ps))
	for i, p := range ps {
		pids[i] = p.PID
	}
	return pids
}

// inCgroup makes a cgroup of a version for a test, or skips.
func inCgroup(t testing.TB, v version) *ChildCgroup {
	t.Helper()
	needRoot(t)
	m, err := findMounts()
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.child("lockfaultd-test", v)
	if err != nil {
		t.Skipf("no %s freezer to test with: %v", v, err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// victimIn starts a victim in a cgroup.
func victimIn(t testing.TB, c *ChildCgroup, threads int) *victim {
	t.Helper()
	attr := new(syscall.SysProcAttr)
	born := c.Configure(attr)
	v := newVictim(t, "127.0.0.1:0", threads, attr)
	if !born {
		if err := c.Enter(v.pid()); err != nil {
			t.Fatal(err)
		}
	}
	// Before it is killed: a v1 cgroup that a failed test leaves frozen would
	// keep it from dying.
	t.Cleanup(func() {
		if g, err := openCgroup(c.place); err == nil {
			g.thaw()
			g.close()
		}
	})
	return v
}

func mustRefuse(t testing.TB, err error, reason string) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || !strings.Contains(r.Reason, reason) {
		t.Fatalf("got %v, expected a refusal with %q", err, reason)
	}
}
