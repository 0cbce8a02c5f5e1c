package freezer

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	spacesAge  = time.Second     // how old a list of the host's network namespaces may be
	spacesIdle = 2 * time.Second // how long they are kept, once nobody asks for them: what is kept cannot go
)

// ErrAmbiguous: the same connection is there in several network namespaces.
var ErrAmbiguous = errors.New("several network namespaces of this host have such a connection")

// spaces are the network namespaces of this host beside the daemon's own, each with a socket that asks from
// inside it. They are found by the processes that live in them.
type spaces struct {
	mu    sync.Mutex
	at    time.Time
	known map[uint64]*diag // by inode
	shut  int              // those that could not be entered
	leave *time.Timer      // when none of them has been asked for; nil: none are known
}

// all returns one diag for each namespace, and how many could not be entered; s.mu is held, also while they are asked.
func (s *spaces) all() ([]*diag, int) {
	if s.known == nil || time.Since(s.at) > spacesAge {
		s.refresh()
	}
	s.keep()
	out := make([]*diag, 0, len(s.known))
	for _, d := range s.known {
		out = append(out, d)
	}
	return out, s.shut
}

// keep lets go of them only when nobody has asked for a while; s.mu is held. The last process of one may end at any time, and
// nobody tells.
func (s *spaces) keep() {
	if s.leave == nil {
		s.leave = time.AfterFunc(spacesIdle, func() { _ = s.close() })
		return
	}
	s.leave.Reset(spacesIdle)
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
		d.there = devicesOf(pid)
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

// devicesOf lists the devices with an address in the network namespace of a process.
func devicesOf(pid int) (out []uint32) {
	six, _ := os.ReadFile(procPath(pid, "net", "if_inet6"))
	for line := range strings.Lines(string(six)) { // address index prefix scope flags name
		if f := strings.Fields(line); len(f) == 6 {
			if n, err := strconv.ParseUint(f[1], 16, 32); err == nil {
				out = append(out, uint32(n))
			}
		}
	}
	four, _ := os.ReadFile(procPath(pid, "net", "igmp"))
	for line := range strings.Lines(string(four)) { // index name ..., and then its groups, further in
		if f := strings.Fields(line); len(f) > 1 && line[0] >= '0' && line[0] <= '9' {
			if n, err := strconv.ParseUint(f[0], 10, 32); err == nil {
				out = append(out, uint32(n))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
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
	if unix.Fstat(int(file.Fd()), &st) != nil || st.Ino != inode || d.open(unix.NETLINK_SOCK_DIAG) != nil {
		_ = d.close()
		return nil
	}
	return d
}

// close lets go of all of them. They are entered anew when they are asked for again.
func (s *spaces) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, d := range s.known {
		errs = append(errs, d.close())
	}
	s.known = nil
	if s.leave != nil {
		s.leave.Stop()
	}
	return errors.Join(errs...)
}

// find looks for the client's end of a connection here, and then in each of the host's other network
// namespaces. Whatever comes from a loopback address comes from here.
func (f *Freezer) find(client, server netip.AddrPort) (socket, error) {
	s, err := f.diag.connection(client, server)
	if err == nil || !errors.Is(err, ErrNoConnection) || client.Addr().Unmap().IsLoopback() {
		return s, err
	}
	return f.spaces.find(client, server)
}

// findAnywhere looks for it in each of them, this one included. Loopback addresses mean another machine in each, and
// nobody says in which.
func (f *Freezer) findAnywhere(client, server netip.AddrPort) (socket, error) {
	here, err := f.diag.connection(client, server)
	if err != nil && !errors.Is(err, ErrNoConnection) {
		return socket{}, err
	}
	there, terr := f.spaces.find(client, server)
	switch {
	case err != nil:
		return there, terr
	case errors.Is(terr, ErrNoConnection):
		return here, nil
	case terr != nil:
		return socket{}, terr
	}
	return socket{}, ErrAmbiguous
}

// find returns the one socket of these addresses that any of the namespaces has. Where one of them could not be asked,
// nobody knows whether another is meant.
func (s *spaces) find(client, server netip.AddrPort) (socket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	others, shut := s.all()
	var found []socket
	for _, d := range others {
		s, err := d.connection(client, server)
		switch {
		case err == nil:
			found = append(found, s)
		case !errors.Is(err, ErrNoConnection):
			return socket{}, fmt.Errorf("in another network namespace: %w", err)
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
func (f *Freezer) listeners(addr netip.AddrPort) ([]uint32, error) {
	inode, err := f.diag.listener(addr)
	switch {
	case err != nil:
		return nil, err
	case inode != 0:
		return []uint32{inode}, nil
	case addr.Addr().Unmap().IsLoopback():
		return nil, nil
	}
	return f.spaces.listeners(addr)
}

func (s *spaces) listeners(addr netip.AddrPort) ([]uint32, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []uint32
	others, _ := s.all()
	for _, d := range others {
		inode, err := d.listener(addr)
		if err != nil {
			return nil, err
		}
		if inode != 0 {
			out = append(out, inode)
		}
	}
	return out, nil
}
