package freezer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// guardStartsWithin bounds the wait for a new guard's first word.
	guardStartsWithin = 5 * time.Second
	// guardAnswersWithin bounds the wait for an answer. The guard is slow only
	// while it verifies a thaw that does not happen.
	guardAnswersWithin = confirmWithin + time.Second
)

// A guardian is the daemon's view of its guard. One order is under way at a
// time, and each is answered before the next.
type guardian struct {
	cmd  *exec.Cmd
	conn *net.UnixConn
	mu   sync.Mutex
	dead chan struct{} // closed when the process has ended and was reaped
}

// startGuard starts a guard and waits for its first word. The caller must call
// wait, and may only then rely on dead.
func startGuard(argv []string) (*guardian, error) {
	if len(argv) == 0 {
		return nil, errors.New("start guard: no command given")
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("start guard: %w", err)
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		ours.Close()
		theirs.Close()
		return nil, fmt.Errorf("start guard: open own pidfd: %w", err)
	}
	daemon := os.NewFile(uintptr(self), "daemon")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{theirs, daemon} // guardSocket, guardDaemon
	cmd.Env = append(os.Environ(), guardEnv+"=1")
	// Its own process group, so that a terminal's signals to the daemon's miss
	// it. Not its own session: to the scheduler (CONFIG_SCHED_AUTOGROUP) that is
	// another claim on the processor, and a new one can wait for seconds behind a
	// busy session that the daemon itself is served in. No parent-death signal:
	// that is the one moment it exists for.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	// At once: with its own end open the daemon would never see the guard's close.
	theirs.Close()
	daemon.Close()
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("start guard: %w", err)
	}
	g := &guardian{cmd: cmd, conn: ours, dead: make(chan struct{})}
	if err := g.awaitReady(); err != nil {
		ours.Close()
		cmd.Process.Kill()
		cmd.Wait()
		return nil, fmt.Errorf("start guard %q: %w", argv, err)
	}
	return g, nil
}

// socketPair returns a connected pair that keeps the bounds of messages.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "guard"), os.NewFile(uintptr(fds[1]), "guard")
	defer ours.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make socket pair: %w", err)
	}
	return c.(*net.UnixConn), theirs, nil
}

func (g *guardian) awaitReady() error {
	g.conn.SetReadDeadline(time.Now().Add(guardStartsWithin))
	a, err := g.read()
	if err == nil && a.Op != opReady {
		err = fmt.Errorf("its first word is %q", a.Op)
	}
	return err
}

// wait reaps the guard. It returns when the guard has ended.
func (g *guardian) wait() {
	g.cmd.Wait()
	close(g.dead)
}

func (g *guardian) pid() int { return g.cmd.Process.Pid }

func (g *guardian) alive() bool {
	select {
	case <-g.dead:
		return false
	default:
		return true
	}
}

// order sends one order and returns its answer. A guard that does not answer
// is killed: what it holds is then thawed by the daemon.
func (g *guardian) order(o order, handles []int) (answer, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, err := g.exchange(o, handles)
	if err != nil {
		g.cmd.Process.Kill()
		return a, fmt.Errorf("tell the guard to %s: %w", o.Op, errors.Join(ErrGuard, err))
	}
	if a.Error != "" {
		return a, fmt.Errorf("tell the guard to %s: it answered: %s", o.Op, a.Error)
	}
	return a, nil
}

func (g *guardian) exchange(o order, handles []int) (answer, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return answer{}, err
	}
	var rights []byte
	if len(handles) > 0 {
		rights = unix.UnixRights(handles...)
	}
	g.conn.SetDeadline(time.Now().Add(guardAnswersWithin))
	if _, _, err := g.conn.WriteMsgUnix(b, rights, nil); err != nil {
		return answer{}, err
	}
	a, err := g.read()
	if err == nil && (a.Op != o.Op || a.ID != o.ID) {
		err = fmt.Errorf("it answered to %s %d", a.Op, a.ID)
	}
	return a, err
}

func (g *guardian) read() (a answer, err error) {
	buf := make([]byte, 4096)
	n, err := g.conn.Read(buf)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(buf[:n], &a)
}

// end lets the guard go: without the daemon's end of the socket it thaws what
// it still holds, and leaves. One that does not is killed.
func (g *guardian) end() {
	g.conn.Close()
	select {
	case <-g.dead:
	case <-time.After(guardAnswersWithin):
		g.cmd.Process.Kill()
		<-g.dead
	}
}
