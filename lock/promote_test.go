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
