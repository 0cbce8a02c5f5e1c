package check

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"pgregory.net/rapid"
)

// Who asks for pictures gets the same verdicts, and pictures that have what the proofs cite.
func TestPicturesChangeNothing(t *testing.T) {
	drawn := 0
	rapid.Check(t, func(t *rapid.T) {
		s := simulate(rapid.Uint64().Draw(t, "seed"), simConfig{
			workers: rapid.IntRange(2, 4).Draw(t, "workers"), sections: rapid.IntRange(5, 25).Draw(t, "sections"), lease: 500 * time.Millisecond,
			fenced: rapid.SampledFrom([]string{"0", "1", "claim"}).Draw(t, "fenced"), broken: rapid.SampledFrom([]string{"", "no-nx", "blind-del"}).Draw(t, "broken"),
			pauses: 0.1, pause: 700 * time.Millisecond, latency: time.Millisecond,
		})
		in := s.input()
		text := written(t, in, finished(in.Ops))
		plain, err := Stream(scanned(text), nil, nil)
		got, err2 := Draw(scanned(text), nil, nil)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		for i := range got.Verdicts {
			v := &got.Verdicts[i]
			if p := v.Picture; p != nil {
				drawn++
				isWhole(t, *v, p)
			}
			v.Picture = nil
		}
		if !reflect.DeepEqual(got, plain) {
			t.Fatalf("drawn: %+v\nplain: %+v", got, plain)
		}
	})
	if drawn == 0 {
		t.Error("nothing was drawn")
	}
}

func isWhole(t *rapid.T, v Verdict, p *Picture) {
	for _, seq := range v.Ops {
		if len(v.Ops) <= mostCited && !slices.ContainsFunc(p.Ops, func(op lock.Op) bool { return op.Seq == seq }) {
			t.Fatalf("%s: op %d is cited, and not in the picture", v.Code, seq)
		}
	}
	for i, id := range v.Terms {
		if i >= len(p.Holdings) || p.Holdings[i].ID != id || p.Holdings[i].From == 0 {
			t.Fatalf("%s: the holders are %v, those of the picture %+v", v.Code, v.Terms, p.Holdings)
		}
	}
	if !slices.IsSortedFunc(p.Ops, func(a, b lock.Op) int { return int(a.Seq) - int(b.Seq) }) {
		t.Fatalf("%s: the ops are not in order", v.Code)
	}
}

// One picture is enough of the locks whose keys are alike.
func TestPicturesAreFew(t *testing.T) {
	g := newGallery()
	for i, want := range []struct {
		lock, table string
		room        bool
	}{{"lock:order:1", "t", true}, {"lock:order:2", "t", false}, {"lock:order:3", "u", true}, {"lock:user:1", "t", true}} {
		f := &finding{Verdict: Verdict{Code: "LF104", Name: "lost-update", Level: Proven, Lock: want.lock, Table: want.table}}
		if g.room(f) != want.room {
			t.Errorf("%d: %+v", i, want)
		}
	}
	lost := &finding{Verdict: Verdict{Code: "LF104", Name: "lost-update", Class: Harm, Lock: "lock:order:9", Table: "t", Terms: []lock.TermID{7}}}
	late := func(id lock.TermID) bool {
		return g.room(&finding{Verdict: Verdict{Code: "LF101", Name: "lease-overrun", Class: Hazard, Lock: "lock:order:9", Terms: []lock.TermID{id}}})
	}
	if g.room(lost); late(7) || !late(8) || late(9) {
		t.Error("what goes with harm takes the picture of what does not")
	}
	for i := range 2 * mostPictures {
		g.room(&finding{Verdict: Verdict{Code: "LF101", Name: "lease-overrun", Lock: "lock:" + string(rune('a'+i%26)) + string(rune('a'+i/26))}})
	}
	if g.hung["LF101"] != mostPictures {
		t.Errorf("%d", g.hung["LF101"])
	}
	if g.room(&finding{Verdict: Verdict{Code: "LF304"}}) {
		t.Error("what was not filed has room")
	}
}
