package freezer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// version tells the two kinds of freezer apart.
type version string

const (
	v2 version = "v2" // cgroup.freeze of the unified hierarchy
	v1 version = "v1" // freezer.state of the freezer controller's own hierarchy
)

// file is the name of the file that freezes a cgroup.
func (v version) file() string {
	if v == v1 {
		return "freezer.state"
	}
	return "cgroup.freeze"
}

// place is one cgroup: its path within the hierarchy and in the file system.
type place struct {
	version version
	path    string // as /proc/PID/cgroup shows it
	dir     string
	mount   string
}

// mount is where a hierarchy is mounted, and which part of it.
type mount struct{ root, dir string }

// mounts are the hierarchies that can freeze.
type mounts struct{ at map[version]mount }

func findMounts() (mounts, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mounts{}, fmt.Errorf("read mounts: %w", err)
	}
	return parseMounts(string(b)), nil
}

// parseMounts takes the first mount of each hierarchy.
func parseMounts(text string) mounts {
	m := mounts{at: make(map[version]mount)}
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 {
			continue
		}
		v := v2
		switch {
		case r[0] == "cgroup2":
		case r[0] == "cgroup" && hasOption(r[2], "freezer"):
			v = v1
		default:
			continue
		}
		if _, ok := m.at[v]; !ok {
			m.at[v] = mount{root: unescape(l[3]), dir: unescape(l[4])}
		}
	}
	return m
}

func hasOption(list, want string) bool {
	for o := range strings.SplitSeq(list, ",") {
		if o == want {
			return true
		}
	}
	return false
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// of returns where a process is in one hierarchy.
func (m mounts) of(pid int, v version) (place, error) {
	at, ok := m.at[v]
	if !ok {
		return place{}, fmt.Errorf("no %s freezer is mounted: %w", v, fs.ErrNotExist)
	}
	b, err := os.ReadFile(procPath(pid, "cgroup"))
	if err != nil {
		return place{}, err
	}
	p, ok := cgroupPath(string(b), v)
	if !ok {
		return place{}, fmt.Errorf("pid %d has no %s freezer cgroup: %w", pid, v, fs.ErrNotExist)
	}
	rest := p
	if at.root != "/" {
		if p != at.root && !strings.HasPrefix(p, at.root+"/") {
			return place{}, fmt.Errorf("cgroup %s of pid %d lies outside the mount %s: %w", p, pid, at.dir, fs.ErrNotExist)
		}
		rest = strings.TrimPrefix(p, at.root)
	}
	return place{version: v, path: p, dir: filepath.Join(at.dir, rest), mount: at.dir}, nil
}

// cgroupPath finds a hierarchy's line in /proc/PID/cgroup.
func cgroupPath(text string, v version) (string, bool) {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		if v == v2 && f[0] == "0" && f[1] == "" || v == v1 && hasOption(f[1], "freezer") {
			return f[2], true
		}
	}
	return "", false
}

// cgroupOf returns the cgroup that a freeze of the process's cgroup would take:
// its v2 one, or where that is the root, cannot freeze, or has the daemon in it,
// its v1 one. Without either it is a Refusal.
func (m mounts) cgroupOf(pid int) (place, error) {
	var errs []error
	for _, v := range []version{v2, v1} {
		g, err := m.of(pid, v)
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case g.outside():
			return place{}, refuse(pid, "pid %d is in cgroup %s, which lies outside this cgroup namespace", pid, g.path)
		case g.isRoot():
			errs = append(errs, fmt.Errorf("its %s cgroup is the root", v))
			continue
		case m.holdsSelf(g):
			errs = append(errs, fmt.Errorf("%s is the daemon's own cgroup, or above it", g.dir))
			continue
		}
		if _, err = os.Stat(filepath.Join(g.dir, v.file())); err == nil {
			return g, nil
		}
		errs = append(errs, err)
	}
	return place{}, refuse(pid, "pid %d is in no cgroup that could be frozen: %v; %v", pid, errs[0], errs[1])
}

// holdsSelf reports whether a freeze of the cgroup would stop this process.
func (m mounts) holdsSelf(g place) bool {
	own, err := m.of(os.Getpid(), g.version)
	return err == nil && g.contains(own)
}

// isRoot reports whether freezing it would mean everything, or something that
// this cgroup namespace cannot name.
func (g place) isRoot() bool {
	return g.path == "/" || g.dir == g.mount
}

// outside reports whether the path leaves this cgroup namespace.
func (g place) outside() bool {
	for elem := range strings.SplitSeq(g.path, "/") {
		if elem == ".." {
			return true
		}
	}
	return false
}

// contains reports whether h is g or below it.
func (g place) contains(h place) bool {
	return g.version == h.version && (g.path == h.path || strings.HasPrefix(h.path, strings.TrimSuffix(g.path, "/")+"/"))
}

// members returns the pids of the v2 cgroup with an id, none where the id says
// nothing: 1 is the root, which is where sockets are filed when nobody knows.
func (m mounts) members(id uint64) []int {
	at, ok := m.at[v2]
	if !ok || id <= 1 {
		return nil
	}
	fd, err := unix.Open(at.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	const kernfsHandle = 0xfe // FILEID_KERNFS
	h := unix.NewFileHandle(kernfsHandle, binary.NativeEndian.AppendUint64(nil, id))
	dir, err := unix.OpenByHandleAt(fd, h, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	pids, _ := procsOf(filepath.Join("/proc/self/fd", strconv.Itoa(dir)))
	return pids
}

// procsOf reads one cgroup's processes. A 0 is one of another pid namespace.
func procsOf(dir string) ([]int, error) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	var pids []int
	for f := range strings.FieldsSeq(string(b)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
		pids = append(pids, n)
	}
	return pids, nil
}

// subtree reads the processes of a cgroup and of all below it. One that is
// removed meanwhile has none.
func subtree(dir string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case name != dir && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		}
		ps, err := procsOf(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		pids = append(pids, ps...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the processes below %s: %w", dir, err)
	}
	return pids, nil
}
