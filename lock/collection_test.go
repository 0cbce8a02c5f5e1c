package lock

import (
	"fmt"
	"testing"
	"time"
)

// joins has a process add a member to a key directly.
func (t *tape) joins(at Instant, key, member string) *Op {
	return t.do(at, &Op{Session: 1, Actor: "A", Proto: Redis, Kind: Store, Verb: "SADD", Key: key, NX: true, Member: true, Token: t.v(member)}, Done)
}

func (t *tape) parts(at Instant, key, member string) *Op {
	return t.do(at, &Op{Session: 1, Actor: "A", Proto: Redis, Kind: Release, Verb: "SREM", Key: key, Guarded: true, Member: true, Token: t.v(member)}, Done)
}

// A set of the users who are there is added to and removed from as a semaphore is.
func TestASetOfThingsIsNoLock(t *testing.T) {
	l := newTape()
	l.joins(1, "online", "u")
	if l.parts(2, "online", "u"); len(l.Terms()) != 1 {
		t.Fatal("few members are a semaphore's")
	}
	for i := range mostMembers {
		l.joins(Instant(10+i), "online", fmt.Sprint("u", i))
	}
	if len(l.OpenTerms("A")) != mostMembers {
		t.Fatalf("%d are open", len(l.OpenTerms("A")))
	}
	last := l.joins(1000, "online", "one more")
	for _, term := range l.Terms()[1:] {
		if term.Open() || !term.Marker {
			t.Fatalf("it holds nothing: %+v", term)
		}
	}
	l.parts(1001, "online", "one more")
	again := l.joins(1002, "online", "u")
	if l.HasOpen("A") || last.Term.ID != 0 || again.Term.ID != 0 {
		t.Errorf("of term %d and %d, %d open", last.Term.ID, again.Term.ID, len(l.OpenTerms("A")))
	}
}

func TestAsManyAsAreDeclared(t *testing.T) {
	l := newTape(Declaration{Key: "permits", Kind: Semaphore})
	for i := range mostMembers + 10 {
		l.joins(Instant(10+i), "permits", fmt.Sprint("u", i))
	}
	if len(l.OpenTerms("A")) != mostMembers+10 {
		t.Errorf("%d are open", len(l.OpenTerms("A")))
	}
}

// Members whose lease is over, and that nobody removed, are not there at once.
func TestMembersThatLapsedAreNotMany(t *testing.T) {
	l := newTape()
	l.joins(1, "permits", "u")
	l.parts(2, "permits", "u")
	for i := range Instant(mostMembers + 10) {
		op := l.joins(1000*i+1000, "permits", fmt.Sprint("u", i))
		l.do(1000*i+1001, &Op{Session: 1, Actor: "A", Proto: Redis, Kind: Renew, Verb: "EXPIRE", Key: "permits", TTL: 500 * time.Millisecond}, Done)
		if op.Term.ID == 0 {
			t.Fatalf("the %dth is no term", i)
		}
	}
}

// surveyed learns from ops on a key, each of them done.
func surveySet(members, lapses int, by Kind, decls ...Declaration) bool {
	s, h := NewSurvey(decls), NewHasher([]byte("k"))
	op := func(at Instant, kind Kind, o Op) {
		o.Kind, o.Session, o.Actor, o.Proto, o.Key, o.F, o.R, o.Outcome = kind, 1, "A", Redis, "online", at*ms, at*ms+1, Done
		s.Add(&o)
	}
	token := func(i int) Value { return h.Of([]byte(fmt.Sprint("u", i))) }
	op(1, Store, Op{Member: true, Token: token(0)})
	op(1, Release, Op{Member: true, Guarded: true, Token: token(0)})
	for i := range members {
		at := Instant(10 + 1000*i)
		op(at, Store, Op{Member: true, Token: token(i)})
		if lapses > 0 && i%lapses == 0 {
			op(at+1, by, Op{TTL: 100 * time.Millisecond})
		}
	}
	return s.locks[LockID{"", 0, "online"}]
}

func TestSurveyOfASetOfThings(t *testing.T) {
	declared := Declaration{Key: "online", Kind: Semaphore}
	for name, tt := range map[string]struct{ got, lock bool }{
		"few":                {surveySet(mostMembers, 0, ""), true},
		"many":               {surveySet(mostMembers+1, 0, ""), false},
		"many, declared":     {surveySet(mostMembers+1, 0, "", declared), true},
		"the key lapses":     {surveySet(mostMembers+1, 100, Renew), true},
		"the key is removed": {surveySet(mostMembers+1, 100, Release), true},
	} {
		if tt.got != tt.lock {
			t.Errorf("%s: a lock: %v", name, tt.got)
		}
	}
}

// An EXPIRE of a key puts the lease of each of its members in doubt until it is answered.
func TestRenewalOfManyMembers(t *testing.T) {
	l := newTape()
	l.joins(1, "permits", "u")
	l.parts(2, "permits", "u")
	for i := range Instant(20) {
		l.joins(10+i, "permits", fmt.Sprint("u", i))
	}
	op := l.ask(50, &Op{Session: 1, Actor: "A", Proto: Redis, Kind: Renew, Verb: "EXPIRE", Key: "permits", TTL: time.Second})
	conn := l.conns[1]
	if len(conn.renewals) != 20 {
		t.Fatalf("%d in doubt", len(conn.renewals))
	}
	l.answer(51, op, Done)
	for _, term := range l.OpenTerms("A") {
		if term.inflight != 0 || len(conn.renewals) != 0 {
			t.Errorf("still in doubt: %+v", term.lease)
		}
	}
}
