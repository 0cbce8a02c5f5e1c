package proxy

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// What lets others have a lock without a lease, beside its giving back.
func TestWhoElseCanHaveALockWithoutALease(t *testing.T) {
	for name, tt := range map[string]struct {
		term func(t *lock.Term)
		want fault.Sole
	}{
		"nothing":                 {func(*lock.Term) {}, fault.Kept},
		"it is shared":            {func(t *lock.Term) { t.Shared = true }, fault.Free},
		"it is one member of it":  {func(t *lock.Term) { t.Member = true }, fault.Free},
		"several servers have it": {func(t *lock.Term) { t.Votes = []*lock.Vote{{}} }, fault.Free},
	} {
		e := engine(t)
		s := &scene{Engine: e, t: t, conns: map[uint64]*conn{1: e.Open(1, owner("a"))}}
		taken := grant(1, "k")
		taken.TTL = 0
		s.do(taken, 1)
		term := e.ledger.Term(1)
		if tt.term(term); e.sole(term, fault.Before) != tt.want {
			t.Errorf("%s: %v", name, e.sole(term, fault.Before))
		}
	}
}

// One of a transaction is over when that has ended, and not while its end is held.
func TestATransactionsLockEndsWithIt(t *testing.T) {
	e := engine(t)
	s := &scene{Engine: e, t: t, conns: map[uint64]*conn{1: e.Open(1, owner("a"))}}
	s.do(&lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Begin, Verb: "BEGIN", Tx: 1, Outcome: lock.Done}, 1)
	taken := grant(1, "advisory:7")
	taken.Proto, taken.Span, taken.TTL, taken.NX, taken.Tx = lock.Postgres, lock.TxSpan, 0, false, 1
	s.do(taken, 2)
	commit := &lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Commit, Verb: "COMMIT", Tx: 1, Outcome: lock.Done}
	s.asks(commit, 3)
	if m := s.momentOf(s.conns[1], fault.Before, commit, 3); m.Sole != fault.Bound {
		t.Errorf("before its end %v", m.Sole)
	}
	commit.F, commit.R = 4, 4
	s.Reply(s.conns[1], commit, true, 4)
	if m := s.momentOf(s.conns[1], fault.After, commit, 4); m.Sole != fault.Free {
		t.Errorf("behind it %v", m.Sole)
	}
}

// A lock that somebody else removed was not given back.
func TestWhatWasTakenAwayWasNotGivenBack(t *testing.T) {
	e := engine(t)
	s := &scene{Engine: e, t: t, conns: map[uint64]*conn{1: e.Open(1, owner("a")), 2: e.Open(2, owner("b"))}}
	s.do(grant(1, "k"), 1)
	removal := &lock.Op{Session: 2, Proto: lock.Redis, Kind: lock.Release, Verb: "DEL", Key: "k", Outcome: lock.Done}
	s.do(removal, 10)
	write := statement(1, lock.Write, "t")
	write.Term = lock.Attribution{ID: 1, Confidence: 1}
	if m := s.momentOf(s.conns[1], fault.Before, write, 20); m.Back || e.ledger.Term(1).Released != removal {
		t.Errorf("%+v, removed by %+v", m, e.ledger.Term(1).Released)
	}
}

// A release that found another's token, or none, is of one who has the lock no more.
func TestAReleaseThatFoundNothing(t *testing.T) {
	e := engine(t)
	s := &scene{Engine: e, t: t, conns: map[uint64]*conn{1: e.Open(1, owner("a"))}}
	taken := grant(1, "k")
	taken.TTL = 0
	s.do(taken, 1)
	release := grant(1, "k")
	release.Kind, release.NX, release.Guarded, release.Outcome = lock.Release, false, true, lock.NotHeld
	s.asks(release, 5)
	if m := s.momentOf(s.conns[1], fault.Before, release, 5); m.Sole != fault.Kept {
		t.Errorf("before it %v", m.Sole)
	}
	release.F, release.R = 6, 6
	s.Reply(s.conns[1], release, true, 6)
	if m := s.momentOf(s.conns[1], fault.After, release, 6); m.Sole != fault.Free {
		t.Errorf("behind it %v", m.Sole)
	}
}
