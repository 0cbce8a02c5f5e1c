package freezer

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	recentMax = 64   // recent holders that are tried before every process is
	freedMax  = 4096 // descriptors of one that are remembered as free
	guesses   = 16   // descriptors of one that are tried, of those, and beside the last found
	patience  = 64   // how often one that was given back is tried in vain before it is given up

	kinship = time.Second // how long nobody looks again for relatives who share with a process that shared with none
)

// A holder is a process that has connections of ours, or had lately. Its
// pidfd serves all of them: a process with a thousand connections has one.
//
// It also knows where to look first. The kernel gives the lowest descriptor
// that is free, so that the next connection of a process most often has one
// that an earlier one has given back, or the one behind the last: that takes a
// few system calls, where reading the whole table of a process takes one for
// each of its connections.
type holder struct {
	pid   int
	pidfd int
	refs  int  // owners that use the pidfd
	old   bool // not among the recent any more, or exited: closed with the last owner
	last  int  // descriptor found last
	freed []freed
	alone time.Time // when it was seen last to share with no relative
}

// freed is a descriptor that was given back, and how often it was tried since,
// in vain.
type freed struct{ fd, tries int }

// guess lists the descriptors to try; behind the freezer's mutex.
func (h *holder) guess() []int {
	out := make([]int, 0, 2*guesses)
	n := min(len(h.freed), guesses)
	for _, f := range h.freed[:n] {
		out = append(out, f.fd)
	}
	for d := range guesses / 2 {
		out = append(out, h.last+1+d)
	}
	for d := range guesses / 4 {
		out = append(out, h.last-d)
	}
	return out
}

// missed notes which descriptors were tried in vain. One that is again and
// again has been taken by something that is no connection of ours.
func (h *holder) missed(fds []int) {
	for _, fd := range fds {
		if i, ok := h.search(fd); ok {
			h.freed[i].tries++
		}
	}
	h.freed = slices.DeleteFunc(h.freed, func(f freed) bool { return f.tries >= patience })
}

// found notes where a connection was.
func (h *holder) found(fd int) {
	h.last = fd
	if i, ok := h.search(fd); ok {
		h.freed = slices.Delete(h.freed, i, i+1)
	}
}

// gave notes a descriptor that the process has most likely closed.
func (h *holder) gave(fd int) {
	if i, ok := h.search(fd); !ok && len(h.freed) < freedMax {
		h.freed = slices.Insert(h.freed, i, freed{fd: fd})
	}
}

func (h *holder) search(fd int) (int, bool) {
	return slices.BinarySearchFunc(h.freed, fd, func(f freed, fd int) int { return f.fd - fd })
}

// take returns a process with the pidfd that its connections share. The owner
// gives it back with leave.
func (f *Freezer) takeProcess(pid int) (Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.holderOf(pid); h != nil {
		p, err := readProcess(pid, h.pidfd)
		if err == nil {
			p.shared = h
			h.refs++
			return p, nil
		}
		f.forget(h) // it has exited: the pid may be another's by now
	}
	p, err := openProcess(pid)
	if err != nil {
		return p, err
	}
	p.shared = &holder{pid: pid, pidfd: p.pidfd, refs: 1, last: -1}
	f.recent = append(f.recent, p.shared)
	if len(f.recent) > recentMax {
		f.forget(f.recent[0])
	}
	return p, nil
}

func (f *Freezer) holderOf(pid int) *holder {
	i := slices.IndexFunc(f.recent, func(h *holder) bool { return h.pid == pid })
	if i < 0 {
		return nil
	}
	return f.recent[i]
}

// forget takes a holder off the list, and closes it if nobody uses it.
func (f *Freezer) forget(h *holder) {
	f.recent = slices.DeleteFunc(f.recent, func(g *holder) bool { return g == h })
	h.old = true
	if h.refs == 0 {
		unix.Close(h.pidfd)
	}
}

// isAlone reports whether it was found a moment ago that a process shares
// nothing with its relatives.
func (f *Freezer) isAlone(p Process) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(p.shared.alone) < kinship
}

func (f *Freezer) wasAlone(p Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.shared.alone = time.Now()
}

// leave gives processes back whose connection has ended.
func (f *Freezer) leave(ps []Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range ps {
		h := p.shared
		h.refs--
		if fd, ok := p.descriptor(); ok {
			h.gave(fd)
		}
		if h.old && h.refs == 0 {
			unix.Close(h.pidfd)
		}
	}
}

// remember notes where a connection was found, and of whom lately.
func (f *Freezer) remember(ps []Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range ps {
		if fd, ok := p.descriptor(); ok {
			p.shared.found(fd)
		}
		if i := slices.Index(f.recent, p.shared); i >= 0 {
			f.recent = append(slices.Delete(f.recent, i, i+1), p.shared)
		}
	}
}

// forgetAll closes what no owner uses any more.
func (f *Freezer) forgetAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.recent) > 0 {
		f.forget(f.recent[0])
	}
}

// descriptor is the number under which the process has the connection, if it
// was found in its own table.
func (p Process) descriptor() (int, bool) {
	text, ok := strings.CutPrefix(p.link, procPath(p.PID, "fd")+"/")
	if !ok {
		return 0, false
	}
	fd, err := strconv.Atoi(text)
	return fd, err == nil
}

// A hint is a recent holder and where in its table to look.
type hint struct {
	holder *holder
	fds    []int
}

// hints lists the recent holders, the latest first. Most often the first of them
// has the connection and the others are not tried, so that what was tried
// in vain is counted afterwards.
func (f *Freezer) hints() []hint {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]hint, 0, len(f.recent))
	for _, h := range slices.Backward(f.recent) {
		out = append(out, hint{h, h.guess()})
	}
	return out
}

// missed notes what was tried in vain.
func (f *Freezer) missed(hints []hint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range hints {
		h.holder.missed(h.fds)
	}
}
