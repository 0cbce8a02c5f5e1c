package report

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

func summaryOf(t *testing.T, r Run) string {
	t.Helper()
	var b strings.Builder
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestWordsOfTheSummary(t *testing.T) {
	unattributed := func(n int) func(*Run) { return func(r *Run) { r.Result.Facts.Unattributed = n } }
	for _, c := range []struct {
		name string
		run  Run
		says string
		not  string
	}{
		{"one write", with(quiet(), unattributed(1)), "1 write to these tables belongs to", " belong to"},
		{"writes", with(quiet(), unattributed(2)), "2 writes to these tables belong to", " belongs to"},
		{"harm that needed no lease's end", with(armed(), harm), "the harm below came of something else", "The hazard was not exercised."},
		{"nothing exercised", armed(), "The hazard was not exercised.", "came of something else"},
		{"harm not proven", with(armed(), add(verdict("LF104", check.Likely, true, 1, ""))), "The hazard was not exercised.", "came of something else"},
		{"a hazard that was proven", with(armed(), add(verdict("LF107", check.Proven, false, 1, ""))), "The hazard was not exercised.", "came of something else"},
		{"exercised", with(exercisedRun(), harm), "leases ended while held", "came of something else"},
		{"of a history", with(exercisedRun(), unseen), "fired 6, landed inside a section 6; how often it was seen is not in the history", "seen 6"},
	} {
		if got := summaryOf(t, c.run); !strings.Contains(got, c.says) || strings.Contains(got, c.not) {
			t.Errorf("%s: want %q and not %q in\n%s", c.name, c.says, c.not, got)
		}
	}
}

// unseen is as a history tells of a rule: what fired, and not what it matched.
func unseen(r *Run) { r.Rules[0].Seen = 0 }

func TestJSONSeen(t *testing.T) {
	for want, r := range map[string]Run{"6": exercisedRun(), "null": with(exercisedRun(), unseen)} {
		var b strings.Builder
		var got struct {
			Rules []struct {
				Seen json.RawMessage `json:"seen"`
			} `json:"rules"`
		}
		if err := errors.Join(JSON(&b, r), json.Unmarshal([]byte(b.String()), &got)); err != nil {
			t.Fatal(err)
		}
		if string(got.Rules[0].Seen) != want {
			t.Errorf("seen is %s, want %s", got.Rules[0].Seen, want)
		}
	}
}
