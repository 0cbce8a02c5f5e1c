package freezer

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The programs that are never frozen, by the name of the program or of its
// process. A name that ends in * is the beginning of one.
const (
	// relays carry other people's connections: freezing one would not freeze the client.
	relays = "docker-proxy rootlessport slirp4netns pasta pasta.avx2 passt vpnkit gvproxy kube-proxy kubectl socat ssh " +
		"pgbouncer pgcat odyssey pgpool envoy haproxy nginx traefik linkerd2-proxy twemproxy nutcracker stunnel " +
		"cloud-sql-proxy cloud_sql_proxy toxiproxy-serve* lockfaultd"
	// vital programs keep the machine reachable and its containers running.
	vital = "sshd* systemd* (systemd) dbus-daemon dbus-broker* dockerd containerd* kubelet crio conmon*"
)

// reservedName returns why a process of this name is not frozen, or "".
func reservedName(name string) string {
	switch {
	case listed(relays, name):
		return "relays connections for others, and is not the client itself"
	case listed(vital, name):
		return "is protected by its name"
	}
	return ""
}

func listed(patterns, name string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		prefix, open := strings.CutSuffix(pattern, "*")
		if name == prefix || open && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// policy is what the refusals depend on, as it is now.
type policy struct {
	self, guard int
	above       map[int]bool // the daemon's ancestors
	servers     map[int]bool // who accepts connections to an upstream
	unknown     error        // why that could not be found out
}

func (f *Freezer) policy() policy {
	p := policy{self: os.Getpid(), guard: f.GuardPID(), above: make(map[int]bool), servers: make(map[int]bool)}
	for _, pid := range ancestors(p.self) {
		p.above[pid] = true
	}
	servers, err := f.upstream.of(f.options.Upstreams)
	for _, pid := range servers {
		p.servers[pid] = true
	}
	p.unknown = err
	return p
}

// identity refuses a process for what it is. A process that has ended is
// refused nothing, and is ErrGone.
func (p policy) identity(pid int) error {
	switch {
	case pid < 1:
		return refuse(0, "a process of another pid namespace would be frozen with it")
	case pid == 1:
		return refuse(pid, "pid 1 is never frozen")
	case pid == p.self:
		return refuse(pid, "pid %d is this daemon itself", pid)
	case pid == p.guard:
		return refuse(pid, "pid %d is the guard", pid)
	}
	s, err := readStat(pid)
	if vanished(err) || err == nil && s.ended() && len(liveThreads(pid)) == 0 {
		return fmt.Errorf("pid %d: %w", pid, ErrGone)
	}
	if err != nil {
		return err
	}
	if p.above[pid] {
		return refuse(pid, "pid %d (%s) has started this daemon, and would stop it too; run the client as a process of its own", pid, s.comm)
	}
	if s.flags&kernelThread != 0 {
		return refuse(pid, "pid %d (%s) is a kernel thread", pid, s.comm)
	}
	for _, name := range []string{s.comm, filepath.Base(exeOf(pid))} {
		if why := reservedName(name); why != "" {
			return refuse(pid, "pid %d (%s) %s", pid, name, why)
		}
	}
	return p.serving(pid, s.comm)
}

// serving refuses an upstream's server and what that has started, such as the
// backends of Postgres. A test that serves its own upstream and starts the
// daemon is above it, and its other children are no backends.
func (p policy) serving(pid int, comm string) error {
	if p.unknown != nil {
		return p.unknown
	}
	for _, up := range append([]int{pid}, ancestors(pid)...) {
		if p.servers[up] && up != p.self && !p.above[up] {
			return refuse(pid, "pid %d (%s) is part of an upstream's server (pid %d)", pid, comm, up)
		}
	}
	return nil
}

func liveThreads(pid int) []int {
	tids, _ := numbers(procPath(pid, "task"))
	var live []int
	for _, tid := range tids {
		if s, err := readThread(pid, tid); err == nil && !s.ended() {
			live = append(live, tid)
		}
	}
	return live
}

// judge asks the policy about every holder, and returns what a freeze in this
// scope would act on. The caller closes the target's cgroup, not its processes.
func (f *Freezer) judge(ps []Process, scope Scope) (target, error) {
	if scope != ScopeProcess && scope != ScopeTree && scope != ScopeCgroup {
		return target{}, fmt.Errorf("scope %q, expected process, tree or cgroup", scope)
	}
	p := f.policy()
	for _, h := range ps {
		if err := p.identity(h.PID); err != nil {
			return target{}, err
		}
		if err := f.running(h); err != nil {
			return target{}, err
		}
	}
	if scope != ScopeCgroup {
		return target{procs: ps}, nil
	}
	return f.judgeGroup(p, ps)
}

// running refuses a process that somebody else has stopped or frozen: a thaw
// would resume what is theirs.
func (f *Freezer) running(h Process) error {
	ts, err := h.threads()
	if err != nil {
		return err
	}
	if len(ts) == 0 {
		return fmt.Errorf("%s: %w", h, ErrGone)
	}
	for _, t := range ts {
		if (stat{state: t.state}).stopped() {
			return refuse(h.PID, "%s is already stopped (thread %d is in state %c)", h, t.tid, t.state)
		}
	}
	for _, v := range []version{v2, v1} {
		g, err := f.mounts.of(h.PID, v)
		if err == nil && !g.outside() && g.isFrozen() {
			return refuse(h.PID, "%s is already frozen, in cgroup %s", h, g.dir)
		}
	}
	return nil
}

// isFrozen reports whether the cgroup or a parent of it is frozen, or about to be.
func (g place) isFrozen() bool {
	if g.version == v1 {
		b, err := readSmall(filepath.Join(g.dir, "freezer.state"))
		return err == nil && strings.TrimSpace(string(b)) != "THAWED"
	}
	b, err := readSmall(filepath.Join(g.dir, "cgroup.events"))
	own, oerr := readSmall(filepath.Join(g.dir, "cgroup.freeze"))
	return err == nil && strings.Contains("\n"+string(b), "\nfrozen 1") || oerr == nil && strings.TrimSpace(string(own)) == "1"
}

func (f *Freezer) judgeGroup(p policy, ps []Process) (target, error) {
	g, err := f.mounts.cgroupOf(ps[0].PID)
	if err != nil {
		return target{}, err
	}
	if err := f.shared(g, ps[1:]); err != nil {
		return target{}, err
	}
	own, err := f.mounts.of(p.self, g.version)
	if err != nil {
		return target{}, fmt.Errorf("find own cgroup: %w", err)
	}
	switch {
	case g.isRoot():
		return target{}, refuse(0, "%s is a root cgroup", g.dir)
	case g.contains(own):
		return target{}, refuse(0, "%s is the daemon's own cgroup, or above it", g.dir)
	case g.threaded():
		return target{}, refuse(0, "%s is a threaded cgroup", g.dir)
	case g.isFrozen():
		return target{}, refuse(0, "%s is already frozen", g.dir)
	}
	if err := p.members(g.dir); err != nil {
		return target{}, err
	}
	c, err := openCgroup(g)
	if err != nil {
		return target{}, err
	}
	return target{group: c}, nil
}

// shared refuses holders of which some are elsewhere.
func (f *Freezer) shared(g place, others []Process) error {
	for _, h := range others {
		if o, err := f.mounts.cgroupOf(h.PID); err != nil || o.dir != g.dir {
			return refuse(h.PID, "the connection is held in more than one cgroup: %s is not in %s", h, g.dir)
		}
	}
	return nil
}

func (g place) threaded() bool {
	b, err := readSmall(filepath.Join(g.dir, "cgroup.type"))
	kind := strings.TrimSpace(string(b))
	return err == nil && (kind == "threaded" || kind == "domain invalid")
}

// members refuses a cgroup for who is in it, or because nobody is.
func (p policy) members(dir string) error {
	pids, err := subtree(dir)
	if err != nil {
		return err
	}
	if len(pids) == 0 {
		return refuse(0, "%s is empty", dir)
	}
	for _, pid := range pids {
		if err := p.identity(pid); err != nil && !errors.Is(err, ErrGone) {
			return err
		}
	}
	return nil
}

// recheckGroup makes sure, now that nobody in the cgroup can move, that the
// holders are in it and nobody who must run is.
func (f *Freezer) recheckGroup(ps []Process, c *cgroup) error {
	for _, h := range ps {
		g, err := f.mounts.of(h.PID, c.version)
		if err != nil || g.dir != c.dir {
			return errChanged
		}
	}
	return f.policy().members(c.dir)
}

// servers remembers who accepts connections to the upstreams, by the inode of
// the socket: as long as that stays the same, so do its holders, but for what
// they fork.
type servers struct {
	ask func(netip.AddrPort) ([]uint32, error)

	mu    sync.Mutex
	known map[uint32][]Process // without handles
}

// of returns the pids. A listener that was not known takes a look at every process.
func (s *servers) of(addrs []netip.AddrPort) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make(map[uint32][]Process)
	var pids []int
	for _, a := range addrs {
		inodes, err := s.ask(a)
		if err != nil {
			return nil, err
		}
		for _, inode := range inodes {
			ps, ok := s.known[inode]
			if !ok || !allLive(ps) {
				ps = holdersOf(socketLink(inode))
			}
			known[inode] = ps
			for _, p := range ps {
				pids = append(pids, p.PID)
			}
		}
	}
	s.known = known
	return pids, nil
}

func allLive(ps []Process) bool {
	for _, p := range ps {
		if !lives(p) {
			return false
		}
	}
	return true
}

func holdersOf(link string) []Process {
	pids, _ := numbers("/proc")
	var ps []Process
	for _, pid := range pids {
		if found, err := holds(pid, link); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) || found == "" {
			continue
		}
		if s, err := readStat(pid); err == nil {
			ps = append(ps, Process{PID: pid, Start: s.start, Comm: s.comm})
		}
	}
	return ps
}
