package lock

import (
	"strconv"
	"testing"
	"time"
)

// node makes an op of A on one of several servers, each on a connection of its own.
func node(l *tape, kind Kind, n int, token string) *Op {
	return &Op{Session: uint64(10 + n), Actor: "A", Proto: Redis, Upstream: "redis-" + strconv.Itoa(n), Kind: kind, Verb: "SET", Key: "job",
		NX: kind == Acquire, Guarded: kind != Acquire, Token: l.v(token), TTL: 500 * time.Millisecond}
}

// quorumTape is one that knows of a lock of three servers, by declaration.
func quorumTape() *tape {
	l := newTape(Declaration{Key: "job", Quorum: 3})
	l.Servers(3)
	return l
}

var jobQuorum = LockID{Upstream: Quorum, Key: "job"}

func TestAMajorityIsOneTerm(t *testing.T) {
	l := quorumTape()
	first := l.do(10, node(l, Acquire, 0, "ta"), Granted)
	if len(l.Terms()) != 0 || first.Term.ID != 0 {
		t.Fatal("one of three holds nothing")
	}
	second := l.do(30, node(l, Acquire, 1, "ta"), Granted)
	got := l.Term(1)
	if len(l.Terms()) != 1 || got.Lock != jobQuorum || got.Grant != second || len(got.Votes) != 2 || got.Needed != 2 {
		t.Fatalf("two do: %+v", got)
	}
	if e := got.LeaseEnd; e.Earliest != Lease(first, first.TTL).Earliest || e.Latest != Lease(first, first.TTL).Latest {
		t.Errorf("until the majority is gone: %v", e)
	}
	l.do(50, node(l, Acquire, 2, "ta"), Granted)
	if e := got.LeaseEnd; e.Earliest != Lease(second, second.TTL).Earliest || got.Held() != e.Earliest || len(got.Votes) != 3 {
		t.Errorf("one of three may go: %v", e)
	}
	want(t, l.do(60, l.write("A", 2), Done), 1, 0.98-0.08)
	if got.Sort() != Exclusive || l.LockOf(first) != jobQuorum {
		t.Errorf("%q, %v", got.Sort(), l.LockOf(first))
	}
}

func TestAnUnansweredVoteMayBeThere(t *testing.T) {
	l := quorumTape()
	first := l.do(10, node(l, Acquire, 0, "ta"), Granted)
	asked := l.ask(11, node(l, Acquire, 2, "ta"))
	second := l.do(12, node(l, Acquire, 1, "ta"), Granted)
	got, one, two := l.Term(1), Lease(first, first.TTL), Lease(second, second.TTL)
	if got.LeaseEnd != (Interval{one.Earliest, two.Latest}) || got.Held() != one.Earliest {
		t.Errorf("with the third the later of the two would be a majority: %v", got.LeaseEnd)
	}
	l.answer(20, asked, Refused)
	if got.LeaseEnd != one {
		t.Errorf("it is not there: %v", got.LeaseEnd)
	}
	l.ask(30, node(l, Acquire, 0, "tb"))
	l.ask(31, node(l, Acquire, 1, "tb"))
	l.do(32, node(l, Acquire, 2, "tb"), Granted)
	if len(l.Terms()) != 1 {
		t.Error("one of three, whatever the others may say")
	}
}

func TestOneServerHasOneVote(t *testing.T) {
	l := quorumTape()
	l.do(10, node(l, Acquire, 0, "ta"), Granted)
	l.do(20, node(l, Acquire, 0, "ta"), Granted)
	if len(l.Terms()) != 0 {
		t.Error("it was granted twice by one")
	}
	l.do(30, node(l, Acquire, 1, "ta"), Granted)
	if got := l.Term(1); len(got.Votes) != 2 {
		t.Errorf("%+v", got.Votes)
	}
}

func TestTheFirstReleaseEndsAQuorumsSection(t *testing.T) {
	l := quorumTape()
	for n := range 3 {
		l.do(Instant(10+n), node(l, Acquire, n, "ta"), Granted)
	}
	first := l.do(50, node(l, Release, 2, "ta"), Done)
	got := l.Term(1)
	if got.Open() || got.Release != first || got.ReleaseAt != 50*ms || got.Released != nil {
		t.Fatalf("asked, and two are left: %+v", got)
	}
	second := l.do(60, node(l, Release, 0, "ta"), Done)
	if got.Released != second || got.LeaseEnd.Latest > 61*ms {
		t.Errorf("no majority is left: %+v", got)
	}
	l.do(61, node(l, Release, 1, "ta"), NotHeld)
	if got.Lost != nil || got.Gone != nil {
		t.Errorf("one that finds nothing tells of one: %+v", got)
	}
}

// What is not guarded takes away whatever a server has.
func TestADeletionOfAQuorumsKeys(t *testing.T) {
	del := func(l *tape, at Instant, kind Kind, actor string, n int) *Op {
		op := node(l, kind, n, "")
		op.Actor, op.Verb, op.Guarded, op.Token = actor, "DEL", false, Value{}
		return l.do(at, op, Done)
	}
	l := quorumTape()
	for n := range 2 {
		l.do(Instant(10+n), node(l, Acquire, n, "ta"), Granted)
	}
	del(l, 20, Renew, "A", 1)
	if got := l.Term(1); got.Renewals != 1 || got.LeaseEnd.Earliest > 510*ms {
		t.Errorf("one was renewed: %+v", got)
	}
	first := del(l, 30, Release, "B", 1)
	got := l.Term(1)
	if !got.Open() || got.Released != first || first.Term.ID != 0 {
		t.Fatalf("another's deletion takes the majority, and ends no section: %+v", got)
	}
	own := del(l, 40, Release, "A", 0)
	if got.Open() || own.Term.ID != 1 || got.Release != own {
		t.Errorf("its own does: %+v", got)
	}
	del(l, 50, Release, "A", 0)
	if got.Releases != 1 {
		t.Errorf("there is nothing left that it could be of: %+v", got)
	}
}

func TestNumbersMakeNoQuorum(t *testing.T) {
	l := newTape()
	for n := range 2 {
		op := node(l, Acquire, n, "1")
		l.do(10, op, Granted)
	}
	if len(l.Terms()) != 2 || len(l.quorums) != 0 {
		t.Error("numbers occur by chance")
	}
	l = newTape()
	for i := range maxVotes + 10 {
		op := node(l, Acquire, 0, "token of the process")
		op.Key = strconv.Itoa(i)
		l.do(10, op, Granted)
	}
	op := node(l, Acquire, 1, "token of the process")
	op.Key = "7"
	if l.do(10, op, Granted); len(l.quorums) != 0 {
		t.Error("it stands for the process, and not for an acquisition")
	}
}

func TestRenewalsOfAQuorum(t *testing.T) {
	l := quorumTape()
	for n := range 3 {
		l.do(Instant(10+n), node(l, Acquire, n, "ta"), Granted)
	}
	l.do(200, node(l, Renew, 0, "ta"), Done)
	if e := l.Term(1).LeaseEnd; e.Earliest > 512*ms {
		t.Errorf("one is no majority: %v", e)
	}
	pending := l.ask(205, node(l, Renew, 1, "ta"))
	if e := l.Term(1).LeaseEnd; e.Latest < 701*ms || e.Latest > 710*ms {
		t.Errorf("the second may be: %v", e)
	}
	l.answer(206, pending, Done)
	if e := l.Term(1).LeaseEnd; e.Earliest < 690*ms || e.Latest > 710*ms {
		t.Errorf("it is: %v", e)
	}
}

func TestAMinorityIsNothing(t *testing.T) {
	l := quorumTape()
	l.do(1, l.write("A", 9), Done)
	l.do(10, node(l, Acquire, 0, "ta"), Granted)
	l.do(11, node(l, Acquire, 1, "ta"), Refused)
	if len(l.Refusals("A")) != 0 {
		t.Error("one refusal is none")
	}
	l.do(12, node(l, Acquire, 2, "ta"), Refused)
	if l.Refused("A", jobQuorum) == nil || len(l.Refusals("A")) != 1 {
		t.Error("two are")
	}
	for n := range 3 {
		l.do(20, node(l, Release, n, "ta"), NotHeld)
	}
	// The same token again, for another try: what was voted before is over.
	l.do(30, node(l, Acquire, 1, "ta"), Granted)
	if len(l.Terms()) != 0 {
		t.Error("the first vote was given up")
	}
	l.do(31, node(l, Acquire, 2, "ta"), Granted)
	if len(l.Terms()) != 1 || len(l.Refusals("A")) != 0 {
		t.Errorf("granted: %v", l.Refusals("A"))
	}
}

func TestVotesLapse(t *testing.T) {
	l := quorumTape()
	l.do(10, node(l, Acquire, 0, "ta"), Granted)
	l.do(900, node(l, Acquire, 1, "ta"), Granted)
	if len(l.Terms()) != 0 {
		t.Error("they were never there at once")
	}
	l.do(910, node(l, Acquire, 2, "ta"), Granted)
	if len(l.Terms()) != 1 {
		t.Error("those were")
	}
	l.do(1500, node(l, Acquire, 0, "ta"), Granted)
	l.do(1501, node(l, Acquire, 1, "ta"), Granted)
	if got := l.Terms(); len(got) != 2 || got[0].Open() || got[1].Again != got[0] {
		t.Errorf("a new term: %+v", got)
	}
}

// Which locks are a quorum's shows when two servers grant one token.
func TestAQuorumIsDiscovered(t *testing.T) {
	l := newTape()
	for n := range 3 {
		l.servers.meet(node(l, Acquire, n, "x"))
	}
	l.do(10, node(l, Acquire, 0, "ta"), Granted)
	if len(l.OpenTerms("A")) != 1 {
		t.Fatal("so far it is a lock of that server")
	}
	l.do(11, node(l, Acquire, 1, "ta"), Granted)
	if got := l.OpenTerms("A"); len(got) != 1 || got[0].Lock != jobQuorum || !l.Term(1).Marker {
		t.Fatalf("%+v", got)
	}
	want(t, l.do(20, l.write("A", 2), Done), 2, 0.90)
	l.do(30, node(l, Release, 0, "ta"), Done)
	l.do(40, node(l, Acquire, 1, "tb"), Granted)
	if len(l.Terms()) != 2 {
		t.Error("from then on a single vote is none")
	}
	other := newTape()
	for n := range 3 {
		op := node(other, Acquire, n, "t"+strconv.Itoa(n))
		other.do(10, op, Granted)
	}
	if len(other.Terms()) != 3 {
		t.Error("locks of one name on several servers, each with a token of its own")
	}
}

func family(l *tape, kind Kind, i int, token string) *Op {
	op := node(l, kind, 0, token)
	op.Key, op.Verb = "lock:"+strconv.Itoa(i)+":job", "EVALSHA"
	return op
}

func TestAFamilyOfKeysOnOneServer(t *testing.T) {
	id := LockID{Upstream: Quorum, Key: "lock:*:job"}
	l := newTape()
	l.do(1, l.write("A", 9), Done)
	for i, n := range []int{2, 0, 1} {
		l.do(Instant(10+i), family(l, Acquire, n, "ta"), Granted)
	}
	if got := l.OpenTerms("A"); len(got) != 1 || got[0].Lock != id || len(got[0].Votes) != 3 || got[0].Needed != 2 {
		t.Fatalf("%+v", got)
	}
	want(t, l.do(20, l.write("A", 2), Done), 3, 0.90)
	for n := range 3 {
		l.do(Instant(30), family(l, Release, n, "ta"), Done)
	}
	l.do(40, family(l, Acquire, 0, "tb"), Granted)
	l.do(41, family(l, Acquire, 1, "tb"), Refused)
	l.do(42, family(l, Acquire, 2, "tb"), Refused)
	if l.HasOpen("A") || l.Refused("A", id) == nil {
		t.Error("the minority")
	}
}

// A script whose lifetime is not told is no hindrance, and neither is a lifetime
// that ends at one instant and is counted from several.
func TestTheVotesOfAnAcquisitionEndTogether(t *testing.T) {
	for name, change := range map[string]func(op *Op, i int) bool{
		"no lifetime is told": func(op *Op, _ int) bool { op.TTL = 0; return true },
		"one end":             func(op *Op, i int) bool { op.Until, op.TTL = 5000, time.Duration(500-i)*time.Millisecond; return true },
		"several ends":        func(op *Op, i int) bool { op.Until = 5000 + int64(i); return false },
		"several lifetimes":   func(op *Op, i int) bool { op.TTL += time.Duration(i); return false },
	} {
		l, want, s := newTape(), false, NewSurvey(nil)
		for i := range 3 {
			op := family(l, Acquire, i, "ta")
			want = change(op, i)
			s.Add(l.do(Instant(10+i), op, Granted))
		}
		if got := len(l.OpenTerms("A")) == 1; got != want {
			t.Errorf("%s: one term %v", name, got)
		}
		other := newTape()
		if other.Learn(s); (len(other.families) == 1) != want {
			t.Errorf("%s: %v in a survey", name, other.families)
		}
	}
}

func TestADeclaredFamily(t *testing.T) {
	l := newTape(Declaration{Key: "lock:*:job", Quorum: 3})
	l.do(10, family(l, Acquire, 0, "ta"), Granted)
	if len(l.Terms()) != 0 {
		t.Error("one of three")
	}
	l.do(11, family(l, Acquire, 2, "ta"), Granted)
	if got := l.Terms(); len(got) != 1 || got[0].Lock.Key != "lock:*:job" {
		t.Errorf("%+v", got)
	}
}

// One token for all that a process locks is no quorum's.
func TestATokenOfAProcessMakesNoFamily(t *testing.T) {
	for name, play := range map[string]func(l *tape){
		"used elsewhere":      func(l *tape) { l.do(5, node(l, Acquire, 0, "ta"), Granted) },
		"not counted from 0":  func(l *tape) { l.do(5, family(l, Acquire, 7, "ta"), Granted) },
		"much later":          func(l *tape) { l.seq++ },
		"by another process":  func(l *tape) { l.seq++ },
		"with other lifetime": func(l *tape) { l.seq++ },
	} {
		l := newTape()
		play(l)
		n := len(l.Terms())
		at := Instant(11)
		if name == "much later" {
			at = 3000
		}
		one, two := family(l, Acquire, 0, "ta"), family(l, Acquire, 1, "ta")
		one.TTL, two.TTL = time.Minute, time.Minute
		switch name {
		case "by another process":
			two.Actor, two.Session = "B", 99
		case "with other lifetime":
			two.TTL = 0
		case "not counted from 0":
			one.Key = "lock:5:job"
		}
		l.do(10, one, Granted)
		l.do(at, two, Granted)
		if len(l.Terms()) != n+2 || len(l.families) != 0 {
			t.Errorf("%s: %d terms", name, len(l.Terms()))
		}
	}
}

func TestASurveyFindsQuorums(t *testing.T) {
	l := newTape()
	s := NewSurvey(nil)
	grant := func(op *Op, out Outcome) {
		op.A, op.F, op.R, op.Outcome = 10*ms, 10*ms, 11*ms, out
		s.Add(op)
	}
	grant(node(l, Acquire, 0, "ta"), Granted)
	grant(node(l, Acquire, 1, "ta"), Granted)
	for i := range 5 {
		out := Granted
		if i > 2 {
			out = Refused
		}
		grant(family(l, Acquire, i, "tb"), out)
	}
	l.Learn(s)
	for n := range 3 {
		l.servers.meet(node(l, Acquire, n, "x"))
	}
	l.do(20, node(l, Acquire, 2, "tc"), Granted)
	for i := range 2 {
		l.do(30, family(l, Acquire, i, "td"), Granted)
	}
	if len(l.Terms()) != 0 {
		t.Error("one of three, and two of five")
	}
	l.do(31, family(l, Acquire, 2, "td"), Granted)
	l.do(32, node(l, Acquire, 1, "tc"), Granted)
	if got := l.Terms(); len(got) != 2 || got[0].Lock.Key != "lock:*:job" || got[0].Needed != 3 || got[1].Lock != jobQuorum {
		t.Errorf("%+v", got)
	}
}

func TestQuorumsAreBounded(t *testing.T) {
	l := quorumTape()
	for i := range 3 * maxBallots {
		l.do(Instant(i), node(l, Acquire, 0, strconv.Itoa(i)+"x"), Granted)
	}
	if len(l.ballots.all) > maxBallots || len(l.ballots.line) > maxBallots {
		t.Errorf("%d acquisitions", len(l.ballots.all))
	}
}

func TestWhatWasDeclaredOfAQuorumHolds(t *testing.T) {
	l := newTape(Declaration{Key: "job", Quorum: 3})
	l.Servers(6) // some of which serve something else
	l.do(10, node(l, Acquire, 0, "ta"), Granted)
	l.do(11, node(l, Acquire, 1, "ta"), Granted)
	if len(l.Terms()) != 1 {
		t.Error("two of three")
	}
	l = newTape()
	l.Servers(5)
	l.quorums.add(shapeOf(jobQuorum))
	for n := range 2 {
		l.do(10, node(l, Acquire, n, "ta"), Granted)
	}
	if len(l.Terms()) != 0 {
		t.Error("two of five")
	}
	s := NewSurvey(nil)
	for n := range 5 {
		s.Add(&Op{Proto: Redis, Upstream: strconv.Itoa(n)})
	}
	l = newTape()
	if l.Learn(s); l.servers.count() != 5 {
		t.Error("a survey has met five")
	}
}
