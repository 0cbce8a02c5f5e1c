package check

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/orders"
	"github.com/lockfaultd/lockfaultd/lock"
)

// notedLater renumbers a history as if replies had waited before they were noted, as one does for
// what a witness tells of it, but no longer than until its client asked for something else.
func notedLater(ops []*lock.Op, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	type numbered struct {
		at  float64
		seq *uint64
	}
	var all []numbered
	for _, op := range ops {
		all = append(all, numbered{float64(op.Seq), &op.Seq})
		if op.ReplySeq == 0 {
			continue
		}
		at := float64(op.ReplySeq)
		if next := nextOf(ops, op); r.IntN(2) == 0 && next > at {
			at += r.Float64() * (next - at)
		}
		all = append(all, numbered{at, &op.ReplySeq})
	}
	slices.SortStableFunc(all, func(a, b numbered) int { return cmp.Compare(a.at, b.at) })
	for i, n := range all {
		*n.seq = uint64(i + 1)
	}
}

// nextOf is the number of what the same client asked for next.
func nextOf(ops []*lock.Op, op *lock.Op) float64 {
	next, last := uint64(math.MaxUint64), uint64(0)
	for _, o := range ops {
		last = max(last, o.Seq, o.ReplySeq)
		if o.Actor == op.Actor && o.Seq > op.ReplySeq {
			next = min(next, o.Seq)
		}
	}
	return float64(min(next, last+1))
}

// TestEveryOrderHoweverLateAReplyIsNoted holds the judge against every order again, with what was
// answered noted later than it was read.
func TestEveryOrderHoweverLateAReplyIsNoted(t *testing.T) {
	for seed := range histories(2000) {
		want := opinions(drawn(seed))
		h := drawn(seed)
		notedLater(h.Ops, seed)
		got := opinions(h)
		for i, o := range got {
			if o.wrong() {
				t.Errorf("seed %d: %s is %s, noted at once %s; the orders say %s\n%s", seed, o.code, o.got, want[i].got, o.want, h)
			}
		}
	}
}

// TestTheOrdersOfAKeyHoweverLateAReplyIsNoted does so with the word on the lock service.
func TestTheOrdersOfAKeyHoweverLateAReplyIsNoted(t *testing.T) {
	for seed := range histories(2000) {
		ops := orders.DrawKey(seed, keyShapeOf(seed))
		want := orders.Key(ops, 20000)
		if want.Enough {
			continue
		}
		notedLater(ops, seed)
		r := judgeKey(ops)
		for code, w := range keyTalliesOf(want) {
			if got := level(r, code); got == "every" && !w.Every() || code != "LF101" && tooHigh(levelOf(w), got) {
				t.Errorf("seed %d: %s is %s; the orders say %s:\n%s", seed, code, got, levelOf(w), orders.KeyString(ops))
			}
		}
	}
}

// A renewal by somebody else, noted late, may have kept the key that a blind release removed.
func TestALateRenewalMayHaveKeptTheKey(t *testing.T) {
	ops := orders.DrawKey(93879, keyShapeOf(93879))
	notedLater(ops, 93879)
	if got := level(judgeKey(ops), "LF301"); got == "every" {
		t.Error("it is proven")
	}
}
