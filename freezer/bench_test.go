package freezer

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// BenchmarkFreeze is the time from the call to the kernel's word that all is stopped, which is what a reply waits
// for: policy, journal and guard included. Of how many processes: the holders of one connection, a holder
// and what descends from it, a cgroup.
func BenchmarkFreeze(b *testing.B) {
	for _, k := range kinds {
		for _, n := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) { benchmarkFreeze(b, k, n) })
		}
	}
}

func benchmarkFreeze(b *testing.B, k kind, n int) {
	f := newFreezer(b)
	client, server := k.many(b, n)
	o := lookup(b, f, client, server)
	var frozen, thawed []time.Duration
	for b.Loop() {
		began := time.Now()
		z, err := f.Freeze(b.Context(), o, k.scope, time.Minute)
		if err != nil {
			b.Fatal(err)
		}
		frozen = append(frozen, time.Since(began))
		if k.home == "" && len(z.target.procs) != n {
			b.Fatalf("%d processes, expected %d", len(z.target.procs), n)
		}
		began = time.Now()
		if err := z.Thaw(); err != nil {
			b.Fatal(err)
		}
		thawed = append(thawed, time.Since(began))
	}
	report(b, "freeze", frozen)
	report(b, "thaw", thawed)
}

// report gives the median and the worst of a hundred.
func report(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	at := func(p int) float64 { return float64(took[min(len(took)*p/100, len(took)-1)].Microseconds()) }
	b.ReportMetric(at(50), "us-"+what+"-p50")
	b.ReportMetric(at(99), "us-"+what+"-p99")
}

// many starts n processes of which a freeze of this kind takes all, and returns the connection of one.
func (k kind) many(b *testing.B, n int) (client, server netip.AddrPort) {
	b.Helper()
	if k.home != "" {
		home := inCgroup(b, k.home)
		v := victimIn(b, home, 0)
		for range n - 1 {
			attr := new(syscall.SysProcAttr)
			born := home.Configure(attr)
			c, _ := start(b, attr, nil, self("holder")...)
			if !born {
				if err := home.Enter(c.pid()); err != nil {
					b.Fatal(err)
				}
			}
		}
		return v.client, v.server
	}
	_, c, conn := dial(b, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		b.Fatal(err)
	}
	if k.scope == ScopeTree {
		start(b, nil, []*os.File{file}, "sh", "-c", fmt.Sprintf("exec 5<&0; i=1; while [ $i -lt %d ]; do cat <&5 3>&- & i=$((i+1)); done; echo ready; read x", n))
	} else {
		for range n {
			start(b, nil, []*os.File{file}, self("holder")...)
		}
	}
	file.Close()
	c.Close()
	return ends(conn)
}

// BenchmarkLookup is what accepting a connection costs: of a client that was
// seen before, and of one that nobody knows; alone, and among 500 processes with 20,000 sockets.
func BenchmarkLookup(b *testing.B) {
	for _, crowd := range []int{0, 500} {
		b.Run(fmt.Sprintf("among %d", crowd), func(b *testing.B) {
			f := newFreezer(b)
			for range crowd {
				start(b, nil, nil, self("crowd", "20")...)
			}
			v := newVictim(b, "127.0.0.1:0", 0, nil)
			for _, known := range []bool{true, false} {
				b.Run(map[bool]string{true: "known", false: "unknown"}[known], func(b *testing.B) { benchmarkLookup(b, f, v, known) })
			}
		})
	}
}

func benchmarkLookup(b *testing.B, f *Freezer, v *victim, known bool) {
	if all, err := numbers("/proc"); err == nil {
		b.ReportMetric(float64(len(all)), "processes")
	}
	var took []time.Duration
	for b.Loop() {
		if !known {
			f.forgetAll()
			f.tables.read = make(map[int]*table)
		}
		began := time.Now()
		o, err := f.Lookup(b.Context(), v.client, v.server)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		o.Close()
	}
	report(b, "lookup", took)
}

// crowdRole is connected to itself as often as it is told, by two sockets each time.
func crowdRole(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	for range n {
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		s, err := l.Accept()
		if err != nil {
			return err
		}
		defer s.Close()
	}
	return waitForEnd()
}
