package freezer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// spinWithin is how long a v2 freeze is watched by reading. The kernel tells
// pollers of cgroup.events at most every 10 ms, and most freezes are done in
// a fraction of one.
const spinWithin = 2 * time.Millisecond

// A cgroup is a cgroup whose freezer is held open, so that thawing it needs no
// path and no permission that it might have lost meanwhile.
type cgroup struct {
	version version
	dir     string
	inode   uint64 // of the directory: a path may come to name another cgroup
	freeze  int    // cgroup.freeze, or freezer.state
	events  int    // cgroup.events; v1: freezer.parent_freezing
}

// openCgroup opens the files of a cgroup's freezer.
func openCgroup(g place) (*cgroup, error) {
	c := &cgroup{version: g.version, dir: g.dir, freeze: -1, events: -1}
	var st unix.Stat_t
	if err := unix.Stat(g.dir, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: g.dir, Err: err}
	}
	c.inode = st.Ino
	err := c.open(&c.freeze, c.version.file(), unix.O_RDWR)
	if err == nil {
		err = c.open(&c.events, c.eventsFile(), unix.O_RDONLY)
	}
	if err == nil {
		err = c.verifyKind()
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *cgroup) eventsFile() string {
	if c.version == v1 {
		return "freezer.parent_freezing"
	}
	return "cgroup.events"
}

func (c *cgroup) open(fd *int, file string, flags int) error {
	name := filepath.Join(c.dir, file)
	n, err := unix.Open(name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	*fd = n
	return nil
}

// verifyKind makes sure that the file is one of a cgroup: a journal may have
// been written by anybody, and what is in it is written to by root.
func (c *cgroup) verifyKind() error {
	want := int64(unix.CGROUP2_SUPER_MAGIC)
	if c.version == v1 {
		want = unix.CGROUP_SUPER_MAGIC
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(c.freeze, &st); err != nil {
		return &os.PathError{Op: "statfs", Path: c.dir, Err: err}
	}
	if int64(st.Type) != want {
		return fmt.Errorf("%s is not in a %s cgroup", c.dir, c.version)
	}
	return nil
}

func (c *cgroup) close() {
	for _, fd := range []int{c.freeze, c.events} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// read returns a file's text. kernfs makes it anew for offset 0.
func (c *cgroup) read(fd int) (string, error) {
	buf := make([]byte, 512)
	n, err := unix.Pread(fd, buf, 0)
	if err != nil {
		return "", fmt.Errorf("read the freezer of %s: %w", c.dir, err)
	}
	return strings.TrimSpace(string(buf[:n])), nil
}

func (c *cgroup) write(text string) error {
	if _, err := unix.Pwrite(c.freeze, []byte(text), 0); err != nil {
		return fmt.Errorf("write %s to the freezer of %s: %w", text, c.dir, err)
	}
	return nil
}

// order writes what is wanted, and reads whether the kernel took it.
func (c *cgroup) order(freeze bool) error {
	if c.version == v1 {
		return c.write(map[bool]string{true: "FROZEN", false: "THAWED"}[freeze])
	}
	want := map[bool]string{true: "1", false: "0"}[freeze]
	if err := c.write(want); err != nil {
		return err
	}
	got, err := c.read(c.freeze)
	if err == nil && got != want {
		err = fmt.Errorf("the freezer of %s reads %q after %s was written", c.dir, got, want)
	}
	return err
}

// frozen reports what the kernel has done, not what it was asked for.
func (c *cgroup) frozen() (bool, error) {
	if c.version == v1 {
		s, err := c.read(c.freeze)
		return s == "FROZEN", err
	}
	s, err := c.read(c.events)
	return strings.Contains("\n"+s+"\n", "\nfrozen 1\n"), err
}

// thawed reports whether nothing is frozen, nor about to be.
func (c *cgroup) thawed() (bool, error) {
	if c.version == v1 {
		s, err := c.read(c.freeze)
		return s == "THAWED", err
	}
	own, err := c.read(c.freeze)
	if err != nil || own != "0" {
		return false, err
	}
	is, err := c.frozen()
	return !is, err
}

// heldAbove reports whether a parent keeps the cgroup frozen.
func (c *cgroup) heldAbove() bool {
	if c.version == v1 {
		s, err := c.read(c.events)
		return err == nil && s == "1"
	}
	for dir := filepath.Dir(c.dir); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		b, err := readSmall(filepath.Join(dir, c.version.file()))
		if err != nil {
			return false
		}
		if strings.TrimSpace(string(b)) == "1" {
			return true
		}
	}
	return false
}

// stop freezes the cgroup and returns when the kernel says that it is.
func (c *cgroup) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	if err := c.order(true); err != nil {
		return err
	}
	begun := time.Now()
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, 200*time.Microsecond) {
		is, err := c.frozen()
		if is || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("freeze %s: the kernel has not frozen it: %w", c.dir, err)
		}
		if err := c.pause(wait, time.Since(begun) > spinWithin); err != nil {
			return err
		}
	}
}

// pause waits a little before the state is read again. v1 freezes what it
// finds when it is asked, so a moving target is asked again.
func (c *cgroup) pause(wait time.Duration, long bool) error {
	if !long {
		time.Sleep(wait)
		return nil
	}
	if c.version == v1 {
		time.Sleep(time.Millisecond)
		return c.order(true)
	}
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(c.events), Events: unix.POLLPRI}}, 10)
	if err != nil && err != unix.EINTR {
		return fmt.Errorf("wait for %s: %w", c.dir, err)
	}
	return nil
}

// thaw lets the cgroup go and waits until the kernel says so. A cgroup that was
// removed has nobody left in it; one whose parent is frozen by somebody else
// stays frozen, and that is theirs to end.
func (c *cgroup) thaw() error {
	deadline := time.Now().Add(confirmWithin)
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		err := c.order(false)
		done := false
		if err == nil {
			done, err = c.thawed()
		}
		if done || errors.Is(err, unix.ENODEV) {
			return nil
		}
		if err == nil && c.heldAbove() {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("thaw %s: still frozen, write %s to its %s by hand", c.dir,
				map[version]string{v1: "THAWED", v2: "0"}[c.version], c.version.file()), err)
		}
		time.Sleep(wait)
	}
}

// thawedByOthers says how a freeze that should still hold has ended, or "".
func (c *cgroup) thawedByOthers() string {
	is, err := c.frozen()
	switch {
	case errors.Is(err, unix.ENODEV):
		return fmt.Sprintf("%s was removed while it was frozen", c.dir)
	case err == nil && !is:
		return fmt.Sprintf("%s was thawed by somebody else", c.dir)
	}
	return ""
}
