package check

import (
	"bytes"
	"cmp"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"pgregory.net/rapid"
)

// alone judges no ops but those that a verdict cites: by number, or as what granted,
// renewed, fenced and released the terms that it names, or whose grants it cites. With a statement goes the
// transaction that it is of, and what that wrote. What the whole history shows of tables (which columns
// change) and of keys (which are locks) stays known. With rows goes whatever was read
// and written of the table meanwhile, and by whom.
func alone(in Input, v Verdict, rows bool) Result {
	type transaction struct{ session, n uint64 }
	txs, keep := map[transaction]bool{}, map[uint64]bool{}
	whole := told(in)
	terms := slices.Clone(v.Terms)
	for _, t := range whole.terms {
		if slices.Contains(v.Ops, t.Grant.Seq) {
			terms = append(terms, t.ID)
		}
	}
	ops := slices.Clone(whole.ops)
	for i, op := range ops {
		again := *op
		again.Term = lock.Attribution{}
		ops[i] = &again
		own := (op.Proto == lock.Redis || op.Span != lock.LeaseSpan) && slices.Contains(terms, op.Term.ID)
		about := rows && (op.Proto == lock.Redis || op.SQL != nil && lock.TableName(op.SQL.Table) == v.Table)
		keep[op.Seq] = own || about || slices.Contains(v.Ops, op.Seq)
		if keep[op.Seq] && op.Tx != 0 {
			txs[transaction{op.Session, op.Tx}] = true
		}
	}
	j := NewJudging(in.setup(), surveyOf(in.Declarations, ops))
	kept := slices.DeleteFunc(slices.Clone(ops), func(op *lock.Op) bool {
		frame := op.Kind == lock.Begin || op.Kind == lock.Commit || op.Kind == lock.Rollback || op.Kind == lock.Write
		return !keep[op.Seq] && !(frame && txs[transaction{op.Session, op.Tx}])
	})
	replay(eventsOf(kept), in.Ends, j.tell)
	j.cut(lock.Never)
	return j.result()
}

func TestTheCitedOpsAloneGiveTheVerdict(t *testing.T) {
	cycles, more := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		for _, v := range Judge(in).Verdicts {
			if v.Level != Proven || slices.Contains([]string{"LF312", "LF402", "LF403"}, v.Code) {
				continue // the last three are of the run as a whole: a habit, and sums
			}
			r := alone(in, v, false)
			if v.Code == "LF104" || v.Code == "LF106" {
				// In what order two wrote, what a third one read may tell.
				cycles++
				if level(r, v.Code) != "every" {
					more++
					r = alone(in, v, true)
				}
			}
			if level(r, v.Code) != "every" {
				t.Fatalf("%s is %s by the ops that it cites %v: %s\n%v", v.Code, level(r, v.Code), v.Ops, v.Proof, summary(r))
			}
		}
	})
	t.Logf("of %d cycles %d take more than what is cited: what others read and wrote of the rows", cycles, more)
	if cycles >= 20 && 4*more > cycles { // fewer tell nothing of the share
		t.Error("that is too many")
	}
}

// strangers are sections of a process that has to do with nothing else: its own lock
// and its own table.
func strangers(t *rapid.T, from, to lock.Instant) []*lock.Op {
	s := simulate(rapid.Uint64().Draw(t, "elsewhere"), simConfig{workers: 1, sections: 3, lease: 500 * time.Millisecond, fenced: "1", latency: 5 * time.Millisecond, pause: time.Millisecond})
	at := lock.Instant(rapid.Int64Range(int64(from), int64(max(from, to))).Draw(t, "at"))
	for _, op := range s.ops {
		op.Actor, op.Session, op.Seq, op.ReplySeq = "elsewhere", op.Session+5000, 0, 0
		op.Key, op.FenceKey = renamed(op.Key), renamed(op.FenceKey)
		op.Token = lock.NewHasher([]byte("elsewhere")).Of([]byte(op.Token.Hash))
		if op.SQL != nil {
			op.SQL.Table = "elsewhere"
		}
		for _, i := range []*lock.Instant{&op.A, &op.F, &op.R, &op.D, &op.Z} {
			if *i != 0 {
				*i += at
			}
		}
	}
	return s.ops
}

func renamed(key string) string {
	if key == "" {
		return ""
	}
	return "elsewhere:" + key
}

func TestUnrelatedOpsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyInput(t)
		if slices.ContainsFunc(in.Ops, func(op *lock.Op) bool { return op.Since != 0 }) {
			t.Skip("what a savepoint undid is told by the ops' numbers")
		}
		want := summary(Judge(in))
		more := copied(in)
		unnumbered(&more)
		more.Ops = append(more.Ops, strangers(t, 0, lastOf(in))...)
		if got := summary(Judge(more)); !slices.Equal(got, want) {
			t.Fatalf("%q, and before %q", got, want)
		}
	})
}

// quiet lists the instants at which nothing was going on: no op was without its reply,
// and no section was open.
func quiet(in Input) []lock.Instant {
	j := told(in)
	ops := slices.Clone(j.ops)
	slices.SortStableFunc(ops, func(a, b *lock.Op) int { return cmp.Compare(a.A, b.A) })
	var out []lock.Instant
	var busy lock.Instant
	for _, op := range ops {
		if op.A > busy+1 && busy > 0 && !slices.ContainsFunc(j.terms, func(t *lock.Term) bool { return t.Grant.A < op.A && (t.End == 0 || t.End >= op.A) }) {
			out = append(out, busy+1)
		}
		busy = max(busy, op.A, op.F, op.R, op.D, op.Z)
		if !answered(op) {
			return out
		}
	}
	return out
}

// totals adds up what the verdicts of each code and level count.
func totals(results ...Result) map[string]int {
	out := map[string]int{}
	for _, r := range results {
		for _, v := range r.Verdicts {
			out[v.Code+" "+string(v.Level)] += v.Count
		}
	}
	return out
}

func TestASplitWhereAllIsQuietChangesNothing(t *testing.T) {
	splits := 0
	rapid.Check(t, func(t *rapid.T) {
		s := simulate(rapid.Uint64().Draw(t, "seed"), simConfig{
			workers: rapid.IntRange(1, 3).Draw(t, "workers"), sections: rapid.IntRange(2, 8).Draw(t, "sections"),
			lease: 500 * time.Millisecond, fenced: rapid.SampledFrom([]string{"0", "1", "claim"}).Draw(t, "fenced"),
			broken: rapid.SampledFrom([]string{"", "no-nx", "blind-del"}).Draw(t, "broken"),
			pauses: rapid.SampledFrom([]float64{0.02, 0.1}).Draw(t, "pauses"), pause: 800 * time.Millisecond, latency: 5 * time.Millisecond,
		})
		in := s.input()
		in.Invariants[0].HasStart, in.Invariants[0].HasEnd = false, false
		in.Declarations = []lock.Declaration{{Key: "lock:counter", Table: "counter", FenceColumn: "fence", Declared: true}}
		points := quiet(in)
		if len(points) == 0 {
			t.Skip()
		}
		splits++
		at := rapid.SampledFrom(points).Draw(t, "at")
		before, after := in, in
		before.Ops, after.Ops = nil, nil
		for _, op := range in.Ops {
			if op.A <= at {
				before.Ops = append(before.Ops, op)
			} else {
				after.Ops = append(after.Ops, op)
			}
		}
		if got, want := totals(Judge(before), Judge(after)), totals(Judge(in)); !maps.Equal(got, want) {
			t.Fatalf("in two %v, in one %v", got, want)
		}
	})
	if splits == 0 {
		t.Error("nothing was split")
	}
}

// What was injected is in a history, and means nothing to the judge.
func TestInjectionsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simulate(rapid.Uint64().Draw(t, "seed"), simConfig{workers: 3, sections: 4, lease: 500 * time.Millisecond, fenced: "0", pauses: 0.2, pause: 800 * time.Millisecond, latency: 5 * time.Millisecond})
		write := func(injections int) Result {
			var b bytes.Buffer
			w := history.NewWriter(&b, history.Header{}, nil)
			for i, op := range s.ops {
				w.Op(op)
				if i < injections {
					w.Injection(history.Injection{ID: uint64(i + 1), Rule: "freeze", Effect: "freeze", Actor: op.Actor, Op: op.Seq, At: op.A, Outcome: "landed", Section: true})
				}
			}
			h, err := history.Read(&b)
			if err != nil || w.Close() != nil || len(h.Injections) != injections {
				t.Fatal(err, len(h.Injections))
			}
			return Judge(From(h))
		}
		if got, want := write(rapid.IntRange(1, len(s.ops)).Draw(t, "injections")), write(0); !reflect.DeepEqual(got, want) {
			t.Fatalf("with injections %+v\nwithout %+v", got, want)
		}
	})
}

// lastOf is the last instant that a history tells of.
func lastOf(in Input) (last lock.Instant) {
	for _, op := range in.Ops {
		last = max(last, op.A, op.F, op.R, op.D, op.Z)
	}
	return last
}
