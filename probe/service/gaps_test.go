package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
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

// A look that says which of its servers it did not reach has the gap filed under that, and nothing that a watch sees ends the
// gap of the history: lines may be missing though the daemon answers.
func TestGapsOfSeveralServers(t *testing.T) {
	w := &Acked{Is: About{Name: "n", Of: []string{"main", Stream{URL: "http://daemon"}.Name()}}, Clock: silent{}}
	s, store := open(t, t.TempDir(), nil, w)
	defer store.Close()
	_, failed := w.Look(t.Context())
	for _, tt := range []struct {
		err error
		of  string
	}{{failed, "http://daemon"}, {failed, "http://daemon"}, {errors.New("no answer"), "main"}, {failed, "http://daemon"}} {
		if err := s.looked(look{at: time.Now(), err: tt.err}); err != nil {
			t.Fatal(err)
		}
		if gap := s.gaps.ofWatch("n"); gap == nil || gap.Of != tt.of {
			t.Fatalf("after %v: %+v", tt.err, s.gaps.list)
		}
	}
	if len(s.gaps.list) != 3 || s.server("main").Text != "not known: http://daemon was not reached" {
		t.Errorf("%+v; %+v", s.gaps.list, s.server("main"))
	}

	if err := s.take(Message{At: time.Now(), Down: "the stream broke"}); err != nil {
		t.Fatal(err)
	}
	if err := s.looked(look{at: time.Now(), judge: (&mood{}).judge}); err != nil {
		t.Fatal(err)
	}
	if s.gaps.now("http://daemon", "") == nil || s.gaps.ofWatch("n") != nil {
		t.Errorf("%+v", s.gaps.list)
	}
}

// A sum of two databases says which of them does not answer.
func TestSumSaysWhichDatabase(t *testing.T) {
	a := &Agrees{Is: About{Name: "n", Of: []string{"main", "other"}}, A: Side{"SELECT 1", &Database{}}, B: Side{"SELECT 1", &Database{}}}
	for side, want := range map[Side]string{a.A: "main", a.B: "other"} {
		if of := a.Is.failedAt(a.failed(side, errors.New("no answer"))); of != want {
			t.Errorf("%s, want %s", of, want)
		}
	}
}

// A silent clock does not answer.
type silent struct{}

func (silent) Name() string                       { return Stream{URL: "http://daemon"}.Name() }
func (silent) Tick(context.Context) (Tick, error) { return Tick{}, errors.New("no answer") }

// Of too many looks that wait only the oldest are dropped, and that is a gap, up to the first that is judged.
func TestLooksThatAreDroppedAreAGap(t *testing.T) {
	s, store := open(t, t.TempDir(), nil, &mood{})
	defer store.Close()
	begun, judged, waits := time.Now(), 0, true
	for n := range mostPending + 3 {
		err := s.looked(look{at: begun.Add(time.Duration(n) * time.Second), judge: func() Opinion {
			if !waits {
				judged++
			}
			return Opinion{State: Holds, Wait: waits}
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if g := s.gaps.list; len(g) != 1 || !g[0].From.Equal(begun) || !g[0].To.IsZero() || len(s.pending) != mostPending {
		t.Fatalf("%d wait, %+v", len(s.pending), g)
	}
	waits = false
	if err := s.lookAtPending(); err != nil {
		t.Fatal(err)
	}
	if g := s.gaps.list[0]; judged != mostPending || !g.To.Equal(begun.Add(3*time.Second)) {
		t.Errorf("%d were judged, %+v", judged, g)
	}
}

// A line of the history that cannot be read is a gap to the judge and to whoever listens, once, and after a restart too.
func TestUnreadableLineIsAGap(t *testing.T) {
	dir, p := t.TempDir(), newTape(t, "00000000000000aa")
	p.section("A", 1)
	p.theft()
	lines := p.messages(0)
	lines[3].Line = []byte(`{"type":"op","op":{`)
	heard := 0
	listen := func(_ string, e history.Entry) {
		if e.Gap != nil && e.Gap.Lost == 1 {
			heard++
		}
	}
	s, store := open(t, dir, nil)
	s.conf.Listen = append(s.conf.Listen, listen)
	for range 2 { // a source may tell a line twice
		for _, m := range lines[:5] {
			if err := s.take(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if g := s.gaps.list; heard != 1 || len(g) != 1 || g[0].Lost != 1 {
		t.Fatalf("heard %d times, %+v", heard, g)
	}
	if err := s.locked(s.flush); err != nil {
		t.Fatal(err)
	}
	store.Close()

	store, kept, err := OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	conf := Config{Source: Stream{URL: "http://daemon"}, Log: quiet()}
	conf.Listen = append(conf.Listen, listen)
	if s, err = New(conf, store, kept); err != nil {
		t.Fatal(err)
	}
	if heard != 2 || len(kept.Spoilt) > 0 {
		t.Errorf("heard %d times with the restart; %v", heard, kept.Spoilt)
	}
	for _, m := range lines[5:] {
		if err := s.take(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	if s.facts.Gaps != 1 || len(s.told.list) == 0 {
		t.Errorf("%+v, %d verdicts", s.facts, len(s.told.list))
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
