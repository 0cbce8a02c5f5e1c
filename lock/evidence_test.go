package lock

import (
	"testing"
	"time"
)

// takes has a process take a lock, be issued a fence, and give the lock up again if
// it is to.
func (t *tape) takes(at Instant, actor string, session uint64, key, token string, fence int64, gives bool) {
	op := func(o Op) *Op {
		o.Session, o.Actor, o.Proto, o.Key = session, actor, Redis, key
		return &o
	}
	t.do(at, op(Op{Kind: Acquire, Verb: "SET", NX: true, Token: t.v(token), TTL: time.Second}), Granted)
	count := op(Op{Kind: Fence, Verb: "INCR", FenceKey: key + ":f", Fence: fence, HasFence: true})
	count.Key += ":f"
	t.do(at+2, count, Done)
	if gives {
		t.do(at+4, op(Op{Kind: Release, Verb: "EVAL", Guarded: true, Token: t.v(token)}), Done)
	}
}

// A fence, or a token, that two terms have is of the process's own term first: that
// another has the same now, on another lock, makes nothing of the first one's its own.
func TestSharedEvidence(t *testing.T) {
	of := func(l *tape, actor, column, text string) Attribution {
		return l.do(100, l.write(actor, 9, Assign{Column: column, Value: l.v(text)}), Done).Term
	}
	for name, tt := range map[string]struct {
		column, text string
		open         bool // the second term
		actor        string
		id           TermID
		also         int
	}{
		"a fence of its own that is over":  {"fence", "7", true, "A", 1, 0},
		"both are over":                    {"fence", "7", false, "A", 1, 0},
		"of the one that has it":           {"fence", "7", true, "B", 2, 0},
		"handed over by who has it":        {"fence", "7", true, "C", 2, 0},
		"handed over by one that had it":   {"fence", "7", false, "C", 2, 1},
		"a token of its own that is over":  {"by", "host", true, "A", 1, 0},
		"a token that either has had once": {"by", "host", false, "C", 2, 1},
	} {
		l := newTape(Declaration{Key: "lock:*", Table: "counter", FenceColumn: "fence", Declared: true})
		l.takes(10, "A", 1, "lock:a", "host", 7, true)
		l.takes(20, "B", 2, "lock:b", "host", 7, !tt.open)
		got := of(l, tt.actor, tt.column, tt.text)
		if got.ID != tt.id || len(got.Also) != tt.also || got.Confidence != 1 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A process that has taken its lock often is not unsure of which holding it is.
func TestTheLastOfOnesOwn(t *testing.T) {
	l := newTape()
	for i := range Instant(12) {
		l.takes(10*i+1, "A", 1, "lock:a", "host", int64(i), true)
	}
	op := l.do(200, l.write("B", 2, Assign{Column: "by", Value: l.v("host")}), Done)
	if op.Term.ID != 12 || !op.Term.Sure() {
		t.Errorf("got %+v", op.Term)
	}
}
