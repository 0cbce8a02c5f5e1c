package lock

import (
	"testing"
	"time"
)

// A renewal that is held back moves no lease: it ends as it did before that was asked for, unless another
// one is on its way.
func TestEndWithout(t *testing.T) {
	l := newTape()
	renewal := func(session uint64) *Op {
		return &Op{Session: session, Actor: "A", Proto: Redis, Kind: Renew, Verb: "EVAL", Key: "lock:c", Guarded: true, Token: l.v("ta"), TTL: 500 * time.Millisecond}
	}
	l.acquire(10, "A", 1, "ta")
	term := l.Term(1)
	before := term.LeaseEnd
	held := l.ask(50, renewal(1))
	if term.LeaseEnd.Latest != Never {
		t.Fatal("an unanswered renewal leaves the end known")
	}
	if got := l.EndWithout(held, term); got != before {
		t.Errorf("without it %v, want %v", got, before)
	}
	if term.LeaseEnd.Latest != Never || term.inflight != 1 {
		t.Error("asking changed the lease")
	}
	other := l.ask(60, renewal(2))
	if got := l.EndWithout(held, term); got.Latest != Never {
		t.Errorf("with another on its way %v", got)
	}
	l.answer(61, other, Done)
	if got := l.EndWithout(held, term); got.Latest == Never || got.Earliest <= before.Earliest {
		t.Errorf("behind another %v", got)
	}
	if got := l.EndWithout(l.write("A", 2), term); got != term.LeaseEnd {
		t.Errorf("without what is no renewal %v", got)
	}
}

// Of a quorum's lease the renewal of one vote is left out.
func TestEndWithoutAVote(t *testing.T) {
	l := quorumTape()
	for n := range 3 {
		l.do(Instant(10+n), node(l, Acquire, n, "ta"), Granted)
	}
	term := l.Term(1)
	before := term.LeaseEnd
	l.ask(50, node(l, Renew, 0, "ta"))
	held := l.ask(51, node(l, Renew, 1, "ta"))
	if term.LeaseEnd.Latest != Never {
		t.Fatalf("two renewals leave the end known: %v", term.LeaseEnd)
	}
	if got := l.EndWithout(held, term); got.Latest != before.Latest+ms { // the last vote's, since the first may last

		t.Errorf("without it %v, want %v", got, before)
	}
}
