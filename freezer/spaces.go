package freezer

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// spacesAge is how old a list of the host's network namespaces may be.
const spacesAge = time.Second

// ErrAmbiguous: the same connection is there in several network namespaces.
var ErrAmbiguous = errors.New("several network namespaces of this host have such a connection")

// spaces are the network namespaces of this host beside the daemon's own, each with a socket that asks from
// inside it. They are found by the processes that live in them.
type spaces struct {
	mu    sync.Mutex
	at    time.Time
	known map[uint64]*diag // by inode
	shut  int              // those that could not be entered
}

// all returns one diag for each namespace, and how many could not be entered.
func (s *spaces) all() ([]*diag, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || time.Since(s.at) > spacesAge {
		s.refresh()
	}
	out := make([]*diag, 0, len(s.known))
	for _, d := range s.known {
		out = append(out, d)
	}
	return out, s.shut
}

// refresh enters the namespaces that are new, and leaves those in which nobody lives any more: its socket
// would keep one there.
func (s *spaces) refresh() {
	homes := homesOfSpaces()
	was := s.known
	s.known, s.shut, s.at = make(map[uint64]*diag), 0, time.Now()
	for inode, pid := range homes {
		d := was[inode]
		if d == nil {
			d = enter(inode, pid)
		}
		if d == nil {
			s.shut++
			continue
		}
		s.known[inode] = d
		delete(was, inode)
	}
	for _, d := range was {
		_ = d.close()
	}
}

// homesOfSpaces returns a process of each namespace that is not this one's.
func homesOfSpaces() map[uint64]int {
	homes := make(map[uint64]int)
	own := spaceOf(os.Getpid())
	pids, _ := numbers("/proc")
	for _, pid := range pids {
		if inode := spaceOf(pid); inode != 0 && inode != own && homes[inode] == 0 {
			homes[inode] = pid
		}
	}
	return homes
}

// spaceOf returns the inode of a process's network namespace, 0 if it cannot be read.
func spaceOf(pid int) uint64 {
	var st unix.Stat_t
	if unix.Stat(procPath(pid, "ns", "net"), &st) != nil {
		return 0
	}
	return st.Ino
}

// enter opens a socket in the namespace of a process; nil if that cannot be done, or it has moved meanwhile.
func enter(inode uint64, pid int) *diag {
	file, err := os.Open(procPath(pid, "ns", "net"))
	if err != nil {
		return nil
	}
	d := &diag{space: file}
	var st unix.Stat_t
	if unix.Fstat(int(file.Fd()), &st) != nil || st.Ino != inode || d.open() != nil {
		_ = d.close()
		return nil
	}
	return d
}

func (s *spaces) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, d := range s.known {
		errs = append(errs, d.close())
	}
	s.known = nil
	return errors.Join(errs...)
}

// find looks for the client's end of a connection here, and then in each of the host's other network
// namespaces. Whatever comes from a loopback address comes from here.
func (f *Freezer) find(client, server netip.AddrPort) (socket, error) {
	s, err := f.diag.connection(client, server)
	if err == nil || !errors.Is(err, ErrNoConnection) || client.Addr().Unmap().IsLoopback() {
		return s, err
	}
	others, shut := f.spaces.all()
	var found []socket
	for _, d := range others {
		if s, err := d.exact(client, server, 0); err == nil {
			s.from = d
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return socket{}, ErrAmbiguous
	case shut > 0:
		return socket{}, fmt.Errorf("%w, nor in %d others; %d could not be entered (that takes CAP_SYS_ADMIN and CAP_SYS_PTRACE)", ErrNoConnection, len(others), shut)
	case len(others) > 0:
		return socket{}, fmt.Errorf("%w, nor in %d others of this host", ErrNoConnection, len(others))
	}
	return socket{}, ErrNoConnection
}

// listeners returns the sockets that accept connections to addr, here and in the host's other network
// namespaces: there an address of every interface may stand for another one's, and one too many does no harm.
func (f *Freezer) listeners(addr netip.AddrPort) []uint32 {
	if inode := f.diag.listener(addr); inode != 0 {
		return []uint32{inode}
	}
	if addr.Addr().Unmap().IsLoopback() {
		return nil
	}
	var out []uint32
	others, _ := f.spaces.all()
	for _, d := range others {
		if inode := d.listener(addr); inode != 0 {
			out = append(out, inode)
		}
	}
	return out
}
