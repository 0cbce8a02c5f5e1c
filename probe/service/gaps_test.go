package service

import (
	"errors"
	"slices"
	"testing"
	"time"
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

// A named mood has another name.
type named struct {
	mood
	name string
}

func (n *named) About() About { return About{Name: n.name, Kind: "zero"} }
