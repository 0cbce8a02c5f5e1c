package report

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

func commands(t *testing.T, r Run) []string {
	t.Helper()
	var b strings.Builder
	if err := GitHub(&b, r.Annotations(), 1); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func TestAnnotationsOfEveryRun(t *testing.T) {
	for name, r := range goldenRuns() {
		var b bytes.Buffer
		if err := GitHub(&b, r.Annotations(), 1); err != nil {
			t.Fatal(err)
		}
		compare(t, filepath.Join("testdata", name+".github"), b.Bytes())
	}
}

// Whatever the names, each annotation is one command, and is no other.
func TestAnnotationsAreOneCommandEach(t *testing.T) {
	for name, r := range goldenRuns() {
		if exit := r.Outcome().Exit; exit != 0 && len(r.Annotations()) == 0 {
			t.Errorf("%s: exit %d without a word", name, exit)
		}
		for _, line := range commands(t, r) {
			kind, rest, _ := strings.Cut(strings.TrimPrefix(line, "::"), " title=")
			title, _, ended := strings.Cut(rest, "::")
			switch {
			case line == "" && len(r.Annotations()) == 0:
			case kind != "error" && kind != "warning", !ended, strings.ContainsAny(title, ":,\r"), strings.Contains(line, "\r"), !utf8.ValidString(line):
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

func TestAnnotationsAreEscaped(t *testing.T) {
	a := Annotation{Title: "100%: a,b\nc", Message: "50%\r\n::error::x, y: z"}
	if got, want := a.command(1), `::error title=100%25%3A a%2Cb%0Ac::50%25\r%0A::error::x, y: z`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := (Annotation{Message: strings.Repeat("é", 1000)}).command(1); len(got) > longestMessage+len("::error title=::") || !strings.HasSuffix(got, "é ...") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// There is one annotation for each cause, and none for what follows from it.
func TestAnnotationsAreOfRootCauses(t *testing.T) {
	onTable := func(code, key, table string, train int) check.Verdict {
		v := verdict(code, check.Proven, true, 1, "")
		v.Lock, v.Table, v.Train = key, table, train
		return v
	}
	short := verdict("LF403", check.Proven, true, 6, "")
	ahead := func(r *Run) { r.Result.Counters[0].NetDeficit = -6 }
	mapped := func(r *Run) { r.Result.Map = []check.MapEntry{{Lock: "lock:order:*"}} }
	for _, c := range []struct {
		name string
		run  Run
		want []string
	}{
		{"six of one", lost(), []string{"error LF104 lost-update x6"}},
		{"a short counter is told with what was lost", with(lost(), add(short)), []string{"error LF104 lost-update x6"}},
		{"a counter that ran ahead is not", with(lost(), add(short), ahead), []string{"error LF104 lost-update x6", "error LF403 counter-mismatch x1"}},
		{"a short counter alone", with(exercisedRun(), add(short)), []string{"error LF403 counter-mismatch x1"}},
		{"a short counter beside a likely loss", with(exercisedRun(), add(short, verdict("LF104", check.Likely, true, 1, ""))),
			[]string{"error LF403 counter-mismatch x1", "warning LF104 lost-update x1"}},
		{"two tables", with(exercisedRun(), add(onTable("LF104", "a", "t", 0), onTable("LF104", "a", "u", 0))), []string{"error LF104 lost-update x1", "error LF104 lost-update x1"}},
		{"keys of one shape", with(exercisedRun(), mapped, add(onTable("LF104", "lock:order:1", "t", 0), onTable("LF104", "lock:order:2", "t", 0))), []string{"error LF104 lost-update x2"}},
		{"a train", with(exercisedRun(), add(onTable("LF301", "a", "", 0), onTable("LF305", "a", "", 1))), []string{"error LF301 unsafe-release x1"}},
		{"a train alone", with(exercisedRun(), add(onTable("LF305", "a", "", 1))), []string{"error LF305 double-grant x1"}},
		{"accepted", with(lost(), accept(Accepted{Code: "LF104", Reason: "r"})), nil},
		{"accepted in vain", with(quiet(), accept(Accepted{Code: "LF104", Reason: "r", Line: 3})), []string{"warning lockfaultd --accept x0"}},
		{"expected", with(lost(), expect("LF104")), nil},
		{"expected, and likely only", with(exercisedRun(), expect("LF104"), add(verdict("LF104", check.Likely, true, 1, ""))), []string{"warning lockfaultd: inconclusive x0"}},
		{"a hazard", with(exercisedRun(), add(verdict("LF102", check.Proven, false, 1, ""))), nil},
		{"a hazard that is to fail", with(exercisedRun(), failOn("hazard"), add(verdict("LF102", check.Proven, false, 1, ""))), []string{"error LF102 overlap x1"}},
		{"not found, and the command", with(exercisedRun(), expect("LF301"), failed), []string{"error lockfaultd: expected and not found x0", "error lockfaultd: the command failed x0"}},
		{"a blind spot that is to fail", with(exercisedRun(), failOn("LF402"), func(r *Run) { r.Blind = []string{"desync: 2 connections"} }), []string{"error LF402 blind-spot x1"}},
		{"not exercised, and to fail", with(armed(), failOn("LF401")), []string{"error LF401 not-exercised x0"}},
		{"not exercised", armed(), []string{"warning lockfaultd: inconclusive x0"}},
		{"cut short", with(lost(), interrupted), []string{"error LF104 lost-update x6", "warning lockfaultd: interrupted x0"}},
	} {
		var got []string
		for _, a := range c.run.Annotations() {
			kind := "error"
			if a.Warning {
				kind = "warning"
			}
			got = append(got, fmt.Sprintf("%s %s x%d", kind, a.Title, a.times))
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnnotationsAreTenAtMost(t *testing.T) {
	r := exercisedRun()
	for i := range 12 {
		v := verdict("LF104", check.Proven, true, 1, "")
		v.Table = fmt.Sprint("t", i)
		r.Result.Verdicts = append(r.Result.Verdicts, v)
	}
	lines := commands(t, r)
	if len(lines) != 10 || lines[9] != "::error title=lockfaultd::and 3 more: the whole is in the summary" || !strings.Contains(lines[8], "table t8") {
		t.Errorf("%q", lines)
	}
	r.Result.Verdicts = r.Result.Verdicts[:10]
	if lines := commands(t, r); len(lines) != 10 || !strings.Contains(lines[9], "table t9") {
		t.Errorf("%q", lines)
	}
}

func TestAnnotationsOfSeveralRuns(t *testing.T) {
	var b strings.Builder
	if err := GitHub(&b, Merged(armed().Annotations(), lost().Annotations(), lost().Annotations()), 3); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "::error title=LF104 lost-update::in 2 of 3 runs: x6, PROVEN harm on lock:counter, table counter. Let T1") ||
		!strings.HasPrefix(lines[1], "::warning title=lockfaultd%3A inconclusive::in 1 of 3 runs: ") {
		t.Errorf("%q", lines)
	}
}

func TestStepSummaryFits(t *testing.T) {
	page := []byte(strings.Repeat("0123456789 äöü\n", 100))
	for room := 0; room < len(page)+10; room += 7 {
		var b bytes.Buffer
		if err := StepSummary(&b, page, room, "out/report.json"); err != nil {
			t.Fatal(err)
		}
		got := b.String()
		switch {
		case room >= len(page):
			if got != string(page) {
				t.Fatalf("room %d: changed", room)
			}
		case len(got) > room || !utf8.ValidString(got):
			t.Fatalf("room %d: %d bytes", room, len(got))
		case room > 200:
			kept := strings.Count(got, "0123456789 äöü\n")
			if want := fmt.Sprintf("\n**Truncated**: %d of 100 lines are shown, as GitHub takes 1024 KiB of a step at most. The whole is in out/report.json.\n", kept); !strings.HasSuffix(got, want) {
				t.Fatalf("room %d: %q", room, got)
			}
		}
	}
}

// A page that is cut within a diagram leaves that out as a whole: what follows would be in it.
func TestStepSummaryEndsNoDiagram(t *testing.T) {
	var whole bytes.Buffer
	if err := Markdown(&whole, pictured(integer)); err != nil {
		t.Fatal(err)
	}
	for room := 300; room < whole.Len(); room += 11 {
		var b bytes.Buffer
		if err := StepSummary(&b, whole.Bytes(), room, "x"); err != nil {
			t.Fatal(err)
		}
		if strings.Count(b.String(), "\n```")%2 != 0 {
			t.Fatalf("room %d:\n%s", room, b.String())
		}
	}
}
