package freezer

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Finding is one thing that freezing needs, as it is here.
type Finding struct {
	What string // "capabilities"
	OK   bool
	Says string
}

// Examine finds out what freezing on this machine could do and what not. Nothing is frozen. It starts a guard,
// as a freeze would, and ends it.
func Examine(journalDir string, guardCommand []string) []Finding {
	m, err := findMounts()
	out := []Finding{examineProcesses(), examineCapabilities(), examineGuard(journalDir, guardCommand)}
	if err != nil {
		out = append(out, Finding{"cgroups", false, err.Error()})
	} else {
		out = append(out, m.examine(v2), m.examine(v1))
	}
	return append(out, examineSpaces())
}

// Lacking says in one line what cannot be frozen for want of privileges, "" if nothing.
func Lacking() string {
	if f := examineCapabilities(); !f.OK {
		return f.Says
	}
	return ""
}

func examineProcesses() Finding {
	pids, err := numbers("/proc")
	if err != nil {
		return Finding{"processes", false, err.Error()}
	}
	readable := 0
	for _, pid := range pids {
		if _, err := numbers(procPath(pid, "fd")); err == nil {
			readable++
		}
	}
	f := Finding{"processes", len(pids) > 1, fmt.Sprintf("%d are visible, the open files of %d can be read", len(pids), readable)}
	if init, err := readStat(1); err == nil {
		f.Says += fmt.Sprintf("; pid 1 is %s", init.comm)
	}
	if len(pids) <= 2 {
		f.OK = false
		f.Says += ". This is a pid namespace of its own: clients outside of it cannot be found (hostPID, shareProcessNamespace)"
	}
	return f
}

// A capability that freezing needs, and what for.
type capability struct {
	bit       int
	name, use string
}

var needed = [...]capability{
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "finding whose a connection is"},
	{unix.CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", "finding whose a connection is"},
	{unix.CAP_KILL, "CAP_KILL", "stopping processes of other users"},
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "clients in other network namespaces"},
}

func examineCapabilities() Finding {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return Finding{"privileges", false, err.Error()}
	}
	have, err := effective(b)
	if err != nil {
		return Finding{"privileges", false, err.Error()}
	}
	return capable(have, os.Geteuid())
}

// effective reads the capabilities in force from a /proc/PID/status.
func effective(status []byte) (uint64, error) {
	_, rest, ok := bytes.Cut(status, []byte("\nCapEff:"))
	if !ok {
		return 0, errors.New("read capabilities: /proc/self/status has none")
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseUint(strings.TrimSpace(string(line)), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("read capabilities: %w", err)
	}
	return n, nil
}

func capable(have uint64, uid int) Finding {
	var lacks []string
	for _, c := range needed {
		if have&(1<<c.bit) == 0 {
			lacks = append(lacks, c.name+" ("+c.use+")")
		}
	}
	if len(lacks) == 0 {
		return Finding{"privileges", true, fmt.Sprintf("uid %d has all that is needed", uid)}
	}
	return Finding{"privileges", false, fmt.Sprintf("uid %d lacks %s: only processes of its own can be frozen", uid, strings.Join(lacks, ", "))}
}

func examineGuard(journalDir string, command []string) Finding {
	if _, err := openJournal(journalDir); err != nil {
		return Finding{"guard", false, err.Error()}
	}
	g, err := startGuard(command)
	if err != nil {
		return Finding{"guard", false, err.Error()}
	}
	waited := make(chan struct{})
	go func() { g.wait(); close(waited) }()
	g.end()
	<-waited
	return Finding{"guard", true, "it starts, and the journal " + journalDir + " can be written"}
}

// examine tries whether a cgroup could be frozen in one hierarchy.
func (m mounts) examine(v version) Finding {
	what := "cgroups " + string(v)
	own, err := m.of(os.Getpid(), v)
	if err != nil {
		return Finding{what, false, err.Error()}
	}
	c, err := m.child("lockfaultd-doctor", v)
	if err != nil {
		return Finding{what, false, "scope=cgroup cannot be had: " + err.Error()}
	}
	g, err := openCgroup(c.place)
	if err == nil {
		g.close()
	}
	if err = errors.Join(err, c.Close()); err != nil {
		return Finding{what, false, "scope=cgroup cannot be had: " + err.Error()}
	}
	return Finding{what, true, "cgroups can be made and frozen; this is in " + own.path}
}

func examineSpaces() Finding {
	var s spaces
	defer s.close()
	s.mu.Lock()
	others, shut := s.all()
	s.mu.Unlock()
	f := Finding{"network namespaces", shut == 0, fmt.Sprintf("%d beside this one, clients in them can be found", len(others))}
	if shut > 0 {
		f.Says = fmt.Sprintf("%d beside this one; %d more cannot be entered", len(others), shut)
	}
	return f
}

// Bypassing lists who has connections to a server on addr that do not lead through a process of this name, such as
// a proxy that they should.
func Bypassing(addr netip.AddrPort, but string) ([]Process, error) {
	inodes, err := connectedTo(addr)
	if err != nil {
		return nil, err
	}
	var out []Process
	for _, inode := range inodes {
		for _, p := range holdersOf(socketLink(inode)) {
			known := func(q Process) bool { return q.PID == p.PID }
			if p.Comm != but && !slices.ContainsFunc(out, known) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// connectedTo reads which sockets of this network namespace are connected to an address.
func connectedTo(addr netip.AddrPort) (inodes []uint32, err error) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read connections: %w", err)
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "01" { // TCP_ESTABLISHED
				continue
			}
			inode, err := strconv.ParseUint(f[9], 10, 32)
			if there, ok := hexAddr(f[2]); ok && err == nil && plain(there) == plain(addr) {
				inodes = append(inodes, uint32(inode))
			}
		}
	}
	return inodes, nil
}

// hexAddr reads an address as /proc/net/tcp has it: words of the machine's order in hexadecimal.
func hexAddr(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil || len(host)%8 != 0 {
		return netip.AddrPort{}, false
	}
	var raw []byte
	for ; host != ""; host = host[8:] {
		word, err := strconv.ParseUint(host[:8], 16, 32)
		if err != nil {
			return netip.AddrPort{}, false
		}
		raw = append(raw, byte(word), byte(word>>8), byte(word>>16), byte(word>>24)) // little-endian, as lockfaultd's machines are
	}
	a, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a, uint16(n)), ok
}
