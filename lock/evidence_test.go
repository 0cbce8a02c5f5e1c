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
		"a fence of its own that is over":     {"fence", "7", true, "A", 1, 0},
		"both are over":                       {"fence", "7", false, "A", 1, 0},
		"of the one that has it":              {"fence", "7", true, "B", 2, 0},
		"handed over by who has it":           {"fence", "7", true, "C", 2, 0},
		"handed over by one that had it":      {"fence", "7", false, "C", 2, 1},
		"a token that it has, as another had": {"by", "host", true, "B", 2, 0},
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
	l := newTape(Declaration{Key: "lock:*", Table: "counter", FenceColumn: "fence", Declared: true})
	for i := range Instant(12) {
		l.takes(10*i+1, "A", 1, "lock:a", "host", 7, true)
	}
	op := l.do(200, l.write("B", 2, Assign{Column: "fence", Value: l.v("7")}), Done)
	if op.Term.ID != 12 || !op.Term.Sure() {
		t.Errorf("got %+v", op.Term)
	}
}

// A token of a term that is over makes nothing its own for sure; one that says who its
// holder is, in a row or in several holdings, makes nothing its own: hosts write their
// names into much else.
func TestTokensOfWhatIsOver(t *testing.T) {
	row := func(l *tape) {
		op := func(kind Kind) *Op {
			return &Op{Session: 1, Actor: "A", Proto: Postgres, Kind: kind, Verb: "UPDATE", Key: "lease:jobs:1", Token: l.v("host"), Guarded: true, NX: kind == Acquire, TTL: time.Second}
		}
		l.do(10, op(Acquire), Granted)
		l.do(14, op(Release), Done)
	}
	for name, tt := range map[string]struct {
		before     func(l *tape)
		more       string // a lock that it has as well
		id         TermID
		confidence float64
		also       int
	}{
		"a row":                      {row, "", 0, 0, 0},
		"a row, within another lock": {row, "lock:b", 2, 0.90, 0},
		"once":                       {func(l *tape) { l.takes(10, "A", 1, "lock:a", "host", 1, true) }, "", 1, 0.75, 0},
		"once, within another lock":  {func(l *tape) { l.takes(10, "A", 1, "lock:a", "host", 1, true) }, "lock:b", 2, 0.75, 1},
		"another's, of another lock": {func(l *tape) { l.takes(10, "B", 2, "lock:a", "host", 1, true) }, "lock:b", 2, 0.75, 1},
		"twice": {func(l *tape) {
			l.takes(10, "A", 1, "lock:a", "host", 1, true)
			l.takes(20, "A", 1, "lock:a", "host", 2, true)
		}, "", 0, 0, 0},
		"open, though a row had it": {row, "host", 2, 1, 0},
	} {
		l := newTape()
		tt.before(l)
		switch tt.more {
		case "":
		case "host":
			l.takes(50, "A", 1, "lock:b", "host", 9, false)
		default:
			l.takes(50, "A", 1, tt.more, "uuid", 9, false)
		}
		got := l.do(100, l.write("A", 9, Assign{Column: "by", Value: l.v("host")}), Done).Term
		if got.ID != tt.id || got.Confidence != tt.confidence || len(got.Also) != tt.also {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
