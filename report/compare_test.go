package report

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

func comparison(a, b Run) Comparison {
	return Comparison{A: a.Saved(), B: b.Saved(), NameA: "before", NameB: "after"}
}

func otherRules(r *Run) {
	r.Rules = []RuleUse{{Text: "--freeze-after read=ttl+1s", Seen: 1, Fired: 1}}
	r.Seed, r.Command, r.Result.Counters = 43, []string{"./worker", "--fenced"}, nil
}

func goldenComparisons() map[string]Comparison {
	return map[string]Comparison{
		"fixed":     comparison(lost(), fenced()),
		"broken":    comparison(fenced(), lost()),
		"same":      comparison(lost(), lost()),
		"unlike":    comparison(lost(), with(fenced(), otherRules)),
		"no-answer": comparison(lost(), short()),
		"quiet":     comparison(quiet(), quiet()),
		"hostile":   comparison(hostile(), hostile()),
		"accepted":  comparison(lost(), with(lost(), accept(Accepted{Code: "LF104", Reason: "r"}))),
	}
}

func TestCompareGolden(t *testing.T) {
	s := closed(t, "../docs/compare.schema.json")
	for name, c := range goldenComparisons() {
		for ext, write := range map[string]func(io.Writer, Comparison) error{"txt": CompareText, "json": CompareJSON} {
			var b bytes.Buffer
			if err := write(&b, c); err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", "compare", name+"."+ext), b.Bytes())
			if ext == "json" {
				validate(t, s, name, b.Bytes())
			}
			if err := write(&full{10}, c); !errors.Is(err, errFull) {
				t.Errorf("%s.%s: %v, want %v", name, ext, err, errFull)
			}
		}
	}
}

func TestTheSchemaOfComparisonsIsWhole(t *testing.T) {
	fieldsAreIn(t, "../docs/compare.schema.json", jsonComparison{})
}

func TestCompareOutcome(t *testing.T) {
	on := func(key, table string) func(*Run) {
		v := verdict("LF104", check.Proven, true, 1, "")
		v.Lock, v.Table = key, table
		return add(v)
	}
	orders := func(r *Run) { r.Result.Map = []check.MapEntry{{Lock: "lock:order:*"}} }
	unended := func(r *Run) { r.Rules, r.Injections, r.Result.Facts.EndedWhileHeld = nil, nil, 0 }
	for _, c := range []struct {
		name string
		a, b Run
		exit int
		why  string
	}{
		{"fixed", lost(), fenced(), 0, "nothing is worse in B; gone: LF104 lost-update"},
		{"fixed, and it was expected", with(lost(), expect("LF104")), fenced(), 0, "gone: LF104 lost-update"},
		{"still there", lost(), lost(), 0, "still there: LF104 lost-update"},
		{"still there, and expected now", lost(), with(lost(), expect("LF104")), 0, "still there: LF104 lost-update"},
		{"broken", fenced(), lost(), 10, "new in B: LF104 lost-update"},
		{"broken, and accepted", fenced(), with(lost(), accept(Accepted{Code: "LF104", Reason: "r"})), 0, "nothing is worse in B"},
		{"accepted no more", with(lost(), accept(Accepted{Code: "LF104", Reason: "r"})), lost(), 10, "new in B: LF104"},
		{"a new hazard", fenced(), with(fenced(), add(verdict("LF102", check.Proven, false, 1, ""))), 0, "nothing is worse in B"},
		{"a new hazard that fails", fenced(), with(fenced(), failOn("hazard"), add(verdict("LF102", check.Proven, false, 1, ""))), 10, "new in B: LF102 overlap"},
		{"on another table", with(exercisedRun(), on("a", "t")), with(exercisedRun(), on("a", "t"), on("a", "u")), 10, "new in B: LF104 lost-update on table u"},
		{"on another lock", with(exercisedRun(), on("a", "t")), with(exercisedRun(), on("b", "t")), 10, "new in B: LF104 lost-update on lock b"},
		{"on another key of one shape", with(exercisedRun(), orders, on("lock:order:1", "t")), with(exercisedRun(), orders, on("lock:order:2", "t")), 0, "still there"},
		{"proven before, likely now", lost(), with(exercisedRun(), add(verdict("LF104", check.Likely, true, 1, ""))), 11, "B came to no conclusion (exit 11)"},
		{"likely before, proven now", with(exercisedRun(), add(verdict("LF104", check.Likely, true, 1, ""))), lost(), 10, "new in B: LF104"},
		{"B exercised nothing", lost(), armed(), 11, "B came to no conclusion (exit 11): the hazard was not exercised"},
		{"B had no occasion, without rules", lost(), with(quiet(), unended), 11, "what is gone (LF104 lost-update) had no occasion in B"},
		{"B's command failed", lost(), with(fenced(), failed), 11, "B came to no conclusion (exit 12)"},
		{"new, though B's command failed", fenced(), with(lost(), failed), 10, "new in B"},
		{"A was interrupted", with(fenced(), interrupted), fenced(), 11, "A was not carried out (exit 130)"},
		{"A did not reach", with(fenced(), unreachable), fenced(), 11, "A was not carried out (exit 13)"},
		{"A's command failed", with(fenced(), failed), fenced(), 0, "nothing is worse in B"},
	} {
		if o := comparison(c.a, c.b).Outcome(); o.Exit != c.exit || !strings.Contains(o.Why, c.why) {
			t.Errorf("%s: exit %d (%s), want %d (%s)", c.name, o.Exit, o.Why, c.exit, c.why)
		}
	}
}
