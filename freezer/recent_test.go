package freezer

import (
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process with many connections is looked for where its next one is likely
// to be, and is held by one pidfd however many it has.
func TestLookupOfManyConnections(t *testing.T) {
	f := newFreezer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connect := func() (net.Conn, *Owner) {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { accepted.Close() })
		client, server := ends(accepted)
		return c, lookup(t, f, client, server)
	}
	type connection struct {
		net.Conn
		owner *Owner
	}
	var open []connection
	pidfds := map[int]bool{}
	for range 100 {
		c, o := connect()
		open = append(open, connection{c, o})
		if got := pidsOf(o.Processes); !slices.Equal(got, []int{os.Getpid()}) {
			t.Fatalf("holders %v, expected %d", got, os.Getpid())
		}
		pidfds[o.Processes[0].pidfd] = true
	}
	if len(pidfds) != 1 {
		t.Errorf("%d pidfds for one process", len(pidfds))
	}
	// Some leave, in no order; those who come get what these gave back.
	for _, i := range []int{70, 3, 44, 12, 90, 5} {
		open[i].Close()
		open[i].owner.Close()
	}
	for range 6 {
		c, o := connect()
		defer c.Close()
		defer o.Close()
		if fd, ok := o.Processes[0].descriptor(); !ok || fd > 300 {
			t.Errorf("found at %q", o.Processes[0].link)
		}
	}
	h := f.holderOf(os.Getpid())
	for _, c := range open {
		c.Close()
		c.owner.Close()
	}
	if h.refs != 6 {
		t.Errorf("%d owners use the process, want 6", h.refs)
	}
}

// Guesses are the descriptors that were given back, lowest first, and those
// beside the last one; what is tried in vain again and again is given up.
func TestGuesses(t *testing.T) {
	h := &holder{last: 50}
	for _, fd := range []int{9, 7, 8, 7} {
		h.gave(fd)
	}
	if got := h.guess()[:4]; !slices.Equal(got, []int{7, 8, 9, 51}) {
		t.Errorf("guesses %v", got)
	}
	h.found(8)
	if got := h.guess()[:3]; !slices.Equal(got, []int{7, 9, 9}) {
		t.Errorf("guesses after 8 was found: %v", got)
	}
	for range patience {
		h.guess()
	}
	if len(h.freed) != 0 {
		t.Errorf("still tries %v", h.freed)
	}
}

// A pidfd is closed when nobody remembers the process and its last connection
// has ended.
func TestPidfdGoesWithTheLastConnection(t *testing.T) {
	f := newFreezer(t)
	var both []Process
	for range 2 {
		p, err := f.takeProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, p)
	}
	isOpen := func() bool {
		_, err := unix.FcntlInt(uintptr(both[0].pidfd), unix.F_GETFD, 0)
		return err == nil
	}
	f.forgetAll()
	f.leave(both[:1])
	if !isOpen() {
		t.Error("closed while a connection uses it")
	}
	f.leave(both[1:])
	if isOpen() {
		t.Error("still open when its last connection has ended")
	}
}

// Look-ups that wait for a table find what they look for in the reading that
// another has made, if the socket was open by then.
func TestTablesAreReadOnceForMany(t *testing.T) {
	f := newFreezer(t)
	_, _, accepted := dial(t, "127.0.0.1:0")
	client, server := ends(accepted)
	s, err := f.diag.connection(client, server)
	if err != nil {
		t.Fatal(err)
	}
	f.tables.mu.Lock()
	defer f.tables.mu.Unlock()
	since := time.Now()
	first := f.tables.of(os.Getpid(), since)
	if again := f.tables.of(os.Getpid(), since); again != first {
		t.Error("read again although nothing was opened since")
	}
	if later := f.tables.of(os.Getpid(), time.Now()); later == first {
		t.Error("not read again for a later connection")
	}
	if pid, link := f.tables.find(s.inode); pid != os.Getpid() || !linksTo(link, socketLink(s.inode)) {
		t.Errorf("found at %q of %d", link, pid)
	}
}
