package freezer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// kernelThread is PF_KTHREAD in the flags of /proc/PID/stat.
const kernelThread = 0x00200000

// stat is what the package needs from /proc/PID/stat.
type stat struct {
	pid    int
	comm   string
	state  byte
	parent int
	flags  uint64
	start  uint64 // clock ticks after boot; with the pid, it names a process
}

// ended reports whether nothing of the thread runs any more.
func (s stat) ended() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

// stopped reports whether a signal or a tracer holds the thread.
func (s stat) stopped() bool { return s.state == 'T' || s.state == 't' }

// readSmall reads a file of /proc or of a cgroup in one read, around the
// runtime's poller: os.ReadFile costs three times as much here.
func readSmall(name string) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return buf[:n], nil
}

func readStat(pid int) (stat, error) { return statOf(procPath(pid, "stat")) }

func readThread(pid, tid int) (stat, error) {
	return statOf(procPath(pid, "task", strconv.Itoa(tid), "stat"))
}

func statOf(name string) (stat, error) {
	b, err := readSmall(name)
	if err != nil {
		return stat{}, err
	}
	s, err := parseStat(b)
	if err != nil {
		return stat{}, fmt.Errorf("parse %s: %w", name, err)
	}
	return s, nil
}

// parseStat reads one line of /proc/PID/stat. The command stands in
// parentheses and may hold blanks and parentheses itself, so the last one ends it.
func parseStat(b []byte) (s stat, err error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return s, errors.New("no command in parentheses")
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 20 || len(f[0]) != 1 {
		return s, errors.New("too few fields")
	}
	s.comm, s.state = string(b[open+1:end]), f[0][0]
	var errs [4]error
	s.pid, errs[0] = strconv.Atoi(strings.TrimSpace(string(b[:open])))
	s.parent, errs[1] = strconv.Atoi(f[1])
	s.flags, errs[2] = strconv.ParseUint(f[6], 10, 64)
	s.start, errs[3] = strconv.ParseUint(f[19], 10, 64)
	return s, errors.Join(errs[:]...)
}

// vanished reports whether an error says that a process or thread has ended, and not that it could not be looked at.
func vanished(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

func procPath(pid int, elem ...string) string {
	return path.Join(append([]string{"/proc", strconv.Itoa(pid)}, elem...)...)
}

// numbers lists the entries of a directory whose names are numbers.
func numbers(dir string) ([]int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	ns := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			ns = append(ns, n)
		}
	}
	return ns, err
}

// entries counts what a directory holds, up to most.
func entries(dir string, most int) (int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	names, err := d.Readdirnames(most)
	return len(names), err
}

// socketLink is what a descriptor of the socket's inode links to in /proc.
func socketLink(inode uint32) string {
	return "socket:[" + strconv.FormatUint(uint64(inode), 10) + "]"
}

// holds returns the path under /proc of a descriptor through which pid has the
// inode open, or "". A leader that has exited shows an empty fd directory while
// its threads still share the table, so theirs are read then.
func holds(pid int, link string) (string, error) {
	dir := procPath(pid, "fd")
	found, seen, err := findLink(dir, link)
	if found != "" || seen > 0 {
		return found, err
	}
	tids, terr := numbers(procPath(pid, "task"))
	if terr != nil {
		return "", errors.Join(err, terr)
	}
	for _, tid := range tids {
		if tid == pid {
			continue
		}
		if found, _, err := findLink(procPath(pid, "task", strconv.Itoa(tid), "fd"), link); found != "" {
			return found, err
		}
	}
	return "", err
}

// findLink looks for a link in one fd directory, and says how many it read.
func findLink(dir, link string) (found string, seen int, err error) {
	fds, err := numbers(dir)
	if err != nil {
		return "", 0, err
	}
	for _, fd := range fds {
		name := dir + "/" + strconv.Itoa(fd)
		if linksTo(name, link) {
			return name, len(fds), nil
		}
	}
	return "", len(fds), nil
}

func linksTo(name, link string) bool {
	var buf [64]byte
	n, err := unix.Readlink(name, buf[:])
	return err == nil && string(buf[:n]) == link
}

// ancestors returns the parents of pid, the nearest first, without pid 1.
func ancestors(pid int) []int {
	var up []int
	for len(up) < 1024 {
		s, err := readStat(pid)
		if err != nil || s.parent <= 1 {
			break
		}
		up = append(up, s.parent)
		pid = s.parent
	}
	return up
}

// children returns the processes that any thread of pid has started, none if it has ended.
func children(pid int) ([]int, error) {
	tids, err := numbers(procPath(pid, "task"))
	if err != nil && !vanished(err) {
		return nil, fmt.Errorf("list threads of %d: %w", pid, err)
	}
	var kids []int
	for _, tid := range tids {
		b, err := os.ReadFile(procPath(pid, "task", strconv.Itoa(tid), "children"))
		if vanished(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list children of %d: %w", pid, err)
		}
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				kids = append(kids, n)
			}
		}
	}
	return kids, nil
}

// descendants returns everything below pid that can be seen, as long as it stands still.
func descendants(pid int) []int {
	all, _ := children(pid)
	for i := 0; i < len(all) && len(all) < 4096; i++ {
		kids, _ := children(all[i])
		all = append(all, kids...)
	}
	return all
}

// family returns those to whom a fork may have given what pid has open: its
// ancestors, their other children, and everything below it.
func family(pid int) []int {
	all := descendants(pid)
	for _, up := range ancestors(pid) {
		kids, _ := children(up)
		all = append(append(all, up), kids...)
	}
	return all
}

// exeOf returns the path of a process's program, "" where it cannot be read.
func exeOf(pid int) string {
	name, _ := os.Readlink(procPath(pid, "exe"))
	return strings.TrimSuffix(name, " (deleted)")
}
