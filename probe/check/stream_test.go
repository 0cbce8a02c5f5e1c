package check

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"pgregory.net/rapid"
)

// finished sorts ops by when they were finished, as a history has them.
func finished(ops []*lock.Op) []*lock.Op {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b *lock.Op) int { return cmp.Compare(max(a.A, a.D), max(b.A, b.D)) })
	return ops
}

// written is a history of ops, as the daemon writes it.
func written(t rapid.TB, in Input, ops []*lock.Op) []byte {
	var b bytes.Buffer
	h := history.Header{Declarations: in.Declarations}
	for _, inv := range in.Invariants {
		h.Invariants = append(h.Invariants, history.Invariant(inv))
	}
	w := history.NewWriter(&b, h, func(_, column string) bool { return column == "value" || column == "fence" })
	for _, op := range ops {
		w.Op(op)
	}
	for _, e := range in.Ends {
		w.End(e.Session, e.At, e.Seq)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func scanned(text []byte) Source {
	return func(take func(history.Entry) error) error { return history.Scan(bytes.NewReader(text), take) }
}

// A history that is read line by line gets the answer that it gets as a whole.
func TestAStreamIsJudgedAsTheWholeIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simulate(rapid.Uint64().Draw(t, "seed"), simConfig{
			workers: rapid.IntRange(1, 4).Draw(t, "workers"), sections: rapid.IntRange(1, 25).Draw(t, "sections"), lease: 500 * time.Millisecond,
			fenced: rapid.SampledFrom([]string{"0", "1", "claim"}).Draw(t, "fenced"), broken: rapid.SampledFrom([]string{"", "no-nx", "blind-del"}).Draw(t, "broken"),
			pauses: 0.05, pause: 700 * time.Millisecond, latency: time.Millisecond,
		})
		in := s.input()
		in.Ops = finished(in.Ops)
		if rapid.Bool().Draw(t, "holes") { // reads of nobody are not in a history, and their numbers are
			in.Ops = slices.DeleteFunc(in.Ops, func(op *lock.Op) bool { return op.Kind == lock.Read && op.Seq%3 == 0 })
		}
		text := written(t, in, in.Ops)
		h, err := history.Read(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Stream(scanned(text), nil, nil)
		if want := Judge(From(h)); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v\nstream: %+v\nwhole:  %+v", err, got, want)
		}
	})
}

// An op whose line stands far from its place is put there nevertheless: the ledger
// is told of it before what was asked later.
func TestAnOpThatIsFinishedVeryLate(t *testing.T) {
	s := simulate(7, simConfig{workers: 3, sections: 2500, lease: 500 * time.Millisecond, fenced: "1", latency: time.Millisecond})
	held := slices.IndexFunc(s.ops, func(op *lock.Op) bool { return op.Kind == lock.Write && op.Seq > 100 })
	late := append(slices.Clone(s.ops[:held]), s.ops[held+1:]...)
	late = append(late, s.ops[held])
	if len(late) < 2*queued {
		t.Fatalf("%d ops are not enough", len(late))
	}
	in := s.input()
	got, err := Stream(scanned(written(t, in, late)), nil, nil)
	want, err2 := Stream(scanned(written(t, in, s.ops)), nil, nil)
	if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v\nlate: %+v\nsoon: %+v", err, err2, got, want)
	}
}

// Ends of sessions stand behind the ops, and their numbers say where they belong.
func TestTheQueueOrdersByNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var ops []*lock.Op
		var want []uint64
		for i := range uint64(rapid.IntRange(1, 300).Draw(t, "ops")) {
			ops = append(ops, &lock.Op{Seq: 2*i + 1, ReplySeq: 2*i + 2, R: 1, Outcome: lock.Done})
			want = append(want, 2*i+1, 2*i+2)
		}
		r.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		var got []uint64
		q := newQueue(NewSurvey(nil), func(e event) { got = append(got, e.seq) })
		for _, op := range ops {
			q.op(op)
		}
		q.flush()
		if !slices.Equal(got, want) {
			t.Fatalf("%v", got)
		}
	})
}
