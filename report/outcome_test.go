package report

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

func with(r Run, change ...func(*Run)) Run {
	for _, c := range change {
		c(&r)
	}
	return r
}

func add(vs ...check.Verdict) func(*Run) {
	return func(r *Run) { r.Result.Verdicts = append(r.Result.Verdicts, vs...) }
}

func internal(r *Run)    { r.Internal = errors.New("write history: disk full") }
func unreachable(r *Run) { r.Unreachable = []string{"redis 127.0.0.1:6379: connection refused"} }
func harm(r *Run)        { add(verdict("LF104", check.Proven, true, 1, ""))(r) }
func failed(r *Run)      { r.CommandStatus = 3 }
func interrupted(r *Run) { r.Interrupted = true }
func diverged(r *Run)    { r.Diverged = "step 1: expected it; saw nothing" }
func gap(r *Run)         { r.Gaps = 1 }

func expect(codes ...string) func(*Run) { return func(r *Run) { r.Expect = codes } }
func failOn(codes ...string) func(*Run) { return func(r *Run) { r.FailOn = codes } }

// outage is a fence counter that was lost: every lawful write is refused.
func outage(r *Run) {
	for range 265 {
		r.Result.Verdicts = append(r.Result.Verdicts, currentRefused(check.Likely))
	}
}

func currentRefused(level check.Level) check.Verdict {
	v := verdict("LF201", level, false, 1, "")
	v.Class = check.Hazard
	return v
}

// Every row of the table of exit statuses, and every pair of rows that can
// meet, with the one that wins.
func TestExitStatus(t *testing.T) {
	hazard := verdict("LF103", check.Proven, false, 1, "")
	for _, c := range []struct {
		name string
		run  Run
		exit int
		why  string
	}{
		{"every check held", quiet(), 0, "every check held"},
		{"exercised and held", exercisedRun(), 0, "every check held"},
		{"a defence worked", fenced(), 0, "stale writes or claims refused: 6"},
		{"a defence worked, some of it likely", with(fenced(), add(verdict("LF201", check.Likely, false, 2, ""))), 0, "stale writes or claims refused: 8"},
		{"nothing seen", Run{Watching: true}, 11, "nothing was seen, so nothing was checked"},
		{"current holders refused", with(exercisedRun(), outage), 0, "every check held; but the lock's current holder was refused 265 times, since its fence is not above the row's"},
		{"stale and current holders refused", with(fenced(), outage), 0, "stale writes or claims refused: 6; but the lock's current holder was refused 265 times"},
		{"no lock seen", Run{Result: check.Result{Facts: check.Facts{Numbers: check.Numbers{Ops: 3}}}}, 0, "every check held, and no lock was seen"},
		{"internal", with(quiet(), internal), 1, "disk full"},
		{"unreachable", with(quiet(), unreachable), 13, "connection refused"},
		{"harm", with(exercisedRun(), harm), 10, "PROVEN harm: LF104 lost-update x1"},
		{"declared harm", with(quiet(), add(verdict("LF305", check.Proven, true, 1, ""))), 10, "LF305"},
		{"command", with(quiet(), failed), 12, "status 3"},
		{"command timed out", with(quiet(), failed, func(r *Run) { r.TimedOut = true }), 12, "time was up"},
		{"command timed out and exited 0", with(quiet(), func(r *Run) { r.TimedOut = true }), 12, "time was up"},
		{"not exercised", armed(), 11, "no lease ended while it was held"},
		{"fence not known", with(quiet(), func(r *Run) { r.Result.Fences = []check.FenceFigure{{Query: "SELECT f FROM t"}} }), 11, "could not be read"},
		{"fence not read, but its writes were seen", with(quiet(), func(r *Run) { r.Result.Fences = []check.FenceFigure{{Query: "SELECT f FROM t", Accepted: 3}} }), 0, ""},
		{"fence learned", with(quiet(), func(r *Run) { r.Result.Fences = []check.FenceFigure{{Column: "f"}} }), 0, ""},
		{"gap", with(quiet(), gap), 11, "1 gap"},
		{"unread", with(quiet(), func(r *Run) { r.Unread = []string{"counter: no row"} }), 11, "counter: no row"},
		{"counter not known", with(quiet(), func(r *Run) { r.Result.Counters[0].Known = false }), 11, "could not be read"},
		{"blind spot", with(quiet(), add(verdict("LF402", check.Possible, false, 1, ""))), 11, "LF402"},
		{"harm LIKELY", with(exercisedRun(), add(verdict("LF104", check.Likely, true, 1, ""))), 11, "LIKELY only"},
		{"harm POSSIBLE", with(exercisedRun(), add(verdict("LF104", check.Possible, true, 1, ""))), 11, "POSSIBLE only"},
		{"interrupted", with(quiet(), interrupted), 130, "interrupted"},

		{"a hazard fails nothing", with(exercisedRun(), add(hazard)), 0, ""},
		{"an undeclared lock's double grant fails nothing", with(quiet(), add(verdict("LF305", check.Proven, false, 1, ""))), 0, ""},
		{"harm needs no rule", with(quiet(), harm), 10, ""},
		{"harm though nothing was exercised", with(armed(), harm), 10, "LF104"},

		{"1 over 13", with(quiet(), internal, unreachable), 1, ""},
		{"1 over 10", with(quiet(), internal, harm), 1, ""},
		{"1 over 12", with(quiet(), internal, failed), 1, ""},
		{"1 over 11", with(armed(), internal), 1, ""},
		{"1 over 130", with(quiet(), internal, interrupted), 1, ""},
		{"13 over 10", with(quiet(), unreachable, harm), 13, ""},
		{"13 over 12", with(quiet(), unreachable, failed), 13, ""},
		{"13 over 11", with(armed(), unreachable), 13, ""},
		{"13 over 130", with(quiet(), unreachable, interrupted), 13, ""},
		{"10 over 12", with(quiet(), harm, failed), 10, ""},
		{"10 over 11", with(armed(), harm, gap), 10, ""},
		{"10 over 130", with(quiet(), harm, interrupted), 10, ""},
		{"12 over 11", with(armed(), failed), 12, ""},
		{"130 over 12", with(quiet(), failed, interrupted), 130, ""},
		{"130 over 11", with(armed(), interrupted), 130, ""},
		{"130 over an expected code's absence", with(quiet(), expect("LF104"), interrupted), 130, ""},

		{"diverged", with(quiet(), diverged), 11, "the replay diverged at step 1: expected it; saw nothing"},
		{"harm over diverged", with(quiet(), harm, diverged), 10, "PROVEN harm"},
		{"130 over diverged", with(quiet(), interrupted, diverged), 130, ""},
		{"diverged over 12, as the command was ended there", with(quiet(), failed, diverged), 11, "diverged"},
		{"diverged over an expected code's absence", with(quiet(), expect("LF104"), diverged), 11, "diverged"},

		{"expected and found", with(exercisedRun(), harm, expect("LF104")), 0, "LF104 lost-update was found as expected"},
		{"expected by name", with(exercisedRun(), harm, expect("lost-update")), 0, ""},
		{"expected, not found", with(exercisedRun(), expect("LF104")), 10, "expected and not found: LF104 lost-update"},
		{"expected, not found, and what would tell", with(unprovenRun(), expect("LF104")), 10, "nothing shows whether they undid others: name what must add up, as --counter"},
		{"expected, not found, over 12", with(exercisedRun(), expect("LF104"), failed), 10, ""},
		{"expected, not found, over 11", with(armed(), expect("LF104")), 10, "(the hazard was not exercised)"},
		{"one of two not found", with(exercisedRun(), harm, expect("LF104", "LF309")), 10, "LF309"},
		{"other harm beside the expected", with(exercisedRun(), harm, add(verdict("LF105", check.Proven, true, 1, "")), expect("LF104")), 10, "LF105"},
		{"expected, but LIKELY only", with(exercisedRun(), add(verdict("LF104", check.Likely, true, 1, "")), expect("LF104")), 11, "LIKELY only"},
		{"a hazard expected, but LIKELY only", with(exercisedRun(), add(verdict("LF102", check.Likely, false, 1, "")), expect("LF102")), 11, "LIKELY only"},
		{"expected, PROVEN and LIKELY", with(exercisedRun(), harm, add(verdict("LF104", check.Likely, true, 1, "")), expect("LF104")), 0, ""},
		{"expected and the command failed", with(exercisedRun(), harm, expect("LF104"), failed), 12, ""},
		{"not-exercised expected", with(armed(), expect("LF401")), 0, ""},
		{"not-exercised expected, but it was", with(exercisedRun(), expect("LF401")), 10, ""},
		{"a good code expected", with(fenced(), expect("LF201")), 0, ""},
		{"a good code expected, but nobody was stale", with(exercisedRun(), outage, expect("LF201")), 10, "expected and not found: LF201"},
		{"fail-on hazard, and current holders refused", with(exercisedRun(), func(r *Run) { r.Result.Verdicts = append(r.Result.Verdicts, currentRefused(check.Proven)) }, failOn("hazard")), 10, "LF201"},
		{"a short counter beside an expected lost update", with(lost(), expect("LF104"), add(verdict("LF403", check.Proven, true, 0, ""))), 0, ""},
		{"a short counter alone", with(lost(), func(r *Run) { r.Result.Verdicts = nil }, add(verdict("LF403", check.Proven, true, 0, ""))), 10, "LF403"},
		{"a counter that ran ahead beside an expected lost update", with(lost(), expect("LF104"), add(verdict("LF403", check.Proven, true, 0, "")),
			func(r *Run) { r.Result.Counters[0] = counterFigure(321, 330) }), 10, "LF403"},

		{"fail-on code", with(exercisedRun(), add(hazard), failOn("LF103")), 10, "by --fail-on: LF103 stale-write x1"},
		{"fail-on name", with(exercisedRun(), add(hazard), failOn("stale-write")), 10, ""},
		{"fail-on hazard", with(exercisedRun(), add(hazard), failOn("hazard")), 10, ""},
		{"fail-on hazard, an undeclared lock", with(quiet(), add(verdict("LF305", check.Proven, false, 1, "")), failOn("hazard")), 10, ""},
		{"fail-on any", with(exercisedRun(), add(hazard), failOn("any")), 10, ""},
		{"fail-on any leaves good alone", with(fenced(), failOn("any")), 0, ""},
		{"fail-on any leaves inconclusive alone", with(armed(), failOn("any")), 11, ""},
		{"fail-on a good code", with(fenced(), failOn("LF201")), 10, ""},
		{"fail-on not-exercised", with(armed(), failOn("LF401")), 10, ""},
		{"fail-on below PROVEN", with(exercisedRun(), add(verdict("LF103", check.Likely, false, 1, "")), failOn("any")), 0, ""},
		{"fail-on another", with(exercisedRun(), add(hazard), failOn("LF102")), 0, ""},
		{"expected wins over fail-on", with(exercisedRun(), add(hazard), failOn("any"), expect("LF103")), 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := c.run.Outcome()
			if o.Exit != c.exit {
				t.Errorf("exit %d (%s), want %d", o.Exit, o.Why, c.exit)
			}
			if !strings.Contains(o.Why, c.why) {
				t.Errorf("why %q, want %q in it", o.Why, c.why)
			}
			if word := wordFor(c.exit); o.Word != word {
				t.Errorf("word %s, want %s", o.Word, word)
			}
		})
	}
}

func wordFor(exit int) string {
	switch exit {
	case 0:
		return "PASS"
	case 11, 130:
		return "INCONCLUSIVE"
	}
	return "FAIL"
}

func TestOutcomeNamesCodes(t *testing.T) {
	o := with(armed(), harm, add(verdict("LF103", check.Proven, false, 1, "")), failOn("hazard"), expect("LF309")).Outcome()
	if !o.LF401 || len(o.Reasons) != 1 {
		t.Errorf("LF401 %v with reasons %q, want it with one", o.LF401, o.Reasons)
	}
	if !slices.Equal(o.Failing, []string{"LF104", "LF103"}) || !slices.Equal(o.Missing, []string{"LF309"}) {
		t.Errorf("failing %q, missing %q", o.Failing, o.Missing)
	}
}

// What matters most comes first: harm before hazards, PROVEN before LIKELY,
// then by code, in whatever order the judge has them.
func TestOrderOfVerdicts(t *testing.T) {
	r := with(fenced(), func(r *Run) { r.Result.Verdicts = r.Result.Verdicts[:1] }, add(
		verdict("LF102", check.Proven, false, 1, ""), verdict("LF101", check.Likely, false, 1, ""),
		verdict("LF101", check.Proven, false, 1, ""), verdict("LF305", check.Proven, false, 1, ""),
		verdict("LF104", check.Possible, true, 1, ""), verdict("LF309", check.Proven, true, 1, ""),
		verdict("LF105", check.Proven, true, 1, ""), verdict("LF104", check.Likely, true, 1, ""),
		verdict("LF402", check.Proven, false, 1, ""),
	))
	want := "LF105 PROVEN, LF309 PROVEN, LF104 LIKELY, LF104 POSSIBLE, LF305 PROVEN, " +
		"LF101 PROVEN, LF102 PROVEN, LF101 LIKELY, LF201 PROVEN, LF402 PROVEN"
	var got []string
	for _, g := range groups(r) {
		got = append(got, g.Code+" "+g.Level)
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

// An injection belongs to the rule of its name, and without names to the rule
// of its text, with or without the flag in front.
func TestInjectionsBelongToRules(t *testing.T) {
	u := RuleUse{Text: "--freeze-after read=ttl,name=a", Name: "a"}
	for _, c := range []struct {
		rule, name string
		want       bool
	}{
		{u.Text, "a", true}, {u.Text, "b", false}, {"", "a", true},
		{u.Text, "", true}, {"read=ttl,name=a", "", true}, {"ead=ttl,name=a", "", false}, {"write=ttl", "", false},
	} {
		i := injection(1, c.rule, 0, true)
		i.Name = c.name
		if got := u.owns(i); got != c.want {
			t.Errorf("rule %q name %q: %v, want %v", c.rule, c.name, got, c.want)
		}
	}
}

func TestLasted(t *testing.T) {
	i := injection(1, "", 100*ms, true)
	if got := lasted(i); got != 800*time.Millisecond {
		t.Errorf("in full: %s", got)
	}
	i.Ended = 402 * ms
	if got := lasted(i); got != 300*time.Millisecond {
		t.Errorf("ended early: %s", got)
	}
	i.Confirmed = 0
	if got := lasted(i); got != 302*time.Millisecond {
		t.Errorf("never confirmed: %s", got)
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12345 * time.Millisecond: "12.3s", 1234567 * time.Microsecond: "1.23s", 23456 * time.Microsecond: "23.5ms", 999: "999ns",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%d) = %s, want %s", d, got, want)
		}
	}
}
