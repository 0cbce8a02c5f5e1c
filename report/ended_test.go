package report

import (
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// advisory is armed, with a lock that has no lease and of which some were lost.
func advisory(lost int) Run {
	r := armed()
	f := &r.Result.Facts
	f.Locks = []check.LockFact{{Lock: "advisory:42", Grants: 321, TTLs: []time.Duration{0}, Overrun: lost, Lost: lost}}
	f.EndedWhileHeld, f.Lost = lost, lost
	return r
}

func textOf(t *testing.T, r Run) string {
	t.Helper()
	var b strings.Builder
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// A lock that was lost is the hazard: nothing says beside it that there was none.
func TestALockThatWasLostIsTheHazard(t *testing.T) {
	for lost, want := range map[int]string{
		1: "1 of 321 locks was lost while held: its connection ended in",
		5: "5 of 321 locks were lost while held: their connection ended in",
	} {
		r := advisory(lost)
		if o := r.Outcome(); o.LF401 || o.Exit != 0 {
			t.Errorf("%+v", o)
		}
		if got := textOf(t, r); !strings.Contains(got, want) || strings.Contains(got, "not exercised") || strings.Contains(got, "lease") {
			t.Errorf("want %q:\n%s", want, got)
		}
	}
}

// What a rule had the server forget is no connection's end.
func TestLocksThatWereForgotten(t *testing.T) {
	for forgotten, want := range map[int]string{
		0: "2 of 9 locks were lost while held: their connection ended",
		1: "2 of 9 locks were lost while held: their connection ended, or the server was made to forget them",
		2: "2 of 9 locks were lost while held: the server was made to forget them",
	} {
		if got := lostOf(check.Facts{Numbers: check.Numbers{Lost: 2, Forgotten: forgotten}}, "9 locks"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Where there is no lease, none ended: that is not what is missing.
func TestNoLeaseIsSpokenOfWhereThereIsNone(t *testing.T) {
	r := advisory(0)
	r.FailOn = []string{"LF401"}
	o := r.Outcome()
	got := textOf(t, r)
	for _, want := range []string{
		"0 of 321 locks were lost while held in",
		"Rules were armed, and no lock was lost between its grant and its owner's release request.",
		"6 pauses landed inside a section; no lock of these has a lease that could end: it lasts until it is given back, or its connection or transaction ends",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "lease ended") || strings.Contains(got, "before the lease") {
		t.Errorf("a lease:\n%s", got)
	}
	if r.FailOn = nil; r.Outcome().Why != "the hazard was not exercised: no lock was lost while it was held" {
		t.Errorf("%+v", o)
	}
	var b strings.Builder
	if err := JUnit(&b, r); err != nil || !strings.Contains(b.String(), "not exercised: no lock was lost while it was held") {
		t.Errorf("%v\n%s", err, b.String())
	}
	r.Rules, r.Unplanned = nil, true
	if why := r.Outcome().Why; !strings.Contains(why, "; no lock was lost while held, so nothing was exercised") {
		t.Error(why)
	}
}

func TestLostLocksInJSON(t *testing.T) {
	var b strings.Builder
	if err := JSON(&b, advisory(5)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"lost_while_held": 5`, `"lost": 5`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
}

// Leases and what has none stand beside each other.
func TestLeasesAndLocksWithoutOne(t *testing.T) {
	r := advisory(2)
	f := &r.Result.Facts
	f.Locks, f.Grants, f.EndedWhileHeld = append(f.Locks, counterLock()), 642, 5
	if got := textOf(t, r); !strings.Contains(got, "3 of 642 leases ended while held, and 2 of them were lost while held: their connection ended") {
		t.Error(got)
	}
	f.EndedWhileHeld, f.Lost = 0, 0
	if got := textOf(t, r); !strings.Contains(got, "0 of 642 leases ended while held in") {
		t.Error(got)
	}
}

// Rows that a condition chooses may be several, and are no semaphore.
func TestARowLockIsNoSemaphore(t *testing.T) {
	for key, want := range map[string]string{"row:inventory:6f03": "row lock", "lock:pool": "semaphore"} {
		m := check.MapEntry{Lock: key, Keys: 1, Sort: lock.Semaphore}
		if got := mapTitle(m); !strings.Contains(got, "("+want+";") {
			t.Error(got)
		}
		if got := toJSONMap(m).Sort; got != want {
			t.Error(got)
		}
	}
}
