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
	for _, tool := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("makes network namespaces with it:", err)
		}
	}
	c, _ := start(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, nil, self("holder")...)
	in = func(argv ...string) []string {
		return append([]string{"nsenter", "-t", strconv.Itoa(c.pid()), "-n"}, argv...)
	}
	do(t, in("ip", "link", "set", "lo", "up")...)
	return c.pid(), in
}

func do(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Skipf("%s: %v: %s", strings.Join(argv, " "), err, out)
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
		n, err := f.Unread(v.client, v.server)
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
		f.spaces.refresh()
	}
	loop()
	if o := lookup(t, f, netip.MustParseAddrPort(client), netip.MustParseAddrPort(server)); len(o.Processes) != 1 {
		t.Errorf("holders %v of the only one", o.Processes)
	}
	if got := f.listeners(netip.MustParseAddrPort(server)); len(got) != 1 {
		t.Errorf("listeners %v, expected one", got)
	}
	loop()
	if o, err := f.Lookup(t.Context(), netip.MustParseAddrPort(client), netip.MustParseAddrPort(server)); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("owner %+v, %v; expected none of two", o, err)
	}
	if got := f.listeners(netip.MustParseAddrPort(server)); len(got) != 2 {
		t.Errorf("listeners %v, expected both", got)
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
	if f.listeners(a) != nil || f.spaces.known != nil {
		t.Error("others were asked")
	}
}
