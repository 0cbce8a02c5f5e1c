package check

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/orders"
	"github.com/lockfaultd/lockfaultd/lock"
	"pgregory.net/rapid"
)

// anyInput draws a simulated run, a golden history, or one of those that are compared
// with every order.
func anyInput(t *rapid.T) Input {
	paths, _ := filepath.Glob("testdata/*/*.txt")
	switch rapid.IntRange(0, 4).Draw(t, "source") {
	case 0:
		seed := rapid.Uint64().Draw(t, "seed")
		return inputOf(orders.Draw(seed, shapeOf(seed)))
	case 1:
		seed := rapid.Uint64().Draw(t, "seed")
		return inputOfKey(orders.DrawKey(seed, keyShapeOf(seed)))
	case 2, 3:
		s, err := readScript(rapid.SampledFrom(paths).Draw(t, "path"))
		if err != nil {
			t.Fatal(err)
		}
		return s.in
	}
	s := simulate(rapid.Uint64().Draw(t, "seed"), simConfig{
		workers: rapid.IntRange(2, 4).Draw(t, "workers"), sections: rapid.IntRange(1, 8).Draw(t, "sections"),
		lease: 500 * time.Millisecond, fenced: rapid.SampledFrom([]string{"0", "1", "claim"}).Draw(t, "fenced"),
		broken: rapid.SampledFrom([]string{"", "", "no-nx", "blind-del"}).Draw(t, "broken"),
		pauses: rapid.SampledFrom([]float64{0.1, 0.3}).Draw(t, "pauses"), pause: 800 * time.Millisecond, latency: 5 * time.Millisecond,
	})
	in := s.input()
	in.Declarations = []lock.Declaration{{Key: "lock:counter", Table: "counter", FenceColumn: "fence"}}
	return in
}

func copied(in Input) Input {
	ops := in.Ops
	in.Ops = nil
	for _, op := range ops {
		own := *op
		in.Ops = append(in.Ops, &own)
	}
	return in
}

// claims lists what is proven: each code with the term that it is about. A
// lost update is a lost update whoever is to blame, and without it the same
// write is a stale one.
func claims(r Result) map[string]bool {
	out := map[string]bool{}
	for _, v := range r.Verdicts {
		if v.Level != Proven || v.Class == Inconclusive { // which wide intervals may well show
			continue
		}
		switch v.Code {
		case "LF104":
			out["LF104"], out["LF103"] = true, true
			continue
		case "LF103":
			out["LF103"] = true
			continue
		case "LF106": // the same cycle, whoever of it is to blame
			cycle := slices.Clone(v.Terms)
			slices.Sort(cycle)
			out[fmt.Sprint(v.Code, v.Lock, cycle)] = true
			continue
		case "LF303": // a lock that its holder's renewal takes back is granted twice, too
			out[fmt.Sprint("LF305", v.Lock, []lock.TermID(nil))] = true
		}
		terms := v.Terms
		if len(terms) > 1 {
			terms = terms[:1]
		}
		if slices.Contains([]string{"LF102", "LF107", "LF301", "LF302", "LF304", "LF305", "LF306", "LF307", "LF310", "LF311", "LF312", "LF404"}, v.Code) {
			terms = nil // one verdict counts many
		}
		out[fmt.Sprint(v.Code, v.Lock, terms)] = true
	}
	return out
}

func TestWideningNeverProvesMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		before := claims(Judge(in))
		wide := copied(in)
		for range rapid.IntRange(1, 6).Draw(t, "n") {
			op := rapid.SampledFrom(wide.Ops).Draw(t, "op")
			d := time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond
			if op.F != 0 && op.F.Add(-d) > 0 {
				op.F = op.F.Add(-d)
			}
			if d = time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond; op.R != 0 {
				op.R = op.R.Add(d)
			}
			if op.Z != 0 {
				op.Z = max(op.Z, op.R)
			}
		}
		// The order in which the ledger is told stays that of the original.
		number := copied(in)
		eventsOf(number.Ops)
		for i := range wide.Ops {
			for _, op := range number.Ops {
				if same(op, in.Ops[i]) {
					wide.Ops[i].Seq, wide.Ops[i].ReplySeq = op.Seq, op.ReplySeq
				}
			}
		}
		for c := range claims(Judge(wide)) {
			if !before[c] {
				t.Fatalf("only after widening: %s", c)
			}
		}
	})
}

func same(a, b *lock.Op) bool {
	return a.A == b.A && a.F == b.F && a.R == b.R && a.Session == b.Session && a.Kind == b.Kind
}

// otherName is another name of a process, of an address where nothing else is known of it.
func otherName(actor string) string {
	switch {
	case actor == "":
		return ""
	case lock.AddressOnly(actor):
		return "@Z" + actor[1:] + "z"
	}
	return "Z" + actor + "z"
}

func TestTimeAndNamesMeanNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		want := summary(Judge(in))
		moved := copied(in)
		d := time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "shift"))
		shift := func(at *lock.Instant) {
			if *at != 0 {
				*at = at.Add(d)
			}
		}
		for _, op := range moved.Ops {
			for _, at := range []*lock.Instant{&op.A, &op.F, &op.R, &op.D, &op.Z} {
				shift(at)
			}
			op.Actor = otherName(op.Actor)
			op.Session += 1000
		}
		moved.Ends, moved.Gaps = slices.Clone(in.Ends), slices.Clone(in.Gaps)
		for i := range moved.Ends {
			shift(&moved.Ends[i].At)
			moved.Ends[i].Session += 1000
		}
		for i := range moved.Gaps {
			shift(&moved.Gaps[i].At)
		}
		moved.Clocks = slices.Clone(in.Clocks)
		for i := range moved.Clocks {
			shift(&moved.Clocks[i].From)
			shift(&moved.Clocks[i].To)
		}
		if got := summary(Judge(moved)); !slices.Equal(got, want) {
			t.Fatalf("moved by %v and renamed: %q\nbefore: %q", d, got, want)
		}
	})
}

func TestJudgeChangesNothingAndRepeatsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		kept := copied(in)
		first, second := Judge(in), Judge(in)
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("%+v\n%+v", first, second)
		}
		if !reflect.DeepEqual(in, kept) {
			t.Fatal("the input was changed")
		}
	})
}

func TestEveryProofCitesAndArgues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, v := range Judge(anyInput(t)).Verdicts {
			if len(v.Ops) == 0 && v.Code != "LF402" || !strings.HasPrefix(v.Proof, "Let ") || v.Name == "" || v.Count < 1 {
				t.Fatalf("%+v", v)
			}
		}
	})
}

// A tiny is a read-modify-write of the one row, with the instants at which it
// really took effect.
type tiny struct {
	readF, readR, writeF, writeR int
	base, put                    int64
}

// TestOracle compares the judge with every order that the intervals admit: what
// it calls a proven lost update is one in each order that explains the values.
func TestOracle(t *testing.T) {
	var proven, all int
	compare := func(t *rapid.T) {
		list, in := anyTiny(t)
		every, some := ordersOf(list)
		got := count(Judge(in), "LF104", Proven) > 0
		if got && !every {
			t.Fatalf("proven, and there is an order without a cycle: %+v", list)
		}
		if got && !some {
			t.Fatalf("no order explains %+v", list)
		}
		if every && some {
			all++
			if got {
				proven++
			}
		}
	}
	for range 10 { // enough draws that the share below is no matter of luck
		rapid.Check(t, compare)
	}
	t.Logf("every order had a cycle in %d histories; the judge proved it in %d", all, proven)
	if proven == 0 || 10*proven < 9*all {
		t.Errorf("the judge proved %d of %d", proven, all)
	}
}

// anyTiny draws two or three sections, lets them happen, and gives each effect
// an interval about it.
func anyTiny(t *rapid.T) ([]tiny, Input) {
	const last = 40
	n := rapid.IntRange(2, 3).Draw(t, "sections")
	list := make([]tiny, n)
	effects := map[int]func(*int64){}
	at := func(from int) int {
		for {
			i := rapid.IntRange(from, last).Draw(t, "at")
			if effects[i] == nil {
				return i
			}
		}
	}
	for i := range list {
		m := &list[i]
		read := at(2)
		effects[read] = func(v *int64) { m.base = *v }
		write := at(2)
		for write <= read+3 {
			if write = rapid.IntRange(read+4, last+10).Draw(t, "write"); effects[write] != nil {
				write = 0
			}
		}
		step := int64(rapid.IntRange(0, 2).Draw(t, "step"))
		effects[write] = func(v *int64) { m.put = m.base + step; *v = m.put }
		m.readF, m.readR = read-rapid.IntRange(0, 8-n).Draw(t, "w"), read+rapid.IntRange(0, 1).Draw(t, "w")
		m.writeF, m.writeR = write-rapid.IntRange(0, 1).Draw(t, "w"), write+rapid.IntRange(0, 8-n).Draw(t, "w")
	}
	value := int64(7)
	for i := range last + 11 {
		if f := effects[i]; f != nil {
			f(&value)
		}
	}
	s := &script{hash: lock.NewHasher([]byte("t")), label: map[string]uint64{}, lease: time.Second}
	lines := []string{"counter counter.value"}
	for i, m := range list {
		actor := string(rune('A' + i))
		lines = append(lines,
			fmt.Sprintf("%s store lock:c=t%s 0.%d-0.%d", actor, actor, i+1, i+2),
			fmt.Sprintf("%s select counter[id=1] value=%d %d-%d", actor, m.base, m.readF+10, m.readR+10),
			fmt.Sprintf("%s update counter[id=1] value:=%d %d-%d", actor, m.put, m.writeF+10, m.writeR+10),
			fmt.Sprintf("%s release lock:c=t%s %d-%d not-held", actor, actor, m.writeR+11, m.writeR+12))
	}
	for _, l := range lines {
		if err := s.line(strings.Fields(l)); err != nil {
			t.Fatal(err)
		}
	}
	return list, s.in
}

// ordersOf goes through all instants that the effects can have had, no two at
// the same, and reports whether there is an explanation of the values at all
// and whether two sections form a cycle in each.
func ordersOf(list []tiny) (every, some bool) {
	n := len(list)
	at := make([]int, 2*n) // reads, then writes
	used := map[int]bool{}
	every = true
	var place func(i int)
	place = func(i int) {
		if i == 2*n {
			if explains(list, at) {
				some = true
				every = every && cyclic(list, at)
			}
			return
		}
		from, to := list[i%n].readF, list[i%n].readR
		if i >= n {
			from, to = list[i%n].writeF, list[i%n].writeR
		}
		for x := from; x <= to; x++ {
			if !used[x] {
				used[x], at[i] = true, x
				place(i + 1)
				delete(used, x)
			}
		}
	}
	place(0)
	return every, some
}

func explains(list []tiny, at []int) bool {
	n := len(list)
	for i := range n {
		value, latest := int64(7), -1
		for j := range n {
			if at[n+j] < at[i] && at[n+j] > latest {
				value, latest = list[j].put, at[n+j]
			}
		}
		if value != list[i].base {
			return false
		}
	}
	return true
}

// cyclic reports whether two sections each read before the other wrote, and the
// later write did not find again what its section had read.
func cyclic(list []tiny, at []int) bool {
	n := len(list)
	for i := range n {
		for j := range n {
			if i != j && at[i] < at[n+j] && at[n+j] < at[n+i] && at[j] < at[n+i] && !again(list, at, i, j) {
				return true
			}
		}
	}
	return false
}

// again reports whether j's write, or one between it and i's, put what i had read.
func again(list []tiny, at []int, i, j int) bool {
	n := len(list)
	for x, m := range list {
		if x != i && at[n+x] >= at[n+j] && at[n+x] < at[n+i] && m.put == list[i].base {
			return true
		}
	}
	return false
}
