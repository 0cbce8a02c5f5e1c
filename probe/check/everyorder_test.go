package check

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/orders"
	"github.com/lockfaultd/lockfaultd/lock"
)

// inputOf makes of a drawn history what the judge is given.
func inputOf(h orders.History) Input {
	in := Input{Ops: h.Ops, Declarations: []lock.Declaration{{Key: "lock:c", Table: orders.Table, FenceColumn: orders.Fence, Declared: true}}}
	for _, column := range h.Named {
		in.Invariants = append(in.Invariants, Invariant{Name: column, Kind: "counter", Table: orders.Table, Column: column,
			Query: "SELECT " + column + " FROM " + orders.Table + " WHERE id = 1"})
	}
	return in
}

// shapeOf makes every third history one of two sections on one row, and every
// other one such that no two values are the same by chance.
func shapeOf(seed uint64) orders.Shape {
	s := orders.Shape{Sections: 4, Rows: 2, Steps: 2, Haste: 70, Distinct: seed%2 == 0}
	if seed%3 == 0 {
		s.Sections, s.Rows = 2, 1
	}
	return s
}

// An opinion is what is so of one code in the orders of a history, and what the judge
// says.
type opinion struct{ code, want, got string }

// opinions compares the judge with every order of a history; nil where there were too
// many of them.
func opinions(h orders.History) []opinion {
	want := orders.Judge(h, 20000)
	if want.Enough || want.Orders == 0 {
		return nil
	}
	r := Judge(inputOf(h))
	out := []opinion{{"LF104", levelOf(want.Lost), level(r, "LF104")}, {"LF105", levelOf(want.Fell), level(r, "LF105")}}
	if !want.Lost.Some() { // beside a lost update an anomaly of other sections may be told, or not
		out = append(out, opinion{"LF106", levelOf(want.Anomaly), level(r, "LF106")})
		if h.Grants && !want.Anomaly.Some() { // a write of a cycle is not called stale as well
			out = append(out, opinion{"LF103", levelOf(want.Stale), level(r, "LF103")})
		}
	}
	return out
}

// wrong reports whether the two may not differ so: nothing is proven that is not so in
// every order, and a cycle that is possible is not passed over. What is between may be
// off by a level, as seldom as TestEveryOrder allows.
func (o opinion) wrong() bool {
	cycle := o.code == "LF104" || o.code == "LF106"
	if cycle {
		return o.got == "every" && o.want != "every" || o.want != "none" && o.got == "none"
	}
	return tooHigh(o.want, o.got)
}

func drawn(seed uint64) orders.History {
	h := orders.Draw(seed, shapeOf(seed))
	h.Grants = seed%3 == 0
	return h
}

// TestEveryOrder draws histories and holds the judge against every order that they
// admit.
func TestEveryOrder(t *testing.T) {
	n := histories(3000)
	seeds, found := make(chan uint64), make(chan []opinion)
	var work sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			for seed := range seeds {
				o := opinions(drawn(seed))
				if slices.ContainsFunc(o, opinion.wrong) {
					t.Error(explained(seed))
				}
				found <- o
			}
		})
	}
	go func() {
		for seed := range n {
			seeds <- seed
		}
		close(seeds)
		work.Wait()
		close(found)
	}()
	s, given := score{}, 0
	for list := range found {
		if list == nil {
			given++
		}
		for _, o := range list {
			s.add(o.code, o.want, o.got)
		}
	}
	t.Logf("%d histories, %d with more orders than were looked at: %v", n, given, s)
	for _, code := range []string{"LF104", "LF106"} {
		if off := s[[3]string{code, "none", "some"}]; 1000*off > int(n) {
			t.Errorf("%s is called possible in %d histories of which no order has it", code, off)
		}
	}
	for code, least := range map[string]int{"LF103": 40, "LF104": 99, "LF105": 60, "LF106": 90} {
		if got := s.share(code); got < least {
			t.Errorf("%s is proven in %d %% of the histories in which every order has it, want %d", code, got, least)
		}
	}
}

// explained makes the history of a seed as small as it can be, and says what is wrong.
func explained(seed uint64) string {
	wrong := func(h orders.History) bool { return slices.ContainsFunc(opinions(h), opinion.wrong) }
	h := orders.Shrink(drawn(seed), wrong)
	text := fmt.Sprintf("seed %d: %v\n%s", seed, slices.DeleteFunc(opinions(h), func(o opinion) bool { return !o.wrong() }), h)
	for _, v := range Judge(inputOf(h)).Verdicts {
		text += fmt.Sprintf("%s %s %s\n", v.Code, v.Level, v.Proof)
	}
	return text
}
