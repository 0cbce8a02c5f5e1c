package freezer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// An Owner is who holds the client's end of a connection. Its fields do not
// change; Close gives its handles back. What it says was true when it was
// looked up, and Freeze makes sure of it again.
type Owner struct {
	Client, Server netip.AddrPort
	Processes      []Process // every holder found, the lowest pid first
	Cgroup         string    // of the first holder, as Freeze would take it; "" where it has none of its own
	Inode          uint32    // of the socket

	mu     sync.Mutex
	closed bool
}

// Close releases the pidfds. It is idempotent. A Frozen keeps its own.
func (o *Owner) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		closeAll(o.Processes)
	}
	return nil
}

// holders returns the processes with handles that the caller owns.
func (o *Owner) holders() ([]Process, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.Processes) == 0 {
		return nil, fmt.Errorf("owner of %s: %w", o.Client, ErrClosed)
	}
	return dupAll(o.Processes)
}

// Lookup finds the processes that hold the client's end of a connection:
// client is the remote end of the accepted connection, server its local end.
// The caller closes the Owner.
//
// It looks where the socket was made, then at recent holders and their
// families, and then at every process, which takes some 0.3 ms for each: call
// it when a connection is accepted, not when it is to be frozen. Only the last
// pass would find a second holder that is unrelated to the first.
//
// Errors: [ErrNoAddress], [ErrNoConnection], [*NoHolder], or the system's.
func (f *Freezer) Lookup(ctx context.Context, client, server netip.AddrPort) (*Owner, error) {
	if !client.IsValid() || !server.IsValid() {
		return nil, ErrNoAddress
	}
	if client.Addr().Unmap().Is4() != server.Addr().Unmap().Is4() {
		return nil, fmt.Errorf("look up %s to %s: %w", client, server, ErrNoConnection)
	}
	s, err := f.diag.connection(client, server)
	if err != nil {
		return nil, fmt.Errorf("look up %s to %s: %w", client, server, err)
	}
	ps, err := f.search(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("look up %s to %s: %w", client, server, err)
	}
	f.remember(ps)
	o := &Owner{Client: client, Server: server, Processes: ps, Inode: s.inode}
	if g, err := f.mounts.cgroupOf(ps[0].PID); err == nil {
		o.Cgroup = g.dir
	}
	return o, nil
}

// search returns the holders of a socket, at least one, sorted by pid.
func (f *Freezer) search(ctx context.Context, s socket) ([]Process, error) {
	h := hunt{link: socketLink(s.inode), seen: make(map[int]bool)}
	h.look(ctx, f.mounts.members(s.cgroup))
	if len(h.found) == 0 {
		h.look(ctx, f.recentPIDs())
	}
	if len(h.found) > 0 {
		for _, p := range slices.Clone(h.found) {
			h.look(ctx, family(p.PID))
		}
	} else {
		all, err := numbers("/proc")
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		h.look(ctx, all)
	}
	if err := ctx.Err(); err != nil {
		closeAll(h.found)
		return nil, err
	}
	if len(h.found) == 0 {
		return nil, &NoHolder{Inode: s.inode, Unreadable: h.unreadable}
	}
	slices.SortFunc(h.found, func(a, b Process) int { return a.PID - b.PID })
	return h.found, nil
}

// hunt collects the holders of one socket, reading no process twice.
type hunt struct {
	link       string
	seen       map[int]bool
	found      []Process
	unreadable int
}

func (h *hunt) look(ctx context.Context, pids []int) {
	for _, pid := range pids {
		if ctx.Err() != nil {
			return
		}
		if pid > 0 && !h.seen[pid] {
			h.seen[pid] = true
			h.try(pid)
		}
	}
}

func (h *hunt) try(pid int) {
	link, err := holds(pid, h.link)
	if errors.Is(err, fs.ErrPermission) {
		h.unreadable++
	}
	if link == "" {
		return
	}
	p, err := openProcess(pid)
	if err != nil {
		return
	}
	// Read again under the pidfd: the pid may have changed hands in between.
	if !linksTo(link, h.link) || p.exited() {
		unix.Close(p.pidfd)
		return
	}
	p.link = link
	h.found = append(h.found, p)
}

// stillHeld reports whether every process has the socket open, and nobody
// that they started has it too.
func stillHeld(ps []Process, inode uint32) bool {
	link := socketLink(inode)
	for i := range ps {
		if !ps[i].same() {
			return false
		}
		if linksTo(ps[i].link, link) {
			continue
		}
		found, _ := holds(ps[i].PID, link)
		if found == "" {
			return false
		}
		ps[i].link = found
	}
	return !heirs(ps, link)
}

// heirs reports whether a child that is not among ps has the socket.
func heirs(ps []Process, link string) bool {
	for _, p := range ps {
		for _, kid := range children(p.PID) {
			if slices.ContainsFunc(ps, func(q Process) bool { return q.PID == kid }) {
				continue
			}
			if found, _ := holds(kid, link); found != "" {
				return true
			}
		}
	}
	return false
}

// recentMax bounds how many recent holders are tried before every process is.
const recentMax = 64

func (f *Freezer) remember(ps []Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range ps {
		f.recent = slices.DeleteFunc(f.recent, func(pid int) bool { return pid == p.PID })
		f.recent = append(f.recent, p.PID)
	}
	if n := len(f.recent) - recentMax; n > 0 {
		f.recent = slices.Delete(f.recent, 0, n)
	}
}

func (f *Freezer) recentPIDs() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	pids := slices.Clone(f.recent)
	slices.Reverse(pids)
	return pids
}
