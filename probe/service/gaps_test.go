package service

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/live"
)

// gapsOf are the service's gaps of one name.
func gapsOf(s *Service, of string) []Gap {
	return slices.DeleteFunc(slices.Clone(s.gaps.list), func(g Gap) bool { return g.Of != of })
}

// What a watch could not see while no probe ran is a gap, from when its state was saved last to its first look. Of a watch
// that was not there before it is none, nor of the history, which is caught up.
func TestAbsenceIsAGap(t *testing.T) {
	dir, p := t.TempDir(), newTape(t, "00000000000000aa")
	p.section("A", 1)
	play := func(s *Service) {
		t.Helper()
		for _, m := range p.messages(s.pos.N) {
			if err := s.take(m); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.settle(); err != nil {
			t.Fatal(err)
		}
	}
	s, store := open(t, dir, nil, &mood{})
	play(s)
	saved := s.saved
	if saved.IsZero() || len(s.gaps.list) != 0 {
		t.Fatalf("saved at %v, %+v", saved, s.gaps.list)
	}
	store.Close()

	s, store = open(t, dir, nil, &mood{}, &named{mood{}, "new"})
	p.section("A", 1)
	play(s)
	if g := gapsOf(s, "mood"); len(g) != 1 || g[0].From.After(saved.Add(time.Second)) || !g[0].To.IsZero() || len(s.gaps.list) != 1 {
		t.Fatalf("%+v", s.gaps.list)
	}
	at := time.Now()
	if err := s.looked(look{at: at, judge: s.conf.Watches[0].(*mood).judge}); err != nil {
		t.Fatal(err)
	}
	if g := gapsOf(s, "mood"); !g[0].To.Equal(at) || g[0].MadeUp {
		t.Errorf("%+v", g)
	}
	if err := s.save(true); err != nil {
		t.Fatal(err)
	}
	store.Close()

	s, store = open(t, dir, nil, &mood{})
	defer store.Close()
	if err := s.looked(look{at: time.Now(), err: errors.New("no answer")}); err != nil {
		t.Fatal(err)
	}
	if len(s.gaps.list) < 2 || s.gaps.missed != len(s.gaps.list) {
		t.Errorf("after a second start: %+v", s.gaps.list)
	}
}

// A watch that cannot read ends no gap of another that asks the same server, nor is its own ended by that; and the gaps that
// go on are never pushed out by others.
func TestGapsOfWatchesOfOneServer(t *testing.T) {
	a, b := &named{mood{}, "a"}, &named{mood{}, "b"}
	s, store := open(t, t.TempDir(), nil, a, b)
	defer store.Close()
	at := time.Now()
	seen := func(l look) {
		t.Helper()
		at = at.Add(time.Second)
		if l.at = at; l.err == nil {
			l.judge = b.judge
		}
		if err := s.looked(l); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		seen(look{watch: 0, err: errors.New("no such column")})
		seen(look{watch: 1})
	}
	if len(s.gaps.list) != 1 || !s.gaps.list[0].To.IsZero() || s.gaps.list[0].Invariant != "a" {
		t.Fatalf("%+v", s.gaps.list)
	}
	if list := s.sources(); !slices.ContainsFunc(list, func(l live.Source) bool { return l.Name == "main" && l.Up }) {
		t.Errorf("a server that b reads is shown as %+v", list)
	}
	for range mostGaps + 1 {
		seen(look{watch: 1, err: errors.New("no answer")})
		seen(look{watch: 1})
	}
	if len(s.gaps.list) != mostGaps || s.gaps.ofWatch("a") == nil || s.gaps.missed != mostGaps+2 {
		t.Errorf("%d, the one that goes on is %v", len(s.gaps.list), s.gaps.ofWatch("a"))
	}
	seen(look{watch: 1, err: errors.New("no answer")})
	if list := s.sources(); !slices.ContainsFunc(list, func(l live.Source) bool { return l.Name == "main" && !l.Up && l.Text != "" }) {
		t.Errorf("a server that nobody reads is shown as %+v", list)
	}
}

// A gap that goes on of what is not in the config any more is over when the probe is started again.
func TestGapsOfNobodyEnd(t *testing.T) {
	dir := t.TempDir()
	s, store := open(t, dir, nil, &named{mood{}, "gone"}, &mood{})
	for n := range 2 {
		if err := s.looked(look{watch: n, at: time.Now(), err: errors.New("no answer")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.save(true); err != nil {
		t.Fatal(err)
	}
	store.Close()
	s, store = open(t, dir, nil, &mood{})
	defer store.Close()
	if s.gaps.ofWatch("gone") != nil || s.gaps.ofWatch("mood") == nil {
		t.Errorf("%+v", s.gaps.list)
	}
}

// A named mood has another name.
type named struct {
	mood
	name string
}

func (n *named) About() About { return About{Name: n.name, Kind: "zero", Of: []string{"main"}} }
