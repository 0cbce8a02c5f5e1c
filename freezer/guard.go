package freezer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// The descriptors that a guard is started with, and the variable that says so.
const (
	guardSocket = 3
	guardDaemon = 4
	guardEnv    = "LOCKFAULTD_GUARD"

	messageMax = 64 << 10
	handlesMax = 250 // the kernel passes 253 in one message
)

// What a daemon asks of its guard.
const (
	opReady  = "ready" // the guard's first word
	opArm    = "arm"
	opGrow   = "grow" // more of the same: all of the target is told, and the handles are those of its end
	opMove   = "move" // the deadline is now known
	opDisarm = "disarm"
)

// An order is one message to the guard; arm brings the handles with it.
type order struct {
	Op       string `json:"op"`
	ID       uint64 `json:"id"`
	Deadline int64  `json:"deadline,omitempty"` // CLOCK_MONOTONIC, which all processes share
	Journal  string `json:"journal,omitempty"`
	Target   note   `json:"target,omitzero"`
}

// An answer is the guard's word on one order.
type answer struct {
	Op      string `json:"op"`
	ID      uint64 `json:"id"`
	Expired bool   `json:"expired,omitempty"` // disarm: the guard had thawed it at its deadline
	Error   string `json:"error,omitempty"`
}

// RunGuard is the guard's whole life: it holds what the daemon has frozen, and
// thaws it when the daemon dies, or each at its deadline. It returns when the
// daemon has gone and everything is thawed; an error names what is not.
//
// It ignores every signal that it can: it must outlive what ends the daemon.
// It writes to no stream, since whoever reads that may be frozen.
func RunGuard() error {
	if os.Getenv(guardEnv) == "" {
		return errors.New("run guard: it is started by the daemon, not by hand")
	}
	signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGTSTP, unix.SIGQUIT, unix.SIGTTIN, unix.SIGTTOU, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2)
	// A working directory would keep a file system from being unmounted.
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("run guard: %w", err)
	}
	g := guard{socket: guardSocket, daemon: guardDaemon, armed: make(map[uint64]*ward)}
	if err := g.say(answer{Op: opReady}); err != nil {
		return fmt.Errorf("run guard: %w", err)
	}
	return g.run()
}

// A ward is one freeze in the guard's keeping.
type ward struct {
	target   target
	journal  string
	deadline int64
	expired  bool
}

// grow takes more processes into a ward.
func (w *ward) grow(r order, fds []int) bool {
	known := len(w.target.procs)
	if w.target.group != nil || len(r.Target.Processes) != known+len(fds) {
		return false
	}
	more, ok := note{Processes: r.Target.Processes[known:]}.with(fds)
	if !ok {
		return false
	}
	w.target.procs = append(w.target.procs, more.procs...)
	w.journal, w.deadline = r.Journal, r.Deadline
	return true
}

// guard is a single thread of control: nothing in it waits but its poll.
type guard struct {
	socket, daemon int
	armed          map[uint64]*ward
}

func (g *guard) run() error {
	for {
		fds := []unix.PollFd{{Fd: int32(g.socket), Events: unix.POLLIN}, {Fd: int32(g.daemon), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, g.timeout())
		if err != nil && err != unix.EINTR {
			return errors.Join(fmt.Errorf("run guard: %w", err), g.thawAll())
		}
		g.expire(monotonic())
		// The daemon's death counts for itself: somebody else may have
		// inherited its end of the socket.
		if fds[1].Revents != 0 {
			return g.thawAll()
		}
		if fds[0].Revents != 0 && !g.hear() {
			return g.thawAll()
		}
	}
}

// timeout is how long the guard may sleep, in milliseconds; -1 for ever.
func (g *guard) timeout() int {
	next := int64(-1)
	for _, w := range g.armed {
		if !w.expired && (next < 0 || w.deadline < next) {
			next = w.deadline
		}
	}
	if next < 0 {
		return -1
	}
	left := max(0, next-monotonic())
	return int((left + int64(time.Millisecond) - 1) / int64(time.Millisecond))
}

// expire thaws what has reached its deadline. It stays armed, so that the
// daemon can be told, and is not thawed twice.
func (g *guard) expire(now int64) {
	var due []*ward
	for _, w := range g.armed {
		if !w.expired && w.deadline <= now {
			w.expired = true
			due = append(due, w)
		}
	}
	// What is not thawed stays in the journal, and the daemon will see it.
	_ = endAll(due)
}

func (g *guard) thawAll() error { return endAll(slices.Collect(maps.Values(g.armed))) }

// endAll wakes everybody first and verifies later, so that one that does not
// wake keeps nobody waiting. What is not thawed stays in the journal.
func endAll(ws []*ward) error {
	for _, w := range ws {
		w.target.wake()
	}
	var errs []error
	for _, w := range ws {
		err := w.target.thaw()
		if err == nil {
			err = erase(w.journal)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hear reads one order and answers it; false means that the daemon has gone.
func (g *guard) hear() bool {
	buf, oob := make([]byte, messageMax), make([]byte, unix.CmsgSpace(4*(handlesMax+2)))
	n, oobn, flags, _, err := unix.Recvmsg(g.socket, buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err == unix.EINTR || err == unix.EAGAIN {
		return true
	}
	if err != nil || n == 0 {
		return false
	}
	fds := received(oob[:oobn])
	var r order
	if err := json.Unmarshal(buf[:n], &r); err != nil || flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		closeFDs(fds)
		return g.say(answer{Op: r.Op, ID: r.ID, Error: "message not understood"}) == nil
	}
	return g.say(g.obey(r, fds)) == nil
}

func (g *guard) obey(r order, fds []int) answer {
	a := answer{Op: r.Op, ID: r.ID}
	w := g.armed[r.ID]
	switch {
	case r.Op == opArm && w == nil:
		t, ok := r.Target.with(fds)
		if !ok {
			closeFDs(fds)
			a.Error = "the handles do not fit the target"
			return a
		}
		g.armed[r.ID] = &ward{target: t, journal: r.Journal, deadline: r.Deadline}
	case r.Op == opGrow && w != nil:
		a.Expired = w.expired
		if !w.grow(r, fds) {
			closeFDs(fds)
			a.Error = "the handles do not fit the target"
		}
	case r.Op == opMove && w != nil:
		w.deadline = r.Deadline
		a.Expired = w.expired
	case r.Op == opDisarm && w != nil:
		a.Expired = w.expired
		w.target.close()
		delete(g.armed, r.ID)
	default:
		closeFDs(fds)
		a.Error = "out of order"
	}
	return a
}

func (g *guard) say(a answer) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	// The daemon waits for each answer, so the socket's buffer cannot be full.
	return unix.Sendto(g.socket, b, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, nil)
}

// received takes the descriptors out of a control message.
func received(oob []byte) []int {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var all []int
	for i := range msgs {
		if fds, err := unix.ParseUnixRights(&msgs[i]); err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// monotonic reads the clock that the daemon and the guard share, in nanoseconds.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}
