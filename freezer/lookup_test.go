package freezer

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLookupFindsTheClient(t *testing.T) {
	f := newFreezer(t)
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(listen, func(t *testing.T) {
			v := newVictim(t, listen, 0, nil)
			o := lookup(t, f, v.client, v.server)
			if got := pidsOf(o.Processes); !slices.Equal(got, []int{v.pid()}) {
				t.Fatalf("holders %v, expected %d", got, v.pid())
			}
			s, err := readStat(v.pid())
			if err != nil {
				t.Fatal(err)
			}
			if p := o.Processes[0]; p.Start != s.start || p.Comm != s.comm || p.Exe == "" {
				t.Errorf("holder %+v, the kernel says %+v", p, s)
			}
		})
	}
}

// A client whose socket is an IPv6 one speaks IPv4, and so does a proxy that
// listens on both: either end may write the address as 4 in 6.
func TestLookupMapped(t *testing.T) {
	f := newFreezer(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addr := l.Addr().(*net.TCPAddr).AddrPort()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Skip("no IPv6:", err)
	}
	file := os.NewFile(uintptr(fd), "client")
	defer file.Close()
	mapped := netip.AddrFrom16(addr.Addr().As16())
	if err := unix.Connect(fd, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: mapped.As16()}); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client, server := ends(conn)
	as4in6 := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
	}
	for _, o := range []*Owner{lookup(t, f, client, server), lookup(t, f, as4in6(client), as4in6(server))} {
		if got := pidsOf(o.Processes); !slices.Equal(got, []int{os.Getpid()}) {
			t.Errorf("holders %v, expected %d", got, os.Getpid())
		}
	}
}

// dial connects within the test and returns both ends.
func dial(t testing.TB, listen string) (l net.Listener, client *net.TCPConn, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	accepted, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return l, c.(*net.TCPConn), accepted
}

// Whoever got the descriptor holds the connection; whoever made it and closed
// it does not.
func TestLookupForkedHolders(t *testing.T) {
	f := newFreezer(t)
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	a, _ := start(t, nil, []*os.File{file}, self("holder")...)
	b, _ := start(t, nil, []*os.File{file}, self("holder")...)
	client, server := ends(conn)
	all := []int{os.Getpid(), a.pid(), b.pid()}
	slices.Sort(all)
	if got := pidsOf(lookup(t, f, client, server).Processes); !slices.Equal(got, all) {
		t.Errorf("holders %v, expected %v", got, all)
	}
	c.Close()
	file.Close()
	both := []int{a.pid(), b.pid()}
	slices.Sort(both)
	o := lookup(t, f, client, server)
	if got := pidsOf(o.Processes); !slices.Equal(got, both) {
		t.Fatalf("holders %v after a close, expected %v", got, both)
	}
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	everyThread(t, a.pid(), 'T')
	everyThread(t, b.pid(), 'T')
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// Two connections may share both ports; only the addresses tell them apart.
func TestLookupSharedPorts(t *testing.T) {
	f := newFreezer(t)
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	var local int
	want := make(map[netip.AddrPort]int) // client address to holder
	server := make(map[netip.AddrPort]netip.AddrPort)
	for _, ip := range []string{"127.0.0.1", "127.0.0.2"} {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip), Port: local}}
		d.SetMultipathTCP(false)
		c, err := d.Dial("tcp4", net.JoinHostPort(ip, port))
		if err != nil {
			t.Skip("the port is taken on the other address:", err)
		}
		local = c.LocalAddr().(*net.TCPAddr).Port
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		file, err := c.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		h, _ := start(t, nil, []*os.File{file}, self("holder")...)
		file.Close()
		c.Close()
		cl, sv := ends(conn)
		want[cl], server[cl] = h.pid(), sv
	}
	for cl, pid := range want {
		if got := pidsOf(lookup(t, f, cl, server[cl]).Processes); !slices.Equal(got, []int{pid}) {
			t.Errorf("holders of %s: %v, expected %d", cl, got, pid)
		}
	}
}

// A socket that is bound to a device is known to the kernel by it.
func TestLookupBoundToDevice(t *testing.T) {
	f := newFreezer(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		cerr := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), "lo") })
		return errors.Join(cerr, err)
	}}
	d.SetMultipathTCP(false)
	c, err := d.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Skip("cannot bind to a device:", err)
	}
	defer c.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client, server := ends(conn)
	if got := pidsOf(lookup(t, f, client, server).Processes); !slices.Equal(got, []int{os.Getpid()}) {
		t.Errorf("holders %v, expected %d", got, os.Getpid())
	}
}

// A client that speaks MPTCP holds a socket of its own kind, and not the TCP one that carries it.
func TestLookupMultipath(t *testing.T) {
	f := newFreezer(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var d net.Dialer
	d.SetMultipathTCP(true)
	c, err := d.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if is, err := c.(*net.TCPConn).MultipathTCP(); !is || err != nil {
		t.Skip("no MPTCP:", err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client, server := ends(conn)
	if got := pidsOf(lookup(t, f, client, server).Processes); !slices.Equal(got, []int{os.Getpid()}) {
		t.Errorf("holders %v, expected %d", got, os.Getpid())
	}
}

// When the connection is gone the kernel answers with a listener on its port,
// which is somebody else.
func TestLookupNeverTakesTheListener(t *testing.T) {
	f := newFreezer(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	there := l.Addr().(*net.TCPAddr).AddrPort()
	gone := netip.MustParseAddrPort("127.0.0.1:9")
	if s, err := f.diag.ask(there, gone, 0); err != nil || s.state != tcpListen {
		t.Fatalf("the kernel answered %+v, %v; expected the listener, or this test shows nothing", s, err)
	}
	if o, err := f.Lookup(t.Context(), there, gone); !errors.Is(err, ErrNoConnection) {
		t.Fatalf("owner %+v, %v; expected no connection", o, err)
	}
}

func TestOnlyTheConnectionItself(t *testing.T) {
	a, b, c := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2"), netip.MustParseAddrPort("127.0.0.2:2")
	good := socket{local: a, remote: b, state: tcpEstablished, inode: 1}
	waiting, other, another, ended, listening := good, good, good, good, good
	waiting.state = tcpCloseWait
	other.local, another.remote = c, c
	ended.inode, listening.state = 0, tcpListen
	for _, x := range []struct {
		s    socket
		want bool
	}{{good, true}, {waiting, true}, {other, false}, {another, false}, {ended, false}, {listening, false}} {
		if got := x.s.connects(a, b); got != x.want {
			t.Errorf("%+v: %v", x.s, got)
		}
	}
}

func TestLookupErrors(t *testing.T) {
	f := newFreezer(t)
	if _, err := f.Lookup(t.Context(), netip.AddrPort{}, netip.AddrPort{}); !errors.Is(err, ErrNoAddress) {
		t.Errorf("without addresses: %v", err)
	}
	four, six := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("[::1]:1")
	if _, err := f.Lookup(t.Context(), four, six); !errors.Is(err, ErrNoConnection) {
		t.Errorf("of two families: %v", err)
	}
	_, c, conn := dial(t, "127.0.0.1:0")
	client, server := ends(conn)
	c.Close()
	if _, err := f.Lookup(t.Context(), client, server); !errors.Is(err, ErrNoConnection) {
		t.Errorf("after the client closed: %v", err)
	}
}

// A connection that waits to be accepted is established, and nobody holds it.
func TestLookupNoHolder(t *testing.T) {
	f := newFreezer(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mine, theirs := c.LocalAddr().(*net.TCPAddr).AddrPort(), l.Addr().(*net.TCPAddr).AddrPort()
	_, err = f.search(t.Context(), socket{inode: ^uint32(0)}, false)
	var none *NoHolder
	if !errors.As(err, &none) || none.Inode != ^uint32(0) {
		t.Errorf("search for an inode that nobody has: %v", err)
	}
	// The unaccepted end has no inode yet, so it must not be taken for a holder.
	if o, err := f.Lookup(t.Context(), theirs, mine); !errors.Is(err, ErrNoConnection) {
		t.Errorf("owner %+v, %v", o, err)
	}
}

// The leader of a process may end before its other threads, and its fd
// directory is empty then.
func TestLookupLeaderExited(t *testing.T) {
	f := newFreezer(t)
	exe := compile(t, "leaderless")
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	h, line := start(t, nil, []*os.File{file}, exe)
	file.Close()
	c.Close()
	if line != "ready" {
		t.Fatalf("helper said %q", line)
	}
	eventually(t, "the leader has ended", func() bool {
		s, err := readStat(h.pid())
		return err == nil && s.state == 'Z'
	})
	client, server := ends(conn)
	o := lookup(t, f, client, server)
	if got := pidsOf(o.Processes); !slices.Equal(got, []int{h.pid()}) {
		t.Fatalf("holders %v, expected %d", got, h.pid())
	}
	if !strings.Contains(o.Processes[0].link, "/task/") {
		t.Errorf("found through %s, expected a thread's", o.Processes[0].link)
	}
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range liveThreads(h.pid()) {
		if s, err := readThread(h.pid(), tid); err != nil || s.state != 'T' {
			t.Errorf("thread %d: %c, %v", tid, s.state, err)
		}
	}
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// The cgroup that the socket was made in is looked at first, and alone where
// that is enough.
func TestLookupByCgroup(t *testing.T) {
	c := inCgroup(t, v2)
	f := newFreezer(t)
	v := victimIn(t, c, 0)
	s, err := f.diag.connection(v.client, v.server)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.mounts.members(s.cgroup); !slices.Contains(got, v.pid()) {
		t.Errorf("cgroup %d has %v, expected %d", s.cgroup, got, v.pid())
	}
	if got := f.mounts.members(1); got != nil {
		t.Errorf("the root says nothing, got %v", got)
	}
}

// compile builds a helper that Go cannot be.
func compile(t *testing.T, name string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("the helper is written in C, and there is no compiler")
	}
	exe := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command(cc, "-o", exe, "-pthread", "testdata/"+name+".c").CombinedOutput(); err != nil {
		t.Skipf("compile: %v\n%s", err, out)
	}
	return exe
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c) T 7 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 16 0 987654 1 2"
	s, err := parseStat([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if want := (stat{pid: 42, comm: "a) b (c", state: 'T', parent: 7, flags: 4194560, start: 987654}); s != want {
		t.Errorf("got %+v, expected %+v", s, want)
	}
	for _, bad := range []string{"", "42", "42 (x", "42 (x) T", "x (y) T" + strings.Repeat(" 1", 30)} {
		if s, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q gave %+v", bad, s)
		}
	}
}
