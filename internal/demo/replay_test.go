package main

import (
	"fmt"
	"os"
	"testing"
)

// ran leaves the files of a run.
func ran(t *testing.T, schedule, verdicts string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"schedule.json": schedule, "report.json": fmt.Sprintf(`{"why": "so it is", "verdicts": [%s]}`, verdicts)} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestARunThatIsAnotherIsTold(t *testing.T) {
	const lost = `{"code": "LF104", "level": "PROVEN", "class": "harm", "harm": true, "count": 1}`
	late := func(n int) string {
		return fmt.Sprintf(`{"code": "LF101", "level": "PROVEN", "class": "hazard", "count": %d}`, n)
	}
	first := ran(t, "steps", lost+","+late(1))
	for _, tt := range []struct {
		name      string
		dir       string
		wrong     string
		disturbed bool
	}{
		{"the same", ran(t, "steps", late(1)+","+lost), "", false},
		{"the same, and others were late", ran(t, "steps", late(3)+","+lost), "", false},
		{"another schedule", ran(t, "step", lost+","+late(3)), "another schedule: so it is", false},
		{"other verdicts", ran(t, "steps", late(1)), "expected LF104, got : so it is", false},
		{"other verdicts, and others were late", ran(t, "steps", late(2)), "expected LF104, got : so it is", true},
	} {
		wrong, disturbed, err := differ(first, tt.dir, "LF104")
		if err != nil || wrong != tt.wrong || disturbed != tt.disturbed {
			t.Errorf("%s: got %q, %t, %v", tt.name, wrong, disturbed, err)
		}
	}
}
