package freezer

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Tables are the descriptor tables of processes, as they were when they were
// read last. To read one takes a system call for each open file. So they are
// read by one look-up at a time, and one that had to wait finds what it looks
// for in what the one before it has read: a thousand connections of a process
// at once cost a few readings of its table, and not a thousand.
type tables struct {
	mu   sync.Mutex // held while a table is read, and for what was read
	read map[int]*table
}

// A table is the sockets of one process. What it says is to be made sure of.
type table struct {
	began   time.Time // what was open by then is in it
	dir     string
	sockets map[uint32]int // inode to descriptor
	failed  error          // why it could not be read
}

// tablesMax bounds how many tables are kept, and tableAge for how long.
const (
	tablesMax = 4 * recentMax
	tableAge  = time.Second
)

// of returns a table of pid that was read after since; t.mu is held.
func (t *tables) of(pid int, since time.Time) *table {
	if have := t.read[pid]; have != nil && have.began.After(since) {
		return have
	}
	if len(t.read) >= tablesMax {
		for pid, have := range t.read {
			if time.Since(have.began) > tableAge {
				delete(t.read, pid)
			}
		}
	}
	fresh := readTable(pid)
	t.read[pid] = fresh
	return fresh
}

// find returns where a table of any age has the inode; t.mu is held.
func (t *tables) find(inode uint32) (pid int, link string) {
	for pid, have := range t.read {
		if link := have.link(inode); link != "" {
			return pid, link
		}
	}
	return 0, ""
}

// link is the path under /proc of the descriptor of an inode, or "".
func (t *table) link(inode uint32) string {
	fd, ok := t.sockets[inode]
	if !ok {
		return ""
	}
	return t.dir + "/" + strconv.Itoa(fd)
}

// readTable reads the table of a process. A leader that has exited shows an
// empty one while its threads still share it, so theirs is read then.
func readTable(pid int) *table {
	t := &table{began: time.Now(), dir: procPath(pid, "fd"), sockets: map[uint32]int{}}
	fds, err := numbers(t.dir)
	if err == nil && len(fds) == 0 {
		fds, err = t.ofThread(pid)
	}
	t.failed = err
	for _, fd := range fds {
		if inode, ok := socketOf(t.dir + "/" + strconv.Itoa(fd)); ok {
			t.sockets[inode] = fd
		}
	}
	return t
}

func (t *table) ofThread(pid int) ([]int, error) {
	tids, err := numbers(procPath(pid, "task"))
	for _, tid := range slices.DeleteFunc(tids, func(tid int) bool { return tid == pid }) {
		dir := procPath(pid, "task", strconv.Itoa(tid), "fd")
		if fds, err := numbers(dir); err == nil && len(fds) > 0 {
			t.dir = dir
			return fds, nil
		}
	}
	return nil, err
}

// socketOf returns the inode of the socket that a descriptor links to.
func socketOf(name string) (uint32, bool) {
	var buf [64]byte
	n, err := unix.Readlink(name, buf[:])
	if err != nil {
		return 0, false
	}
	text, ok := strings.CutPrefix(string(buf[:n]), "socket:[")
	inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 32)
	return uint32(inode), ok && err == nil
}
