package freezer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// An Owner is who holds the client's end of a connection. Its fields do not
// change; Close gives its handles back. What it says was true when it was
// looked up, and Freeze makes sure of it again.
type Owner struct {
	Processes []Process // every holder found, the lowest pid first
	Cgroup    string    // of the first holder, as Freeze would take it; "" where it has none of its own
	Inode     uint32    // of the socket

	freezer *Freezer
	of      connection
	mu      sync.Mutex
	again   func() (socket, error) // finds the socket where it was
	others  []Process              // found later than Processes, to have the connection
	sought  time.Time              // when such others were last looked for
	closed  bool
}

// A connection is one whose client is looked for.
type connection interface {
	String() string
	find(f *Freezer) (socket, error)
}

// LookupRelayed finds the processes that hold the client's end of a connection to a relay, by the addresses that the
// relay tells. They may be of any network namespace of this host, even if they are loopback ones. The caller closes the
// Owner. Errors are those of [Freezer.Lookup].
func (f *Freezer) LookupRelayed(ctx context.Context, client, server netip.AddrPort) (*Owner, error) {
	if !client.IsValid() || !server.IsValid() {
		return nil, ErrNoAddress
	}
	return f.lookup(ctx, addresses{client, server, true}, false)
}

// addresses are those of a connection, as its client has them.
type addresses struct {
	client, server netip.AddrPort
	relayed        bool // to a relay, which may be in any network namespace
}

func (a addresses) String() string { return fmt.Sprintf("%s to %s", a.client, a.server) }

func (a addresses) find(f *Freezer) (socket, error) {
	if a.client.Addr().Unmap().Is4() != a.server.Addr().Unmap().Is4() {
		return socket{}, ErrNoConnection
	}
	s, err := a.direct(f)
	for range mostTranslations {
		if !errors.Is(err, ErrNoConnection) {
			break
		}
		before, terr := f.untranslated(a)
		switch {
		case errors.Is(terr, fs.ErrPermission):
			return s, fmt.Errorf("%w; whether its addresses were translated could not be asked (that takes CAP_NET_ADMIN)", err)
		case terr != nil:
			return s, terr
		case !before.client.IsValid():
			return s, err
		}
		a = before
		s, err = a.direct(f)
	}
	return s, err
}

// direct looks for a socket of these addresses.
func (a addresses) direct(f *Freezer) (socket, error) {
	if a.relayed {
		return f.findAnywhere(a.client, a.server)
	}
	return f.find(a.client, a.server)
}

// Close releases the pidfds. It is idempotent. A Frozen keeps its own.
func (o *Owner) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		o.freezer.leave(o.Processes)
		o.freezer.leave(o.others)
	}
	return nil
}

// holders returns the processes with handles that the caller owns.
func (o *Owner) holders() ([]Process, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.Processes) == 0 {
		return nil, fmt.Errorf("owner of a connection: %w", ErrClosed)
	}
	return dupAll(append(slices.Clone(o.Processes), o.others...))
}

// learn notes who else was found to have the connection. It takes what it is given.
func (o *Owner) learn(ps []Process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		o.freezer.leave(ps)
		return
	}
	for _, p := range ps {
		if same := func(o Process) bool { return o.PID == p.PID }; slices.ContainsFunc(o.Processes, same) || slices.ContainsFunc(o.others, same) {
			o.freezer.leave([]Process{p})
			continue
		}
		o.others = append(o.others, p)
	}
}

// dueStrangers reports whether others may be looked for now, and notes that they are.
func (o *Owner) dueStrangers(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Sub(o.sought) < strangersEvery {
		return false
	}
	o.sought = now
	return true
}

// strangers returns those of the others, but for those among ps, that still have the socket, with handles that the
// caller owns, and forgets who has let go of it.
func (o *Owner) strangers(ps []Process, inode uint32) ([]Process, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || inode != o.Inode {
		return nil, nil
	}
	link := socketLink(inode)
	var gone []Process
	o.others = slices.DeleteFunc(o.others, func(p Process) bool {
		ended := !linksTo(p.link, link) || slices.ContainsFunc(ps, func(o Process) bool { return o.PID == p.PID })
		if ended {
			gone = append(gone, p)
		}
		return ended
	})
	o.freezer.leave(gone)
	return dupAll(slices.Clone(o.others))
}

// Lookup finds the processes that hold the client's end of a connection:
// client is the remote end of the accepted connection, server its local end.
// The caller closes the Owner.
//
// It looks where recent holders are likely to have it, then where the socket was
// made, then at all that recent holders have open, and then at every process,
// the newest first, which takes up to 0.3 ms for each: call it when a connection
// is accepted, not when it is to be frozen. Of a holder's relatives it finds those
// that have the connection too, but for one with many files open and this one
// under another number. A second holder that is unrelated is found by the first freeze.
//
// Errors: [ErrNoAddress], [ErrNoConnection], [ErrAmbiguous], [*NoHolder], or the system's.
func (f *Freezer) Lookup(ctx context.Context, client, server netip.AddrPort) (*Owner, error) {
	if !client.IsValid() || !server.IsValid() {
		return nil, ErrNoAddress
	}
	return f.lookup(ctx, addresses{client: client, server: server}, false)
}

// lookup finds the owner; with anew, it takes nothing of an earlier look-up for granted.
func (f *Freezer) lookup(ctx context.Context, of connection, anew bool) (*Owner, error) {
	s, err := of.find(f)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", of, err)
	}
	ps, err := f.search(ctx, s, anew)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", of, err)
	}
	f.remember(ps)
	o := &Owner{Processes: ps, Inode: s.inode, freezer: f, of: of, again: s.again}
	if g, err := f.mounts.cgroupOf(ps[0].PID); err == nil {
		o.Cgroup = g.dir
	}
	return o, nil
}

// Unread tells how many bytes wait in the receive queue of the client's end of the connection. It asks where that was
// found last.
func (o *Owner) Unread() (int, error) {
	o.mu.Lock()
	again := o.again
	o.mu.Unlock()
	s, err := again()
	if errors.Is(err, fs.ErrClosed) { // the namespace was let go of
		s, err = o.of.find(o.freezer)
	}
	if err != nil {
		return 0, fmt.Errorf("look into %s: %w", o.of, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.again = s.again
	return int(s.unread), nil
}

// search returns the holders of a socket, at least one, sorted by pid.
func (f *Freezer) search(ctx context.Context, s socket, anew bool) ([]Process, error) {
	h := hunt{freezer: f, inode: s.inode, link: socketLink(s.inode), began: time.Now(), seen: make(map[int]bool)}
	hints := f.hints()
	h.guess(hints)
	if len(h.found) == 0 {
		if err := h.read(ctx, s, pids(hints)); err != nil {
			return nil, err
		}
	}
	if len(h.found) > 0 && (anew || !f.isAlone(h.found[0])) {
		h.relatives(ctx)
	}
	if err := ctx.Err(); err != nil {
		f.leave(h.found)
		return nil, err
	}
	if len(h.found) == 0 && h.failed != nil {
		return nil, fmt.Errorf("look for who holds socket %d: %w", s.inode, h.failed)
	}
	if len(h.found) == 0 {
		return nil, &NoHolder{Inode: s.inode, Unreadable: h.unreadable}
	}
	slices.SortFunc(h.found, func(a, b Process) int { return a.PID - b.PID })
	return h.found, nil
}

// read looks for the socket in the tables of processes, the likelier ones first.
func (h *hunt) read(ctx context.Context, s socket, recent []int) error {
	t := &h.freezer.tables
	t.mu.Lock()
	defer t.mu.Unlock()
	if pid, link := t.find(h.inode); link != "" {
		h.take(pid, link)
		h.seen[pid] = len(h.found) > 0
	}
	h.look(ctx, []int{s.maker})
	h.look(ctx, h.freezer.mounts.members(s.cgroup))
	h.look(ctx, recent)
	if len(h.found) > 0 {
		return nil
	}
	if s.again != nil { // who has closed it meanwhile is not worth the rest
		if _, err := s.again(); errors.Is(err, ErrNoConnection) {
			return err
		}
	}
	all, err := numbers("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	slices.SortFunc(all, func(a, b int) int { return b - a })
	self := os.Getpid() // its table is large, and mostly of other ends
	h.look(ctx, append(slices.DeleteFunc(all, func(pid int) bool { return pid == self }), self))
	return nil
}

func pids(hints []hint) []int {
	out := make([]int, len(hints))
	for i, h := range hints {
		out[i] = h.holder.pid
	}
	return out
}

// hunt collects the holders of one socket, reading no process twice.
type hunt struct {
	freezer    *Freezer
	inode      uint32
	link       string    // to the inode
	began      time.Time // the socket was open by then
	seen       map[int]bool
	found      []Process
	unreadable int
	failed     error // why one could not be looked at
}

// guess tries the likely descriptors of recent holders.
func (h *hunt) guess(hints []hint) {
	for i, g := range hints {
		pid := g.holder.pid
		if n, link := among(pid, g.fds, h.link); link != "" {
			hints[i].fds = g.fds[:n]
			h.freezer.missed(hints[:i+1])
			h.seen[pid] = true
			h.take(pid, link)
			return
		}
	}
	h.freezer.missed(hints)
}

// among returns the path of the descriptor, of those given, that links to link,
// and how many were tried before it.
func among(pid int, fds []int, link string) (tried int, path string) {
	dir := procPath(pid, "fd") + "/"
	for i, fd := range fds {
		if name := dir + strconv.Itoa(fd); fd >= 0 && linksTo(name, link) {
			return i, name
		}
	}
	return len(fds), ""
}

// look reads the tables of processes, up to the first that has the socket.
func (h *hunt) look(ctx context.Context, pids []int) {
	for _, pid := range pids {
		if ctx.Err() != nil || len(h.found) > 0 {
			return
		}
		if pid > 0 && !h.seen[pid] {
			h.seen[pid] = true
			t := h.freezer.tables.of(pid, h.began)
			switch {
			case errors.Is(t.failed, fs.ErrPermission):
				h.unreadable++
			case t.failed != nil && !vanished(t.failed):
				h.failed = t.failed
			}
			h.take(pid, t.link(h.inode))
		}
	}
}

// fewFiles is how many open files of a relative are all looked at. One with
// more is looked at where it would have the socket by inheritance.
const fewFiles = 256

// relatives looks for those to whom a fork may have given the socket. Where a
// process connects again and again that is not done each time: who inherits a
// connection later is found by the freeze in any case.
func (h *hunt) relatives(ctx context.Context) {
	first := h.found[0]
	fds := []int{0, 1, 2}
	if fd, ok := first.descriptor(); ok {
		fds = append(fds, fd)
	}
	for _, pid := range family(first.PID) {
		if ctx.Err() != nil {
			return
		}
		if pid <= 0 || h.seen[pid] {
			continue
		}
		h.seen[pid] = true
		if n, err := entries(procPath(pid, "fd"), fewFiles); err == nil && n == fewFiles {
			_, link := among(pid, fds, h.link)
			h.take(pid, link)
			continue
		}
		link, _ := holds(pid, h.link)
		h.take(pid, link)
	}
	if len(h.found) == 1 {
		h.freezer.wasAlone(first)
	}
}

// take adds a process that has the socket at link, if it still has.
func (h *hunt) take(pid int, link string) {
	if link == "" {
		return
	}
	p, err := h.freezer.takeProcess(pid)
	if err != nil {
		if !vanished(err) {
			h.failed = err
		}
		return
	}
	// Read again under the pidfd: the pid may have changed hands in between.
	if !linksTo(link, h.link) || p.exited() {
		h.freezer.leave([]Process{p})
		return
	}
	p.link = link
	h.found = append(h.found, p)
}

// stillHeld makes sure that every process has the socket open, and nobody that they started has it too. It is
// errChanged if not.
func stillHeld(ps []Process, inode uint32) error {
	link := socketLink(inode)
	for i := range ps {
		if err := ps[i].same(); err != nil {
			return err
		}
		if linksTo(ps[i].link, link) {
			continue
		}
		found, err := holds(ps[i].PID, link)
		if err != nil && !vanished(err) {
			return err
		}
		if found == "" {
			return errChanged
		}
		ps[i].link = found
	}
	return noHeirs(ps, link)
}

// noHeirs is errChanged if a child that is not among ps has the socket.
func noHeirs(ps []Process, link string) error {
	for _, p := range ps {
		kids, err := children(p.PID)
		if err != nil {
			return err
		}
		for _, kid := range kids {
			if slices.ContainsFunc(ps, func(q Process) bool { return q.PID == kid }) {
				continue
			}
			found, err := holds(kid, link)
			if found != "" {
				return errChanged
			}
			if err != nil && !vanished(err) && !errors.Is(err, fs.ErrPermission) { // what another user has started shows nothing
				return err
			}
		}
	}
	return nil
}
