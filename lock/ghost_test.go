package lock

import (
	"testing"
	"time"
)

func TestGhosts(t *testing.T) {
	for _, tt := range []struct {
		name        string
		play        func(l *tape)
		shown, sure bool
	}{
		{"nothing is heard of it", func(*tape) {}, false, false},
		{"its token is released", func(l *tape) { l.do(100, l.release("A", 3, "ta"), Done) }, true, true},
		{"its token is not there", func(l *tape) { l.do(100, l.release("A", 3, "ta"), NotHeld) }, false, false},
		{"its token is renewed", func(l *tape) {
			op := l.release("A", 3, "ta")
			op.Kind, op.TTL = Renew, time.Second
			l.do(100, op, Done)
		}, true, true},
		{"by a guess", func(l *tape) {
			op := l.release("A", 3, "ta")
			op.Guarded, op.Guessed = false, true
			l.do(100, op, Done)
		}, false, false},
		{"another token is released", func(l *tape) { l.do(100, l.release("A", 3, "tb"), Done) }, false, false},
		{"it is refused to its client", func(l *tape) { refused(l, 100, "A", 3) }, true, false},
		{"it is refused to another", func(l *tape) { refused(l, 100, "B", 4) }, true, false},
		{"it is refused when it has lapsed", func(l *tape) { refused(l, 3000, "B", 4) }, false, false},
		{"it is refused while someone has it", func(l *tape) {
			l.acquire(50, "C", 5, "tc")
			refused(l, 100, "A", 3)
		}, false, false},
		{"it is refused when that one has lapsed", func(l *tape) {
			op := l.acquire(50, "C", 5, "tc")
			refused(l, 600, "A", 3)
			if op.Term.ID != 1 {
				t.Error("no term")
			}
		}, true, false},
	} {
		l := newTape()
		op := l.release("A", 1, "ta")
		op.Kind, op.NX, op.TTL = Acquire, true, 500*time.Millisecond
		l.ask(10, op)
		l.Closed(1, 40*ms)
		tt.play(l)
		got := l.Ghosts()
		if len(got) != 1 || got[0].Acquire != op || (got[0].Shown != nil) != tt.shown || got[0].Sure != tt.sure {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func refused(l *tape, at Instant, actor string, session uint64) *Op {
	op := l.release(actor, session, "tx")
	op.Kind, op.NX, op.TTL = Acquire, true, 500*time.Millisecond
	return l.do(at, op, Refused)
}

func TestAnAnsweredAcquireIsNoGhost(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	refused(l, 20, "B", 2)
	unsent := l.release("C", 3, "tc")
	unsent.Kind = Acquire
	l.ask(30, unsent)
	unsent.F = 0
	if got := l.Ghosts(); len(got) != 0 || len(l.ghosts.line) != 1 || len(l.ghosts.byKey) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestGhostsAreBounded(t *testing.T) {
	l := newTape()
	for i := range 2 * maxGhosts {
		op := l.release("A", 1, "ta")
		op.Kind = Acquire
		l.ask(Instant(i), op)
	}
	if n := len(l.ghosts.line); n != maxGhosts || len(l.ghosts.byKey[LockID{Key: "lock:c"}]) != n {
		t.Errorf("%d", n)
	}
}

// A renewal that re-creates a lock which had lapsed opens a term of its own.
func TestRevived(t *testing.T) {
	renew := func(l *tape, kind Kind) *Op {
		op := l.release("A", 1, "ta")
		op.Kind, op.TTL, op.Guarded = kind, 500*time.Millisecond, kind == Renew
		return op
	}
	for _, tt := range []struct {
		name    string
		play    func(l *tape) *Op
		terms   int
		revived bool
	}{
		{"in time", func(l *tape) *Op { return l.do(300, renew(l, Renew), Done) }, 1, false},
		{"perhaps in time", func(l *tape) *Op { return l.do(511, renew(l, Renew), Done) }, 1, false},
		{"too late", func(l *tape) *Op { return l.do(600, renew(l, Renew), Done) }, 2, true},
		{"too late, and refused", func(l *tape) *Op { return l.do(600, renew(l, Renew), NotHeld) }, 1, false},
		{"too late, compared with nothing", func(l *tape) *Op {
			op := renew(l, Renew)
			op.Guarded = false
			return l.do(600, op, Done)
		}, 1, false},
		{"stored in time", func(l *tape) *Op { return l.do(300, renew(l, Store), Done) }, 1, false},
		{"stored too late", func(l *tape) *Op { return l.do(600, renew(l, Store), Done) }, 2, true},
		{"stored over another's", func(l *tape) *Op {
			l.acquire(520, "B", 2, "tb")
			return l.do(600, renew(l, Store), Done)
		}, 3, true},
		{"acquired again too late", func(l *tape) *Op { return l.acquire(600, "A", 1, "ta") }, 2, true},
		{"acquired again after its release", func(l *tape) *Op {
			l.do(100, l.release("A", 1, "ta"), Done)
			return l.acquire(200, "A", 1, "ta")
		}, 2, false},
	} {
		l := newTape()
		l.acquire(10, "A", 1, "ta")
		op := tt.play(l)
		got := l.Term(TermID(tt.terms))
		if len(l.Terms()) != tt.terms || got.Revived != tt.revived {
			t.Errorf("%s: %d terms, %+v", tt.name, len(l.Terms()), got)
			continue
		}
		if tt.terms > 1 && (got.Again != l.Term(1) || got.Grant != op || op.Term.ID != got.ID || got.LeaseEnd.Earliest < op.F) {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func lost(l *tape, at Instant, session uint64, token string) *Op {
	op := l.release("A", session, token)
	op.Kind, op.NX, op.TTL = Acquire, true, 500*time.Millisecond
	return l.ask(at, op)
}

func TestTheAnsweredOneOfTwoIsNoGhost(t *testing.T) {
	for _, first := range []bool{true, false} {
		l := newTape()
		rest, answered := lost(l, 10, 1, "ta"), lost(l, 11, 2, "tb")
		if first {
			rest, answered = answered, rest
		}
		l.answer(20, answered, Refused)
		list := l.ghosts.byKey[IDOf(rest)]
		if got := l.Ghosts(); len(got) != 1 || got[0].Acquire != rest || len(list) != 1 || list[0].Acquire != rest {
			t.Errorf("%+v are left, and %+v of the key; expected the one without an answer", got, list)
		}
	}
}

func TestNoGhostsUnlessKept(t *testing.T) {
	l := &tape{Ledger: NewLedger(nil), hash: NewHasher([]byte("k"))}
	lost(l, 10, 1, "ta")
	l.do(20, l.release("A", 2, "ta"), Done)
	if got := l.Ghosts(); len(got) != 0 || l.ghosts.byKey != nil {
		t.Errorf("%+v", got)
	}
}

func TestWhatWasAskedBeforeShowsNoGhost(t *testing.T) {
	l := newTape()
	before := l.ask(5, l.release("A", 2, "ta"))
	op := lost(l, 10, 1, "ta")
	l.answer(20, before, Done)
	if g := l.Ghosts(); len(g) != 1 || g[0].Shown != nil {
		t.Errorf("%+v: a release that was sent before cannot have found it", g)
	}
	same := l.release("A", 2, "ta")
	l.ask(30, same)
	same.F = op.F
	if l.answer(40, same, Done); !l.Ghosts()[0].Sure {
		t.Error("a release that was sent at the same instant, as the next, may have")
	}
}

func TestTheFirstProofOfAGhostStays(t *testing.T) {
	l := newTape()
	lost(l, 10, 1, "ta")
	proof := l.do(100, l.release("A", 2, "ta"), Done)
	l.do(200, l.release("A", 2, "ta"), Done)
	if g := l.Ghosts()[0]; g.Shown != proof {
		t.Errorf("%+v", g)
	}
}

func TestARefusalOfAKeyThatIsNotHeldForSureShowsNoGhost(t *testing.T) {
	l := newTape()
	l.acquire(10, "C", 5, "tc")
	l.do(20, l.release("C", 5, "tc"), Done)
	lost(l, 30, 1, "ta")
	refused(l, 100, "B", 4)
	if g := l.Ghosts()[0]; g.Sure {
		t.Errorf("%+v", g)
	}
}
