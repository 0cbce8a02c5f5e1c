package lock

import (
	"strconv"
	"testing"
	"time"
)

func TestWhatIsComparedByOthersIsData(t *testing.T) {
	l := newTape()
	l.do(10, store(l, 1, "A", "ta"), Done)
	l.do(20, l.release("B", 2, "ta"), Done)
	l.do(30, store(l, 2, "B", "tb"), Done)
	l.do(40, l.release("A", 1, "tb"), Done)
	if len(l.Terms()) != 0 {
		t.Error("a cached value, which is dropped if it is still the one that was seen")
	}
	for i := range 8 {
		l.do(50, store(l, 1, "A", strconv.Itoa(i)+"x"), Done)
		l.do(60, l.release("A", 1, strconv.Itoa(i)+"x"), Done)
	}
	if len(l.Terms()) == 0 {
		t.Error("mostly its storer compares it")
	}
}

func TestAnExtensionPromotes(t *testing.T) {
	l := newTape()
	l.do(10, store(l, 1, "A", "ta"), Done)
	renew := l.release("A", 1, "ta")
	renew.Kind, renew.TTL = Renew, 500*time.Millisecond
	want(t, l.do(100, renew, Done), 1, 1)
	if got := l.Term(1); got.Renewals != 1 || got.LeaseEnd.Earliest < 590*ms {
		t.Errorf("%+v", got)
	}
}

// Its kept past is read in the order in which it happened.
func TestAStoreBeforeAnExclusiveGrantIsReadAgain(t *testing.T) {
	l := newTape()
	a := l.do(10, store(l, 1, "A", "ta"), Done)
	l.acquire(600, "B", 2, "tb")
	if got := l.do(620, store(l, 3, "C", "tc"), Done); got.Term.ID != 0 {
		t.Errorf("nothing says yet that a plain SET takes the lock: %+v", got.Term)
	}
	late := l.do(700, l.release("A", 1, "ta"), NotHeld)
	if got := l.Terms(); len(got) != 3 || got[1].Grant.Seq != a.Seq || late.Term.ID != got[1].ID || got[0].Open() != true {
		t.Fatalf("%+v", got)
	}
	del := l.release("D", 9, "")
	del.Guarded = false
	l.do(710, del, Done)
	if l.Term(3).Released != del {
		t.Error("the last that was granted is the one that was there")
	}
}

func TestACacheThatIsAddedToIsNoLock(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "v1") // SET NX
	l.do(20, store(l, 2, "B", "v2"), Done)
	l.do(30, store(l, 1, "A", "v3"), Done)
	if len(l.Terms()) != 1 {
		t.Error("nobody compares what it stored")
	}
}

func TestIgnoredKeys(t *testing.T) {
	l := newTape(Declaration{Key: "lock:*", Ignore: true}, Declaration{Key: "lock:d*", Except: []string{"lock:dx*"}})
	for key, lock := range map[string]bool{"lock:c": false, "lock:d": true, "lock:dx1": false, "other": true,
		"symfony_check_support_time": false, "redisson_unlock_latch:{x}:1": false, "bull:q:stalled-check": false} {
		op := l.release("A", 1, "t")
		op.Kind, op.NX, op.Key, op.TTL = Acquire, true, key, time.Second
		l.do(10, op, Granted)
		if (op.Term.ID != 0) != lock {
			t.Errorf("%s is a lock: %v", key, op.Term.ID != 0)
		}
		no := l.release("B", 2, "u")
		no.Kind, no.NX, no.Key = Acquire, true, key
		l.do(20, no, Refused)
		if (l.Refused("B", IDOf(no)) != nil) != lock {
			t.Errorf("%s: a refusal counts: %v", key, !lock)
		}
		if s := surveyOf(nil, op); key == "bull:q:stalled-check" && len(s.keys.all) != 0 {
			t.Error("a survey ignores it too")
		}
	}
	l = newTape(Declaration{Key: "bull:*"})
	op := l.release("A", 1, "t")
	op.Kind, op.NX, op.Key = Acquire, true, "bull:q:stalled-check"
	if l.do(10, op, Granted); op.Term.ID == 0 {
		t.Error("who declares it means it")
	}
}

func TestLifetimesThatAreNoLeases(t *testing.T) {
	for ttl, marker := range map[time.Duration]bool{time.Millisecond: true, 100 * time.Millisecond: false, time.Hour: false, 0: false, 24 * time.Hour: true} {
		l := newTape()
		op := l.release("A", 1, "t")
		op.Kind, op.NX, op.TTL = Acquire, true, ttl
		l.do(10, op, Granted)
		if got := l.Term(1).Marker; got != marker {
			t.Errorf("for %v: marker %v", ttl, got)
		}
	}
}

// An INCR that is made to expire limits a rate: its numbers start again.
func TestARateLimitIsNoFence(t *testing.T) {
	incr := func(l *tape, at Instant, n int64) {
		l.do(at, &Op{Session: 1, Actor: "A", Proto: Redis, Kind: Fence, Key: "rate:17", FenceKey: "rate:17", Fence: n, HasFence: true}, Done)
	}
	expire := &Op{Session: 1, Actor: "A", Proto: Redis, Kind: Renew, Verb: "EXPIRE", Key: "rate:17", TTL: time.Minute}
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	incr(l, 12, 1)
	if !l.Term(1).HasFence {
		t.Fatal("so far it may be one")
	}
	l.do(14, expire, Done)
	if got := l.Term(1); got.HasFence || got.FenceOp != nil || len(l.fences) != 0 {
		t.Errorf("%+v", got)
	}
	incr(l, 16, 2)
	if l.Term(1).HasFence {
		t.Error("it is known by now")
	}
	s := surveyOf(nil, &Op{Kind: Fence, Key: "rate:16"}, &Op{Kind: Renew, Key: "rate:18", TTL: time.Minute})
	l = newTape()
	l.Learn(s)
	l.acquire(10, "A", 1, "ta")
	if incr(l, 12, 1); l.Term(1).HasFence {
		t.Error("a survey knows it beforehand")
	}
}

func TestASurveyTellsDataFromLocks(t *testing.T) {
	l := newTape()
	value := []*Op{store(l, 1, "A", "ta"), l.release("B", 2, "ta"), store(l, 2, "B", "tb"), l.release("A", 1, "tb"), store(l, 1, "A", "tc"), l.release("A", 1, "tc")}
	l.Learn(surveyOf(nil, value...))
	for i, op := range value {
		l.do(Instant(10*i), op, Done)
	}
	if len(l.Terms()) != 0 {
		t.Errorf("mostly others compare it: %+v", l.Terms())
	}
}

// The client stores a value of its own with each renewal, and compares the last.
func TestARenewalMayStoreAnotherToken(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "t1")
	for i, token := range []string{"t2", "t3"} {
		op := l.release("A", 1, token)
		op.Kind, op.Verb, op.Guarded, op.TTL = Renew, "SET", false, 500*time.Millisecond
		want(t, l.do(Instant(100*i+100), op, Done), 1, 1)
	}
	if got := l.Term(1); got.Renewals != 2 || !got.Token.Same(l.v("t3")) {
		t.Fatalf("%+v", got)
	}
	want(t, l.do(300, l.write("B", 2, Assign{Column: "by", Value: l.v("t1")}), Done), 1, 1)
	if op := l.do(310, l.release("B", 3, "t2"), NotHeld); op.Term.ID != 0 {
		t.Errorf("of those between nothing is kept: %+v", op.Term)
	}
	gone := l.do(320, l.release("A", 1, "t3"), Done)
	if got := l.Term(1); got.Released != gone || got.Open() {
		t.Errorf("%+v", got)
	}
	churn(l, 400, 2*maxTerms)
	if k := l.keys[LockID{Key: "lock:c"}]; l.Term(1) != nil || k != nil && len(k.byToken) != 0 || len(l.tokens[l.v("t1").Hash]) != 0 {
		t.Error("it is not forgotten by all its tokens")
	}
	l.acquire(5000, "A", 1, "u1")
	l.acquire(5510, "B", 2, "u2")
	op := l.release("A", 1, "u3")
	op.Kind, op.Guarded, op.TTL = Renew, false, 500*time.Millisecond
	l.do(5600, op, Done)
	if got := l.Terms(); !got[len(got)-1].Token.Same(l.v("u2")) {
		t.Error("it was not its own to rename")
	}
}

// A field that is only set if it is not there says that its holder had lost it.
func TestAMemberThatIsStoredAnew(t *testing.T) {
	l := newTape()
	field := func(at Instant, out Outcome) *Op {
		op := member(l, Store, "A", 1, "ta")
		op.Verb, op.NX, op.Guarded, op.Evidence = "HSETNX", true, false, FromWire
		return l.do(at, op, out)
	}
	field(10, Done)
	l.do(20, member(l, Release, "A", 1, "ta"), Done)
	if len(l.Terms()) != 1 || l.Term(1).Open() || !l.Term(1).Member {
		t.Fatalf("%+v", l.Terms())
	}
	field(30, Done)
	field(40, Refused)
	if got := l.Term(2); len(l.Terms()) != 2 || got.Renewals != 0 || !got.Open() || got.LeaseEnd.Latest == Never {
		t.Fatalf("%+v", got)
	}
	field(50, Done)
	if got := l.Term(3); got == nil || !got.Revived || got.Again != l.Term(2) {
		t.Errorf("%+v", got)
	}
}

// The value is the deadline, by the client's clock; whoever finds it past takes over.
func TestATimestampLock(t *testing.T) {
	l := newTape()
	deadline := func(at Instant, actor string, session uint64, kind Kind, verb string, until int64, out Outcome) *Op {
		op := &Op{Session: session, Actor: actor, Proto: Redis, Kind: kind, Verb: verb, Key: "lock:c", NX: verb == "SETNX",
			Token: Value{Int: until, IsInt: true}, Until: until, TTL: time.Duration(until-int64(at)) * time.Millisecond}
		return l.do(at, op, out)
	}
	deadline(10, "A", 1, Acquire, "SETNX", 510, Granted)
	if e := l.Term(1).LeaseEnd; e.Earliest < 500*ms || e.Earliest > 505*ms || e.Latest < 515*ms || e.Latest > 520*ms {
		t.Errorf("it ends by two clocks: %v", e)
	}
	deadline(20, "B", 2, Acquire, "SETNX", 520, Refused)
	deadline(400, "A", 1, Renew, "SET", 900, Done)
	if got := l.Term(1); got.Renewals != 1 || got.LeaseEnd.Earliest < 890*ms || got.Token.Int != 900 {
		t.Errorf("%+v", got)
	}
	taken := deadline(950, "B", 2, Acquire, "GETSET", 1450, Granted)
	if got := l.Term(2); taken.Term.ID != 2 || !l.Term(1).Open() || got.Again != nil || got.Sort() != Exclusive {
		t.Errorf("%+v", got)
	}
	if w := l.do(960, l.write("B", 3, Assign{Column: "n", Value: Value{Int: 900, IsInt: true}}), Done); w.Term.ID != 2 {
		t.Errorf("a number is no token of a statement: %+v", w.Term)
	}
	gone := l.do(970, &Op{Session: 2, Actor: "B", Proto: Redis, Kind: Release, Verb: "DEL", Key: "lock:c"}, Done)
	if got := l.Term(2); got.Released != gone || got.Open() {
		t.Errorf("%+v", got)
	}
}

// What a client has read may be another's token, from before it took the lock itself.
func TestAnotherTokenThatWasReadIsNotReleased(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	l.acquire(600, "B", 2, "tb")
	op := l.release("B", 3, "ta") // on another connection of B, which has read it once
	op.Verb, op.Guarded, op.Racy = "DEL", false, true
	want(t, l.do(620, op, Done), 2, 1)
	if l.Term(2).Open() || l.Term(2).Released != op || l.Term(1).Release != nil {
		t.Errorf("B gives back what it has: %+v, %+v", l.Term(1), l.Term(2))
	}
	again := l.release("B", 3, "ta")
	again.Verb, again.Guarded, again.Racy = "DEL", false, true
	want(t, l.do(630, again, NotHeld), 1, 1)
}

// A client that gets the value, compares it and deletes the key is its storer all
// the same, though it takes away whatever is there by then.
func TestAClientComparesItself(t *testing.T) {
	l := newTape()
	racy := func(kind Kind, token string) *Op {
		op := l.release("A", 1, token)
		op.Kind, op.Verb, op.Guarded, op.Racy, op.TTL = kind, "DEL", false, true, 500*time.Millisecond
		return op
	}
	stored := []*Op{store(l, 1, "A", "ta"), store(l, 2, "B", "tb")}
	l.do(10, stored[0], Done)
	l.do(600, stored[1], Done)
	gone := l.do(610, racy(Release, "ta"), Done)
	if got := l.Terms(); len(got) != 2 || gone.Term.ID != got[0].ID || got[0].Release != gone || got[0].Released != nil || got[1].Released != gone {
		t.Errorf("it is A's release, and removed B's key: %+v", got)
	}
	if s := surveyOf(nil, stored[0], racy(Release, "ta")); !s.locks[LockID{Key: "lock:c"}] {
		t.Error("a survey finds it too")
	}
	l.do(700, store(l, 1, "A", "tc"), Done)
	l.do(710, racy(Renew, "tc"), Done)
	l.do(720, racy(Renew, "other"), Done)
	if got := l.Term(3); !got.Token.Same(l.v("tc")) {
		t.Errorf("what it compared is not what it stores: %+v", got)
	}
}

func TestAStoreOfAProcessThatHasGoneIsNoOpenTerm(t *testing.T) {
	l := newTape()
	l.do(10, &Op{Session: 1, Actor: "A", Proto: Redis, Kind: Store, Verb: "SET", Key: "lock:c", Token: l.v("ta"), TTL: time.Second}, Done)
	l.Closed(1, 20*ms)
	l.Promote("", 0, "lock:c")
	if len(l.Terms()) != 1 || l.Term(1).Open() || l.Term(1).EndBy != Closed {
		t.Errorf("%+v", l.Terms())
	}
	if l.actors["A"] != nil {
		t.Error("A is remembered, and it has no connection")
	}
}
