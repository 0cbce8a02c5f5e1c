package lock

import (
	"slices"
	"testing"
	"time"
)

// pg makes an op of a session of Postgres.
func pg(kind Kind, actor string, session, tx uint64) *Op {
	return &Op{Session: session, Actor: actor, Proto: Postgres, Upstream: "pg/app", Kind: kind, Tx: tx}
}

func advisory(actor string, session uint64, key string) *Op {
	op := pg(Acquire, actor, session, 0)
	op.Verb, op.Key, op.Span, op.Implicit = "PG_ADVISORY_LOCK", "advisory:"+key, SessionSpan, true
	return op
}

func unlock(actor string, session uint64, key string) *Op {
	op := advisory(actor, session, key)
	op.Kind, op.Verb = Release, "PG_ADVISORY_UNLOCK"
	return op
}

func inTx(kind Kind, actor string, session, tx uint64, key string) *Op {
	op := pg(kind, actor, session, tx)
	op.Span, op.Key = TxSpan, key
	return op
}

func statement(kind Kind, actor string, session, tx uint64) *Op {
	op := pg(kind, actor, session, tx)
	op.Verb, op.SQL, op.Rows = "UPDATE", &Statement{Table: "counter"}, 1
	return op
}

func TestASessionsLockOwnsItsSession(t *testing.T) {
	l := newTape()
	want(t, l.do(10, advisory("A", 1, "7"), Granted), 1, 1)
	if got := l.Term(1); got.Span != SessionSpan || got.LeaseEnd.Latest != Never || got.Lock != (LockID{"pg/app", 0, "advisory:7"}) {
		t.Errorf("%+v", got)
	}
	want(t, l.do(20, statement(Write, "A", 1, 1), Done), 1, 0.98)
	want(t, l.do(30, statement(Write, "A", 2, 1), Done), 1, 0.90)
	if got := l.Term(1).Held(); got != 20*ms {
		t.Errorf("it was last seen at %v", got)
	}
	gone := l.do(40, unlock("A", 1, "7"), Done)
	want(t, gone, 1, 1)
	if got := l.Term(1); got.EndBy != Released || got.Released != gone || got.ReleaseAt != 40*ms {
		t.Errorf("unlocked: %+v", got)
	}
	want(t, l.do(50, statement(Write, "A", 1, 2), Done), 0, 0)
}

// It is another's if it is asked for on another connection, whatever the pool meant.
func TestAnUnlockOnAnotherSessionFindsNothing(t *testing.T) {
	l := newTape()
	l.do(10, advisory("A", 1, "7"), Granted)
	op := l.do(20, unlock("A", 2, "7"), NotHeld)
	want(t, op, 1, 1)
	if got := l.Term(1); got.Release != op || got.Lost != nil || got.Released != nil || got.Gone != nil {
		t.Errorf("the process takes it for released, and it is there: %+v", got)
	}
	l.do(30, unlock("A", 2, "7"), Done)
	if l.Term(1).Released != nil {
		t.Error("another session's answer tells nothing of it")
	}
}

func TestASessionsLockIsCounted(t *testing.T) {
	l := newTape()
	l.do(10, advisory("A", 1, "7"), Granted)
	want(t, l.do(20, advisory("A", 1, "7"), Granted), 1, 1)
	if got := l.Term(1); got.Depth != 2 || len(l.Terms()) != 1 || got.Sort() != Reentrant {
		t.Fatalf("one holder has it twice: %+v", got)
	}
	l.do(30, unlock("A", 1, "7"), Done)
	if got := l.Term(1); !got.Open() || got.Depth != 1 || got.Released != nil {
		t.Fatalf("a step: %+v", got)
	}
	l.do(40, unlock("A", 1, "7"), Done)
	if l.Term(1).Open() {
		t.Error("that was the last")
	}
}

// Who gives the exclusive one of two holdings back has a reader's lock from then on.
func TestAnExclusiveLockBecomesAReaders(t *testing.T) {
	mode := func(op *Op, shared bool) *Op { op.Shared = shared; return op }
	for _, tt := range []struct {
		name         string
		took, gave   []bool // shared
		shared, open bool
	}{
		{"the exclusive one is given back", []bool{false, true}, []bool{false}, true, true},
		{"the reader's is", []bool{false, true}, []bool{true}, false, true},
		{"one of two exclusive ones is", []bool{false, false, true}, []bool{false}, false, true},
		{"both are", []bool{false, false, true}, []bool{false, false}, true, true},
		{"the reader's, and then one more", []bool{false, false, true}, []bool{true, false}, false, true},
		{"all are", []bool{false, true}, []bool{false, true}, true, false},
		{"two exclusive ones", []bool{false, false}, []bool{false}, false, true},
	} {
		l := newTape()
		for i, shared := range tt.took {
			l.do(Instant(10+i), mode(advisory("A", 1, "7"), shared), Granted)
		}
		for i, shared := range tt.gave {
			l.do(Instant(20+i), mode(unlock("A", 1, "7"), shared), Done)
		}
		if got := l.Term(1); got.Shared != tt.shared || got.Open() != tt.open || len(l.Terms()) != 1 {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

func TestTwoStepsInOnePipelineEndASection(t *testing.T) {
	l := newTape()
	l.do(10, advisory("A", 1, "7"), Granted)
	l.do(20, advisory("A", 1, "7"), Granted)
	first, second := l.ask(30, unlock("A", 1, "7")), l.ask(31, unlock("A", 1, "7"))
	if l.Term(1).Open() {
		t.Error("its last release was asked for")
	}
	l.answer(40, first, Done)
	l.answer(41, second, Done)
	if got := l.Term(1); got.Released != second || got.Release != second {
		t.Errorf("%+v", got)
	}
}

func TestUnlockAll(t *testing.T) {
	l := newTape()
	l.do(10, advisory("A", 1, "7"), Granted)
	l.do(11, advisory("A", 1, "7"), Granted)
	l.do(12, advisory("A", 1, "8"), Granted)
	l.do(13, advisory("A", 2, "9"), Granted)
	op := pg(Release, "A", 1, 0)
	op.All, op.Span = true, SessionSpan
	l.do(20, op, Done)
	if !op.Term.Of(1) || !op.Term.Of(2) || op.Term.Of(3) {
		t.Errorf("it is of both that the session has: %+v", op.Term)
	}
	for id, open := range map[TermID]bool{1: false, 2: false, 3: true} {
		if got := l.Term(id); got.Open() != open || (got.Released == op) == open {
			t.Errorf("term %d: %+v", id, got)
		}
	}
}

func TestTheEndOfASessionEndsWhatItHolds(t *testing.T) {
	l := newTape()
	l.do(5, statement(Write, "A", 2, 1), Done)
	l.do(10, advisory("A", 1, "7"), Granted)
	l.do(20, inTx(Acquire, "A", 1, 3, "table:t"), Granted)
	l.do(30, statement(Write, "A", 1, 3), Done)
	l.Closed(1, 50*ms)
	for _, got := range l.Terms() {
		if got.EndBy != Closed || got.End != 50*ms || got.LeaseEnd != (Interval{30 * ms, Never}) {
			t.Errorf("%+v", got)
		}
	}
}

func TestATransactionsLockOwnsItsStatements(t *testing.T) {
	l := newTape()
	for _, end := range []Kind{Commit, Rollback} {
		l.do(1, pg(Begin, "A", 1, 4), Done)
		first := l.do(5, statement(Write, "A", 1, 4), Done)
		took, read := l.ask(10, inTx(Acquire, "A", 1, 4, "row:counter:x")), l.ask(10, statement(Read, "A", 1, 4))
		l.answer(11, took, Granted)
		l.answer(11, read, Done)
		id := took.Term.ID
		want(t, read, id, 1)
		if first.Term.ID != 0 {
			t.Errorf("what came before the lock is not its own: %+v", first.Term)
		}
		want(t, l.do(20, statement(Write, "A", 1, 4), Done), id, 1)
		want(t, l.do(21, statement(Write, "A", 2, 4), Done), 0, 0)
		want(t, l.do(22, statement(Write, "A", 1, 5), Done), 0, 0)
		if l.HasOpen("A") || len(l.OpenTerms("A")) != 0 {
			t.Error("nothing outside of the transaction is its own")
		}
		l.do(25, statement(Write, "A", 1, 4), Done)
		op := l.ask(30, pg(end, "A", 1, 4))
		want(t, op, id, 1)
		if got := l.Term(id); got.Open() || got.Release != op || got.EndBy != Released {
			t.Errorf("its end was asked for: %+v", got)
		}
		l.answer(32, op, Done)
		from := 30 * ms
		if end == Rollback {
			from = 25 * ms // an error may have ended it at any time since
		}
		if got := l.Term(id); got.LeaseEnd != (Interval{from, 32 * ms}) || got.Released != op {
			t.Errorf("%s: %+v, want from %v", end, got.LeaseEnd, from)
		}
		l.Closed(1, 40*ms)
		l.Closed(2, 40*ms)
	}
}

func TestARowLockDoesNotDisturbASection(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	l.do(15, inTx(Acquire, "A", 2, 4, "row:counter:x"), Granted)
	w := l.do(20, statement(Write, "A", 2, 4), Done)
	if w.Term.ID != 1 || !slices.Equal(w.Term.Within, []TermID{2}) || w.Term.Confidence != 0.90 || !w.Term.Sure() {
		t.Errorf("it is of the section, and of the row's lock too: %+v", w.Term)
	}
	want(t, l.do(21, statement(Write, "A", 3, 1), Done), 1, 0.90)
	c := l.do(30, pg(Commit, "A", 2, 4), Done)
	if !c.Term.Of(1) || !c.Term.Of(2) || !c.Term.Sure() {
		t.Errorf("so is the commit: %+v", c.Term)
	}
	if l.Protected("other") || !l.Protected("counter") {
		t.Error("counter was written in the section")
	}
	want(t, l.do(40, statement(Write, "A", 3, 2), Done), 1, 0.90)
}

func TestLocksOfASessionAndItsTransaction(t *testing.T) {
	l := newTape()
	l.do(10, advisory("A", 1, "7"), Granted)
	l.do(11, advisory("A", 1, "8"), Granted)
	l.do(12, inTx(Acquire, "A", 1, 4, "row:t:x"), Granted)
	l.do(13, inTx(Acquire, "A", 1, 4, "row:t:y"), Granted)
	if w := l.do(20, statement(Write, "A", 1, 4), Done); !surely(w, 2, 1, 4, 3) || w.Term.Confidence != 0.98 {
		t.Errorf("%+v", w.Term)
	}
}

func TestARefusalOfARowIsNone(t *testing.T) {
	l := newTape()
	l.do(10, inTx(Acquire, "A", 1, 4, "row:t:?"), Refused)
	l.do(11, inTx(Acquire, "A", 1, 4, "advisory:?"), Refused)
	if l.do(12, inTx(Acquire, "A", 1, 4, "advisory:7"), Refused); len(l.Refusals("A")) != 1 {
		t.Errorf("another row may have been free: %v", l.Refusals("A"))
	}
}

func TestRowLocksAloneProtectNothing(t *testing.T) {
	l := newTape()
	l.do(15, inTx(Acquire, "A", 2, 4, "row:counter:x"), Granted)
	l.do(20, statement(Write, "A", 2, 4), Done)
	if l.Protected("counter") {
		t.Error("every transaction takes row locks")
	}
}

func TestARowIsLockedAgain(t *testing.T) {
	l := newTape()
	l.do(10, inTx(Acquire, "A", 1, 4, "row:t:x"), Granted)
	want(t, l.do(12, inTx(Acquire, "A", 1, 4, "row:t:x"), Granted), 1, 1)
	l.do(20, pg(Commit, "A", 1, 4), Done)
	if l.Term(1).Open() {
		t.Error("the end of its transaction is the end, however often it was taken")
	}
	want(t, l.do(30, inTx(Acquire, "A", 1, 5, "row:t:x"), Granted), 2, 1)
}

func TestRollBackTo(t *testing.T) {
	for _, known := range []bool{true, false} {
		l := newTape()
		l.do(10, inTx(Acquire, "A", 1, 4, "row:t:x"), Granted)
		second := l.do(20, inTx(Acquire, "A", 1, 4, "row:t:y"), Granted)
		back := pg(Rollback, "A", 1, 4)
		back.Savepoint = true
		l.ask(30, back)
		if !l.Term(1).Open() || !l.Term(2).Open() {
			t.Error("only the answer tells")
		}
		if known {
			back.Since = second.Seq
		}
		l.answer(31, back, Done)
		w := l.do(40, statement(Write, "A", 1, 4), Done)
		switch {
		case known && (l.Term(2).Open() || l.Term(2).Released != back):
			t.Errorf("it was taken since: %+v", l.Term(2))
		case known && (w.Term.ID != 1 || !w.Term.Sure() || w.Term.Of(2)):
			t.Errorf("the first is still held: %+v", w.Term)
		case !known && (w.Term.Sure() || !w.Term.Of(1)):
			t.Errorf("either may be gone: %+v", w.Term)
		}
		if !l.Term(1).Open() {
			t.Error("the first is still held")
		}
	}
}

func TestATransactionOfOneStatement(t *testing.T) {
	l := newTape()
	took := inTx(Acquire, "A", 1, 4, "advisory:1")
	took.Implicit = true
	read := statement(Read, "A", 1, 4)
	read.Implicit = true
	l.ask(10, took)
	l.ask(10, read)
	l.answer(11, took, Granted)
	l.answer(11, read, Done)
	want(t, read, 1, 1)
	w := statement(Write, "A", 1, 5)
	w.Implicit = true
	want(t, l.do(20, w, Done), 0, 0)
	l.do(30, inTx(Acquire, "A", 1, 6, "advisory:1"), Granted)
	if got := l.Term(1); got.Open() {
		t.Errorf("another transaction of the session came: %+v", got)
	}
}

func leaseOp(kind Kind, actor string, session, tx uint64, token Value) *Op {
	op := pg(kind, actor, session, tx)
	op.Verb, op.Key, op.Token, op.TTL, op.Guarded = "UPDATE", "lease:locks:x", token, time.Second, kind != Acquire
	op.NX = kind == Acquire
	return op
}

func TestALeaseInATransactionThatIsRolledBack(t *testing.T) {
	l := newTape()
	l.do(10, leaseOp(Acquire, "A", 1, 4, l.v("ta")), Granted)
	l.do(20, pg(Rollback, "A", 1, 4), Done)
	if got := l.Term(1); got.EndBy != Undone || got.Dead(5000*ms) || got.Held() != 0 {
		t.Errorf("it was never there: %+v", got)
	}
	l.do(30, pg(Begin, "A", 1, 5), Done)
	l.do(40, leaseOp(Acquire, "A", 1, 5, l.v("tb")), Granted)
	l.do(50, pg(Commit, "A", 1, 5), Done)
	if got := l.Term(2); !got.Open() || got.LeaseEnd.Earliest > 1030*ms || got.LeaseEnd.Latest < 1041*ms {
		t.Errorf("its time counts from when its transaction began: %+v", got.LeaseEnd)
	}
	gone := l.do(60, leaseOp(Release, "A", 1, 6, l.v("tb")), Done)
	if got := l.Term(2); got.Open() || got.Released != gone {
		t.Fatalf("%+v", got)
	}
	l.do(70, pg(Rollback, "A", 1, 6), Done)
	if got := l.Term(2); got.Released != nil {
		t.Errorf("the release was undone: %+v", got)
	}
	del := leaseOp(Release, "B", 5, 1, Value{})
	del.Guarded = false
	l.do(80, del, Done)
	if got := l.Term(2); got.Released != del {
		t.Errorf("so that it was there to be removed: %+v", got)
	}
	l.do(90, leaseOp(Acquire, "A", 1, 7, l.v("tc")), Granted)
	if got := l.Term(3).Held(); got != 0 {
		t.Errorf("of a transaction that began unseen it is not known since when it is: %v", got)
	}
}

func TestALeaseInAPartThatIsRolledBack(t *testing.T) {
	l := newTape()
	l.do(5, pg(Begin, "A", 1, 4), Done)
	l.do(10, leaseOp(Acquire, "A", 1, 4, l.v("ta")), Granted)
	second := leaseOp(Acquire, "A", 1, 4, l.v("tb"))
	second.Key = "lease:locks:y"
	l.do(20, second, Granted)
	back := pg(Rollback, "A", 1, 4)
	back.Savepoint, back.Since = true, second.Seq
	l.do(30, back, Done)
	if l.Term(2).EndBy != Undone || !l.Term(1).Open() {
		t.Errorf("%+v %+v", l.Term(1), l.Term(2))
	}
	l.do(40, pg(Rollback, "A", 1, 4), Done)
	if l.Term(1).EndBy != Undone {
		t.Errorf("%+v", l.Term(1))
	}
}

func TestAnErrorShowsNothingToBeThere(t *testing.T) {
	l := newTape()
	l.do(10, inTx(Acquire, "A", 1, 4, "row:t:x"), Granted)
	failed, lost := statement(Read, "A", 1, 4), statement(Write, "A", 1, 4)
	l.do(20, failed, Failed)
	l.do(25, lost, Unknown)
	if got := l.Term(1).Held(); got != 10*ms {
		t.Errorf("it was last seen at %v", got)
	}
	l.do(28, statement(Write, "A", 1, 9), Done)
	l.do(30, statement(Write, "A", 1, 9), Done)
	l.do(40, inTx(Acquire, "A", 1, 9, "row:t:x"), Granted)
	if got := l.Term(1); got.Open() || got.Held() != 10*ms {
		t.Errorf("another transaction shows nothing of it: %v", got.Held())
	}
	took, other := l.ask(50, inTx(Acquire, "A", 1, 9, "row:t:y")), l.ask(50, statement(Read, "A", 1, 9))
	other.Term = Attribution{}
	l.answer(51, took, Granted)
	if l.answer(52, other, Failed); other.Term.ID != 0 {
		t.Errorf("a statement that failed took nothing: %+v", other.Term)
	}
}

func TestManyRowLocksOfOneTransaction(t *testing.T) {
	l := newTape()
	for i := range 100 {
		l.do(10, inTx(Acquire, "A", 1, 4, "row:t:"+time.Duration(i).String()), Granted)
	}
	w := l.do(20, statement(Write, "A", 1, 4), Done)
	if len(w.Term.Within) >= maxWithin || !w.Term.Of(1) {
		t.Errorf("%d locks", len(w.Term.Within))
	}
	l.do(30, pg(Commit, "A", 1, 4), Done)
	for _, term := range l.Terms() {
		if term.Open() {
			t.Fatalf("%+v is open", term)
		}
	}
}

// A lock of a transaction is held while that goes on, on its connection.
func TestInTransaction(t *testing.T) {
	l := newTape()
	held := func(want bool, session uint64) {
		t.Helper()
		if got := l.InTransaction("A", session); got != want {
			t.Errorf("in a transaction on session %d: %v", session, got)
		}
	}
	held(false, 0)
	l.do(10, statement(Write, "A", 1, 1), Done)
	held(false, 0)
	l.do(20, inTx(Acquire, "A", 1, 1, "advisory:7"), Granted)
	l.do(25, statement(Write, "A", 2, 1), Done)
	held(true, 0)
	held(true, 1)
	held(false, 2)
	if l.InTransaction("B", 0) {
		t.Error("so is B")
	}
	l.do(30, pg(Commit, "A", 1, 1), Done)
	held(false, 0)
	own := inTx(Acquire, "A", 1, 2, "advisory:7")
	own.Implicit = true
	l.do(40, own, Granted)
	held(false, 0)
}
