package report

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

func require(texts ...string) func(*Run) {
	return func(r *Run) {
		for _, text := range texts {
			q, err := ParseRequirement(text)
			if err != nil {
				panic(err)
			}
			r.Require = append(r.Require, q)
		}
	}
}

func TestRequirements(t *testing.T) {
	for _, c := range []struct {
		name string
		run  Run
		exit int
		why  string
	}{
		{"met", with(exercisedRun(), require("lease-expired-while-held>=6")), 0, "every check held"},
		{"not met", with(exercisedRun(), require("lease-expired-while-held>=7")), 11, "required lease-expired-while-held>=7 and not met: counted 6"},
		{"one of two", with(exercisedRun(), require("grants>=321", "refusals<4210")), 11, "required refusals<4210 and not met: counted 4210"},
		{"without rules", with(quiet(), require("writes>=322")), 11, "required writes>=322 and not met: counted 321"},
		{"the one of rules stays beside another", with(armed(), require("grants>=1")), 11, "the hazard was not exercised"},
		{"one's own takes its place", with(armed(), require("lease-expired-while-held>=0")), 0, "every check held"},
		{"one's own wants none", with(exercisedRun(), require("lease-expired-while-held=0")), 11, "required lease-expired-while-held=0 and not met: counted 6"},
		{"one's own wants some", with(armed(), require("lease-expired-while-held>=0", "lease-expired-while-held>0")), 11, "the hazard was not exercised"},
		{"harm wins", with(exercisedRun(), harm, require("grants>=999")), 10, "LF104"},
		{"the command wins", with(exercisedRun(), failed, require("grants>=999")), 12, "status 3"},
	} {
		o := c.run.Outcome()
		if o.Exit != c.exit || !strings.Contains(o.Why, c.why) {
			t.Errorf("%s: exit %d (%s), want %d (%s)", c.name, o.Exit, o.Why, c.exit, c.why)
		}
	}
}

// Each name counts what it says, and nothing else.
func TestCountables(t *testing.T) {
	r := armed()
	r.Sessions = 1
	r.Result.Facts = check.Facts{Numbers: check.Numbers{Grants: 2, Refusals: 3, Sections: 4, Reads: 5, Writes: 6, Rejected: 7, EndedWhileHeld: 8, Overlap: 9}, Actors: 10,
		Locks: []check.LockFact{{Renewals: 11}}}
	r.Injections[0].Outcome, r.Injections[1].Section = "refused: no", false
	r.Injections[2].Effect = "reset"
	want := map[string]int{"resets": 1, "connections": 1, "grants": 2, "refusals": 3, "sections": 4, "reads": 5, "writes": 6, "rejected": 7, "lease-expired-while-held": 8,
		"overlaps": 9, "actors": 10, "renewals": 11, "injections": 5, "injections-in-section": 4}
	for _, c := range Countables() {
		if got := c.count(r); got != want[c.Name] {
			t.Errorf("%s: %d, want %d", c.Name, got, want[c.Name])
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("not countable: %v", want)
	}
}

func TestRequirementsCompare(t *testing.T) {
	for _, c := range []struct {
		op              string
		less, same, mor bool
	}{{">=", false, true, true}, {"<=", true, true, false}, {">", false, false, true}, {"<", true, false, false}, {"=", false, true, false}} {
		q, err := ParseRequirement("grants " + c.op + " 5")
		if err != nil || q.metBy(4) != c.less || q.metBy(5) != c.same || q.metBy(6) != c.mor {
			t.Errorf("%s: %v, %v %v %v", q, err, q.metBy(4), q.metBy(5), q.metBy(6))
		}
	}
}

func TestRequirementErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "in quotes, as a shell takes",
		"lease-expired-while-held":    "expected NAME>=N",
		"lease-expired-while-hold>=1": "the nearest is lease-expired-while-held; expected one of lease-expired-while-held, injections,",
		">=1":                         `unknown name ""`,
		"grants=>1":                   `unknown comparison "=>": expected >=, <=, >, < or =`,
		"grants>=":                    `"" is no number`,
		"grants>=-1":                  `"-1" is no number: expected a whole one that is not negative`,
		"grants>=1.5":                 `"1.5" is no number`,
	} {
		_, err := ParseRequirement(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--require") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestRequirementsOfRulesAreNamed(t *testing.T) {
	names := func(r Run) (out []string) {
		for _, q := range r.toJSONRequirements() {
			if q.Implied {
				q.Text += " implied"
			}
			out = append(out, q.Text)
		}
		return out
	}
	for _, c := range []struct {
		run  Run
		want []string
	}{
		{quiet(), nil},
		{armed(), []string{"lease-expired-while-held>=1 implied"}},
		{with(armed(), require("grants>0")), []string{"lease-expired-while-held>=1 implied", "grants>0"}},
		{with(armed(), require("lease-expired-while-held>=3")), []string{"lease-expired-while-held>=3"}},
	} {
		if got := names(c.run); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestCountablesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/exit-statuses.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Countables() {
		if !strings.Contains(string(page), "| `"+c.Name+"` | "+c.What) {
			t.Errorf("no row for %s, %s", c.Name, c.What)
		}
	}
}
