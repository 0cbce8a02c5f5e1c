package report

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

func accept(list ...Accepted) func(*Run) {
	return func(r *Run) {
		for i := range list {
			list[i].Line = i + 3
			if list[i].Until.IsZero() {
				list[i].Until = r.Started.Add(time.Hour)
			}
		}
		r.Accepted = list
	}
}

// What is accepted is shown with its reason and fails nothing: neither as harm,
// nor by --fail-on, nor as a doubt.
func TestAcceptedFailsNothing(t *testing.T) {
	known := accept(Accepted{Code: "LF104", Lock: "lock:*", Reason: "known"}, Accepted{Code: "LF403", Table: "count*", Reason: "follows"})
	likely := with(exercisedRun(), add(verdict("LF104", check.Likely, true, 1, lostProof)))
	blind := with(exercisedRun(), add(check.Verdict{Code: "LF402", Class: check.Inconclusive, Level: check.Proven, Count: 3, Table: "counter"}))
	for _, c := range []struct {
		name string
		run  Run
		exit int
		why  string
	}{
		{"harm", with(lost(), known), 0, "accepted: LF104 lost-update x6"},
		{"another lock's", with(lost(), accept(Accepted{Code: "LF104", Lock: "lock:orders", Reason: "r"})), 10, "PROVEN harm: LF104"},
		{"another table's", with(lost(), accept(Accepted{Code: "LF104", Table: "orders", Reason: "r"})), 10, "PROVEN harm: LF104"},
		{"another code", with(lost(), accept(Accepted{Code: "LF105", Lock: "*", Reason: "r"})), 10, "PROVEN harm: LF104"},
		{"by --fail-on", with(lost(), known, failOn("LF104")), 0, "accepted: LF104"},
		{"a doubt", with(likely, known), 0, "accepted: LF104"},
		{"a blind spot", with(blind, accept(Accepted{Code: "LF402", Table: "counter", Reason: "an admin"})), 0, "accepted: LF402"},
		{"and not a blind spot", blind, 11, "LF402"},
	} {
		o := c.run.Outcome()
		if o.Exit != c.exit || !strings.Contains(o.Why, c.why) {
			t.Errorf("%s: %d %s, want %d %s", c.name, o.Exit, o.Why, c.exit, c.why)
		}
	}
	if s := text(t, with(lost(), known)); !strings.Contains(s, "accepted until") || !strings.Contains(s, ": known") {
		t.Error(s)
	}
}

func TestAcceptedInVainIsSaid(t *testing.T) {
	r := with(lost(), accept(
		Accepted{Code: "LF104", Lock: "lock:*", Reason: "was known", Until: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)},
		Accepted{Code: "LF304", Lock: "nobody", Reason: "r"},
		Accepted{Code: "LF305", Table: "t", Lock: "l", Reason: "r", Until: time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)},
	))
	if o := r.Outcome(); o.Exit != 10 {
		t.Errorf("%+v", o)
	}
	want := []string{
		"LF104 of lock:* (line 3) was accepted until 2000-12-31, and is no more (was known)",
		"LF304 of nobody (line 4) is accepted, and nothing was found that it covers",
		"LF305 of l of table t (line 5) was accepted until 2000-12-31; nothing was found that it covers",
	}
	if got := r.AcceptedInVain(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	r.Started = time.Time{} // of a run at no time nothing is past
	if o := r.Outcome(); o.Exit != 0 {
		t.Errorf("%+v", o)
	}
}

func TestAcceptableCode(t *testing.T) {
	if code, err := AcceptableCode("Lost-Update"); code != "LF104" || err != nil {
		t.Error(code, err)
	}
	var unknown *UnknownCode
	if _, err := AcceptableCode("lost"); !errors.As(err, &unknown) {
		t.Error(err)
	}
	if _, err := AcceptableCode("not-exercised"); err == nil || !strings.Contains(err.Error(), "--expect LF401") {
		t.Error(err)
	}
}
