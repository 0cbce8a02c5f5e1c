package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// When a grant says that the lease of a held op's term is over.
func TestWhatOutlivesALease(t *testing.T) {
	const late, early = lock.Instant(999 * time.Millisecond), lock.Instant(500 * time.Millisecond)
	own := func(s *scene) lock.TermID { return s.held.wait.Own() }
	other := func(s *scene) lock.TermID { return own(s) + 1 }
	none := func(*scene) lock.TermID { return 0 }
	granted := &lock.Op{Outcome: lock.Granted}
	release := func(session uint64) *lock.Op {
		op := grant(session, "job")
		op.Kind, op.Outcome, op.NX, op.Guarded = lock.Release, lock.Done, false, true
		return op
	}
	for _, tt := range []struct {
		name   string
		before func(s *scene)
		op     *lock.Op
		of     func(s *scene) lock.TermID
		at     lock.Instant
		want   bool
	}{
		{"another's grant", nil, granted, other, late, true},
		{"what another does, who may have had the lock before", nil, &lock.Op{Outcome: lock.Done}, other, late, false},
		{"of another lock", nil, granted, none, late, false},
		{"its own", nil, granted, own, late, false},
		{"before it can have ended", nil, granted, other, early, false},
		{"of a lock that many may have", func(s *scene) {
			reader := grant(5, "job")
			reader.Shared, reader.Token = true, lock.Value{Hash: "c"}
			s.do(reader, 400)
		}, granted, other, late, false},
		{"of one that was given back", func(s *scene) { s.do(release(2), 400) }, granted, other, late, false},
		{"of one that is being given back", func(s *scene) { s.asks(release(2), 400) }, granted, other, late, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := held(t, "stall-before write#1=until:lease-expired", statement(1, lock.Write, "counter"))
			if tt.before != nil {
				tt.before(s)
			}
			if s.outlived(s.held, tt.op, tt.of(s), tt.at); s.held.outlived != tt.want {
				t.Errorf("outlived %v", s.held.outlived)
			}
		})
	}
}

// A release that is held gives nothing back, but once it was answered it has.
func TestAHeldReleaseIsOutlived(t *testing.T) {
	for rule, want := range map[string]bool{"stall-before release#1=until:lease-expired": true, "stall-after release#1=until:signal:go": false} {
		op := grant(1, "job")
		op.Kind, op.Outcome, op.NX, op.Guarded = lock.Release, lock.Pending, false, true
		s := &scene{}
		if want {
			s = held(t, rule, op)
		} else {
			s.Engine, s.t = engine(t, "stall-after", "release#1=until:signal:go"), t
			s.conns = map[uint64]*conn{1: s.Open(1, owner("a"))}
			s.do(grant(1, "job"), 1)
			s.asks(op, 10)
			op.F, op.R, op.Outcome = 10, 10, lock.NotHeld // the lock is another's by then
			if g := s.Reply(s.conns[1], op, true, 10); g == nil {
				t.Fatal("nothing is held")
			}
			s.held = s.active[0]
		}
		at := lock.Instant(999 * time.Millisecond)
		if s.outlived(s.held, &lock.Op{Outcome: lock.Granted}, s.held.wait.Own()+1, at); s.held.outlived != want {
			t.Errorf("%s: outlived %v", rule, s.held.outlived)
		}
	}
}

// The lock of an op that names none, and is of no section, is none.
func TestAnOpOfNoLock(t *testing.T) {
	e := engine(t)
	if id, own := e.subject(&lock.Op{Proto: lock.Postgres, Upstream: "u", Kind: lock.Write, Verb: "UPDATE"}); id != (lock.LockID{}) || own != 0 {
		t.Errorf("%+v, term %d", id, own)
	}
}

// Which term of a gate's lock an op is of, whatever other locks it is under.
func TestOfWhichTermAnOpIs(t *testing.T) {
	s := held(t, "stall-before write#1=until:next-write", statement(1, lock.Write, "counter"))
	s.do(grant(3, "outer"), 20)
	taken := grant(3, "job")
	taken.Token = lock.Value{Hash: "b"}
	s.do(taken, 30)
	w := s.held.wait
	under := func(id lock.TermID, within ...lock.TermID) *lock.Op {
		op := statement(3, lock.Write, "counter")
		op.Upstream, op.Term = "u", lock.Attribution{ID: id, Within: within, Confidence: 1}
		return op
	}
	none := lock.LockID{}
	for _, tt := range []struct {
		name string
		op   *lock.Op
		of   lock.TermID
		id   lock.LockID
	}{
		{"its own", under(w.Own()), w.Own(), w.Lock()},
		{"its own, in another's", under(2, w.Own()), w.Own(), w.Lock()},
		{"another's", under(3), 3, w.Lock()},
		{"another's, in one of another lock", under(2, 3), 3, w.Lock()},
		{"of another lock", under(2), 0, none},
		{"of no section", under(0), 0, none},
		{"of one that is forgotten", under(99), 0, none},
		{"of none, and it names the lock", &lock.Op{Proto: lock.Redis, Kind: lock.Acquire, Key: "job", Outcome: lock.Refused}, 0, w.Lock()},
	} {
		if of, id := s.within(tt.op, w); of != tt.of || id != tt.id {
			t.Errorf("%s: term %d of %v", tt.name, of, id)
		}
	}
}

// What a witness tells late is a grant that was not heard only if it is one, of the lock, whose term is not known.
func TestWhatIsNotHeard(t *testing.T) {
	for _, tt := range []struct {
		name string
		op   func(op *lock.Op)
		late bool
	}{
		{"a grant", func(*lock.Op) {}, true},
		{"of another lock", func(op *lock.Op) { op.Key = "other" }, false},
		{"a refusal", func(op *lock.Op) { op.Outcome = lock.Refused }, false},
		{"one whose term is known", func(op *lock.Op) { op.Term = lock.Attribution{ID: 1, Confidence: 1} }, false},
	} {
		s := held(t, "stall-before write#1=until:next-release", statement(1, lock.Write, "counter"))
		op := grant(5, "job")
		op.Token, op.R = lock.Value{Hash: "b"}, 30
		tt.op(op)
		s.heardLate(op)
		if why := s.held.wait.Why(); strings.Contains(why, "told too late") != tt.late {
			t.Errorf("%s: %s", tt.name, why)
		}
	}
}

// A release that a witness tells of late has given the lock back.
func TestALateReleaseIsAnEarlyEnd(t *testing.T) {
	s := held(t, "stall-before write#1=until:lease-expired", statement(1, lock.Write, "counter"))
	own := s.ledger.Term(1).Token
	s.Amended(&lock.Op{Session: 2, Actor: s.conns[2].actor.Label, Proto: lock.Redis, Kind: lock.Release, Verb: "EVALSHA", Key: "job", Guarded: true, Token: own, Outcome: lock.Done, A: 45, F: 45, R: 50})
	if why := s.held.wait.Why(); !strings.Contains(why, "finished early") {
		t.Error(why)
	}
}

// A write is another's once its implicit transaction has ended well: with the reply it may yet be undone.
func TestAWriteOpensAGateWhenItIsDurable(t *testing.T) {
	for outcome, opened := range map[lock.Outcome]lock.Instant{lock.Done: 40, lock.RolledBack: 0} {
		s := held(t, "stall-before write#1=until:next-write", statement(1, lock.Write, "counter"))
		taken := grant(3, "job")
		taken.Token = lock.Value{Hash: "b"}
		s.do(taken, 20)
		write := statement(3, lock.Write, "counter")
		write.Z = 0
		if s.do(write, 30); s.held.opened != 0 {
			t.Fatalf("opened at %v", s.held.opened)
		}
		write.Outcome, write.Z = outcome, 40
		if s.Settled(write, 40); s.held.opened != opened {
			t.Errorf("%s: opened at %v: %s", outcome, s.held.opened, s.held.wait.Why())
		}
	}
}

// A lease may be there until the last instant of its interval.
func TestALeaseEndsBehindItsLatestEnd(t *testing.T) {
	s := held(t, "stall-before write#1=until:lease-expired", statement(1, lock.Write, "counter"))
	end := s.ledger.Term(1).LeaseEnd.Latest
	if next, _ := s.NextDeadline(20); next != end+1 {
		t.Errorf("looked at %v, want %v", next, end+1)
	}
	if s.Advance(end); s.held.opened != 0 {
		t.Error("opened while the lease may be there")
	}
	if s.Advance(end + 1); s.held.opened != end+1 {
		t.Errorf("opened at %v", s.held.opened)
	}
}

// An order that is given up, since the gate waits for more again, is fixed anew when that has come about, and no other
// is given up with it.
func TestAnOrderIsFixedAnew(t *testing.T) {
	const soon = lock.Instant(999 * time.Millisecond)
	s := held(t, "stall-before write#1=until:lease-expired+next-read", statement(1, lock.Write, "counter"))
	taken := grant(3, "job")
	taken.Token = lock.Value{Hash: "b"}
	s.do(taken, soon)
	other := &settling{in: &injection{}, until: lock.Never}
	s.settlings = append(s.settlings, other)
	for i, step := range []struct {
		kind  lock.Kind
		fixed int
	}{{lock.Read, 2}, {lock.Write, 1}, {lock.Read, 2}} {
		op := statement(3, step.kind, "counter")
		op.A, op.F, op.R = soon, soon, soon
		s.conns[3].urgent = true // what it does is not what is looked at here
		s.Request(s.conns[3], op, true, soon)
		if s.Reply(s.conns[3], op, true, soon); len(s.settlings) != step.fixed || s.settlings[0] != other {
			t.Fatalf("step %d: %d orders: %s", i, len(s.settlings), s.held.wait.Why())
		}
	}
}

// A gate opens once.
func TestAGateOpensOnce(t *testing.T) {
	s := held(t, untilGo, statement(1, lock.Write, "counter"))
	s.Signal("go", 20)
	if s.opened(s.held, 30); s.held.opened != 20 || s.held.ends != 20 {
		t.Errorf("opened at %v, ends at %v", s.held.opened, s.held.ends)
	}
}

// A freeze whose gate opens before it has come about ends when it has.
func TestAGateThatOpensBeforeTheFreeze(t *testing.T) {
	s := held(t, "freeze-before write#1=until:signal:go", statement(1, lock.Write, "counter"))
	s.Signal("go", 20)
	thaws := func() (n int) {
		orders, _ := s.Take()
		for _, o := range orders {
			if o.Thaw != nil {
				n++
			}
		}
		return n
	}
	if s.Advance(30); thaws() != 0 {
		t.Error("thawed before it was frozen")
	}
	s.Frozen(s.held, nil, nil, 40)
	if s.Advance(40); thaws() != 1 {
		t.Error("not thawed at once")
	}
}
