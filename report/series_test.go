package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

func seriesOf(runs ...Run) Series {
	s := Series{Asked: len(runs), Seed: 42, Armed: true, Command: []string{"./worker"}, Repeat: "lockfaultd run --repeat 3 -- ./worker", Files: []string{"lf-out/runs.json"}}
	for i, r := range runs {
		s.Runs = append(s.Runs, r.Saved())
		s.Folders = append(s.Folders, filepath.Join("lf-out", "run-"+string(rune('1'+i))))
	}
	return s
}

func goldenSeries() map[string]Series {
	slow := with(lost(), func(r *Run) { r.Elapsed = 12 * time.Second }, add(verdict("LF104", check.Proven, true, 1, "")))
	unread := with(quiet(), func(r *Run) { r.Result.Counters[0].Known = false })
	ended := seriesOf(lost(), with(armed(), interrupted))
	ended.Asked, ended.Interrupted = 5, true
	return map[string]Series{
		"stable":   seriesOf(lost(), slow, lost()),
		"unstable": seriesOf(short(), lost(), short(), fenced(), unread),
		"passed":   seriesOf(quiet(), quiet()),
		"ended":    ended,
		"hostile":  seriesOf(hostile(), hostile()),
		"accepted": seriesOf(lost(), with(lost(), accept(Accepted{Code: "LF104", Reason: "r"}))),
	}
}

func TestSeriesGolden(t *testing.T) {
	s := closed(t, "../docs/runs.schema.json")
	for name, of := range goldenSeries() {
		for ext, write := range map[string]func(io.Writer, Series) error{"txt": SeriesText, "json": SeriesJSON, "md": SeriesMarkdown} {
			var b bytes.Buffer
			if err := write(&b, of); err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", "series", name+"."+ext), b.Bytes())
			if strings.ContainsFunc(b.String(), func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) }) {
				t.Errorf("%s.%s is not printable", name, ext)
			}
			if ext == "json" {
				validate(t, s, name, b.Bytes())
			}
			if err := write(&full{10}, of); !errors.Is(err, errFull) {
				t.Errorf("%s.%s: %v, want %v", name, ext, err, errFull)
			}
		}
	}
}

func TestTheSchemaOfRunsIsWhole(t *testing.T) {
	fieldsAreIn(t, "../docs/runs.schema.json", jsonSeries{})
}

func TestSeriesOutcome(t *testing.T) {
	interruptedBetween := seriesOf(quiet(), with(quiet(), failed))
	interruptedBetween.Interrupted, interruptedBetween.Asked = true, 4
	none := Series{Asked: 3, Interrupted: true}
	harmFirst := seriesOf(lost())
	harmFirst.Interrupted, harmFirst.Asked = true, 4
	for _, c := range []struct {
		name   string
		series Series
		exit   int
		why    string
		stable int
	}{
		{"all passed", seriesOf(quiet(), quiet()), 0, "in 2 of 2 runs; run 1: every check held", 2},
		{"the worst decides", seriesOf(quiet(), armed(), with(quiet(), failed), lost(), lost()), 10, "in 2 of 5 runs; run 4: PROVEN harm: LF104", 2},
		{"12 over 11", seriesOf(armed(), with(quiet(), failed)), 12, "run 2: the command failed", 1},
		{"11 over 0", seriesOf(quiet(), armed()), 11, "run 2: the hazard", 1},
		{"130 over 12", seriesOf(with(quiet(), failed), with(quiet(), interrupted)), 130, "run 2: interrupted", 1},
		{"10 over 130", seriesOf(with(quiet(), interrupted), lost()), 10, "run 2: PROVEN", 1},
		{"13 over 10", seriesOf(lost(), with(quiet(), unreachable)), 13, "run 2: upstream", 1},
		{"1 over 13", seriesOf(with(quiet(), unreachable), with(quiet(), internal)), 1, "run 2: lockfaultd itself", 1},
		{"ended between two", interruptedBetween, 130, "interrupted after 2 of 4 runs", 1},
		{"ended after harm", harmFirst, 10, "run 1: PROVEN", 1},
		{"ended before any", none, 130, "interrupted after 0 of 3 runs", 0},
		{"another level is another verdict", seriesOf(lost(), with(lost(), add(verdict("LF102", check.Likely, false, 1, "")))), 10, "", 1},
		{"another count is the same", seriesOf(lost(), with(lost(), add(verdict("LF102", check.Proven, false, 1, "")))), 10, "", 2},
		{"another status is another", seriesOf(with(quiet(), failed), quiet()), 12, "", 1},
	} {
		if o := c.series.Outcome(); o.Exit != c.exit || !strings.Contains(o.Why, c.why) || c.series.Stable() != c.stable {
			t.Errorf("%s: exit %d (%s), stable %d", c.name, o.Exit, o.Why, c.series.Stable())
		}
	}
}

func TestNumbers(t *testing.T) {
	for want, runs := range map[string][]int{"run 3": {3}, "runs 1, 2": {1, 2}, "runs 2 to 5": {2, 3, 4, 5}, "runs 1, 3, 4": {1, 3, 4}} {
		if got := numbers(runs); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What is read of report.json is what was saved of the run.
func TestSavedReadsBack(t *testing.T) {
	for name, r := range goldenRuns() {
		var b bytes.Buffer
		if err := JSON(&b, r); err != nil {
			t.Fatal(err)
		}
		s, err := ReadSaved(&b)
		if err != nil || s.Exit() != r.Outcome().Exit || !slices.Equal(s.figures(), r.Saved().figures()) || !slices.Equal(s.verdicts(), r.Saved().verdicts()) {
			t.Errorf("%s: %v, %+v", name, err, s)
		}
	}
	for text, want := range map[string]string{`{"schema": 2}`: "its schema is 2, expected 1", `{`: "read report", `{}`: "its schema is 0"} {
		if _, err := ReadSaved(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestJUnitOfASeries(t *testing.T) {
	var b bytes.Buffer
	if err := JUnitSeries(&b, []Suite{lost().Suite(1), quiet().Suite(2)}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Suites) != 2 || got.Suites[1].Name != "lockfaultd run 2" || got.Tests != got.Suites[0].Tests+got.Suites[1].Tests || got.Failures != got.Suites[0].Failures || got.Failures == 0 {
		t.Errorf("%+v", got)
	}
}
