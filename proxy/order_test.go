package proxy

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A scene is one in which an op of process a, on session 1, is held at a gate that waits for a signal. It has the
// lock "job"; b and c have connections.
type scene struct {
	*Engine
	t     *testing.T
	conns map[uint64]*conn
	held  *injection
	gate  *Gate
}

func held(t *testing.T, rule string, op *lock.Op) *scene {
	t.Helper()
	flag, value, _ := strings.Cut(rule, " ")
	s := &scene{Engine: engine(t, flag, value), t: t, conns: map[uint64]*conn{}}
	for id, process := range []string{"a", "a", "b", "b", "c"} {
		s.conns[uint64(id+1)] = s.Open(uint64(id+1), owner(process))
	}
	s.do(grant(1, "job"), 1)
	s.gate, _ = s.Request(s.conns[op.Session], op, true, 10)
	if s.gate == nil || len(s.active) != 1 {
		t.Fatal("nothing is held")
	}
	s.held = s.active[0]
	return s
}

// do has an op asked for and answered at one instant.
func (s *scene) do(op *lock.Op, at lock.Instant) {
	s.t.Helper()
	if s.asks(op, at) {
		s.t.Fatalf("%s waits", op.Kind)
	}
	op.F, op.R = at, at
	s.Reply(s.conns[op.Session], op, true, at)
}

// asks reports whether an op has to wait.
func (s *scene) asks(op *lock.Op, at lock.Instant) bool {
	op.A = at
	g, again := s.Request(s.conns[op.Session], op, true, at)
	return g != nil && again
}

func statement(session uint64, kind lock.Kind, table string) *lock.Op {
	return &lock.Op{Session: session, Proto: lock.Postgres, Kind: kind, Verb: "UPDATE", Implicit: true, Rows: 1, Z: 1, Outcome: lock.Done, SQL: &lock.Statement{Table: table}}
}

const untilGo = "stall-before write#1=until:signal:go"

// What waits behind a held op, and what does not.
func TestWhatWaits(t *testing.T) {
	acquire := func(session uint64, key string) *lock.Op { return grant(session, key) }
	simple := func(session uint64, kind lock.Kind) *lock.Op {
		return &lock.Op{Session: session, Proto: lock.Postgres, Kind: kind, Verb: "X", Outcome: lock.Done}
	}
	store := acquire(3, "job")
	store.Kind, store.NX = lock.Store, false
	inTx := statement(3, lock.Write, "t")
	inTx.Implicit = false
	ofLease := statement(3, lock.Write, "locks")
	ofLease.SQL.Lease = true
	for _, tt := range []struct {
		name  string
		op    *lock.Op
		begun bool
		waits bool
	}{
		{"an acquire of the lock", acquire(3, "job"), false, true},
		{"a store of it", store, false, true},
		{"an acquire of another", acquire(3, "other"), false, false},
		{"a BEGIN", simple(3, lock.Begin), false, true},
		{"a read", statement(3, lock.Read, "t"), false, true},
		{"a write", statement(3, lock.Write, "t"), false, true},
		{"a write in a transaction", inTx, false, false},
		{"what has begun", statement(3, lock.Write, "t"), true, false},
		{"a write that is a lease's", ofLease, false, false},
		{"a COMMIT", simple(3, lock.Commit), false, false},
		{"a ROLLBACK", simple(3, lock.Rollback), false, false},
		{"a renewal", simple(3, lock.Renew), false, false},
		{"a release", simple(3, lock.Release), false, false},
		{"a fence", simple(3, lock.Fence), false, false},
		{"its own connection", statement(1, lock.Write, "t"), false, false},
		{"another connection of its process, which a stall leaves running", statement(2, lock.Write, "t"), false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := held(t, untilGo, statement(1, lock.Write, "counter"))
			if s.Signal("go", 20); len(s.settlings) != 1 {
				t.Fatal("no order is fixed")
			}
			s.conns[tt.op.Session].urgent = tt.begun
			if got := s.asks(tt.op, 30); got != tt.waits {
				t.Errorf("waits %v", got)
			}
		})
	}
}

// What must never wait does not, for what it came with.
func TestWhatNothingWaitsWith(t *testing.T) {
	type ask struct {
		kind  lock.Kind
		key   string
		start int64
	}
	for _, tt := range []struct {
		name   string
		asks   []ask // the one with the key "job" is looked at
		urgent bool
	}{
		{"by itself", []ask{{lock.Acquire, "job", 0}}, false},
		{"a commit ahead in its message", []ask{{lock.Commit, "", 0}, {lock.Begin, "job", 0}}, true},
		{"a rollback ahead in its message", []ask{{lock.Rollback, "", 0}, {lock.Begin, "job", 0}}, true},
		{"a renewal ahead in its message", []ask{{lock.Renew, "other", 0}, {lock.Acquire, "job", 0}}, true},
		{"a release ahead in its message, of the same lock", []ask{{lock.Release, "job ", 0}, {lock.Acquire, "job", 0}}, true},
		{"what ends its own transaction", []ask{{lock.Begin, "job", 0}, {lock.Commit, "", 0}}, false},
		{"a release behind in its message", []ask{{lock.Acquire, "job", 0}, {lock.Release, "other", 0}}, true},
		{"a release ahead, which has gone", []ask{{lock.Release, "other", 0}, {lock.Acquire, "job", 5}}, false},
		{"a commit ahead, which has gone", []ask{{lock.Commit, "", 0}, {lock.Begin, "job", 5}}, false},
		{"a renewal behind", []ask{{lock.Acquire, "job", 0}, {lock.Renew, "other", 5}}, true},
		{"a release behind", []ask{{lock.Acquire, "job", 0}, {lock.Release, "other", 5}}, true},
		{"its own lease behind", []ask{{lock.Acquire, "job", 0}, {lock.Renew, "job", 5}}, false},
		{"another acquire behind", []ask{{lock.Acquire, "job", 0}, {lock.Acquire, "other", 5}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := engine(t)
			e.gated.Store(true)
			s := NewSession(e, e.Open(1, owner("a")), &scripted{}, nil)
			f := &flow{}
			for _, a := range tt.asks {
				f.marks = append(f.marks, wire.Mark{Kind: wire.Request, Op: &lock.Op{Kind: a.kind, Key: strings.TrimSpace(a.key)}, Start: a.start, End: a.start + 5})
			}
			i := slices.IndexFunc(tt.asks, func(a ask) bool { return a.key == "job" })
			for _, m := range f.marks[:i] {
				f.goes(m, 1)
			}
			if got := s.urgent(f, f.marks[i]); got != tt.urgent {
				t.Errorf("urgent %v", got)
			}
		})
	}
}

// Others wait 5 s at most, or as long as the gate may where that is less.
func TestLongestTurn(t *testing.T) {
	for timeout, want := range map[string]time.Duration{"1h": 5 * time.Second, "3s": 3 * time.Second} {
		s := held(t, untilGo+",timeout="+timeout, statement(1, lock.Write, "counter"))
		if s.Signal("go", 20); !s.asks(statement(3, lock.Write, "t"), 30) {
			t.Fatal("it does not wait")
		}
		if l := s.settlings[0].turns[0].limit; l.at != lock.Instant(20).Add(want) || l.why != atTimeout {
			t.Errorf("until %v for its %s, want %v", l.at, l.why, want)
		}
	}
}

// A frozen process is not kept waiting when it has been thawed.
func TestTheThawedDoNotWait(t *testing.T) {
	s := held(t, "freeze-before write#1=until:signal:go", statement(1, lock.Write, "counter"))
	s.Signal("go", 20)
	if s.asks(statement(2, lock.Write, "t"), 30) || !s.asks(statement(3, lock.Write, "t"), 30) {
		t.Error("the frozen process waits, or another does not")
	}
}

// What ends the order lets go of all who wait, and of nobody twice.
func TestTheEndOfAnOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(s *scene, op *lock.Op)
		cut  string
	}{
		{"the answer", func(s *scene, op *lock.Op) { op.F, op.R = 40, 40; s.Reply(s.conns[1], op, true, 40) }, ""},
		{"the end of the connection", func(s *scene, _ *lock.Op) { s.Closed(s.conns[1], 40) }, ""},
		{"a client that has gone", func(s *scene, _ *lock.Op) { s.Released(s.held, true, 40) }, ""},
		{"the timeout", func(s *scene, _ *lock.Op) { s.Advance(lock.Instant(20).Add(s.held.For)) }, atTimeout},
		{"the end of the run", func(s *scene, _ *lock.Op) { s.Disarm(40) }, atEnd},
		{"the end of who waits", func(s *scene, _ *lock.Op) { s.Closed(s.conns[5], 40) }, atEnd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			op := statement(1, lock.Write, "counter")
			s := held(t, untilGo, op)
			s.Signal("go", 20)
			waiting := statement(5, lock.Write, "t")
			g, again := s.Request(s.conns[5], waiting, true, 30)
			if g == nil || !again || g.Opened() {
				t.Fatal("it does not wait")
			}
			for len(s.Wake()) > 0 {
				<-s.Wake()
			}
			tt.end(s, op)
			if len(s.Wake()) == 0 {
				t.Error("nobody is woken to record it")
			}
			turns := s.Turns()
			if !g.Opened() || len(turns) != 1 || turns[0].Op != waiting.Seq || turns[0].Session != 5 || turns[0].At != 30 || turns[0].Cut != tt.cut || turns[0].Actor != s.conns[5].actor.Label {
				t.Fatalf("opened %v, %+v", g.Opened(), turns)
			}
			s.Disarm(50)
			if len(s.Turns()) != 0 {
				t.Error("its turn ended twice")
			}
			if g, _ := s.Before(s.conns[5], waiting, 60); g != nil {
				t.Error("it waits again")
			}
		})
	}
}

// A turn that nobody has taken yet keeps the run from ending, and who waits is looked at in time.
func TestTurnsAreTaken(t *testing.T) {
	op := statement(1, lock.Write, "counter")
	s := held(t, untilGo, op)
	s.Signal("go", 20)
	s.asks(statement(5, lock.Write, "t"), 30)
	if next, ok := s.NextDeadline(30); !ok || next > lock.Instant(20).Add(s.held.For) {
		t.Errorf("looked at next %v, %v", next, ok)
	}
	s.Disarm(40)
	s.Take()
	if s.Idle() {
		t.Error("idle, with a turn that is in no record")
	}
	s.Turns()
	if !s.Idle() {
		t.Error("not idle")
	}
}

// Behind a gate that opens at the end of a run nobody waits: there is nobody to let him go.
func TestNoOrderOnceDisarmed(t *testing.T) {
	s := held(t, "freeze-before write#1=until:signal:go", statement(1, lock.Write, "counter"))
	s.Disarm(20)
	s.Signal("go", 30)
	if len(s.settlings) != 0 || s.asks(statement(3, lock.Write, "t"), 40) {
		t.Error("an order is fixed when the run is over")
	}
}

// A held op that asks for a lock waits for nobody who has it, of whatever lock its gate is; others wait.
func TestWhoHasTheLockGoesOn(t *testing.T) {
	asked := grant(1, "other")
	s := held(t, "stall-before acquire(other)#1=until:signal:go", asked)
	s.do(grant(3, "other"), 15)
	lapsed := grant(5, "other")
	lapsed.TTL = time.Nanosecond
	s.do(lapsed, 15)
	s.Signal("go", lock.Instant(time.Second/2))
	if now := lock.Instant(time.Second / 2); s.asks(statement(4, lock.Write, "t"), now) || !s.asks(statement(5, lock.Write, "t"), now) {
		t.Error("who has the lock waits, or whose lease is over does not")
	}
}

// Who has a lock of his session goes on, whatever op is held: one who has locked its row may wait for that.
func TestASessionsLockGoesOn(t *testing.T) {
	s := held(t, untilGo, statement(1, lock.Write, "counter"))
	taken := grant(3, "advisory:7")
	taken.Proto, taken.Span, taken.TTL, taken.NX = lock.Postgres, lock.SessionSpan, 0, false
	s.do(taken, 15)
	if s.Signal("go", 20); s.asks(statement(3, lock.Write, "t"), 30) {
		t.Error("it waits")
	}
}

// A lease that is a row of Postgres is renewed on whatever connection: the one on which it was taken waits like others.
func TestTheConnectionOfALeaseRowWaits(t *testing.T) {
	s := held(t, untilGo, statement(1, lock.Write, "counter"))
	taken := grant(3, "lease:jobs:1")
	taken.Proto, taken.Verb, taken.NX = lock.Postgres, "INSERT", false
	s.do(taken, 15)
	if s.Signal("go", 20); !s.asks(statement(3, lock.Write, "t"), 30) {
		t.Error("it goes on")
	}
}

// An after-gate's op has its answer: nobody waits for a lock by it.
func TestAnAnsweredAcquireWaitsForNobody(t *testing.T) {
	e := engine(t, "stall-after", "acquire(other)#1=until:signal:go")
	s := &scene{Engine: e, t: t, conns: map[uint64]*conn{1: e.Open(1, owner("a")), 3: e.Open(3, owner("b")), 4: e.Open(4, owner("b"))}}
	taken := grant(1, "other")
	s.asks(taken, 1)
	if g := s.Reply(s.conns[1], taken, true, 1); g == nil {
		t.Fatal("nothing is held")
	}
	twin := grant(3, "other")
	s.do(twin, 15)
	if s.Signal("go", 20); !s.asks(statement(4, lock.Write, "t"), 30) {
		t.Error("it does not wait")
	}
}

// Of a quorum's lock, every connection on which a vote was given has it.
func TestVotesKeepTheirConnections(t *testing.T) {
	p := PlanOf(t, "stall-before", "write#1=until:signal:go")
	l := lock.NewLedger([]lock.Declaration{{Key: "set", Quorum: 3}})
	l.Servers(3)
	e := NewEngine(l, p)
	s := &scene{Engine: e, t: t, conns: map[uint64]*conn{1: e.Open(1, owner("a")), 3: e.Open(3, owner("b")), 4: e.Open(4, owner("b"))}}
	s.do(grant(1, "job"), 1)
	for i, session := range []uint64{3, 4} {
		vote := grant(session, "set")
		vote.Upstream = []string{"r1", "r2"}[i]
		s.do(vote, 5)
	}
	s.Request(s.conns[1], statement(1, lock.Write, "counter"), true, 10)
	s.Signal("go", 20)
	for _, session := range []uint64{3, 4} {
		if s.asks(grant(session, "job"), 30) {
			t.Errorf("session %d waits", session)
		}
	}
}

// A plain SET of one's token that comes behind the end of its lease takes the lock anew, and waits like any acquire. In
// time it renews, and goes on.
func TestALateRetakeWaits(t *testing.T) {
	const ms = lock.Instant(time.Millisecond)
	for at, waits := range map[lock.Instant]bool{1250 * ms: false, 1400 * ms: true} {
		s := held(t, untilGo, statement(1, lock.Write, "counter"))
		s.ledger.Promote("", 0, "job")
		taken := grant(3, "job")
		taken.Token, taken.TTL = lock.Value{Hash: "b"}, 100*time.Millisecond
		s.do(taken, 1200*ms)
		s.Signal("go", 1210*ms)
		again := *taken
		again.Kind, again.Verb, again.NX, again.Outcome, again.ReplySeq, again.F, again.R = lock.Store, "SET", false, lock.Pending, 0, 0, 0
		again.Term = lock.Attribution{}
		if got := s.asks(&again, at); got != waits {
			t.Errorf("at %v: waits %v", at, got)
		}
		if kind := s.meant(&again).Kind; (kind == lock.Renew) == waits {
			t.Errorf("at %v it is meant as %s", at, kind)
		}
	}
}

// How long one waits whose process has leases.
func TestNobodyWaitsPastHisLease(t *testing.T) {
	s := held(t, untilGo, statement(1, lock.Write, "counter"))
	s.do(grant(3, "other"), 20)
	short := grant(5, "third")
	short.TTL = 100 * time.Millisecond
	s.do(short, 20)
	s.Signal("go", 30)
	waiting := statement(4, lock.Write, "t")
	s.asks(waiting, 30)
	limit := s.settlings[0].turns[0].limit
	if want := s.ledger.Term(2).LeaseEnd.Earliest.Add(-time.Second / 5); limit.at != want || limit.why != atLease {
		t.Errorf("until %v for its %s, want %v", limit.at, limit.why, want)
	}
	if past := lock.Instant(90 * time.Millisecond); s.asks(statement(5, lock.Write, "t"), past) {
		t.Error("one waits in the last fifth of his lease")
	}
	if over := lock.Instant(200 * time.Millisecond); !s.asks(statement(5, lock.Write, "t"), over) {
		t.Error("one whose lease is over does not wait")
	}
	s.Advance(31) // the stall is over
	if next, _ := s.NextDeadline(40); next != limit.at {
		t.Errorf("looked at next %v, want %v", next, limit.at)
	}
	s.Advance(limit.at)
	if turns := s.Turns(); len(turns) != 1 || turns[0].Cut != atLease || turns[0].Ended != limit.at {
		t.Errorf("%+v", turns)
	}
	renewal := grant(3, "other")
	renewal.Kind, renewal.NX, renewal.Outcome = lock.Renew, false, lock.Done
	s.do(renewal, limit.at)
	if g, _ := s.Before(s.conns[4], waiting, limit.at+1); g != nil {
		t.Error("it waits again, since there is more left of the lease now")
	}
}

// A process that is inside a transaction on another connection waits for a while only, from when the order was fixed.
func TestWhoWorksElsewhere(t *testing.T) {
	for _, tt := range []struct {
		name           string
		own, elsewhere bool
		want           string
	}{
		{"nobody works", false, false, atTimeout},
		{"on its own connection", true, false, atTimeout}, // which tells of each request whether it was begun before
		{"on another", false, true, atWork},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := held(t, untilGo, statement(1, lock.Write, "counter"))
			s.conns[3].peer.Working = func() bool { return tt.own }
			s.conns[4].peer.Working = func() bool { return tt.elsewhere }
			s.Signal("go", 20)
			if !s.asks(statement(3, lock.Write, "t"), 30) {
				t.Fatal("it does not wait")
			}
			l := s.settlings[0].turns[0].limit
			if l.why != tt.want || tt.elsewhere && l.at != lock.Instant(20).Add(elsewhere) {
				t.Errorf("until %v for %s", l.at, l.why)
			}
		})
	}
}

// What a process is granted while it waits counts.
func TestAGrantShortensTheWait(t *testing.T) {
	s := held(t, untilGo, statement(1, lock.Write, "counter"))
	taken := grant(3, "other")
	s.Request(s.conns[3], taken, true, 15)
	s.Signal("go", 30)
	s.asks(statement(4, lock.Write, "t"), 30)
	taken.F, taken.R = 40, 40
	s.Reply(s.conns[3], taken, true, 40)
	if l := s.settlings[0].turns[0].limit; l.why != atLease {
		t.Errorf("it waits until %v for the %s", l.at, l.why)
	}
}

// Why a freeze ended is told in full.
func TestWhyAFreezeEnded(t *testing.T) {
	for _, tt := range []struct {
		name, note, outcome, reason string
		err                         error
		signal                      bool
		early                       bool
	}{
		{"a gate that opened", "", "landed", "", nil, true, false},
		{"one that did not", "", closed, "waited in vain for signal:go: it did not come about", nil, false, false},
		{"and a thaw that failed", "", closed, "waited in vain for signal:go: it did not come about; no such cgroup", errors.New("no such cgroup"), false, false},
		{"and a signal of somebody else", "SIGCONT", closed, "waited in vain for signal:go: it did not come about; SIGCONT", nil, false, false},
		{"a signal of somebody else", "SIGCONT", "cut short", "SIGCONT", nil, true, false},
		{"a thaw that failed", "", "landed", "no such cgroup", errors.New("no such cgroup"), true, false},
		{"the end of the run", "", "cut short", tooSoon + "; no such cgroup", errors.New("no such cgroup"), false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := held(t, "freeze-before write#1=until:signal:go", statement(1, lock.Write, "counter"))
			s.Frozen(s.held, nil, nil, 15)
			if tt.signal {
				s.Signal("go", 20)
			}
			end := s.held.ends
			if tt.early {
				end--
			}
			s.Thawed(s.held, tt.note, tt.err, end)
			_, ended := s.Take()
			if len(ended) != 1 || ended[0].Outcome != tt.outcome || ended[0].Reason != tt.reason {
				t.Errorf("%+v", ended)
			}
		})
	}
}

// A gate hears what a witness tells late of a release. Of a late grant it says that it heard no more.
func TestGatesHearLate(t *testing.T) {
	own := statement(1, lock.Write, "counter")
	s := held(t, "stall-before write#1=until:next-release", own)
	late := grant(5, "job")
	late.R = 30
	s.Amended(late)
	if why := s.held.wait.Why(); !strings.Contains(why, "a witness told too late that the lock was granted, once") {
		t.Error(why)
	}
	before := grant(5, "job")
	before.R = 5
	s.Amended(before)
	if why := s.held.wait.Why(); !strings.Contains(why, "once") {
		t.Errorf("what came before the gate counts: %s", why)
	}
	taken := grant(3, "job")
	taken.Token = lock.Value{Hash: "b"}
	s.do(taken, 40)
	s.Amended(&lock.Op{Session: 3, Proto: lock.Redis, Kind: lock.Release, Verb: "EVALSHA", Key: "job", Guarded: true, Token: taken.Token, Outcome: lock.Done, A: 45, F: 45, R: 50})
	if s.held.opened != 50 {
		t.Errorf("opened at %v: %s", s.held.opened, s.held.wait.Why())
	}
}

// What a session had not committed ends with it.
func TestASessionsWritesEndWithIt(t *testing.T) {
	s := held(t, "stall-before write#1=until:next-write", statement(1, lock.Write, "counter"))
	taken := grant(3, "job")
	s.do(taken, 20)
	write := statement(3, lock.Write, "counter")
	write.Implicit, write.Z, write.Term = false, 0, lock.Attribution{}
	s.do(write, 30)
	s.Closed(s.conns[3], 40)
	s.conns[3] = s.Open(3, owner("b"))
	s.do(&lock.Op{Session: 3, Proto: lock.Postgres, Kind: lock.Commit, Verb: "COMMIT", Outcome: lock.Done}, 50)
	if s.held.opened != 0 {
		t.Error("the gate opened for a write that was never committed")
	}
}

// Whether others can have the lock of an op that is held.
func TestWhoElseCanHaveIt(t *testing.T) {
	redis := func(change func(op *lock.Op)) *lock.Op {
		op := grant(1, "k")
		op.TTL = 0
		change(op)
		return op
	}
	advisory := func(op *lock.Op) {
		op.Proto, op.Verb, op.Key, op.Span, op.NX = lock.Postgres, "SELECT", "advisory:7", lock.SessionSpan, false
	}
	for _, tt := range []struct {
		name  string
		taken *lock.Op
		want  fault.Sole
	}{
		{"one with a lease", redis(func(op *lock.Op) { op.TTL = time.Second }), fault.Free},
		{"one without", redis(func(*lock.Op) {}), fault.Kept},
		{"a session's", redis(advisory), fault.Bound},
		{"a reader's", redis(func(op *lock.Op) { advisory(op); op.Shared = true }), fault.Free},
		{"a member of several", redis(func(op *lock.Op) { op.Member = true }), fault.Free},
		{"rows, which may be others", redis(func(op *lock.Op) { advisory(op); op.Key = "row:jobs:abc" }), fault.Free},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := engine(t)
			s := &scene{Engine: e, t: t, conns: map[uint64]*conn{1: e.Open(1, owner("a"))}}
			s.do(tt.taken, 1)
			release := *tt.taken
			release.Kind, release.Outcome, release.NX = lock.Release, lock.Done, false
			s.asks(&release, 5)
			if m := s.momentOf(s.conns[1], fault.Before, &release, 5); m.Sole != tt.want || m.Back {
				t.Errorf("before its release %v, %+v", m.Sole, m)
			}
			release.F, release.R = 6, 6
			s.Reply(s.conns[1], &release, true, 6)
			if m := s.momentOf(s.conns[1], fault.After, &release, 6); m.Sole != fault.Free || !m.Back {
				t.Errorf("after its release %+v", m)
			}
		})
	}
}

// How long a gate would wait for the lease of an op, which is known by a renewal that is held, too.
func TestWhatIsLeftOfALease(t *testing.T) {
	e := engine(t)
	s := &scene{Engine: e, t: t, conns: map[uint64]*conn{1: e.Open(1, owner("a"))}}
	s.do(grant(1, "k"), 1)
	renewal := grant(1, "k")
	renewal.Kind, renewal.NX = lock.Renew, false
	s.asks(renewal, 100)
	term := e.ledger.Term(1)
	if m := s.momentOf(s.conns[1], fault.Before, renewal, 100); m.Left < time.Second-100 || m.TTL != time.Second || !m.Lock || m.NoLease {
		t.Errorf("%+v", m)
	}
	if m := s.momentOf(s.conns[1], fault.Before, statement(1, lock.Write, "t"), 100); m.Left != 0 || m.Lock {
		t.Errorf("of no section: %+v", m)
	}
	write := statement(1, lock.Write, "t")
	write.Term = lock.Attribution{ID: term.ID, Confidence: 1}
	if m := s.momentOf(s.conns[1], fault.Before, write, 100); m.Left != 0 {
		t.Errorf("with a renewal on its way: %+v", m)
	}
	if !slices.Contains(e.ledger.OpenTerms(s.conns[1].actor.Label), term) {
		t.Error("the section is over")
	}
}

// The order is fixed before the clock is certain of a lease's end, once another's grant shows it and all else has come
// about.
func TestOrderBeforeTheClockIsCertain(t *testing.T) {
	write := func(s *scene) *lock.Op { return statement(1, lock.Write, "counter") }
	release := func(s *scene) *lock.Op {
		op := grant(1, "job")
		op.Kind, op.Outcome, op.NX, op.Guarded = lock.Release, lock.Done, false, true
		return op
	}
	removal := func(s *scene) *lock.Op {
		op := grant(5, "job")
		op.Kind, op.NX, op.Outcome, op.Token = lock.Release, false, lock.Done, lock.Value{}
		return op
	}
	const soon, until = lock.Instant(999 * time.Millisecond), "=until:lease-expired+next-acquire"
	for _, tt := range []struct {
		name, rule string
		held       func(s *scene) *lock.Op
		before     func(s *scene)
		at         lock.Instant
		key        string
		fixed      bool
	}{
		{"another's grant", "write#1" + until, write, nil, soon, "job", true},
		{"of another lock", "write#1" + until, write, nil, soon, "other", false},
		{"before the lease can have ended", "write#1" + until, write, nil, soon / 2, "job", false},
		{"of a lock that was taken away", "write#1" + until, write, func(s *scene) { s.do(removal(s), 500) }, soon, "job", false},
		{"while the release is held", "release#1" + until, release, nil, soon, "job", true},
		{"while more is waited for", "write#1" + until + "+next-read", write, nil, soon, "job", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := held(t, "stall-before "+tt.rule, tt.held(nil))
			if tt.before != nil {
				tt.before(s)
			}
			taken := grant(3, tt.key)
			taken.Token = lock.Value{Hash: "b"}
			s.do(taken, tt.at)
			if got := len(s.settlings) == 1; got != tt.fixed || s.held.opened != 0 {
				t.Fatalf("fixed %v, opened at %v", got, s.held.opened)
			}
			s.Advance(s.ledger.Term(1).LeaseEnd.Latest + 1)
			if (s.held.opened != 0) != (len(s.settlings) == 1) || len(s.settlings) > 1 {
				t.Errorf("opened at %v, fixed %d times", s.held.opened, len(s.settlings))
			}
		})
	}
}

// Of a held renewal that asks for nothing, whoever has the lock by now waits like others.
func TestAHeldRenewalWaitsForNobody(t *testing.T) {
	renewal := grant(1, "job")
	renewal.Kind, renewal.NX = lock.Renew, false
	s := held(t, "stall-before renew#1=until:signal:go", renewal)
	taken := grant(3, "job")
	taken.Token = lock.Value{Hash: "b"}
	s.do(taken, 15)
	if s.Signal("go", 20); !s.asks(statement(4, lock.Write, "t"), 30) {
		t.Error("it does not wait")
	}
}
