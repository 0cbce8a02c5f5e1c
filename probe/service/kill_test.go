package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

var errKilled = errors.New("killed")

// A killer ends a process at its n-th step on the disk: before it, or in the middle of what it writes.
type killer struct {
	at, n int
	torn  bool
}

func (k *killer) step(_ string, n int) (int, error) {
	if k.n++; k.at != 0 && k.n >= k.at {
		if k.torn && k.n == k.at {
			return n / 2, errKilled
		}
		return 0, errKilled
	}
	return n, nil
}

// A script is two runs with thefts in them, and what a watch saw in between.
type script struct {
	runs     []*tape
	turnFrom int64
}

func newScript(t *testing.T) *script {
	s := &script{turnFrom: turnFrom}
	for _, run := range []string{"00000000000000aa", "00000000000000bb"} {
		p := newTape(t, run)
		for i := range 12 {
			p.section("A", 1)
			if i%4 == 1 {
				p.theft()
			}
			p.section("B", 2)
		}
		s.runs = append(s.runs, p)
	}
	return s
}

// play tells a service all that it has not heard, as a source would, and judges after every few lines. Between them a watch
// sees something break, and be whole again.
func (sc *script) play(s *Service, w *mood) error {
	s.trimFrom, s.turnFrom = 0, sc.turnFrom
	for i, p := range sc.runs {
		if i+1 < len(sc.runs) && s.pos.Run == sc.runs[i+1].run {
			continue
		}
		from := uint64(0)
		if s.pos.Run == p.run {
			from = s.pos.N + 1
		}
		for _, m := range p.messages(from) {
			if err := s.take(m); err != nil {
				return err
			}
			if m.Pos.N%7 == 0 {
				if err := s.settle(); err != nil {
					return err
				}
			}
			if m.Pos.N%40 == 0 {
				w.broken = m.Pos.N%80 == 0
				w.of = m.Pos.String()
				if err := s.looked(look{at: time.Now(), judge: w.judge}); err != nil {
					return err
				}
			}
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	return s.save(true)
}

// A mood is a watch that is in one.
type mood struct {
	broken bool
	of     string
	mem    struct{ Last string }
}

func (m *mood) About() About                                 { return About{Name: "mood", Kind: "zero"} }
func (m *mood) Memory() any                                  { return &m.mem }
func (m *mood) Look(context.Context) (func() Opinion, error) { return m.judge, nil }
func (m *mood) judge() Opinion {
	m.mem.Last = m.of
	if !m.broken {
		return Opinion{State: Holds}
	}
	return Opinion{State: Broken, Breaches: []Breach{{Code: "LF405", Name: "invariant-broken", Class: check.Harm, Level: check.Proven, Harm: true, Table: m.of}}}
}

// tellings counts what the folder tells of, by what it is, and how often each was counted.
func tellings(t *testing.T, dir string) map[string]int {
	t.Helper()
	s, kept, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := map[string]int{}
	var last uint64
	for _, r := range kept.Records {
		for _, v := range r.Verdicts {
			out[fmt.Sprint(v.Run, " ", v.Code, " ", v.Lock, " ", v.Table)] += v.Count
			if v.N != last+1 {
				t.Errorf("verdict %d follows %d", v.N, last)
			}
			last = v.N
		}
	}
	return out
}

// tallied counts what a probe that is started again knows of, by what it is but for the run.
func tallied(t *testing.T, dir string) map[string]int {
	t.Helper()
	s, store := open(t, dir, nil, &mood{})
	defer store.Close()
	out := map[string]int{}
	verdicts := 0
	for _, g := range s.told.byGroup() {
		out[fmt.Sprint("- ", g.Code, " ", g.Lock, " ", g.Table)] += g.Count
		verdicts += g.Verdicts
	}
	if verdicts != int(s.told.last) {
		t.Errorf("%d verdicts, the last is number %d", verdicts, s.told.last)
	}
	if list, _ := s.told.since(0); len(list) == 0 || list[len(list)-1].N != s.told.last {
		t.Errorf("%d verdicts are at hand, the last is number %d", len(list), s.told.last)
	}
	return out
}

// A probe that is killed at any step of its writing, or in the middle of it, and started again has told in the end what it
// would have without: nothing less, and nothing twice.
func TestKilledAtEveryStep(t *testing.T) {
	killedAtEveryStep(t, newScript(t), tellings, map[string]int{"00000000000000aa LF301 lock:c ": 3, "00000000000000bb LF301 lock:c ": 3})
}

// So it has if what was told is set aside after each verdict.
func TestKilledWhileRecordsAreSetAside(t *testing.T) {
	sc := newScript(t)
	sc.turnFrom = 0
	killedAtEveryStep(t, sc, tallied, map[string]int{"- LF301 lock:c ": 6})
}

func killedAtEveryStep(t *testing.T, sc *script, tellings func(*testing.T, string) map[string]int, some map[string]int) {
	steps := &killer{}
	dir := t.TempDir()
	s, store := open(t, dir, steps.step, &mood{})
	if err := sc.play(s, s.conf.Watches[0].(*mood)); err != nil {
		t.Fatal(err)
	}
	store.Close()
	want := tellings(t, dir)
	for k, n := range some {
		if want[k] != n {
			t.Fatalf("%v", want)
		}
	}
	t.Logf("%d steps; %v", steps.n, want)
	stride := 1
	if testing.Short() {
		stride = steps.n / 8
	}
	for at := 1; at <= steps.n; at += stride {
		for _, torn := range []bool{false, true} {
			dir := t.TempDir()
			k := &killer{at: at, torn: torn}
			s, store := open(t, dir, k.step, &mood{})
			err := sc.play(s, s.conf.Watches[0].(*mood))
			store.Close()
			if !errors.Is(err, errKilled) {
				t.Fatalf("step %d: %v", at, err)
			}
			s, store = open(t, dir, nil, &mood{})
			if err := sc.play(s, s.conf.Watches[0].(*mood)); err != nil {
				t.Fatal(err)
			}
			store.Close()
			got := tellings(t, dir)
			// What a watch saw and could not tell before it was killed is what it sees when it looks again, if it still does.
			drop := func(m map[string]int) map[string]int {
				m = maps.Clone(m)
				maps.DeleteFunc(m, func(k string, _ int) bool { return !slices.Contains([]string{"LF301", "LF102", "LF305"}, code(k)) })
				return m
			}
			if !maps.Equal(drop(got), drop(want)) {
				t.Fatalf("killed at step %d (torn %v): told %v, want %v", at, torn, got, want)
			}
			for k, n := range got {
				if n > max(1, want[k]) {
					t.Fatalf("killed at step %d (torn %v): %s was told %d times", at, torn, k, n)
				}
			}
		}
	}
}

func code(key string) string {
	var run, c string
	fmt.Sscan(key, &run, &c)
	return c
}
