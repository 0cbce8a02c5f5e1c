package freezer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// whose returns those of a connection's holders whom a freeze is about: the one that is seen to use it, where only one
// is, or else all of a family. Of others nobody knows whose op it is.
func whose(ps []Process, inode uint32, scope Scope) ([]Process, error) {
	if len(ps) == 1 || scope == ScopeCgroup {
		return ps, nil
	}
	using := slices.DeleteFunc(slices.Clone(ps), func(p Process) bool { return !uses(p.PID, inode) })
	switch {
	case len(using) == 1:
		return using, nil
	case related(ps):
		return ps, nil
	}
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.String()
	}
	return nil, refuse(0, "the connection is held by %s, which are no relatives, and which of them uses it cannot be told", strings.Join(names, " and "))
}

// related reports whether all descend from one of them, or have the same parent.
func related(ps []Process) bool {
	ups := make([][]int, len(ps)) // each with its ancestors, the nearest first
	for i, p := range ps {
		ups[i] = append([]int{p.PID}, ancestors(p.PID)...)
	}
	for _, root := range ps {
		if !slices.ContainsFunc(ups, func(up []int) bool { return !slices.Contains(up, root.PID) }) {
			return true
		}
	}
	return !slices.ContainsFunc(ups, func(up []int) bool { return len(up) < 2 || up[1] != ups[0][1] })
}

// uses reports whether a process is seen to wait for a connection, or to read or write it: in a system call, or by an
// epoll set. One that is busy with something else is not.
func uses(pid int, inode uint32) bool {
	fds, _ := numbers(procPath(pid, "fd"))
	own, link := make(map[int]bool), socketLink(inode)
	for _, fd := range fds {
		name := procPath(pid, "fd", strconv.Itoa(fd))
		switch {
		case linksTo(name, link):
			own[fd] = true
		case linksTo(name, "anon_inode:[eventpoll]") && watches(pid, fd, inode):
			return true
		}
	}
	tids, _ := numbers(procPath(pid, "task"))
	return slices.ContainsFunc(tids, func(tid int) bool { return waitsOn(pid, tid, own) })
}

// watches reports whether an epoll set has the inode in it.
func watches(pid, fd int, inode uint32) bool {
	b, err := os.ReadFile(procPath(pid, "fdinfo", strconv.Itoa(fd)))
	return err == nil && bytes.Contains(b, []byte(" ino:"+strconv.FormatUint(uint64(inode), 16)+" "))
}

const (
	pollAMD64 = 7    // where other machines have ppoll alone
	mostPoll  = 1024 // descriptors of one poll that are looked at
)

// waitsOn reports whether a thread is in a system call on one of the descriptors.
func waitsOn(pid, tid int, own map[int]bool) bool {
	b, _ := readSmall(procPath(pid, "task", strconv.Itoa(tid), "syscall"))
	f := strings.Fields(string(b))
	if len(f) < 3 { // it runs
		return false
	}
	var n [3]uint64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseUint(f[i], 0, 64); err != nil {
			return false
		}
	}
	switch call := n[0]; {
	case slices.Contains([]uint64{unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_SENDTO, unix.SYS_SENDMSG}, call):
		return own[int(n[1])]
	case call == unix.SYS_PPOLL, call == pollAMD64 && runtime.GOARCH == "amd64":
		return slices.ContainsFunc(pollsOf(pid, uintptr(n[1]), int(min(n[2], mostPoll))), func(fd int) bool { return own[fd] })
	}
	return false
}

// pollsOf reads which descriptors a process polls.
func pollsOf(pid int, at uintptr, n int) (fds []int) {
	if n == 0 {
		return nil
	}
	b := make([]byte, 8*n) // struct pollfd
	got, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}, []unix.RemoteIovec{{Base: at, Len: len(b)}}, 0)
	if err != nil {
		return nil
	}
	for i := 0; i+8 <= got; i += 8 {
		fds = append(fds, int(int32(binary.NativeEndian.Uint32(b[i:]))))
	}
	return fds
}

// strangersEvery bounds how often all processes are looked at for them.
const strangersEvery = time.Second

// seekStrangers looks, while the freeze lasts, for processes to which the connection was passed: they are no relatives,
// and it takes up to 0.3 ms for each process of the machine, for which no freeze can wait. The next freeze of the connection knows them.
func (z *Frozen) seekStrangers(inode uint32) {
	f := z.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if z.target.group != nil || f.closed || time.Since(f.sought) < strangersEvery {
		return
	}
	f.sought = time.Now()
	known := slices.Clone(z.holders)
	f.wg.Go(func() {
		found := f.strangers(known, inode)
		if len(found) == 0 {
			return
		}
		z.mu.Lock()
		if z.broken == "" && !z.over {
			z.broken = fmt.Sprintf("%s has the connection too, and was not stopped", found[0])
		}
		z.mu.Unlock()
		z.owner.learn(found)
	})
}

// strangers looks among all processes for those that have a socket and are not known to: one to which it was passed.
func (f *Freezer) strangers(known []Process, inode uint32) (out []Process) {
	link := socketLink(inode)
	all, _ := numbers("/proc")
	for _, pid := range all {
		if slices.ContainsFunc(known, func(p Process) bool { return p.PID == pid }) {
			continue
		}
		at, _ := holds(pid, link)
		if at == "" {
			continue
		}
		p, err := f.takeProcess(pid)
		switch {
		case err != nil:
		case !linksTo(at, link): // the pid changed hands
			f.leave([]Process{p})
		default:
			p.link = at
			out = append(out, p)
		}
	}
	return out
}
