package check

import (
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// replayed tells a ledger of a history and returns the order of its requests
// (positive) and replies (negative), by the ops' places in the list.
func replayed(in Input) (c *Judging, order []int) {
	ops := make([]*lock.Op, len(in.Ops))
	for i, op := range in.Ops {
		own := *op
		ops[i] = &own
	}
	for _, e := range eventsOf(ops) {
		n := slices.Index(ops, e.op) + 1
		if e.reply {
			n = -n
		}
		order = append(order, n)
	}
	return told(in), order
}

func grantOf(seq, reply uint64, a, r lock.Instant) *lock.Op {
	return &lock.Op{Seq: seq, ReplySeq: reply, Session: 1, Actor: "A", Proto: lock.Redis, Kind: lock.Acquire, Verb: "SET", Key: "lock:c", NX: true,
		Token: lock.Value{Hash: "t"}, TTL: time.Second, Outcome: lock.Granted, A: a, F: a, R: r, D: r}
}

func writeOf(seq, reply uint64, a, r lock.Instant) *lock.Op {
	return &lock.Op{Seq: seq, ReplySeq: reply, Session: 2, Actor: "A", Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", Implicit: true,
		Tx: 1, Rows: 1, Outcome: lock.Done, A: a, F: a, R: r, D: r, SQL: &lock.Statement{Table: "t", Set: []lock.Assign{{Column: "v", Value: lock.Value{Hash: "x"}}}}}
}

// The daemon took a session's end before a request that it had read earlier.
func TestAnEndIsReplayedInItsPlace(t *testing.T) {
	in := Input{Ops: []*lock.Op{grantOf(1, 2, 10, 20), writeOf(4, 5, 90, 110)}, Ends: []End{{Session: 1, At: 100, Seq: 3}}}
	c, _ := replayed(in)
	if got := c.ops[1].Term.ID; got != 0 {
		t.Errorf("the write is of term %d, which had ended", got)
	}
	in.Ends[0].Seq = 0
	if c, _ = replayed(in); c.ops[1].Term.ID != 1 {
		t.Error("without a number, the instant says that the term was open")
	}
}

// One reply without a number does not make instants decide over the others.
func TestOnlyWhatLacksANumberIsPlacedByItsInstant(t *testing.T) {
	first, second, third := grantOf(1, 2, 50, 60), writeOf(3, 0, 55, 65), writeOf(4, 5, 40, 70)
	c, order := replayed(Input{Ops: []*lock.Op{third, second, first}})
	if want := []int{3, -3, 2, 1, -2, -1}; !slices.Equal(order, want) && !slices.Equal(order, []int{3, -3, 2, -2, 1, -1}) {
		t.Errorf("order %v, want %v", order, want)
	}
	for i, seq := range []uint64{1, 3, 4} {
		if c.ops[i].Seq != seq {
			t.Errorf("op %d is number %d, want %d", i, c.ops[i].Seq, seq)
		}
	}
	if c.ops[0].ReplySeq != 2 || c.ops[2].ReplySeq != 5 || c.ops[1].ReplySeq < 3 || c.ops[1].ReplySeq > 4 {
		t.Errorf("replies %d %d %d", c.ops[0].ReplySeq, c.ops[1].ReplySeq, c.ops[2].ReplySeq)
	}
}

// A history without any number is read by its instants.
func TestAHistoryWithoutNumbers(t *testing.T) {
	c, order := replayed(Input{Ops: []*lock.Op{writeOf(0, 0, 30, 40), grantOf(0, 0, 10, 20)}, Ends: []End{{Session: 1, At: 25, Seq: 9}}})
	if !slices.Equal(order, []int{2, -2, 1, -1}) || c.ops[0].Seq != 1 || c.ops[1].ReplySeq != 4 || c.ops[1].Term.ID != 0 {
		t.Errorf("order %v, write %+v", order, c.ops[1])
	}
}

// A grant whose reply is held is noted when it was delivered: what another task of the process wrote
// meanwhile, it wrote with the lock.
func TestAWriteUnderAGrantThatWasNotedLater(t *testing.T) {
	s, err := readScript("testdata/good/LF308-granted-though-unheard.txt")
	if err != nil {
		t.Fatal(err)
	}
	var grant, wrote *lock.Op
	for i, op := range s.in.Ops {
		op.Seq = uint64(10 * (i + 1))
		op.ReplySeq = op.Seq + 5
		if op.Kind == lock.Acquire {
			grant = op
		}
		if op.Kind == lock.Write {
			wrote = op
		}
	}
	grant.ReplySeq = wrote.ReplySeq + 1
	if v := Judge(s.in).Verdicts; len(v) != 0 {
		t.Errorf("%s %s: %s", v[0].Code, v[0].Level, v[0].Proof)
	}
	grant.Outcome = lock.Refused
	if v := Judge(s.in).Verdicts; len(v) == 0 || v[0].Code != "LF308" {
		t.Errorf("refused as well: %v, want LF308", v)
	}
}
