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

// A holder may be seen to use the connection only some time after it has sent something: it has to come back to where it
// waits. It is looked for so often, so far apart.
const (
	mostLooks = 5
	lookEvery = time.Millisecond
)

// whose returns those of a connection's holders whom a freeze is about: all of them, if they are a family, since which of
// them works on the connection shows in no system call. Of several families it is the one that is seen to use it while
// the others wait for something else.
func whose(ps []Process, inode uint32, scope Scope) ([]Process, error) {
	if len(ps) == 1 || scope == ScopeCgroup {
		return ps, nil
	}
	all := families(ps)
	if len(all) == 1 {
		return ps, nil
	}
	for range mostLooks {
		if them := using(all, inode); them != nil {
			return them, nil
		}
		time.Sleep(lookEvery)
	}
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.String()
	}
	return nil, refuse(0, "the connection is held by %s, which are no relatives, and which of them uses it cannot be told", strings.Join(names, " and "))
}

// families parts processes: those of one have an ancestor among them, or the same parent.
func families(ps []Process) (out [][]Process) {
	ups := make(map[int][]int, len(ps)) // each with its ancestors, the nearest first
	for _, p := range ps {
		ups[p.PID] = append([]int{p.PID}, ancestors(p.PID)...)
	}
	for _, p := range ps {
		own := []Process{p}
		out = slices.DeleteFunc(out, func(f []Process) bool {
			if !slices.ContainsFunc(f, func(o Process) bool { return related(ups[p.PID], ups[o.PID]) }) {
				return false
			}
			own = append(own, f...)
			return true
		})
		out = append(out, own)
	}
	return out
}

// related reports whether one of two processes descends from the other, or both have the same parent.
func related(a, b []int) bool {
	return slices.Contains(a, b[0]) || slices.Contains(b, a[0]) || len(a) > 1 && len(b) > 1 && a[1] == b[1]
}

// using returns the one family that uses the connection while all others certainly do not; nil if that cannot be told now.
func using(all [][]Process, inode uint32) (them []Process) {
	for _, f := range all {
		most := waits
		for _, p := range f {
			most = max(most, mannerOf(p.PID, inode))
		}
		switch {
		case most == mayUse, most == uses && them != nil:
			return nil
		case most == uses:
			them = f
		}
	}
	return them
}

// A manner is what a holder is seen to do.
type manner int

const (
	waits  manner = iota // for something else
	mayUse               // it runs, or what it waits for cannot be told
	uses                 // it waits for the connection, or reads or writes it
)

// mannerOf looks at what the threads of a process do with a connection that it has.
func mannerOf(pid int, inode uint32) manner {
	fds, err := numbers(procPath(pid, "fd"))
	tids, terr := numbers(procPath(pid, "task"))
	if err != nil || terr != nil {
		return mayUse
	}
	own, link := make(map[int]bool), socketLink(inode)
	for _, fd := range fds {
		name := procPath(pid, "fd", strconv.Itoa(fd))
		own[fd] = linksTo(name, link) || linksTo(name, "anon_inode:[eventpoll]") && watches(pid, fd, inode)
	}
	most := waits
	for _, tid := range tids {
		most = max(most, threadOn(pid, tid, own))
	}
	return most
}

// watches reports whether an epoll set has the inode in it.
func watches(pid, fd int, inode uint32) bool {
	b, err := os.ReadFile(procPath(pid, "fdinfo", strconv.Itoa(fd)))
	return err == nil && bytes.Contains(b, []byte(" ino:"+strconv.FormatUint(uint64(inode), 16)+" "))
}

const (
	pollAMD64      = 7 // where other machines have ppoll alone
	selectAMD64    = 23
	epollWaitAMD64 = 232
	mostPoll       = 1024 // descriptors of one poll that are looked at
)

// threadOn tells what a thread does with the descriptors by the system call that it is in.
func threadOn(pid, tid int, own map[int]bool) manner {
	b, _ := readSmall(procPath(pid, "task", strconv.Itoa(tid), "syscall"))
	f := strings.Fields(string(b))
	if len(f) < 3 { // it runs, or may not be looked at
		return mayUse
	}
	var n [3]uint64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseUint(f[i], 0, 64); err != nil {
			return mayUse
		}
	}
	is := uses
	switch call := int(n[0]); {
	case slices.Contains([]int{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_SENDTO, unix.SYS_SENDMSG,
		unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2,
	}, call), call == onAMD64(epollWaitAMD64):
		if !own[int(n[1])] {
			is = waits
		}
	case call == unix.SYS_PPOLL, call == onAMD64(pollAMD64):
		if !slices.ContainsFunc(pollsOf(pid, uintptr(n[1]), int(min(n[2], mostPoll))), func(fd int) bool { return own[fd] }) {
			is = waits
		}
	case call == unix.SYS_RESTART_SYSCALL && sleeps(pid, tid):
		is = waits
	case slices.Contains([]int{unix.SYS_PSELECT6, unix.SYS_RECVMMSG, unix.SYS_SENDMMSG, unix.SYS_IO_URING_ENTER, unix.SYS_RESTART_SYSCALL, onAMD64(selectAMD64)}, call):
		is = mayUse
	default:
		is = waits
	}
	return is
}

// sleeps reports whether a thread whose system call was begun anew, after a stop, waits for no descriptor: for a time, or
// for another thread.
func sleeps(pid, tid int) bool {
	b, err := readSmall(procPath(pid, "task", strconv.Itoa(tid), "wchan"))
	return err == nil && (bytes.Contains(b, []byte("futex")) || bytes.Contains(b, []byte("nanosleep")))
}

// onAMD64 is the number of a system call that this machine has, or none.
func onAMD64(call int) int {
	if runtime.GOARCH != "amd64" {
		return -1
	}
	return call
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

// strangersEvery bounds how often all processes are looked at for those of one connection.
const strangersEvery = time.Second

// seekStrangers looks, while the freeze lasts, for processes to which the connection was passed: they are no relatives,
// and it takes up to 0.3 ms for each process of the machine, for which no freeze can wait. The next freeze of the connection knows them.
func (z *Frozen) seekStrangers(inode uint32) {
	f := z.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if z.target.group != nil || f.closed || !z.owner.dueStrangers(time.Now()) {
		return
	}
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
