package freezer

import (
	"errors"
	"fmt"
)

// The errors of a look-up and of a freeze that callers tell apart. A
// [*NoHolder] and a [*Refusal] are the others.
var (
	// ErrNoAddress: the connection has no IP address.
	ErrNoAddress = errors.New("the client has no IP address, so its process cannot be found")
	// ErrNoConnection: no network namespace of this host that can be asked knows such
	// an established connection, nor of one that was translated into it. The client is gone, or elsewhere.
	ErrNoConnection = errors.New("no such connection in this network namespace")
	// ErrClosed: the Freezer was closed.
	ErrClosed = errors.New("freezer is closed")
	// ErrGuard: there is no living guard, and so nothing may be frozen.
	ErrGuard = errors.New("no guard")
	// ErrGone: what was to be frozen has ended.
	ErrGone = errors.New("the process has ended")
)

// NoHolder says that a connection exists and that no process was found that
// has it open: it is in another pid namespace, or not readable, or held by the
// kernel alone.
type NoHolder struct {
	Inode      uint32
	Unreadable int // processes whose descriptors could not be read
}

func (e *NoHolder) Error() string {
	s := fmt.Sprintf("no process found that holds socket %d", e.Inode)
	if e.Unreadable > 0 {
		s += fmt.Sprintf("; %d processes could not be read (that takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH)", e.Unreadable)
	}
	return s
}

// A Refusal says why something must not be frozen. Nothing was done.
type Refusal struct {
	Reason string // a clause: "pid 812 (sshd) is protected by its name"
	PID    int    // the process that it is about; 0 for a whole cgroup
}

func (r *Refusal) Error() string { return "refused: " + r.Reason }

func refuse(pid int, format string, args ...any) *Refusal {
	return &Refusal{Reason: fmt.Sprintf(format, args...), PID: pid}
}
