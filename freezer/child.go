package freezer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A ChildCgroup is a cgroup of its own for a command, below the daemon's, so
// that the command can be frozen whole without the daemon. Its maker closes it
// when the command has ended.
type ChildCgroup struct {
	place place
	dir   *os.File
}

// NewChildCgroup makes a cgroup whose name begins with name: in the unified
// hierarchy, or where that cannot freeze, in the freezer's own. An error
// matches fs.ErrPermission or fs.ErrNotExist where the machine does not allow
// it; the command can do without.
func NewChildCgroup(name string) (*ChildCgroup, error) {
	m, err := findMounts()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, v := range []version{v2, v1} {
		c, err := m.child(name, v)
		if err == nil {
			return c, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("make a cgroup for %s: %w", name, errors.Join(errs...))
}

func (m mounts) child(name string, v version) (*ChildCgroup, error) {
	own, err := m.of(os.Getpid(), v)
	if err != nil {
		return nil, err
	}
	if own.outside() {
		return nil, fmt.Errorf("own cgroup %s lies outside this cgroup namespace: %w", own.path, fs.ErrNotExist)
	}
	dir, err := os.MkdirTemp(own.dir, name+"-*")
	if err != nil {
		return nil, err
	}
	c := &ChildCgroup{place: place{version: v, path: filepath.Join(own.path, filepath.Base(dir)), dir: dir, mount: own.mount}}
	if _, err = os.Stat(filepath.Join(dir, v.file())); err == nil {
		c.dir, err = os.Open(dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return c, nil
}

// Path returns its directory.
func (c *ChildCgroup) Path() string { return c.place.dir }

// Configure makes a command that is started with attr begin its life in the
// cgroup, and reports whether it can: only the unified hierarchy takes
// a process at birth. Where it cannot, call Enter once the command has started.
func (c *ChildCgroup) Configure(attr *syscall.SysProcAttr) bool {
	if c.place.version != v2 {
		return false
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(c.dir.Fd())
	return true
}

// Enter moves a process into the cgroup. Children that it already has stay out.
func (c *ChildCgroup) Enter(pid int) error {
	name := filepath.Join(c.place.dir, "cgroup.procs")
	if err := os.WriteFile(name, []byte(strconv.Itoa(pid)), 0); err != nil {
		return fmt.Errorf("move %d into a cgroup: %w", pid, err)
	}
	return nil
}

// removeWithin bounds how long Close waits for the last process to be reaped.
const removeWithin = time.Second

// Close removes the cgroup. A command's processes may take a moment to leave
// it; one that stays is an error, and so does the directory.
func (c *ChildCgroup) Close() error {
	err := c.dir.Close()
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	for deadline := time.Now().Add(removeWithin); ; time.Sleep(5 * time.Millisecond) {
		rerr := unix.Rmdir(c.place.dir)
		if rerr == nil || rerr == unix.ENOENT {
			return err
		}
		if rerr != unix.EBUSY || time.Now().After(deadline) {
			pids, _ := subtree(c.place.dir)
			return errors.Join(err, fmt.Errorf("remove cgroup %s, which holds processes %v: %w", c.place.dir, pids, rerr))
		}
	}
}
