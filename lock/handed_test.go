package lock

import (
	"slices"
	"testing"
)

// handed plays a job that A is granted the lock for and W does, with what W does to
// the token in the end, and returns the ledger that had learned of it beforehand.
func handed(before []*Op, last *Op) *tape {
	l := newTape()
	whole := newTape()
	at := Instant(100)
	whole.acquire(10, "A", 1, "ta")
	for _, op := range before {
		whole.do(at, op, Done)
		at += 10
	}
	s := NewSurvey(nil)
	grant := *whole.Term(1).Grant
	s.Add(&grant)
	for _, op := range before {
		done := *op
		s.Add(&done)
	}
	whole.do(at, last, Done)
	done := *last
	s.Add(&done)
	l.Learn(s)
	l.acquire(10, "A", 1, "ta")
	return l
}

func TestAHandedTokenMakesNeitherProcessSure(t *testing.T) {
	l := newTape()
	h := handed([]*Op{l.write("W", 3)}, l.release("W", 4, "ta"))
	if !h.HandsOver(LockID{Key: "lock:c"}) || !slices.Equal(h.Term(1).Handed, []string{"W"}) {
		t.Fatalf("W wrote, and released by A's token: %+v", h.Term(1))
	}
	want(t, h.do(100, h.write("W", 3), Done), 1, unsureHanded)
	want(t, h.do(110, h.write("A", 2), Done), 1, unsureHanded)
	want(t, h.do(115, h.write("X", 7), Done), 0, 0)
	want(t, h.do(120, h.write("W", 3, Assign{Column: "by", Value: h.v("ta")}), Done), 1, 1)
	h.do(130, h.release("W", 4, "ta"), Done)
	if h.HasOpen("W") || h.HasOpen("A") {
		t.Error("released, it is open to neither")
	}
}

func TestADeclarationDoesNotSayWhoHasAHandedToken(t *testing.T) {
	l := newTape()
	h := handed([]*Op{l.write("W", 3)}, l.release("W", 4, "ta"))
	h.decls = declarations{{Key: "lock:c", Table: "counter"}}
	want(t, h.do(100, h.write("A", 2), Done), 1, unsureHanded)
}

func TestWhoOnlyKeepsALockIsHandedNone(t *testing.T) {
	l := newTape()
	renew := l.release("K", 4, "ta")
	renew.Kind, renew.TTL = Renew, 500*1e6
	other := l.release("W", 4, "another's")
	blind := l.release("W", 4, "ta")
	blind.Guarded = false
	for name, h := range map[string]*tape{
		"no statement":     handed(nil, renew),
		"another's token":  handed([]*Op{l.write("W", 3)}, other),
		"no token":         handed([]*Op{l.write("W", 3)}, blind),
		"the holder's own": handed([]*Op{l.write("A", 3)}, l.release("A", 4, "ta")),
		"an address":       handed([]*Op{l.write("@10.0.0.1", 3)}, l.release("@10.0.0.1", 4, "ta")),
	} {
		if h.HandsOver(LockID{Key: "lock:c"}) {
			t.Errorf("%s: nothing was handed over", name)
		}
		want(t, h.do(100, h.write("A", 2), Done), 1, 0.90)
	}
}

func TestAHandedTermOutlivesWhoWasGrantedIt(t *testing.T) {
	l := newTape()
	h := handed([]*Op{l.write("W", 3)}, l.release("W", 4, "ta"))
	h.Closed(1, 50*ms)
	want(t, h.do(100, h.write("W", 3), Done), 1, unsureHanded)
	h.Closed(3, 150*ms)
	if got := h.Term(1); got.Open() || got.EndBy != Closed {
		t.Errorf("nobody is left who may act under it: %+v", got)
	}
}

// A producer has many tokens at once that are handed over: its own sections are one
// task's all the same.
func TestHandedTermsMakeNoTasks(t *testing.T) {
	l := newTape()
	h := handed([]*Op{l.write("W", 3)}, l.release("W", 4, "ta"))
	own := h.release("A", 5, "tb")
	own.Kind, own.Key, own.NX = Acquire, "lock:d", true
	h.do(20, own, Granted)
	h.do(30, h.release("W", 4, "ta"), Done)
	want(t, h.do(40, h.write("A", 2), Done), 2, 0.90)
}

func TestASurveyKeepsFewOfTheTokensThatAreHandedOver(t *testing.T) {
	s := NewSurvey(nil)
	for _, to := range []string{"B", "C", "B", "D", "E", "F", "G"} {
		s.hand(holding{token: "t"}, to)
	}
	if got := s.handed[holding{token: "t"}]; len(got) != mostHanded {
		t.Errorf("one token is handed to %q", got)
	}
	for i := range maxPromoted + 10 {
		s.hand(holding{token: tokenText(Value{IsInt: true, Int: int64(i)})}, "B")
	}
	if len(s.handed) > maxPromoted {
		t.Errorf("%d tokens are noted", len(s.handed))
	}
}

// Whose a token is: what was seen of it, in the order in which it is noted.
func TestWhatMakesAHandOver(t *testing.T) {
	l := newTape()
	grant := func(actor string, session uint64) *Op { return l.acquire(10, actor, session, "ta") }
	write := func(at Instant, actor string) *Op { return l.do(at, l.write(actor, 3), Done) }
	drop := func(actor string) *Op { return l.do(30, l.release(actor, 4, "ta"), Done) }
	for _, tt := range []struct {
		name string
		ops  []*Op
		to   []string
	}{
		{"a worker", []*Op{grant("A", 1), write(20, "W"), drop("W")}, []string{"W"}},
		{"the grant is heard last", []*Op{write(20, "W"), drop("W"), grant("A", 1)}, []string{"W"}},
		{"its own is heard last", []*Op{write(20, "A"), drop("A"), grant("A", 1)}, nil},
		{"it worked before the grant", []*Op{write(2, "W"), grant("A", 1), drop("W")}, nil},
		{"it was granted the same", []*Op{grant("A", 1), grant("W", 5), write(20, "W"), drop("W")}, nil},
		{"granted to an address", []*Op{grant("@10.0.0.1", 1), write(20, "W"), drop("W")}, nil},
	} {
		s := NewSurvey(nil)
		for _, op := range tt.ops {
			s.Add(op)
		}
		if got := s.handed[holding{LockID{Key: "lock:c"}, l.v("ta").Hash}]; !slices.Equal(got, tt.to) {
			t.Errorf("%s: the token went to %q, want %q", tt.name, got, tt.to)
		}
	}
}

func TestAHandedTermWithinAnotherMakesNoTasks(t *testing.T) {
	l := newTape()
	s := NewSurvey(nil)
	for _, op := range []*Op{l.acquire(10, "A", 1, "ta"), l.do(20, l.write("W", 3), Done), l.do(30, l.release("W", 4, "ta"), Done)} {
		s.Add(op)
	}
	h := newTape()
	h.Learn(s)
	own := h.release("A", 5, "tb")
	own.Kind, own.Key, own.NX = Acquire, "lock:d", true
	h.do(5, own, Granted)
	h.acquire(10, "A", 1, "ta")
	h.do(30, h.release("W", 4, "ta"), Done)
	want(t, h.do(40, h.write("A", 2), Done), 1, 0.90)
}

func TestAClaimOfAnyFreeRowIsAQueues(t *testing.T) {
	s, l := NewSurvey(nil), newTape()
	s.Add(&Op{Session: 1, Actor: "A", Proto: Postgres, Kind: Acquire, Upstream: "pg", Key: "lease:job:?", Outcome: Refused})
	s.Add(&Op{Session: 1, Actor: "A", Proto: Postgres, Kind: Acquire, Upstream: "pg", Key: "lease:desk:x", Outcome: Refused})
	l.Learn(s)
	for key, want := range map[string]bool{"lease:job:1f": true, "lease:desk:x": false, "row:job:1f": false, "job:1f": false} {
		if got := l.Queue(LockID{Upstream: "pg", Key: key}); got != want {
			t.Errorf("%s is a queue's: %v", key, got)
		}
	}
}

// A process that claims jobs and does not tell when they are done may be doing one of
// them, whatever else it holds.
func TestAQueuesWorkerIsNeverSureOfItsOnlyOtherLock(t *testing.T) {
	s, l := NewSurvey(nil), newTape()
	claim := func(key string) *Op {
		return &Op{Session: 3, Actor: "A", Proto: Postgres, Kind: Acquire, Upstream: "pg", Key: "lease:job:" + key, NX: true, Token: l.v("a"), Outcome: Granted}
	}
	for _, key := range []string{"1a", "2b", "3c"} {
		s.Add(claim(key))
	}
	none := claim("?")
	none.Outcome = Refused
	s.Add(none)
	l.Learn(s)
	l.acquire(10, "A", 1, "ta")
	want(t, l.do(20, l.write("A", 2), Done), 1, 0.90)
	if op := l.do(30, claim("1a"), Granted); !l.Term(op.Term.ID).Marker {
		t.Fatal("nobody ever gives a job back")
	}
	want(t, l.do(40, l.write("A", 2), Done), 1, 0.75)
}
