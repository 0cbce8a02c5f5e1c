package check

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// leases is a history of locks in a table of Postgres's.
func leases(t *testing.T, text string) Input {
	t.Helper()
	in, err := scripted(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range in.Ops {
		if strings.HasPrefix(op.Key, "lease:") {
			op.Proto, op.Verb = lock.Postgres, "INSERT"
		}
		if op.Kind == lock.Write {
			op.Upstream = ""
		}
	}
	return in
}

func has(r Result, code string) bool {
	for _, v := range r.Verdicts {
		if v.Code == code {
			return true
		}
	}
	return false
}

// A row that a statement may have removed, of which that was not understood, has not
// vanished.
func TestALeaseThatItsTableMayHaveLost(t *testing.T) {
	const twice = "A acquire lease:leader:x=ta 10-11\n%\nB acquire lease:leader:x=tb 100-101\nB release lease:leader:x=tb 200-201"
	for _, tt := range []struct {
		between string
		want    bool
	}{
		{"A update other[id=1] by:=y 50-51", true},
		{"A update leader[name=x] by:=y 50-51", false},
		{"A update leader[name=x] by:=y 50-51 rows=0", true},
		{"A update leader[name=x] by:=y 5-6", true},
		{"A update leader[name=x] by:=y 110-111", true},
	} {
		in := leases(t, strings.Replace(twice, "%", tt.between, 1))
		if got := has(Judge(in), "LF305"); got != tt.want {
			t.Errorf("%q: LF305 %v, want %v", tt.between, got, tt.want)
		}
	}
}

// A claim of any job that is free has no lifetime, and needs none.
func TestAClaimedJobIsNoLockWithoutAnEnd(t *testing.T) {
	const one = "A acquire lease:job:1f=ta 10-11\nA update job[id=1] state:=done 20-21\nA release lease:job:1f=ta 30-31\n"
	for more, want := range map[string]bool{"": true, "B acquire lease:job:?=tb 40-41 refused": false} {
		in := leases(t, one+more)
		for _, op := range in.Ops {
			op.TTL = 0
		}
		if got := has(Judge(in), "LF304"); got != want {
			t.Errorf("%q: LF304 %v, want %v", more, got, want)
		}
	}
}

// What is known to be no lock is none that was refused, either.
func TestWhatIsNoLockIsNotListed(t *testing.T) {
	in, err := scripted("A acquire lock:c=ta 10-11\nB acquire lock:c=tb 12-13 refused\nB acquire bull:q:stalled-check=t 14-15 refused\nA release lock:c=ta 20-21")
	if err != nil {
		t.Fatal(err)
	}
	locks := Judge(in).Facts.Locks
	if len(locks) != 1 || locks[0].Lock != "lock:c" || locks[0].Refusals != 1 {
		t.Errorf("locks: %+v", locks)
	}
}
