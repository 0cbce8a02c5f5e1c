package report

import (
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// calm is a baseline of five seconds, with ops 1 to 100 in it.
func calm(r *Run) {
	r.Baseline = &Baseline{Asked: 5 * time.Second, From: 100 * ms, Until: 5100 * ms, Over: true, Ops: map[uint64]bool{}}
	for op := range uint64(100) {
		r.Baseline.Ops[op+1] = true
	}
}

func citing(code string, level check.Level, harm bool, ops ...uint64) func(*Run) {
	v := verdict(code, level, harm, 1, "It is so.")
	v.Ops = ops
	return add(v)
}

func TestBaseline(t *testing.T) {
	short := func(r *Run) { r.Baseline.Over = false }
	ungranted := func(r *Run) { *r.Baseline = Baseline{Asked: 5 * time.Second} }
	for _, c := range []struct {
		name string
		run  Run
		exit int
		why  string
		line string
	}{
		{"clean", with(exercisedRun(), calm), 0, "every check held", "baseline of 5s from the first lock: clean, with 100 ops"},
		{"harm in it", with(exercisedRun(), calm, citing("LF104", check.Proven, true, 3, 7)), 11,
			"the baseline is not clean: LF104 lost-update x1 came before any rule could act, so the harness or the service is already broken", "not clean: LF104 lost-update x1"},
		{"harm after it", with(exercisedRun(), calm, citing("LF104", check.Proven, true, 101, 107)), 10, "PROVEN harm: LF104", "clean"},
		{"harm that reaches beyond it", with(exercisedRun(), calm, citing("LF104", check.Proven, true, 100, 101)), 10, "PROVEN harm: LF104", "clean"},
		{"harm that cites nothing", with(exercisedRun(), calm, citing("LF403", check.Proven, true)), 10, "PROVEN harm: LF403", "clean"},
		{"harm in it that is not proven", with(exercisedRun(), calm, citing("LF104", check.Likely, true, 3)), 11, "LIKELY only", "clean"},
		{"harm in it that was expected", with(exercisedRun(), calm, expect("LF104"), citing("LF104", check.Proven, true, 3)), 11, "the baseline is not clean", "not clean"},
		{"harm in it that is accepted", with(exercisedRun(), calm, accept(Accepted{Code: "LF104", Reason: "r"}), citing("LF104", check.Proven, true, 3)), 0, "accepted", "clean"},
		{"a lease that ended in it", with(exercisedRun(), calm, citing("LF101", check.Proven, false, 3)), 11, "not clean: LF101 lease-overrun x1", "not clean"},
		{"an overlap in it", with(exercisedRun(), calm, citing("LF102", check.Proven, false, 3)), 11, "not clean: LF102", "not clean"},
		{"a stale write in it", with(exercisedRun(), calm, citing("LF103", check.Proven, false, 3)), 11, "not clean: LF103", "not clean"},
		{"another hazard in it", with(exercisedRun(), calm, citing("LF304", check.Proven, false, 3)), 0, "every check held", "clean"},
		{"another hazard in it, to fail on", with(exercisedRun(), calm, failOn("hazard"), citing("LF304", check.Proven, false, 3)), 11, "not clean: LF304", "not clean"},
		{"a defence in it", with(exercisedRun(), calm, citing("LF201", check.Proven, false, 3)), 0, "every check held", "clean"},
		{"the worst is told first", with(exercisedRun(), calm, citing("LF101", check.Proven, false, 3), citing("LF104", check.Proven, true, 3), citing("LF104", check.Proven, true, 4)), 11, "LF104 lost-update x2, LF101 lease-overrun x1 came", ""},
		{"over the command", with(exercisedRun(), calm, failed, citing("LF104", check.Proven, true, 3)), 11, "not clean", "not clean"},
		{"under an upstream", with(exercisedRun(), calm, unreachable, citing("LF104", check.Proven, true, 3)), 13, "", "not clean"},
		{"not over", with(armed(), calm, short), 11, "the command ended before the baseline of 5s was over, so no rule could act", "not over"},
		{"not begun", with(armed(), calm, ungranted), 11, "the baseline of 5s did not begin, since no lock was held", "not over"},
		{"not over, and broken", with(armed(), calm, short, citing("LF403", check.Proven, true)), 11, "the baseline is not clean: LF403 counter-mismatch x1", "not clean"},
		{"none", with(exercisedRun(), citing("LF104", check.Proven, true, 3)), 10, "PROVEN harm", ""},
	} {
		o := c.run.Outcome()
		if o.Exit != c.exit || !strings.Contains(o.Why, c.why) {
			t.Errorf("%s: exit %d (%s), want %d (%s)", c.name, o.Exit, o.Why, c.exit, c.why)
		}
		if got := text(t, c.run); c.line != "" && !strings.Contains(strings.Join(strings.Fields(got), " "), c.line) {
			t.Errorf("%s: %q is not in\n%s", c.name, c.line, got)
		}
	}
}

// A run whose baseline is not clean fails by nothing: what is found is not the faults'.
func TestNothingFailsBehindASoiledBaseline(t *testing.T) {
	r := with(lost(), calm, citing("LF104", check.Proven, true, 3))
	if o := r.Outcome(); len(o.Failing) > 0 {
		t.Errorf("failing: %v", o.Failing)
	}
	list := r.Annotations()
	if len(list) != 1 || !list[0].Warning || !strings.Contains(list[0].Message, "the baseline is not clean") {
		t.Errorf("%+v", list)
	}
}
