package freezer

import "context"

// A target is what one freeze acts on, through handles that it owns: some
// processes, or a cgroup. The daemon, the guard and a replay thaw the same way.
type target struct {
	procs []Process
	group *cgroup // nil: the processes themselves
}

// stop returns when the kernel has confirmed.
func (t target) stop(ctx context.Context) error {
	if t.group != nil {
		return t.group.stop(ctx)
	}
	return stopProcesses(ctx, t.procs, nil)
}

// thaw returns when everything runs again; it may be called more than once.
func (t target) thaw() error {
	if t.group != nil {
		return t.group.thaw()
	}
	return thawProcesses(t.procs)
}

// wake is a thaw that neither waits nor verifies; thaw will say what it did not do.
func (t target) wake() {
	if t.group != nil {
		_ = t.group.order(false)
	}
	for _, p := range t.procs {
		_ = p.resume()
	}
}

// broken says how the stop has already ended, or "" while it holds.
func (t target) broken() string {
	if t.group != nil {
		return t.group.thawedByOthers()
	}
	return resumedByOthers(t.procs)
}

// handles are the descriptors with which a guard can thaw.
func (t target) handles() []int {
	if t.group != nil {
		return []int{t.group.freeze, t.group.events}
	}
	fds := make([]int, len(t.procs))
	for i, p := range t.procs {
		fds[i] = p.pidfd
	}
	return fds
}

func (t target) close() {
	closeAll(t.procs)
	if t.group != nil {
		t.group.close()
	}
}

// note describes the target, for the guard and the journal.
func (t target) note() note {
	n := note{Processes: t.procs}
	if t.group != nil {
		n.Version, n.Dir, n.Inode = t.group.version, t.group.dir, t.group.inode
	}
	return n
}

// A note names a target without handles.
type note struct {
	Version   version   `json:"version,omitempty"` // "": the processes themselves
	Dir       string    `json:"dir,omitempty"`
	Inode     uint64    `json:"inode,omitempty"`
	Processes []Process `json:"processes,omitempty"`
}

// with puts received handles and a note together again. It owns the handles.
func (n note) with(fds []int) (target, bool) {
	if n.Version != "" {
		if len(fds) != 2 {
			return target{}, false
		}
		return target{group: &cgroup{version: n.Version, dir: n.Dir, inode: n.Inode, freeze: fds[0], events: fds[1]}}, true
	}
	if len(fds) == 0 || len(fds) != len(n.Processes) {
		return target{}, false
	}
	t := target{procs: n.Processes}
	for i, fd := range fds {
		t.procs[i].pidfd = fd
	}
	return t, true
}
