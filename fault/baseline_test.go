package fault

import (
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Until the baseline is over nothing fires, and nothing is counted; it begins with the
// first lock that is held.
func TestBaselineBarsEveryRule(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write#2=800ms", "stall-after SETNX#3=800ms", "freeze-before tick(1s)=100ms")
	p.Baseline(5 * time.Second)
	p.Start(1)
	write := before(sqlOp(lock.Write, "UPDATE", "t"))
	granted := after(redisOp(lock.Acquire, "SET", "k", lock.Granted))
	at := func(d time.Duration) lock.Instant { return lock.Instant(d) }
	silent := func(m Moment, now lock.Instant) {
		t.Helper()
		if d := p.Decide(m, now); d.Act != Pass {
			t.Fatalf("at %v: %+v", now, d)
		}
	}
	unheld := write
	unheld.Op = sqlOp(lock.Write, "UPDATE", "t")
	unheld.Op.Term = lock.Attribution{}
	silent(unheld, at(time.Second))
	silent(after(redisOp(lock.Acquire, "SET", "k", lock.Refused)), at(2*time.Second))
	silent(before(redisOp(lock.Acquire, "SET", "k", lock.Granted)), at(2*time.Second))
	if from, until := p.BaselineSpan(); from != 0 || until != 0 {
		t.Errorf("it began at %v, until %v", from, until)
	}
	silent(granted, at(3*time.Second))
	silent(granted, at(4*time.Second))
	if from, until := p.BaselineSpan(); from != at(3*time.Second) || until != at(8*time.Second) {
		t.Errorf("from %v until %v", from, until)
	}
	silent(write, at(8*time.Second)-1)
	if made := p.Tick(at(8*time.Second)-1, []string{"A1"}); len(made) > 0 {
		t.Errorf("ticks: %+v", made)
	}
	silent(write, at(8*time.Second))
	if d := p.Decide(write, at(9*time.Second)); d.Act != Stall || d.Ordinal != 2 {
		t.Errorf("%+v", d)
	}
	if made := p.Tick(at(9*time.Second)+1, []string{"A1"}); len(made) != 1 {
		t.Errorf("ticks: %+v", made)
	}
	if u := p.Uses()[0]; u.Seen != 3 || u.Could != 2 || u.Fired != 1 || barred(p, 0, InBaseline) != 1 {
		t.Errorf("%+v", u)
	}
}

// A lock that is not known by its grant begins it by what is done under it.
func TestBaselineBeginsWithASection(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write=800ms")
	p.Baseline(5 * time.Second)
	p.Decide(before(sqlOp(lock.Write, "UPDATE", "t")), 7)
	if from, _ := p.BaselineSpan(); from != 7 {
		t.Errorf("from %v", from)
	}
}

func TestNoBaseline(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after SETNX=800ms")
	if d := p.Decide(after(redisOp(lock.Acquire, "SET", "k", lock.Granted)), 7); d.Act != Stall {
		t.Errorf("%+v", d)
	}
	if from, until := p.BaselineSpan(); from != 0 || until != 0 {
		t.Errorf("from %v until %v", from, until)
	}
}
