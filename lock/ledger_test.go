package lock

import (
	"reflect"
	"strconv"
	"testing"
	"time"
)

const ms = Instant(time.Millisecond)

// A tape plays ops to a ledger, each a request and its reply d apart.
type tape struct {
	*Ledger
	seq  uint64
	hash *Hasher
}

func newTape(decls ...Declaration) *tape {
	t := &tape{Ledger: NewLedger(decls), hash: NewHasher([]byte("k"))}
	t.KeepGhosts()
	return t
}

func (t *tape) v(text string) Value { return t.hash.Of([]byte(text)) }

func (t *tape) ask(at Instant, op *Op) *Op {
	t.seq++
	op.Seq, op.A, op.F = t.seq, at*ms, at*ms
	t.Request(op)
	return op
}

func (t *tape) answer(at Instant, op *Op, out Outcome) *Op {
	t.seq++
	op.ReplySeq, op.R, op.D, op.Outcome = t.seq, at*ms, at*ms, out
	t.Reply(op)
	return op
}

func (t *tape) do(at Instant, op *Op, out Outcome) *Op { return t.answer(at+1, t.ask(at, op), out) }

func (t *tape) acquire(at Instant, actor string, session uint64, token string) *Op {
	return t.do(at, &Op{Session: session, Actor: actor, Proto: Redis, Kind: Acquire, Verb: "SET", Key: "lock:c", NX: true,
		Token: t.v(token), TTL: 500 * time.Millisecond}, Granted)
}

func (t *tape) release(actor string, session uint64, token string) *Op {
	return &Op{Session: session, Actor: actor, Proto: Redis, Kind: Release, Verb: "EVAL", Key: "lock:c", Guarded: true, Token: t.v(token)}
}

func (t *tape) write(actor string, session uint64, set ...Assign) *Op {
	return &Op{Session: session, Actor: actor, Proto: Postgres, Kind: Write, Verb: "UPDATE", Implicit: true, Rows: 1,
		SQL: &Statement{Table: "counter", Set: set, Where: []Cond{{"id", "=", t.v("1")}}}}
}

func want(t *testing.T, op *Op, id TermID, confidence float64) {
	t.Helper()
	if op.Term.ID != id || op.Term.Confidence != confidence {
		t.Errorf("%s %s is of term %d at %v, want %d at %v", op.Kind, op.Verb, op.Term.ID, op.Term.Confidence, id, confidence)
	}
}

func TestSection(t *testing.T) {
	l := newTape()
	want(t, l.acquire(10, "A", 1, "ta"), 1, 1)
	want(t, l.do(20, l.write("A", 2), Done), 1, 0.90)
	want(t, l.do(20, l.write("B", 3), Done), 0, 0)
	want(t, l.do(900, l.write("A", 2), Done), 1, 0.90)
	term := l.Term(1)
	if got := term.LeaseEnd; got.Earliest != 510*ms-2*ms-250000 || got.Latest != 511*ms+3*ms+250000 {
		t.Errorf("lease ends in %v", got)
	}
	if !l.Protected("public.counter") || l.Protected("other") {
		t.Error("counter was written inside a section")
	}
	rel := l.do(950, l.release("A", 1, "ta"), NotHeld)
	want(t, rel, 1, 1)
	if term.ReleaseAt != 950*ms || term.EndBy != Released || term.Lost != rel || len(l.OpenTerms("A")) != 0 {
		t.Errorf("the release request ends the section: %+v", term)
	}
	want(t, l.do(960, l.write("A", 2), Done), 0, 0)
}

func TestHandOver(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	want(t, l.do(20, l.write("B", 3, Assign{Column: "by", Value: l.v("ta")}), Done), 1, 1)
	want(t, l.do(30, l.release("B", 4, "ta"), Done), 1, 1)
	if l.Term(1).Open() || l.Term(1).Released == nil {
		t.Error("ownership follows the token")
	}
}

func TestDeclaredFence(t *testing.T) {
	l := newTape(Declaration{Key: "lock:*", Table: "counter", FenceColumn: "fence", Declared: true})
	l.acquire(10, "A", 1, "ta")
	want(t, l.do(12, &Op{Session: 1, Actor: "A", Kind: Fence, Key: "f", FenceKey: "f", Fence: 7, HasFence: true}, Done), 1, 0.90)
	if got := l.Term(1); !got.HasFence || got.Fence != 7 {
		t.Fatalf("the INCR issues the fence: %+v", got)
	}
	want(t, l.do(20, l.write("B", 3, Assign{Column: "fence", Value: l.v("7")}), Done), 1, 1)
	want(t, l.do(20, l.write("B", 3, Assign{Column: "value", Value: l.v("7")}), Done), 0, 0)
	want(t, l.do(20, l.write("A", 2, Assign{Column: "value", Value: l.v("9")}), Done), 1, 0.98)
}

func TestTwoOpenTermsAreNeverSure(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	other := l.release("A", 5, "tb")
	other.Kind, other.Key, other.TTL, other.NX = Acquire, "lock:d", time.Second, true
	l.do(20, other, Granted)
	want(t, l.do(25, l.write("A", 2), Done), 2, 0.60)
	want(t, l.do(26, l.write("A", 1), Done), 1, 0.75)
	l.do(30, l.release("A", 1, "ta"), Done)
	want(t, l.do(35, l.write("A", 2), Done), 2, 0.75)
}

func TestUnansweredRenewal(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	renew := func() *Op {
		return &Op{Session: 1, Actor: "A", Kind: Renew, Verb: "EVAL", Key: "lock:c", Guarded: true, Token: l.v("ta"), TTL: 500 * time.Millisecond}
	}
	first := l.ask(200, renew())
	if l.Term(1).LeaseEnd.Latest != Never {
		t.Error("in flight, the end is unknown")
	}
	l.answer(201, first, Done)
	if got := l.Term(1).LeaseEnd; got.Earliest != 700*ms-2*ms-250000 || l.Term(1).Renewals != 1 {
		t.Errorf("renewed, the lease ends in %v", got)
	}
	l.do(300, renew(), NotHeld)
	if got := l.Term(1).LeaseEnd.Latest; got == Never || got > 710*ms {
		t.Errorf("a refused renewal moves nothing: %v", got)
	}
	l.ask(400, renew())
	l.do(402, &Op{Session: 9, Actor: "A", Kind: Other}, Done)
	l.Closed(1, 410*ms)
	if got := l.Term(1); got.LeaseEnd.Latest != Never || !got.Open() {
		t.Errorf("unanswered, the end stays unknown and the section open: %+v", got)
	}
}

func TestClosed(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	l.do(20, l.write("A", 2), Done)
	l.Closed(1, 30*ms)
	if !l.Term(1).Open() {
		t.Fatal("the process still has a connection")
	}
	l.acquire(40, "A", 7, "tb")
	if got := l.Term(1); got.EndBy != Superseded || got.End != 40*ms {
		t.Errorf("the process was granted the lock again: %+v", got)
	}
	l.Closed(2, 50*ms)
	l.Closed(7, 60*ms)
	if got := l.Term(2); got.EndBy != Closed || got.End != 60*ms {
		t.Errorf("the process has gone: %+v", got)
	}
}

func TestUndeliveredGrantEndsWithItsSession(t *testing.T) {
	l := newTape()
	g := l.acquire(10, "A", 1, "ta")
	g.D = 0
	l.do(20, l.write("A", 2), Done)
	l.Closed(1, 30*ms)
	if l.Term(1).EndBy != Closed {
		t.Error("the client never heard of the grant")
	}
}

func store(l *tape, session uint64, actor, token string) *Op {
	return &Op{Session: session, Actor: actor, Kind: Store, Verb: "SET", Key: "lock:c", Token: l.v(token), TTL: 500 * time.Millisecond}
}

func TestStoreIsPromoted(t *testing.T) {
	l := newTape()
	l.do(10, store(l, 1, "A", "ta"), Done)
	b := l.do(20, store(l, 2, "B", "tb"), Done)
	if len(l.Terms()) != 0 || b.Term.ID != 0 {
		t.Fatal("a stored key is no lock yet")
	}
	want(t, l.do(30, l.release("A", 1, "ta"), NotHeld), 1, 1)
	if got := l.Terms(); len(got) != 2 || got[0].Open() || got[1].Grant.Seq != b.Seq || got[1].LeaseEnd.Earliest > 520*ms {
		t.Fatalf("both stores are grants, each at its own time: %+v", got)
	}
	want(t, l.do(40, store(l, 1, "A", "tc"), Done), 3, 1)
	l.do(50, store(l, 1, "A", "tc"), Done)
	if len(l.Terms()) != 3 || l.Term(3).Renewals != 1 {
		t.Error("the same token again is a renewal")
	}
}

// An op that was answered is its recorder's: it may be written down while its
// key turns out to be a lock.
func TestAnAnsweredOpIsNotWrittenTo(t *testing.T) {
	l := newTape()
	a := l.do(10, store(l, 1, "A", "ta"), Done)
	b := l.do(20, store(l, 2, "B", "tb"), Done)
	before := []Op{*a, *b}
	recorded := make(chan Op)
	go func() { recorded <- *a }()
	l.Promote("", 0, "lock:c")
	l.do(30, l.release("A", 1, "ta"), NotHeld)
	<-recorded
	if !reflect.DeepEqual(before, []Op{*a, *b}) {
		t.Errorf("%+v became %+v %+v", before, a, b)
	}
	if len(l.Terms()) != 2 {
		t.Fatal("both are grants")
	}
}

// Reads that belong to nobody are not recorded, so the ledger must not go by
// them: here it would think that the process has another connection.
func TestAnUnattributedReadLeavesNoTrace(t *testing.T) {
	l := newTape()
	read := func(session uint64) *Op {
		op := l.write("A", session)
		op.Kind, op.Verb = Read, "SELECT"
		return op
	}
	want(t, l.do(5, read(2), Done), 0, 0)
	l.acquire(10, "A", 1, "ta")
	l.Closed(1, 20*ms)
	if l.Term(1).Open() {
		t.Error("the connection of the only term went away")
	}
	l.acquire(30, "A", 3, "tb")
	want(t, l.do(35, read(2), Done), 2, 0.90)
	l.Closed(3, 40*ms)
	if !l.Term(2).Open() {
		t.Error("the process has the connection of its section's read")
	}
}

// A script that was not seen is believed if it carries the token of a term of
// that very key, and is nothing otherwise.
func TestAGuessIsBelievedByItsToken(t *testing.T) {
	guess := func(l *tape, kind Kind, session uint64, actor, key, token string) *Op {
		return &Op{Session: session, Actor: actor, Proto: Redis, Kind: kind, Verb: "EVALSHA", Key: key, Guessed: true, Token: l.v(token), TTL: time.Second}
	}
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	for _, op := range []*Op{guess(l, Release, 1, "A", "lock:c", "else"), guess(l, Renew, 1, "A", "lock:c", "else"),
		guess(l, Release, 1, "A", "lock:d", "ta"), guess(l, Renew, 2, "B", "lock:d", "ta")} {
		want(t, l.do(20, op, Done), 0, 0)
	}
	if a := l.Term(1); !a.Open() || a.Released != nil || a.Renewals != 0 || a.LeaseEnd.Latest > 520*ms {
		t.Fatalf("it named no token of the key: %+v", a)
	}
	want(t, l.do(30, guess(l, Renew, 1, "A", "lock:c", "ta"), Done), 1, 1)
	if a := l.Term(1); a.Renewals != 1 || !a.GuessedLease || a.LeaseEnd.Earliest < 1000*ms {
		t.Errorf("renewed by a guess: %+v", a)
	}
	gone := guess(l, Release, 2, "B", "lock:c", "ta")
	want(t, l.do(40, gone, Done), 1, 1)
	if a := l.Term(1); a.Open() || a.Released != gone || a.Release != gone {
		t.Errorf("released by a guess, of whatever process: %+v", a)
	}
}

func TestAGuessPromotesAStore(t *testing.T) {
	l := newTape()
	l.do(10, store(l, 1, "A", "ta"), Done)
	op := l.release("A", 1, "tx")
	op.Guarded, op.Guessed = false, true
	want(t, l.do(20, op, Done), 0, 0)
	op = l.release("A", 1, "ta")
	op.Guarded, op.Guessed = false, true
	want(t, l.do(30, op, Done), 1, 1)
	if len(l.Terms()) != 1 || l.Term(1).Released != op {
		t.Error("the stored token was compared and deleted")
	}
}

// The copy that the ledger keeps of a candidate is older than its delivery,
// which does not mean that there was none.
func TestACandidateCountsAsDelivered(t *testing.T) {
	l := newTape()
	l.do(5, &Op{Session: 9, Actor: "A", Kind: Begin, Tx: 1}, Done)
	s := store(l, 1, "A", "ta")
	l.ask(10, s)
	l.seq++
	s.ReplySeq, s.R, s.Outcome = l.seq, 11*ms, Done
	l.Reply(s)
	s.D = 12 * ms
	l.Promote("", 0, "lock:c")
	if l.Closed(1, 20*ms); !l.Term(1).Open() {
		t.Error("its process goes on, and has heard of it")
	}
}

func TestOnceMarker(t *testing.T) {
	for _, keys := range [][]string{{"idem", "idem", "idem", "idem", "idem"}, {"idem:1", "idem:2", "idem:3a", "idem:4", "idem:55"}} {
		l := newTape()
		var last *Op
		for i, key := range keys {
			op := &Op{Session: 1, Actor: "A", Kind: Acquire, Verb: "SET", Key: key, NX: true, Token: l.v(string(rune('a' + i))), TTL: time.Second}
			last = l.do(Instant(2000*i+10), op, Granted)
		}
		if !l.Term(last.Term.ID).Marker {
			t.Errorf("%v are never released: no lock", keys)
		}
	}
	l := newTape()
	for i := range 9 {
		op := l.acquire(Instant(2000*i+10), "A", 1, string(rune('a'+i)))
		if l.Term(op.Term.ID).Marker {
			t.Fatal("a key that was released once is a lock")
		}
		if i == 0 {
			l.do(100, l.release("A", 1, "a"), Done)
		}
	}
}

func TestCommitBelongsToItsWrites(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	w := l.write("A", 2)
	w.Implicit, w.Tx = false, 4
	l.do(20, w, Done)
	l.do(30, l.release("A", 1, "ta"), Done)
	want(t, l.do(40, &Op{Session: 2, Actor: "A", Kind: Commit, Verb: "COMMIT", Tx: 4}, Done), 1, 0.90)
	want(t, l.do(50, &Op{Session: 2, Actor: "A", Kind: Commit, Verb: "COMMIT", Tx: 5}, Done), 0, 0)
}

func TestUnguardedReleaseTakesWhateverIsThere(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	l.acquire(600, "B", 2, "tb")
	del := &Op{Session: 1, Actor: "A", Kind: Release, Verb: "DEL", Key: "lock:c"}
	want(t, l.do(700, del, Done), 1, 1)
	if l.Term(1).Released != nil || l.Term(2).Released != del {
		t.Error("A's DEL removed B's key")
	}
}

func TestRefusalsAreRemembered(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	no := l.release("B", 2, "tb")
	no.Kind, no.NX = Acquire, true
	l.do(20, no, Refused)
	if l.Refused("B", IDOf(no)) != no || l.Refused("A", IDOf(no)) != nil {
		t.Error("B was refused, A was not")
	}
	l.acquire(600, "B", 2, "tc")
	if l.Refused("B", IDOf(no)) != nil {
		t.Error("a grant ends a refusal")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	l := newTape()
	for i := range 3 * maxTerms {
		at := Instant(i * 10)
		tok := string(rune('a'+i%26)) + time.Duration(i).String()
		l.acquire(at, "A", 1, tok)
		l.do(at+2, l.release("A", 1, tok), Done)
		s := store(l, 3, "C", tok)
		s.Key = "cache:" + tok
		l.do(at+4, s, Done)
	}
	if len(l.terms) > maxTerms+1 || len(l.tokens) > maxTerms+1 || len(l.keys) > maxKeys+1 || l.candidates > maxCandidates {
		t.Errorf("%d terms, %d tokens, %d keys, %d candidates", len(l.terms), len(l.tokens), len(l.keys), l.candidates)
	}
}

// Ten thousand clients that each hold a lock must not make every grant look at
// ten thousand keys.
func TestManyHeldKeysAreNotLookedAtEachTime(t *testing.T) {
	l := newTape()
	looks, room := 0, 0
	for i := range 4 * maxKeys {
		op := l.release("A", 1, "t")
		op.Kind, op.NX, op.Key = Acquire, true, "lock:"+time.Duration(i).String()
		l.do(Instant(i), op, Granted)
		if l.keyRoom != room {
			looks, room = looks+1, l.keyRoom
		}
		if len(l.keyLine) > max(maxKeys, room) {
			t.Fatalf("%d keys, room for %d", len(l.keyLine), room)
		}
	}
	if looks == 0 || looks > 6 {
		t.Errorf("all keys were looked at %d times; want fewer and fewer", looks)
	}
}

func TestAKeyThatWasForgottenIsNotFound(t *testing.T) {
	l := newTape()
	first := LockID{Key: "lock:0"}
	for i := range maxKeys {
		l.key(LockID{Key: "lock:" + strconv.Itoa(i)})
	}
	if l.known(first) == nil {
		t.Fatal("forgotten already")
	}
	l.key(LockID{Key: "lock:another"})
	if l.known(first) != nil {
		t.Error("still found, out of what was asked for last")
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{{"a", "a", true}, {"a", "ab", false}, {"*", "", true}, {"lock:*", "lock:x", true}, {"lock:*", "loc", false},
		{"a*b*c", "a--b--c", true}, {"a*b*c", "a--c", false}, {"*x", "xyx", true}, {"a*a", "a", false}, {"**", "q", true}} {
		if Glob(c.pattern, c.text) != c.want {
			t.Errorf("Glob(%q, %q) is not %v", c.pattern, c.text, c.want)
		}
	}
}

// What is known by its address alone may be any of several processes there.
func TestAddressAloneIsWeakEvidence(t *testing.T) {
	l := NewLedger([]Declaration{{Key: "job", Table: "counter", Declared: true}})
	l.Request(&Op{Seq: 1, Session: 1, Actor: "@10.0.0.1", Proto: Redis, Kind: Acquire, Key: "job", A: 1, F: 1})
	l.Reply(&Op{Seq: 1, ReplySeq: 2, Session: 1, Actor: "@10.0.0.1", Proto: Redis, Kind: Acquire, Key: "job", Outcome: Granted, A: 1, F: 1, R: 2})
	op := &Op{Seq: 3, Session: 2, Actor: "@10.0.0.1", Proto: Postgres, Kind: Write, SQL: &Statement{Table: "counter"}, A: 3}
	l.Request(op)
	if op.Term.Sure() || op.Term.Confidence != 0.40 {
		t.Errorf("attribution %+v, want 0.40", op.Term)
	}
}

func TestALeaderThatOnlyRenewsHoldsALock(t *testing.T) {
	l := newTape()
	for i := range 6 {
		tok := string(rune('a' + i))
		op := l.acquire(Instant(2000*i+10), "A", 1, tok)
		if l.Term(op.Term.ID).Marker {
			t.Fatal("a key that its holder renews is a lock, though it is never released")
		}
		l.do(Instant(2000*i+100), &Op{Session: 1, Actor: "A", Kind: Renew, Key: "lock:c", Guarded: true, Token: l.v(tok), TTL: 500 * time.Millisecond}, Done)
	}
}

func TestLearnKnowsWhatComesLater(t *testing.T) {
	l := newTape()
	l.KeepAll()
	marker := func(token string) *Op {
		return &Op{Session: 1, Actor: "A", Kind: Acquire, Key: "idem:" + token, NX: true, Token: l.v(token), Outcome: Granted}
	}
	ops := []*Op{
		store(l, 1, "A", "ta"),
		marker("1"), marker("2"), marker("3"),
		{Session: 1, Actor: "A", Kind: Release, Key: "lock:c", Guarded: true, Token: l.v("ta")},
	}
	survey := NewSurvey(nil)
	for _, op := range ops {
		survey.Add(op)
	}
	l.Learn(survey)
	first := l.do(10, ops[0], Done)
	want(t, first, 1, 1)
	want(t, l.do(20, l.write("A", 2), Done), 1, 0.90)
	if op := l.do(30, ops[1], Granted); !l.Term(op.Term.ID).Marker {
		t.Error("three of its kind are taken and none is released")
	}
	want(t, l.do(40, l.write("A", 2), Done), 1, 0.90)
	l.do(50, store(l, 1, "A", "ta"), Done)
	if got := l.Term(1); got.Renewals != 1 || got.LeaseEnd.Earliest < 540*ms {
		t.Errorf("a SET of its own token renews: %+v", got)
	}
}

func TestFenceColumnIsLearned(t *testing.T) {
	l := newTape()
	id := LockID{Key: "lock:c"}
	for i := range 3 {
		if l.FenceColumn(id, "counter", "fence") {
			t.Fatal("two sections are too few")
		}
		n := string(rune('5' + i))
		at := Instant(100 * i)
		l.acquire(at+10, "A", 1, "t"+n)
		l.do(at+12, &Op{Session: 1, Actor: "A", Kind: Fence, Key: "f", Fence: int64(5 + i), HasFence: true}, Done)
		w := l.write("A", 2, Assign{Column: "value", Value: l.v(n)}, Assign{Column: "fence", Value: l.v(n)})
		w.SQL.Where = append(w.SQL.Where, Cond{"fence", "<", l.v(n)})
		l.do(at+20, w, Done)
		l.do(at+30, l.release("A", 1, "t"+n), Done)
	}
	if !l.FenceColumn(id, "public.counter", "fence") || !l.IsFence("counter", "fence") {
		t.Error("three sections compared it with their own fence")
	}
	for _, column := range []string{"value", "id"} {
		if l.FenceColumn(id, "counter", column) || l.IsFence("counter", column) {
			t.Errorf("%s only happens to be equal, or is not", column)
		}
	}
}

func TestNumbersAreNoTokens(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "1")
	want(t, l.do(20, l.write("B", 3, Assign{Column: "value", Value: l.v("1")}), Done), 0, 0)
	want(t, l.do(30, l.release("A", 1, "1"), Done), 1, 1)
	want(t, l.do(40, l.release("A", 1, "1"), NotHeld), 1, 1)
	if l.Term(1).Lost != nil {
		t.Error("a second release tells nothing of the lease")
	}
}

func TestUnknownProcessesAreNotOne(t *testing.T) {
	l := newTape()
	l.acquire(10, "", 1, "ta")
	want(t, l.do(20, l.write("", 2), Done), 1, 0.40)
	l.do(30, &Op{Session: 5, Kind: Release, Key: "lock:c"}, Done)
	if !l.Term(1).Open() {
		t.Error("a DEL on another connection may be another process's")
	}
}

func TestAbandonedSectionsEnd(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	op := l.acquire(10, "B", 2, "tb")
	op.Key = "other"
	l.acquire(Instant((20 * time.Minute).Milliseconds()), "C", 3, "tc")
	if got := l.Term(1); got.EndBy != Abandoned {
		t.Errorf("nothing was heard of it for twenty minutes: %+v", got)
	}
}

func TestLockIDString(t *testing.T) {
	if got := (LockID{Key: "k"}).String() + "," + (LockID{Key: "k", DB: 2}).String(); got != "k,k db 2" {
		t.Error(got)
	}
}

// A script of one argument, the token, may ask what is left of the lease: only
// an answer that a release gives ends the section.
func TestGuessedReleaseIsOneOnceItIsAnsweredSo(t *testing.T) {
	for _, tt := range []struct {
		outcome Outcome
		open    bool
	}{{Failed, true}, {Done, false}, {NotHeld, false}} {
		l := NewLedger(nil)
		token := Value{Hash: "token"}
		grant := &Op{Seq: 1, Session: 1, Actor: "A1", Proto: Redis, Kind: Acquire, NX: true, Key: "job", Token: token, TTL: 1e9, A: 1, F: 1}
		l.Request(grant)
		grant.ReplySeq, grant.R, grant.Outcome = 2, 2, Granted
		l.Reply(grant)
		op := &Op{Seq: 3, Session: 1, Actor: "A1", Proto: Redis, Kind: Release, Guarded: true, Guessed: true, Key: "job", Token: token, A: 3, F: 3}
		l.Request(op)
		if len(l.OpenTerms("A1")) != 1 {
			t.Errorf("%s: the section ended at the request", tt.outcome)
		}
		op.ReplySeq, op.R, op.Outcome = 4, 4, tt.outcome
		l.Reply(op)
		if open := len(l.OpenTerms("A1")) == 1; open != tt.open {
			t.Errorf("%s: open %v, want %v", tt.outcome, open, tt.open)
		}
	}
}

// That a guess was right may be known by the time of its answer: it ends the section
// then as well, and the next grant does not look like that of a second task.
func TestGuessedReleaseThatIsToldForSureByItsAnswer(t *testing.T) {
	for outcome, open := range map[Outcome]bool{Done: false, NotHeld: false, Failed: true} {
		l := newTape()
		l.acquire(10, "A", 1, "ta")
		op := l.release("A", 1, "ta")
		op.Guessed = true
		l.ask(20, op)
		op.Guessed, op.Evidence = false, FromMonitor
		l.answer(21, op, outcome)
		if l.Term(1).Open() != open {
			t.Errorf("%s: open %v, want %v", outcome, l.Term(1).Open(), open)
		}
		l.acquire(30, "A", 1, "tb")
		if w := l.do(40, l.write("A", 2), Done); w.Term.Sure() == open || w.Term.ID != 2 {
			t.Errorf("%s: the next section's write is of %+v", outcome, w.Term)
		}
	}
}

// One connection to Redis may serve several tasks: a second grant does not show
// that the first section is over, unless its release was asked for.
func TestASecondGrantOnOneConnectionLeavesDoubt(t *testing.T) {
	l := newTape(Declaration{Key: "lock:c", Table: "counter", Declared: true})
	l.acquire(10, "A", 1, "ta")
	want(t, l.do(20, l.write("A", 2), Done), 1, 0.98)
	l.acquire(520, "A", 1, "tb")
	want(t, l.do(530, l.write("A", 3), Done), 2, 0.75)
	if late := l.do(540, l.write("A", 2), Done); late.Term.Sure() || len(late.Term.Also) != 1 || late.Term.Also[0] != 1 {
		t.Errorf("it may be of the first section: %+v", late.Term)
	}
	l.do(550, l.release("A", 1, "tb"), Done)
	want(t, l.do(560, l.write("A", 2), Done), 1, 0.60)
	want(t, l.do(570, l.write("A", 3), Done), 0, 0)
	l.do(580, l.release("A", 1, "ta"), NotHeld)
	l.acquire(600, "A", 1, "tc")
	want(t, l.do(610, l.write("A", 2), Done), 3, 0.98)
}

func TestARenewalThatWasNotSentHasNoEffect(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	l.do(20, l.write("A", 2), Done)
	before := l.Term(1).LeaseEnd
	renew := l.ask(200, &Op{Session: 1, Actor: "A", Kind: Renew, Verb: "EVAL", Key: "lock:c", Guarded: true, Token: l.v("ta"), TTL: 500 * time.Millisecond})
	renew.F = 0
	l.Closed(1, 410*ms)
	if got := l.Term(1).LeaseEnd; got != before {
		t.Errorf("the lease ends in %v, not in %v as before", got, before)
	}
}
