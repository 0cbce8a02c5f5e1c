package lock

import (
	"strconv"
	"testing"
	"time"
)

// promoted returns a tape on which plain SETs of lock:c are grants.
func promoted() *tape {
	l := newTape()
	l.Promote("", 0, "lock:c")
	return l
}

// A plain SET of what its client holds the lock with moves the lease of that, and any
// other is a grant.
func TestAStoreOfTheSameToken(t *testing.T) {
	for name, tt := range map[string]struct {
		op    func(l *tape) *Op
		terms int
	}{
		"by its holder":            {func(l *tape) *Op { return store(l, 1, "A", "ta") }, 1},
		"on another connection":    {func(l *tape) *Op { return store(l, 4, "A", "ta") }, 1},
		"by another":               {func(l *tape) *Op { return store(l, 2, "B", "ta") }, 2},
		"of another token":         {func(l *tape) *Op { return store(l, 1, "A", "tb") }, 2},
		"that creates only":        {func(l *tape) *Op { op := store(l, 1, "A", "ta"); op.NX = true; return op }, 2},
		"of no token that is told": {func(l *tape) *Op { op := store(l, 1, "A", "ta"); op.Token = Value{}; return op }, 2},
	} {
		l := promoted()
		l.do(10, store(l, 1, "A", "ta"), Done)
		l.do(100, tt.op(l), Done)
		if got := l.Terms(); len(got) != tt.terms {
			t.Errorf("%s: %d terms", name, len(got))
		}
		if moved := l.Term(1).LeaseEnd.Earliest > 590*ms; moved != (tt.terms == 1) || l.Term(1).Renewals != 2-tt.terms {
			t.Errorf("%s: the lease ends in %v, renewed %d times", name, l.Term(1).LeaseEnd, l.Term(1).Renewals)
		}
	}
}

func TestAStoreInFlightPutsItsLeaseInDoubt(t *testing.T) {
	l := promoted()
	l.do(10, store(l, 1, "A", "ta"), Done)
	op := l.ask(100, store(l, 1, "A", "ta"))
	if op.Term.ID != 1 || l.Term(1).LeaseEnd.Latest != Never {
		t.Errorf("%+v", l.Term(1).LeaseEnd)
	}
	l.answer(110, op, Failed)
	if got := l.Term(1); got.LeaseEnd.Latest == Never || got.Renewals != 0 || len(l.Terms()) != 1 {
		t.Errorf("what failed moves nothing: %+v", got)
	}
}

// What was released is not held any more: to store its token again takes the lock again.
func TestAStoreAfterARelease(t *testing.T) {
	l := promoted()
	l.do(10, store(l, 1, "A", "ta"), Done)
	l.do(20, l.release("A", 1, "ta"), Done)
	l.do(30, store(l, 1, "A", "ta"), Done)
	if got := l.Terms(); len(got) != 2 || !got[1].Open() || got[0].Renewals != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAStoreThatFailedIsNoGrant(t *testing.T) {
	for _, out := range []Outcome{Failed, NotHeld, Unknown} {
		l := promoted()
		if l.do(10, store(l, 1, "A", "ta"), out); len(l.Terms()) != 0 {
			t.Errorf("%s: %+v", out, l.Term(1))
		}
		l = newTape()
		l.do(10, store(l, 1, "A", "ta"), out)
		if l.Promote("", 0, "lock:c"); len(l.Terms()) != 0 || l.candidates != 0 {
			t.Errorf("%s: read again, %+v", out, l.Term(1))
		}
	}
}

// By the time that a key turns out to be a lock its stores are their recorder's.
func TestACandidateIsACopy(t *testing.T) {
	l := newTape()
	op := l.do(10, store(l, 1, "A", "ta"), Done)
	l.Promote("", 0, "lock:c")
	if op.Term.ID != 0 || l.Term(1) == nil || l.Term(1).Grant == op || l.Term(1).Grant.Seq != op.Seq {
		t.Errorf("%+v", op.Term)
	}
	if l.candidates != 0 || len(l.keys[IDOf(op)].stores) != 0 {
		t.Errorf("%d are kept still", l.candidates)
	}
	l.Promote("", 0, "lock:c")
	if len(l.Terms()) != 1 {
		t.Error("they are read once")
	}
}

func TestCandidatesAreBounded(t *testing.T) {
	l := newTape()
	for i := range maxPerKey + 5 {
		l.do(Instant(1000*i+10), store(l, 1, "A", "t"+strconv.Itoa(i)), Done)
	}
	id := LockID{Key: "lock:c"}
	if k := l.keys[id]; len(k.stores) != maxPerKey || l.candidates != maxPerKey || !k.stores[0].Token.Same(l.v("t5")) {
		t.Fatalf("%d of a key, %d in all", len(l.keys[id].stores), l.candidates)
	}
	for i := range maxCandidates {
		op := store(l, 1, "A", "t")
		op.Key = "cache:" + strconv.Itoa(i)
		l.do(10, op, Done)
	}
	if l.candidates != maxCandidates || len(l.keys[id].stores) != 0 {
		t.Errorf("%d in all, %d of the oldest key", l.candidates, len(l.keys[id].stores))
	}
	for i := range 9 * maxCandidates {
		op := store(l, 1, "A", "t"+strconv.Itoa(i))
		op.Key = "cache:one"
		l.do(10, op, Done)
	}
	if len(l.storeLine) > 4*maxCandidates || len(l.keys[LockID{Key: "cache:one"}].stores) != maxPerKey {
		t.Errorf("%d in line", len(l.storeLine))
	}
}

func TestAnIgnoredKeyIsNotPromoted(t *testing.T) {
	l := newTape(Declaration{Key: "lock:*", Ignore: true})
	if l.Promote("", 0, "lock:c"); len(l.keys) != 0 || len(l.promoted) != 0 {
		t.Errorf("%+v", l.keys)
	}
}

// A client that was granted the lock anew is in no section of what it stored before.
func TestAStoreThatWasOutdoneIsOver(t *testing.T) {
	for name, tt := range map[string]struct {
		session uint64
		open    bool
	}{"by its own client": {1, false}, "by another": {2, true}} {
		l := newTape()
		l.do(10, store(l, 1, "A", "ta"), Done)
		l.do(600, &Op{Session: tt.session, Actor: "X", Proto: Redis, Kind: Acquire, Verb: "SET", Key: "lock:c", NX: true,
			Token: l.v("tb"), TTL: time.Second}, Granted)
		l.Promote("", 0, "lock:c")
		if got := l.Term(2); got.Open() != tt.open || !tt.open && (got.EndBy != Superseded || got.End != 600*ms) || !l.Term(1).Open() {
			t.Errorf("%s: %+v", name, got)
		}
		if l.keys[LockID{Key: "lock:c"}].current != l.Term(1) {
			t.Errorf("%s: the last that was granted is there", name)
		}
	}
}

func TestWhatIsStoredLaterIsThere(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	l.do(600, store(l, 2, "B", "tb"), Done)
	l.Promote("", 0, "lock:c")
	if l.keys[LockID{Key: "lock:c"}].current != l.Term(2) {
		t.Error("B stored after A's grant")
	}
}

func TestAKeySetIsEmptiedWhenItIsFull(t *testing.T) {
	var s keySet
	for i := range maxPromoted + 1 {
		s.add(LockID{Key: strconv.Itoa(i)})
	}
	if s.add(LockID{Key: "last"}); len(s) != 1 || !s[LockID{Key: "last"}] {
		t.Errorf("%d", len(s))
	}
}

// Whose a client is that is known by its address only, cannot be told.
func TestWhoStoredWhatIsCompared(t *testing.T) {
	for name, tt := range map[string]struct {
		storer, comparer string
		session          uint64
		lock             bool
	}{
		"the process":              {"A", "A", 2, true},
		"its connection":           {"A", "B", 1, true},
		"another":                  {"A", "B", 2, false},
		"one that is not known":    {"A", "@10.0.0.1", 2, true},
		"another, and it may be":   {"@10.0.0.1", "B", 2, true},
		"neither of them is known": {"", "", 2, true},
	} {
		l := newTape()
		l.do(10, store(l, 1, tt.storer, "ta"), Done)
		l.do(20, l.release(tt.comparer, tt.session, "ta"), Done)
		if got := len(l.Terms()) == 1; got != tt.lock {
			t.Errorf("%s: a lock: %v", name, got)
		}
		l.do(30, l.release(tt.storer, 1, "none"), NotHeld)
		if k := l.keys[LockID{Key: "lock:c"}]; k.owned+k.foreign != 1 {
			t.Errorf("%s: what nobody stored counts for nothing: %+v", name, k)
		}
	}
}

func TestTokensThatAreNumbersOnly(t *testing.T) {
	one, two := Value{Int: 1, IsInt: true}, Value{Int: 2, IsInt: true}
	if tokenText(one) == tokenText(two) || tokenText(one) == "" || tokenText(Value{}) != "" || tokenText(Value{Hash: "h", Int: 1, IsInt: true}) != "h" {
		t.Error(tokenText(one), tokenText(two), tokenText(Value{}))
	}
}

// Two tokens of which nothing is told need not be the same.
func TestTokensThatAreNotTold(t *testing.T) {
	l := promoted()
	for i := range Instant(2) {
		op := store(l, 1, "A", "")
		op.Token = Value{}
		l.do(10+100*i, op, Done)
	}
	if got := l.Terms(); len(got) != 2 || got[0].Renewals != 0 || got[1].Again != nil {
		t.Errorf("%+v", got)
	}
}

// What stores the token once more renews; what takes the lock, or gives a vote for it, does not.
func TestWhichStoresRenew(t *testing.T) {
	l := promoted()
	grant := l.do(10, store(l, 1, "A", "ta"), Done)
	own := l.ask(100, store(l, 4, "A", "ta"))
	if !l.Renews(own) {
		t.Error("one that is asked for does not renew")
	}
	l.answer(110, own, Done)
	other := l.do(200, store(l, 2, "B", "tb"), Done)
	elsewhere := store(l, 2, "B", "tb")
	elsewhere.Key = "cache:1"
	l.do(210, elsewhere, Done)
	acquired := l.acquire(300, "A", 1, "tc")
	grantedOver := l.ask(310, store(l, 4, "A", "ta"))
	creates := store(l, 1, "A", "tc")
	creates.NX = true
	l.ask(320, creates)
	inTime := l.ask(330, store(l, 1, "A", "tc"))
	lapsed := promoted()
	lapsed.do(10, store(lapsed, 1, "A", "ta"), Done)
	late := lapsed.ask(600, store(lapsed, 1, "A", "ta"))
	for name, tt := range map[string]struct {
		op   *Op
		want bool
	}{"answered": {own, true}, "the grant": {grant, false}, "another's": {other, false}, "of no lock": {elsewhere, false}, "an acquire": {acquired, false},
		"over another's grant": {grantedOver, false}, "one that creates only": {creates, false}, "its lease's end unknown": {inTime, true}} {
		if got := l.Renews(tt.op); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if lapsed.Renews(late) {
		t.Error("one behind its lease renews")
	}
	lapsed.answer(610, late, Done)
	if lapsed.Renews(late) || late.Term.ID != 2 {
		t.Error("nor has it, once it is answered: it is a grant")
	}
	q := quorumTape()
	for n := range 3 {
		vote := node(q, Store, n, "ta")
		vote.Guarded = false
		q.Promote(vote.Upstream, 0, "job")
		if q.do(Instant(10+n), vote, Done); q.Renews(vote) {
			t.Errorf("vote %d renews", n)
		}
	}
}
