package lock

import (
	"testing"
	"time"
)

// member makes an op on a member of the key sem.
func member(l *tape, kind Kind, actor string, session uint64, token string) *Op {
	return &Op{Session: session, Actor: actor, Proto: Redis, Kind: kind, Verb: "EVALSHA", Key: "sem", Member: true, Evidence: FromMonitor,
		Token: l.v(token), TTL: 500 * time.Millisecond, NX: kind == Acquire, Guarded: kind != Acquire}
}

func sortIs(t *testing.T, l *tape, key string, want Sort) {
	t.Helper()
	if got := l.Sort(LockID{Key: key}); got != want {
		t.Errorf("%s is %q, want %q", key, got, want)
	}
}

func TestSeveralMembersAtOnceMakeASemaphore(t *testing.T) {
	for _, tt := range []struct {
		name string
		last func(l *tape)
		want Sort
	}{
		{"the first is still there", func(l *tape) { l.do(30, member(l, Release, "A", 1, "ta"), Done) }, Semaphore},
		{"it can still be renewed", func(l *tape) { l.do(30, member(l, Renew, "A", 1, "ta"), Done) }, Semaphore},
		{"it is gone", func(l *tape) { l.do(30, member(l, Release, "A", 1, "ta"), NotHeld) }, Unsorted},
		{"the second is there", func(l *tape) { l.do(30, member(l, Release, "B", 2, "tb"), Done) }, Unsorted},
		{"its answer may be older", func(l *tape) {
			op := l.ask(19, member(l, Release, "A", 1, "ta"))
			l.answer(30, op, Done)
		}, Unsorted},
	} {
		l := newTape()
		l.do(10, member(l, Acquire, "A", 1, "ta"), Granted)
		l.do(20, member(l, Acquire, "B", 2, "tb"), Granted)
		if !l.Term(1).Open() || !l.Term(1).Member {
			t.Fatalf("%+v", l.Term(1))
		}
		tt.last(l)
		if got := l.Term(2).Sort(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		sortIs(t, l, "sem", tt.want)
	}
	l := newTape()
	l.do(10, member(l, Acquire, "A", 1, "ta"), Granted)
	l.do(600, member(l, Acquire, "B", 2, "tb"), Granted)
	l.do(610, member(l, Release, "A", 1, "ta"), Done)
	sortIs(t, l, "sem", Unsorted) // it had lapsed, and was only not swept away yet
}

func TestOneClientsMembersAreBesideEachOther(t *testing.T) {
	l := newTape()
	l.do(10, member(l, Acquire, "A", 1, "ta"), Granted)
	l.do(20, member(l, Acquire, "A", 1, "tb"), Granted)
	if !l.Term(1).Open() || !l.Term(2).Open() {
		t.Error("a permit does not end another")
	}
	if w := l.do(30, l.write("A", 2), Done); w.Term.Sure() || len(w.Term.Also) != 1 {
		t.Errorf("it may be of either: %+v", w.Term)
	}
	l.do(40, member(l, Release, "A", 1, "ta"), Done)
	if l.Term(1).Open() || !l.Term(2).Open() {
		t.Error("its token says which")
	}
	del := &Op{Session: 3, Actor: "C", Proto: Redis, Kind: Release, Verb: "DEL", Key: "sem"}
	l.do(50, del, Done)
	if l.Term(2).Released != del {
		t.Error("all members go with their key")
	}
}

func TestSorts(t *testing.T) {
	acquire := func(l *tape, change func(op *Op)) *Op {
		op := member(l, Acquire, "A", 1, "ta")
		op.Member, op.Verb, op.Evidence = false, "SET", FromWire
		change(op)
		return op
	}
	for _, tt := range []struct {
		name   string
		change func(op *Op)
		want   Sort
	}{
		{"SET NX", func(*Op) {}, Exclusive},
		{"of a script that was seen", func(op *Op) { op.Verb, op.Evidence = "EVAL", FromText }, Exclusive},
		{"read off arguments", func(op *Op) { op.Verb, op.Evidence = "EVALSHA", FromArguments }, Unsorted},
		{"guessed", func(op *Op) { op.Verb, op.Guessed = "EVALSHA", true }, Unsorted},
		{"a script that need not create", func(op *Op) { op.Verb, op.NX = "EVAL", false }, Unsorted},
		{"a reader's", func(op *Op) { op.Shared = true }, ReadWrite},
		{"a member", func(op *Op) { op.Member = true }, Unsorted},
		{"twice", func(op *Op) { op.Depth = 2 }, Reentrant},
		{"advisory", func(op *Op) { op.Proto, op.Span, op.NX = Postgres, SessionSpan, false }, Exclusive},
		{"rows", func(op *Op) { op.Key, op.Proto, op.Span = "row:t:x", Postgres, TxSpan }, Semaphore},
		{"a number that was not told", func(op *Op) { op.Key, op.Proto, op.Span = "advisory:?", Postgres, SessionSpan }, Semaphore},
		{"a lease that was not told", func(op *Op) { op.Key, op.Proto, op.NX = "lease:job:?", Postgres, true }, Semaphore},
		{"a lease", func(op *Op) { op.Key, op.Proto, op.NX = "lease:job:x", Postgres, true }, Exclusive},
	} {
		l := newTape()
		op := l.do(10, acquire(l, tt.change), Granted)
		if got := l.Term(1).Sort(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		sortIs(t, l, op.Key, tt.want)
	}
	l := newTape(Declaration{Key: "sem", Kind: ReadWrite}, Declaration{Key: "*", Kind: Exclusive, Ignore: true})
	l.do(10, member(l, Acquire, "A", 1, "ta"), Granted)
	sortIs(t, l, "sem", ReadWrite)
	sortIs(t, l, "other", Unsorted)
	if got := l.Term(1).Sort(); got != ReadWrite {
		t.Errorf("declared: %q", got)
	}
}

func TestRefusalsWhileThereIsOneMemberMakeItExclusive(t *testing.T) {
	l := newTape()
	l.do(10, member(l, Acquire, "A", 1, "ta"), Granted)
	for i := range Instant(loneRefusals) {
		sortIs(t, l, "sem", Unsorted)
		l.do(20+10*i, member(l, Acquire, "B", 2, "tb"), Refused)
	}
	sortIs(t, l, "sem", Exclusive)
	l = newTape()
	l.do(10, member(l, Acquire, "A", 1, "ta"), Granted)
	l.do(12, member(l, Acquire, "C", 3, "tc"), Granted)
	for range 2 * loneRefusals {
		l.do(20, member(l, Acquire, "B", 2, "tb"), Refused)
	}
	sortIs(t, l, "sem", Unsorted) // there were two
}

func TestTakenAgainByItsHolder(t *testing.T) {
	again := func(l *tape, change func(op *Op)) *Op {
		op := member(l, Acquire, "A", 1, "ta")
		op.Verb, op.NX = "EVALSHA", false
		change(op)
		return op
	}
	for _, tt := range []struct {
		name   string
		at     Instant
		change func(op *Op)
		terms  int
	}{
		{"the server counts two", 100, func(op *Op) { op.Depth = 2 }, 1},
		{"the server counts two, however late", 900, func(op *Op) { op.Depth = 2 }, 1},
		{"the server counts more than were seen", 100, func(op *Op) { op.Depth = 5 }, 1},
		{"the server counts one", 100, func(op *Op) { op.Depth = 1 }, 2},
		{"while it is held", 100, func(*Op) {}, 1},
		{"when it may have lapsed", 900, func(*Op) {}, 2},
		{"creating it", 100, func(op *Op) { op.NX = true }, 2},
		{"by a script that may create it", 100, func(op *Op) { op.NX, op.Evidence = true, FromText }, 1},
		{"with another token", 100, func(op *Op) { op.Token.Hash = "other" }, 2},
	} {
		l := newTape()
		l.do(10, member(l, Acquire, "A", 1, "ta"), Granted)
		op := l.do(tt.at, again(l, tt.change), Granted)
		if got := len(l.Terms()); got != tt.terms {
			t.Errorf("%s: %d terms", tt.name, got)
			continue
		}
		first := l.Term(1)
		switch {
		case tt.terms == 1 && (first.Depth != max(2, op.Depth) || op.Term.ID != 1 || first.LeaseEnd.Earliest < (tt.at+400)*ms):
			t.Errorf("%s: %+v", tt.name, first)
		case tt.terms == 2 && first.Token.Same(op.Token) != (l.Term(2).Again == first):
			t.Errorf("%s: %+v", tt.name, l.Term(2))
		}
	}
}

func TestAReentrantLockIsReleasedInSteps(t *testing.T) {
	l := newTape()
	op := member(l, Acquire, "A", 1, "ta")
	op.Depth = 1
	l.do(10, op, Granted)
	op = member(l, Acquire, "A", 1, "ta")
	op.Depth = 2
	l.do(20, op, Granted)
	step := member(l, Release, "A", 1, "ta")
	l.ask(30, step)
	if !l.Term(1).Open() {
		t.Fatal("there is one left")
	}
	step.Depth = 1
	l.answer(31, step, Done)
	if got := l.Term(1); !got.Open() || got.Depth != 1 || got.Released != nil || got.Release != nil {
		t.Fatalf("a step: %+v", got)
	}
	last := l.do(40, member(l, Release, "A", 1, "ta"), Done)
	if got := l.Term(1); got.Open() || got.Released != last || got.ReleaseAt != 40*ms {
		t.Fatalf("the last: %+v", got)
	}
}

// An answer that could not be read may have been a grant: what was refused before is
// nothing to go by any more.
func TestAnAnswerThatIsNotUnderstoodIsNoRefusal(t *testing.T) {
	l := newTape()
	l.do(10, member(l, Acquire, "A", 1, "ta"), Refused)
	id := LockID{Key: "sem"}
	if l.Refused("A", id) == nil {
		t.Fatal("it was refused")
	}
	l.do(20, member(l, Acquire, "A", 1, "tb"), Unknown)
	if op := l.Refused("A", id); op != nil {
		t.Errorf("A may have it since: %+v", op)
	}
}

// A row, or a key, whose value is its owner keeps no count: who takes it again has it
// for longer, and gives it back at once.
func TestAnOwnerAloneIsNotCounted(t *testing.T) {
	for _, proto := range []Protocol{Postgres, Redis} {
		l := newTape()
		take := func() *Op {
			return &Op{Session: 1, Actor: "A", Proto: proto, Kind: Acquire, Verb: "UPDATE", Key: "lease:locks:1", Guarded: true, Token: l.v("ta"), TTL: 500 * time.Millisecond}
		}
		first := take()
		first.TTL = 5 * time.Minute
		l.do(10, first, Granted)
		want(t, l.do(100, take(), Granted), 1, 1)
		if got := l.Term(1).Lasts(); got != 500*time.Millisecond {
			t.Errorf("it lasts %v since", got)
		}
		want(t, l.do(110, l.write("A", 2), Done), 1, 0.90)
		if got := l.Term(1); got.Depth != 1 || got.LeaseEnd.Earliest < 590*ms {
			t.Fatalf("%v: %+v", proto, got)
		}
		gives := take()
		gives.Kind, gives.TTL = Release, 0
		if last := l.do(200, gives, Done); l.Term(1).Open() || l.Term(1).Release != last || l.Term(1).Released != last || len(l.OpenTerms("A")) != 0 {
			t.Errorf("%v: %+v", proto, l.Term(1))
		}
		if got := l.Term(1).Sort(); proto == Postgres && got != Exclusive {
			t.Errorf("a row has one owner, but is %q", got)
		}
	}
}

// Where it is open whether a lease had ended, its owner's next acquire does not show that
// it had, unless another was granted the lock.
func TestALeaseThatMayHaveEndedIsKept(t *testing.T) {
	for _, other := range []bool{false, true} {
		l := newTape()
		take := func(actor string, session uint64) *Op {
			return &Op{Session: session, Actor: actor, Proto: Postgres, Kind: Acquire, Verb: "UPDATE", Key: "lease:locks:1", Guarded: true, Token: l.v("t" + actor), TTL: time.Second, Coarse: true}
		}
		l.do(10, take("A", 1), Granted)
		if other {
			l.do(600, take("B", 2), Granted)
		}
		op := l.do(900, take("A", 1), Granted)
		if got := op.Term.ID == 1; got == other {
			t.Errorf("another was granted it: %v; A's next is of term %d", other, op.Term.ID)
		}
	}
}

// What was taken for the last release was a step: something had been taken unseen.
func TestAStepReopensItsSection(t *testing.T) {
	l := newTape()
	l.do(10, member(l, Acquire, "A", 1, "ta"), Granted)
	l.do(15, l.write("A", 2), Done)
	step := l.ask(20, member(l, Release, "A", 1, "ta"))
	step.Depth = 1
	l.answer(21, step, Done)
	if got := l.Term(1); !got.Open() || got.Release != nil || got.Released != nil || got.ReleaseAt != 0 {
		t.Fatalf("%+v", got)
	}
	want(t, l.do(30, l.write("A", 2), Done), 1, 0.90)
	l.do(40, member(l, Release, "A", 1, "ta"), Done)
	if l.Term(1).Open() || len(l.OpenTerms("A")) != 0 {
		t.Error("the last one ends it")
	}
	// and the other way: the server says that nothing is left where something was counted
	op := member(l, Acquire, "A", 1, "tb")
	op.Depth = 3
	l.do(50, op, Granted)
	if last := l.do(60, member(l, Release, "A", 1, "tb"), Done); l.Term(2).Open() || l.Term(2).Released != last {
		t.Errorf("%+v", l.Term(2))
	}
}

func TestReadersAreBesideEachOther(t *testing.T) {
	l := newTape()
	for i, actor := range []string{"A", "A", "B"} {
		op := advisory(actor, uint64(i+1), "7")
		op.Shared = true
		l.do(Instant(10+i), op, Granted)
	}
	if len(l.Terms()) != 3 || !l.Term(1).Open() || !l.Term(2).Open() || l.Term(1).Sort() != ReadWrite || !l.Term(1).Shared {
		t.Errorf("%+v", l.Terms())
	}
}

func TestAnAcquireMayIssueAFence(t *testing.T) {
	l := newTape(Declaration{Key: "lock:*", Table: "counter", FenceColumn: "fence"})
	op := l.release("A", 1, "ta")
	op.Kind, op.NX, op.Fence, op.HasFence, op.FenceKey = Acquire, true, 7, true, "f"
	l.do(10, op, Granted)
	if got := l.Term(1); !got.HasFence || got.Fence != 7 || got.FenceOp != op {
		t.Fatalf("%+v", got)
	}
	want(t, l.do(20, l.write("B", 3, Assign{Column: "fence", Value: l.v("7")}), Done), 1, 1)
}
