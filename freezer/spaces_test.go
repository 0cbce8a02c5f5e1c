package freezer

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// newSpace starts a process in a network namespace of its own, and returns what runs a program there.
func newSpace(t *testing.T) (pid int, in func(argv ...string) []string) {
	t.Helper()
	needRoot(t)
	needTools(t, "ip", "nsenter")
	c, _ := start(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, nil, self("holder")...)
	in = func(argv ...string) []string {
		return append([]string{"nsenter", "-t", strconv.Itoa(c.pid()), "-n"}, argv...)
	}
	do(t, in("ip", "link", "set", "lo", "up")...)
	return c.pid(), in
}

// needTools skips a test where a program is missing, and fails it where CI is set.
func needTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			unable(t, "sets the test up: %v", err)
		}
	}
}

// unable ends a test that cannot be set up here.
func unable(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func do(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		unable(t, "%s: %v: %s", strings.Join(argv, " "), err, out)
	}
}

// victimElsewhere starts a victim in another network namespace, which a pair of devices joins to this one.
func victimElsewhere(t *testing.T) *victim {
	t.Helper()
	pid, in := newSpace(t)
	dev, net24 := fmt.Sprintf("lft%d", pid), fmt.Sprintf("10.213.%d.", pid%250)
	do(t, "ip", "link", "add", dev, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(pid))
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", dev).Run() })
	do(t, "ip", "addr", "add", net24+"1/24", "dev", dev)
	do(t, "ip", "link", "set", dev, "up")
	do(t, in("ip", "addr", "add", net24+"2/24", "dev", "eth0")...)
	do(t, in("ip", "link", "set", "eth0", "up")...)
	l, err := net.Listen("tcp4", net24+"1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join(t.TempDir(), "stamp")
	c, _ := start(t, nil, nil, in(exe, "victim", l.Addr().String(), stamp, "0")...)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	v := &victim{child: c, conn: conn}
	if v.stamp, err = openStamp(stamp); err != nil {
		t.Fatal(err)
	}
	v.client, v.server = ends(conn)
	v.mustMove(t, "before anything")
	return v
}

// A client in a container has a network namespace of its own, where alone its socket is known.
func TestLookupInAnotherNamespace(t *testing.T) {
	v := victimElsewhere(t)
	f := newFreezer(t)
	if _, err := f.diag.connection(v.client, v.server); !errors.Is(err, ErrNoConnection) {
		t.Fatalf("it is known here: %v", err)
	}
	o := lookup(t, f, v.client, v.server)
	if got := pidsOf(o.Processes); !slices.Equal(got, []int{v.pid()}) {
		t.Fatalf("holders %v, expected %d", got, v.pid())
	}
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	v.mustStand(t)
	if _, err := v.conn.Write([]byte("four")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what is sent to it is in its queue", func() bool {
		n, err := o.Unread()
		return err == nil && n == 4
	})
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
	v.mustMove(t, "after the thaw")
	v.kill()
	eventually(t, "it has gone", func() bool {
		_, err := f.Lookup(t.Context(), v.client, v.server)
		return errors.Is(err, ErrNoConnection)
	})
}

// loopRole connects to itself, at an address and from a port.
func loopRole(args []string) error {
	l, err := net.Listen("tcp4", args[0])
	if err != nil {
		return err
	}
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(args[1]))}
	c, err := d.Dial("tcp4", args[0])
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := l.Accept(); err != nil {
		return err
	}
	return waitForEnd()
}

// Where two namespaces have a connection of these addresses, nobody can say whose is meant.
func TestLookupInSeveralNamespaces(t *testing.T) {
	f := newFreezer(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ip := fmt.Sprintf("10.214.%d.1", os.Getpid()%250)
	client, server := ip+":4000", ip+":5000"
	loop := func() {
		_, in := newSpace(t)
		do(t, in("ip", "addr", "add", ip+"/32", "dev", "lo")...)
		start(t, nil, nil, in(exe, "loop", server, client)...)
		f.spaces.mu.Lock()
		f.spaces.refresh()
		f.spaces.mu.Unlock()
	}
	loop()
	if o := lookup(t, f, netip.MustParseAddrPort(client), netip.MustParseAddrPort(server)); len(o.Processes) != 1 {
		t.Errorf("holders %v of the only one", o.Processes)
	}
	if got, err := f.listeners(netip.MustParseAddrPort(server)); err != nil || len(got) != 1 {
		t.Errorf("listeners %v, %v, expected one", got, err)
	}
	loop()
	if o, err := f.Lookup(t.Context(), netip.MustParseAddrPort(client), netip.MustParseAddrPort(server)); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("owner %+v, %v; expected none of two", o, err)
	}
	if got, err := f.listeners(netip.MustParseAddrPort(server)); err != nil || len(got) != 2 {
		t.Errorf("listeners %v, %v, expected both", got, err)
	}
}

// What a relay tells may be an address that means another machine in each namespace.
func TestLookupRelayed(t *testing.T) {
	f := newFreezer(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	port := 20000 + os.Getpid()%10000
	client, server := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.1:%d", port+1)
	find := func() (*Owner, error) {
		return f.LookupRelayed(t.Context(), netip.MustParseAddrPort(client), netip.MustParseAddrPort(server))
	}
	_, in := newSpace(t)
	c, _ := start(t, nil, nil, in(exe, "loop", server, client)...)
	o, err := find()
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if got := pidsOf(o.Processes); !slices.Equal(got, []int{c.pid()}) {
		t.Errorf("holders %v, expected %d", got, c.pid())
	}
	if err := f.Check(o, ScopeProcess); err != nil {
		t.Error(err)
	}
	here, _ := start(t, nil, nil, self("loop", server, client)...)
	if o, err := find(); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("owner %+v, %v; expected none of two", o, err)
	}
	c.kill()
	if o, err = find(); err != nil || !slices.Equal(pidsOf(o.Processes), []int{here.pid()}) {
		t.Errorf("owner %+v, %v; expected the one here, %d", o, err, here.pid())
	}
	if _, err := f.LookupRelayed(t.Context(), netip.AddrPort{}, netip.AddrPort{}); !errors.Is(err, ErrNoAddress) {
		t.Errorf("without addresses: %v", err)
	}
}

// A namespace in which nobody lives any more is left, so that it can go.
func TestNamespacesAreLeft(t *testing.T) {
	pid, _ := newSpace(t)
	inode := spaceOf(pid)
	var s spaces
	s.refresh()
	d := s.known[inode]
	if d == nil {
		t.Fatalf("namespace %d is not among %v", inode, s.known)
	}
	if s.refresh(); s.known[inode] != d {
		t.Error("it is entered anew each time")
	}
	if enter(inode+1, pid) != nil {
		t.Error("another one was entered in its place")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "it is left", func() bool {
		s.refresh()
		return s.known[inode] == nil
	})
	some := netip.MustParseAddrPort("10.0.0.1:1")
	if _, err := d.ask(some, some, 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("asked after it was left: %v", err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
}

// A list of them serves for a moment, and not longer.
func TestNamespacesThatAreNew(t *testing.T) {
	needRoot(t)
	var s spaces
	defer s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all()
	pid, _ := newSpace(t)
	s.at = time.Now().Add(time.Hour)
	if s.all(); s.known[spaceOf(pid)] != nil {
		t.Error("the list is read each time")
	}
	s.at = time.Now().Add(-2 * spacesAge)
	if s.all(); s.known[spaceOf(pid)] == nil {
		t.Error("the list is never read again")
	}
}

// Addresses of this machine alone are not looked for elsewhere.
func TestLoopbackStaysHere(t *testing.T) {
	f := newFreezer(t)
	a, b := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")
	f.spaces.known = nil
	if _, err := f.find(a, b); err != ErrNoConnection {
		t.Errorf("%v", err)
	}
	if got, err := f.listeners(a); got != nil || err != nil || f.spaces.known != nil {
		t.Error("others were asked")
	}
}

// poison makes the freezer know a namespace that cannot be asked.
func poison(t *testing.T, f *Freezer) {
	t.Helper()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	f.spaces.mu.Lock()
	defer f.spaces.mu.Unlock()
	if f.spaces.known == nil {
		f.spaces.known = map[uint64]*diag{}
	}
	f.spaces.known[1] = &diag{space: file}
	f.spaces.at = time.Now().Add(time.Hour) // so that it is not left
}

// A namespace that could not be asked may have the connection, and the upstream's server: nobody is taken for either.
func TestNamespaceThatCannotBeAsked(t *testing.T) {
	v := victimElsewhere(t)
	f := newFreezer(t, func(o *Options) { o.Upstreams = []netip.AddrPort{netip.MustParseAddrPort("10.255.255.1:1")} })
	o := lookup(t, f, v.client, v.server)
	poison(t, f)
	wrong := func(what string, err error) {
		t.Helper()
		if err == nil || errors.Is(err, ErrNoConnection) || !strings.Contains(err.Error(), "namespace") && !strings.Contains(err.Error(), "server on") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := f.Lookup(t.Context(), v.client, v.server)
	wrong("of one that another has", err)
	_, err = f.Lookup(t.Context(), netip.MustParseAddrPort("10.0.0.1:1"), v.server)
	wrong("of one that nobody has", err)
	wrong("a freeze though the upstream's server may be there", f.Check(o, ScopeProcess))
}

// What has been found is not looked for everywhere again.
func TestUnreadAsksWhereItWas(t *testing.T) {
	v := victimElsewhere(t)
	f := newFreezer(t)
	o := lookup(t, f, v.client, v.server)
	poison(t, f)
	if n, err := o.Unread(); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := f.spaces.close(); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"after its namespace was let go of", "again"} {
		if n, err := o.Unread(); n != 0 || err != nil {
			t.Errorf("%d, %v %s", n, err, when)
		}
	}
	v.kill()
	eventually(t, "it has gone", func() bool {
		_, err := o.Unread()
		return errors.Is(err, ErrNoConnection)
	})
}

// A namespace that has been asked goes when its last process ends, though nobody asks again.
func TestNamespacesAreNotKept(t *testing.T) {
	pid, _ := newSpace(t)
	dev := fmt.Sprintf("lfk%d", pid)
	do(t, "ip", "link", "add", dev, "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(pid))
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", dev).Run() })
	f := newFreezer(t)
	if _, err := f.find(netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:1")); !errors.Is(err, ErrNoConnection) {
		t.Fatal(err)
	}
	if f.spaces.known[spaceOf(pid)] == nil {
		t.Fatal("it was not asked")
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "it has gone, and its devices with it", func() bool {
		_, err := net.InterfaceByName(dev)
		return err != nil
	})
}
