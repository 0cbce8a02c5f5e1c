package freezer

import (
	"testing"
	"time"
)

// everyThread checks the kernel's word on each thread.
func everyThread(t *testing.T, pid int, state byte) {
	t.Helper()
	tids, err := numbers(procPath(pid, "task"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		s, err := readThread(pid, tid)
		if err != nil {
			t.Fatal(err)
		}
		if s.state != state {
			t.Errorf("thread %d is in state %c, expected %c", tid, s.state, state)
		}
	}
}

func TestFreezeStopsEveryThread(t *testing.T) {
	f := newFreezer(t)
	v := newVictim(t, "127.0.0.1:0", 16, nil)
	o := lookup(t, f, v.client, v.server)
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	everyThread(t, v.pid(), 'T')
	v.mustStand(t)
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
	v.mustMove(t, "after the thaw")
	if b := z.Broken(); b != "" {
		t.Errorf("broken: %s", b)
	}
}

// That a thread was told to stop is not that it has.
func TestToldIsNotStopped(t *testing.T) {
	needRoot(t)
	v := newVictim(t, "127.0.0.1:0", 0, nil)
	p, err := openProcess(v.pid())
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll([]Process{p})
	s := &stopper{procs: []Process{p}, kin: func(Process) bool { return false }, sent: make(map[int]time.Time)}
	for _, tid := range liveThreads(v.pid()) {
		s.sent[tid] = time.Now().Add(time.Hour)
	}
	for range 3 {
		if done, err := s.pass(); done || err != nil {
			t.Fatalf("done %v, %v while it runs", done, err)
		}
	}
}

// The kernel stops one thread after another; only the last makes a freeze.
func TestStopWaitsForTheLastThread(t *testing.T) {
	needRoot(t)
	v := newVictim(t, "127.0.0.1:0", 16, nil)
	p, err := openProcess(v.pid())
	if err != nil {
		t.Fatal(err)
	}
	ps := []Process{p}
	defer closeAll(ps)
	for i := range 10 {
		kin := func(Process) bool { return false } // as of a tree
		if i%2 == 0 {
			kin = nil
		}
		if err := stopProcesses(t.Context(), ps, kin); err != nil {
			t.Fatal(err)
		}
		everyThread(t, v.pid(), 'T')
		if err := thawProcesses(ps); err != nil {
			t.Fatal(err)
		}
		if th, stopped, err := p.firstStopped(); stopped || err != nil {
			t.Fatalf("thread %d is still in state %c, %v", th.tid, th.state, err)
		}
	}
}

func TestFreezeCgroup(t *testing.T) {
	for _, version := range []version{v2, v1} {
		t.Run(string(version), func(t *testing.T) {
			c := inCgroup(t, version)
			f := newFreezer(t)
			v := victimIn(t, c, 4)
			o := lookup(t, f, v.client, v.server)
			if o.Cgroup != c.Path() {
				t.Fatalf("cgroup %s, expected %s", o.Cgroup, c.Path())
			}
			z, err := f.Freeze(t.Context(), o, ScopeCgroup, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			v.mustStand(t)
			if err := z.Thaw(); err != nil {
				t.Fatal(err)
			}
			v.mustMove(t, "after the thaw")
			if b := z.Broken(); b != "" {
				t.Errorf("broken: %s", b)
			}
		})
	}
}
