package freezer

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A Process is one holder of a connection. Its pid alone names nothing: with
// the start time it does, and the pidfd that is kept beside it keeps signals
// from reaching another process under the same number.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/PID/stat: clock ticks after boot
	Comm  string `json:"comm"`  // the kernel's name for it, at most 15 bytes
	Exe   string `json:"-"`     // path of its program; "" where it cannot be read

	pidfd  int
	link   string  // where under /proc it had the socket open, when last seen
	shared *holder // whose pidfd it is; nil: its own
}

// String names the process for people.
func (p Process) String() string { return fmt.Sprintf("pid %d (%s)", p.PID, p.Comm) }

// openProcess takes hold of a process. The pidfd comes first: if it is still
// alive after the reading, what was read belongs to it.
func openProcess(pid int) (Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return Process{}, fmt.Errorf("open pidfd of %d: %w", pid, err)
	}
	p, err := readProcess(pid, fd)
	if err != nil {
		unix.Close(fd)
	}
	return p, err
}

// readProcess reads what belongs to a pidfd.
func readProcess(pid, pidfd int) (Process, error) {
	p := Process{PID: pid, pidfd: pidfd}
	s, err := readStat(pid)
	if err == nil && p.exited() {
		err = unix.ESRCH
	}
	if err != nil {
		return Process{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	p.Start, p.Comm, p.Exe = s.start, s.comm, exeOf(pid)
	return p, nil
}

// exited reports whether the last thread has ended. A pid is not given to
// another process before that.
func (p Process) exited() bool {
	fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err != nil || n > 0
	}
}

// same makes sure that the pid still is the process that was recorded. It is errChanged if not.
func (p Process) same() error {
	s, err := readStat(p.PID)
	if vanished(err) || err == nil && (s.start != p.Start || p.exited()) {
		return errChanged
	}
	return err
}

// dup returns the process with a pidfd of its own.
func (p Process) dup() (Process, error) {
	fd, err := unix.FcntlInt(uintptr(p.pidfd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return p, fmt.Errorf("keep pidfd of %d: %w", p.PID, err)
	}
	p.pidfd, p.shared = fd, nil
	return p, nil
}

func closeAll(ps []Process) {
	for _, p := range ps {
		unix.Close(p.pidfd)
	}
}

func dupAll(ps []Process) ([]Process, error) {
	kept := make([]Process, 0, len(ps))
	for _, p := range ps {
		k, err := p.dup()
		if err != nil {
			closeAll(kept)
			return nil, err
		}
		kept = append(kept, k)
	}
	return kept, nil
}
