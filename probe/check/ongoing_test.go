package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"pgregory.net/rapid"
)

// linesOf lists the entries of a history in the order in which a daemon writes them,
// each with the instant at which it is written.
func linesOf(in Input) (out []history.Entry, at []lock.Instant) {
	type written struct {
		at lock.Instant
		e  history.Entry
	}
	var all []written
	var ops []*lock.Op
	for _, op := range in.Ops {
		own := *op
		ops = append(ops, &own)
		all = append(all, written{max(op.A, op.R, op.D, op.Z), history.Entry{Op: &own}})
	}
	eventsOf(ops) // which numbers them, as a daemon does
	for _, e := range in.Ends {
		end := history.End(e)
		all = append(all, written{e.At, history.Entry{End: &end}})
	}
	for _, g := range in.Gaps {
		gap := history.Gap(g)
		all = append(all, written{g.At, history.Entry{Gap: &gap}})
	}
	for _, k := range in.Clocks {
		c := history.Clock{Upstream: k.Upstream, At: k.From + (k.To-k.From)/2, Trip: k.To.Sub(k.From), Slept: k.Slept, Run: k.Run, Data: k.Data}
		c.Wall = time.Time{}.Add(k.Offset + time.Duration(c.At))
		all = append(all, written{k.To, history.Entry{Clock: &c}})
	}
	for _, b := range in.Bypasses {
		by := history.Bypass{Upstream: b.Upstream, At: b.At, DB: b.DB, Key: b.Key, Verb: b.Verb, Address: b.Address}
		all = append(all, written{b.At, history.Entry{Bypass: &by}})
	}
	slices.SortStableFunc(all, func(a, b written) int { return cmp.Compare(a.at, b.at) })
	for _, w := range all {
		out, at = append(out, w.e), append(at, w.at)
	}
	return out, at
}

// A follower is told of a history as it would be while it goes on.
type follower struct {
	in    Input
	live  *Live
	lines []history.Entry
	all   Settlement
	limit func(*Live)
}

func follow(in Input, limit func(*Live)) *follower {
	f := &follower{in: in, limit: limit}
	f.live = NewLive(history.Header{Declarations: in.Declarations}, nil, in.Invariants)
	limit(f.live)
	return f
}

func (f *follower) add(e history.Entry) {
	f.live.Entry(uint64(len(f.lines)), e)
	f.lines = append(f.lines, e)
}

func (f *follower) take(s Settlement) {
	f.all.Verdicts = append(f.all.Verdicts, s.Verdicts...)
}

// restart makes another Live of what is kept of this one.
func (f *follower) restart(t interface{ Fatal(...any) }) {
	b, err := json.Marshal(f.live.State())
	if err != nil {
		t.Fatal(err)
	}
	var s LiveState
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	keeps := f.live.Keeps()
	f.live = ResumeLive(history.Header{Declarations: f.in.Declarations}, nil, f.in.Invariants, s)
	f.limit(f.live)
	for _, n := range keeps {
		f.live.Entry(n, f.lines[n])
	}
}

// withoutReadings is the input without what is not known while it goes on.
func withoutReadings(in Input) Input {
	in.Tallies, in.Invariants = nil, slices.Clone(in.Invariants)
	for i := range in.Invariants {
		in.Invariants[i].HasEnd, in.Invariants[i].HasStart, in.Invariants[i].Start = false, false, 0
	}
	return in
}

// counted sums what the verdicts count, by what they are about.
func counted(list []Verdict) map[string]int {
	out := map[string]int{}
	for _, v := range list {
		out[fmt.Sprint(v.Code, " ", v.Lock, " ", v.Table, " ", v.Harm)] += v.Count
	}
	return out
}

func sameWhileItGoesOn(t interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}, in Input, limit func(*Live), each func(n int) (settle, restart bool)) {
	t.Helper()
	in = withoutReadings(in)
	f := follow(in, limit)
	lines, at := linesOf(in)
	for i, e := range lines {
		f.add(e)
		settle, restart := each(i)
		if settle {
			f.take(f.live.Settle(at[i]))
		}
		if restart {
			f.restart(t)
		}
	}
	f.take(f.live.End())
	whole := judge(in, len(in.Ops)+1, mostKept).result()
	got, want := counted(f.all.Verdicts), counted(whole.Verdicts)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("while it went on: %v\nat once:           %v\n%q\n%q", got, want, summary(Result{Verdicts: f.all.Verdicts}), summary(whole))
	}
}

// A history that is judged while it goes on, by a judge that is killed and started again,
// comes to what it comes to at once: nothing is lost, and nothing told twice.
func TestLiveFindsWhatTheWholeDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simulate(rapid.Uint64().Draw(t, "seed"), drawnSim(t, 5, 40, 0, 0.01, 0.05))
		every := rapid.IntRange(20, 200).Draw(t, "every")
		sameWhileItGoesOn(t, s.input(), func(*Live) {}, func(n int) (bool, bool) { return n%every == 0, n%(3*every) == 1 })
	})
}

func TestGoldenWhileTheyGoOn(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden histories", err)
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			s, err := readScript(path)
			if err != nil {
				t.Fatal(err)
			}
			sameWhileItGoesOn(t, s.in, func(*Live) {}, func(n int) (bool, bool) { return true, n%3 == 0 })
		})
	}
}

// However little is kept of what is over, nothing is invented: what is told is told of the
// whole as well, and of what goes on for long nothing is proven that is not so. Where all
// sections meet all others, as under a lock that excludes nobody, one harm may be told as
// another in a view that is as small as here.
func TestLiveOfLittleInventsNothing(t *testing.T) {
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := withoutReadings(simulate(seed, simConfig{
			workers: 3, sections: 80, lease: 500 * time.Millisecond,
			fenced:  []string{"0", "1", "claim"}[r.IntN(3)],
			broken:  []string{"", "", "blind-del"}[r.IntN(3)],
			pauses:  []float64{0, 0.01, 0.05}[r.IntN(3)],
			pause:   time.Duration(1+r.IntN(800)) * time.Millisecond,
			latency: 2 * time.Millisecond,
		}).input())
		context, kept := 600+r.IntN(200), []int{50, 200, liveKept}[r.IntN(3)] // the first is less than what goes on at once
		t.Run(fmt.Sprint(seed), func(t *testing.T) { ofLittle(t, in, context, kept) })
	}
}

func ofLittle(t *testing.T, in Input, context, kept int) {
	f := follow(in, func(l *Live) { l.context, l.kept = context, kept })
	lines, at := linesOf(in)
	for i, e := range lines {
		f.add(e)
		if i%17 == 0 {
			f.take(f.live.Settle(at[i]))
		}
		if i%51 == 0 {
			f.restart(t)
		}
	}
	f.take(f.live.End())
	whole := judge(in, len(in.Ops)+1, mostKept).result()
	told := f.all.Verdicts
	if kept != liveKept {
		told = slices.DeleteFunc(told, func(v Verdict) bool { return v.Level != Proven || v.Class == Inconclusive })
	}
	got, want := counted(told), counted(whole.Verdicts)
	for k, n := range got {
		if n > want[k] {
			t.Fatalf("%s: told of %d, at once of %d\n%v\n%v", k, n, want[k], got, want)
		}
	}
}

// What nothing comes behind is told as well, once it is not to be expected any more that somebody reads what was left.
func TestLiveTellsOfTheLast(t *testing.T) {
	s, err := readScript("testdata/bad/LF104-by-value.txt")
	if err != nil {
		t.Fatal(err)
	}
	f := follow(withoutReadings(s.in), func(*Live) {})
	lines, _ := linesOf(s.in)
	for _, e := range lines {
		f.add(e)
	}
	f.take(f.live.Settle(f.live.Now().Add(liveRead / 2)))
	f.restart(t)
	f.take(f.live.Settle(f.live.Now().Add(2 * liveRead)))
	if n := counted(f.all.Verdicts); n["LF104 lock:c counter true"] == 0 {
		t.Fatalf("told of %v", n)
	}
}
