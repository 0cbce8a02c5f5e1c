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
		h.missed([]int{7, 51})
	}
	if got := h.guess()[:2]; !slices.Equal(got, []int{9, 9}) {
		t.Errorf("guesses after 7 was tried in vain %d times: %v", patience, got)
	}
}

// What one process gave back is not given up because the connections of another
// are found, nor what would have been tried after the hit.
func TestOnlyWhatWasTriedInVainIsCounted(t *testing.T) {
	f := newFreezer(t)
	_, _, accepted := dial(t, "127.0.0.1:0")
	client, server := ends(accepted)
	o := lookup(t, f, client, server)
	here, ok := o.Processes[0].descriptor()
	if !ok {
		t.Fatalf("found at %q", o.Processes[0].link)
	}
	own, other := o.Processes[0].shared, &holder{pid: -1, pidfd: -1, refs: 1, last: -1}
	f.mu.Lock()
	f.recent = []*holder{other, own}
	f.mu.Unlock()
	defer func() { f.recent = []*holder{own} }()
	for fd := range 2 * recentMax {
		other.gave(fd)
	}
	own.freed = []freed{{fd: here - 1}, {fd: here}, {fd: here + 1}}
	h := hunt{freezer: f, inode: o.Inode, link: socketLink(o.Inode), seen: map[int]bool{}}
	h.guess(f.hints())
	if len(h.found) != 1 {
		t.Fatal("not found where it is")
	}
	f.leave(h.found)
	if own.freed[0].tries != 1 || own.freed[2].tries != 0 || other.freed[0].tries != 0 {
		t.Errorf("tries %v of the one that has it, %v of the other", own.freed, other.freed[0])
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
