package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The runs of the golden files, one for each thing that a report can say.
func goldenRuns() map[string]Run {
	failing := with(lost(), failed, expect("LF309"))
	failing.Blind = []string{"redis: 2 scripts whose text was never seen"}
	failing.Gaps = 1
	none := quiet()
	none.Result = check.Result{}
	return map[string]Run{
		"quiet":               quiet(),
		"nothing":             none,
		"lost":                lost(),
		"fenced":              fenced(),
		"short":               short(),
		"unmatched":           unmatched(),
		"expected":            with(lost(), expect("LF104")),
		"hazard":              with(lost(), func(r *Run) { r.Result.Verdicts = r.Result.Verdicts[:1] }, failOn("hazard")),
		"fences":              fenceFigures(),
		"doubts":              doubts(),
		"consequence":         with(lost(), expect("LF104"), add(verdict("LF403", check.Proven, true, 6, "321 were acknowledged and the counter rose by 315."))),
		"not-exercised-fails": with(armed(), failOn("LF401")),
		"likely":              with(exercisedRun(), add(verdict("LF104", check.Likely, true, 1, lostProof))),
		"failing":             failing,
		"unreachable":         with(quiet(), unreachable),
		"interrupted":         with(armed(), interrupted),
		"hostile":             hostile(),
		"baseline":            with(exercisedRun(), calm),
		"soiled":              with(lost(), calm, citing("LF104", check.Proven, true, 3)),
		"required":            with(exercisedRun(), require("lease-expired-while-held>=6", "grants>=1000")),
		"unproven":            unprovenRun(),
		"mapped":              mapped(),
		"either":              eitherRun(),
		"accepted":            with(lost(), accept(Accepted{Code: "LF104", Lock: "lock:*", Reason: "known | since spring"}, Accepted{Code: "LF304", Lock: "x", Reason: "r"})),
	}
}

// unprovenRun named no counter, and the writes that came late say nothing of
// what they were computed from.
func unprovenRun() Run {
	return with(exercisedRun(), func(r *Run) {
		r.Result.Counters, r.Watching = nil, true
		r.Result.Facts.Tables[0].Numbers, r.Result.Facts.Tables[0].Where = []string{"value"}, "id = ..."
		r.Result.Facts.Unproven = []check.Unproven{
			{Table: "counter", Column: "value", Where: "id = ...", Writes: 6, Number: true},
			{Table: "jobs", Column: "state", Where: "id = ...", Writes: 1},
		}
	}, add(verdict("LF103", check.Proven, false, 6, "A's write was accepted.")))
}

// eitherRun is of a service with several tasks to a process: no write is one section's for sure.
func eitherRun() Run {
	return with(exercisedRun(), func(r *Run) {
		r.Result.Counters, r.Result.Facts.Writes, r.Result.Facts.Unattributed = nil, 0, 641
		r.Result.Facts.Tables = []check.TableFact{{Table: "orders", Columns: []string{"total"}, Numbers: []string{"total"}, Where: "id = ...", Perhaps: 641}}
		r.Result.Facts.Either = []check.EitherFact{{Table: "orders", Writes: 32}}
		r.Result.Map = []check.MapEntry{{Lock: "lock:order:*", Keys: 4, Guards: []check.Guarded{
			{Table: "orders", Columns: []string{"total"}, Where: "id = ...", Rows: 4, Nobodys: 641, Perhaps: 641, Sure: 0.6},
		}}}
		r.Result.Verdicts = append(r.Result.Verdicts, check.Verdict{Code: "LF402", Class: check.Inconclusive, Level: check.Proven, Table: "orders", Count: 32,
			Proof: "32 writes may be of several sections."})
	})
}

// doubts is a run of which hardly anything is sure.
func doubts() Run {
	r := with(exercisedRun(), expect("LF102"), add(
		verdict("LF102", check.Likely, false, 1, "A1 and A2 may both have been in their section."),
		verdict("LF305", check.Proven, false, 1, "Grant 4 was given while grant 3 was live."),
		verdict("LF104", check.Possible, true, 1, ""),
	))
	blind := check.Verdict{Code: "LF402", Class: check.Inconclusive, Level: check.Proven, Count: 3, Proof: "3 writes belong to no section."}
	onTable := blind
	onTable.Table = "counter"
	r.Result.Verdicts = append(r.Result.Verdicts, blind, onTable)
	r.Result.Counters = []check.Counter{
		{Table: "counter", Column: "value", Acknowledged: 7, Unknown: 2, Unbounded: true, Epochs: 1},
		{Query: "SELECT 1", Acknowledged: 7}, {Name: "orders"},
		{Name: "parcels", Unbounded: true, GivenUp: "its writes are of several rows"},
	}
	r.Result.Risings = []check.Rising{{Table: "offsets", Column: "last", Start: 3, End: 5, Highest: 9, Falls: 1, Known: true}, {Query: "SELECT max(id) FROM t"}}
	r.Result.Fences = []check.FenceFigure{{Query: "SELECT fence FROM counter", Table: "counter", Column: "fence"},
		{Name: "epoch", Table: "ledger", Column: "epoch"}}
	f := &r.Result.Facts
	f.Unattributed, f.Unsettled = 3, 1
	f.Limits = []check.Limit{{What: "terms that went on for longer than the judge keeps ops", N: 2}}
	f.Locks = []check.LockFact{lockOf("mixed", 2, 0, time.Second), lockOf("two", 2, time.Second, 90*time.Second),
		lockOf("none", 2, 0), lockOf("unheard", 0), {Lock: "once", Grants: 1, Marker: true}}
	f.Tables = []check.TableFact{{Table: "bare", Reads: 1}}
	r.Started, r.Elapsed = time.Time{}, 0
	r.Injections[0].Outcome, r.Injections[1].Outcome, r.Injections[2].Outcome = "cut short", "refused", "client-gave-up"
	r.Rules[0].Barred = []Count{{"cooldown", 3}}
	return r
}

// fenceFigures has a fence that fell, and figures of an invariant and of a
// column that was learned.
func fenceFigures() Run {
	return with(fenced(), add(verdict("LF105", check.Proven, true, 1, "Fence 3 was accepted after fence 4.")), func(r *Run) {
		r.Result.Facts.Locks[0].Fences, r.Result.Facts.Locks[0].FenceKey = 321, "fence:counter"
		r.Result.Risings = []check.Rising{{Table: "offsets", Column: "last", Highest: 5, Known: true}}
		r.Result.Counters = append(r.Result.Counters, check.Counter{Name: "parcels", GivenUp: "its writes are of several rows"})
		r.Result.Facts.Limits = []check.Limit{{What: "terms that went on for longer than the judge keeps ops", N: 2}}
		r.Result.Facts.Tables[0].Fence = "fence"
		r.Result.Fences = []check.FenceFigure{
			{Name: "fence", Query: "SELECT fence FROM counter WHERE id = 1", Table: "counter", Column: "fence",
				Accepted: 315, Rejected: 6, Lowest: 1, Highest: 321, Regressions: 1, End: 321, Known: true},
			{Table: "ledger", Column: "epoch", Accepted: 2, Lowest: 1, Highest: 2},
		}
	})
}

// unmatched has a rule for each reason for which one may do nothing.
func unmatched() Run {
	r := with(short(), func(r *Run) {
		r.Rules = []RuleUse{
			{Text: "--stall-after SETNX(lock:conter)=800ms", Nearest: []Count{{"SETNX(lock:counter)", 321}, {"EVAL(lock:counter)", 321}}},
			{Text: "--freeze-before write(nothing)=800ms"},
			{Text: "--freeze-before write(counter)=800ms", Seen: 2, Barred: []Count{{"max-frozen", 1}, {"cooldown", 1}}},
			{Text: "--freeze-before write(counter)#400=800ms", Seen: 321, Could: 321},
			{Text: "--freeze-after acquire=800ms,name=other-host", Name: "other-host", Seen: 2, Could: 2, Fired: 2},
			{Text: "--stall-after release=800ms", Seen: 1, Could: 1, Fired: 1},
			{Text: "--stall-after fence=800ms", Seen: 1, Could: 1, Fired: 1},
			{Text: "--stall-after renew=800ms", Seen: 1, Could: 1, Fired: 1},
		}
		r.Injections = nil
	})
	for i, rule := range []int{4, 4, 5, 6} {
		j := injection(uint64(i+1), r.Rules[rule].Text, 100*ms, false)
		j.Name = r.Rules[rule].Name
		r.Injections = append(r.Injections, j)
	}
	r.Injections[0].Outcome, r.Injections[1].Outcome = "refused: no process here owns the socket", "refused: no process here owns the socket"
	r.Injections[2].Outcome = "client-gave-up"
	return r
}

func TestGolden(t *testing.T) {
	for name, r := range goldenRuns() {
		for ext, write := range map[string]func(io.Writer, Run) error{"txt": Text, "json": JSON, "xml": JUnit, "md": Markdown} {
			t.Run(name+"."+ext, func(t *testing.T) {
				var b bytes.Buffer
				if err := write(&b, r); err != nil {
					t.Fatal(err)
				}
				compare(t, filepath.Join("testdata", name+"."+ext), b.Bytes())
			})
		}
	}
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// However hostile the names, the summary is printable lines of at most 100
// columns, save for commands to be copied.
func TestTextFitsATerminal(t *testing.T) {
	for name, r := range goldenRuns() {
		for _, line := range strings.Split(text(t, r), "\n") {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
			if strings.ContainsFunc(line, func(c rune) bool { return !unicode.IsPrint(c) }) {
				t.Errorf("%s: not printable: %q", name, line)
			}
		}
	}
}

func text(t *testing.T, r Run) string {
	t.Helper()
	var b strings.Builder
	if err := Text(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextSaysWhatMatters(t *testing.T) {
	for _, c := range []struct {
		name string
		run  Run
		want []string
	}{
		{"lost", lost(), []string{"FAIL (exit 10)", "PROVEN harm: LF104 lost-update x6", "6 of 321 leases ended while held",
			"6 of 6 injections landed inside a section", "net deficit 6", "12 acknowledged writes overwritten", "and 1 more", "prove nothing", "42", "lf-out/report.json"}},
		{"not exercised", short(), []string{"INCONCLUSIVE (exit 11)", "The hazard was not exercised",
			"shorter than the lease of 2s", "LF401 not-exercised"}},
		{"watching", quiet(), []string{"PASS (exit 0)", "lock:counter", "lease 500ms", "counter (value, fence)",
			"--freeze-before 'write(counter)#*/20=ttl+300ms'"}},
		{"reasons", unmatched(), []string{"nearest events seen: SETNX(lock:counter) (321 times)", "no event like it was seen",
			"barred each time: max-frozen (once), cooldown (once)", "never at the ordinal", "refused: not freezable: no process here owns the socket",
			"gave up on its request", "none inside a section", "the record does not say"}},
		{"rules of a history", with(lost(), func(r *Run) { r.Rules[0].Seen = 0 }), []string{"ttl+300ms fired 6, landed inside a section 6"}},
		{"command behind harm", with(lost(), failed), []string{"the command itself ended with status 3"}},
		{"interrupted behind harm", with(lost(), interrupted), []string{"FAIL (exit 10)", "the run was interrupted before its end"}},
		{"time was up behind harm", with(lost(), func(r *Run) { r.TimedOut = true }), []string{"FAIL (exit 10)", "ended when its time was up (its status: 0)"}},
		{"gates behind harm", with(lost(), func(r *Run) {
			r.Injections[0].Outcome, r.Injections[0].Reason = "never opened", "no contender"
		}), []string{"1 gate never opened: no contender"}},
		{"missing behind harm", with(lost(), expect("LF309")), []string{"expected and not found: LF309 fence-inversion"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(strings.Fields(text(t, c.run)), " ")
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in:\n%s", want, got)
				}
			}
		})
	}
}

// The reason why pauses inside sections ended no lease.
func TestWhyHarmless(t *testing.T) {
	renewed := func(r *Run) { r.Result.Facts.Locks[0].Renewals = 7 }
	each := func(change func(i int, r *Run)) func(*Run) {
		return func(r *Run) {
			for i := range r.Injections {
				change(i, r)
			}
		}
	}
	stalls := each(func(i int, r *Run) { r.Injections[i].Effect = "stall" })
	cut := each(func(i int, r *Run) { r.Injections[i].Outcome, r.Injections[i].Reason = "cut short", "max-freeze" })
	unreleased := func(r *Run) { r.Result.Facts.Sections = 319 }
	barred := func(r *Run) {
		r.Rules[0].Seen, r.Rules[0].Could, r.Rules[0].Fired, r.Injections = 221, 3, 0, nil
		r.Rules[0].Barred = []Count{{"ttl unknown", 218}}
	}
	leaseless := func(r *Run) {
		barred(r)
		r.Rules[0].Could, r.Rules[0].Barred = 0, []Count{{"no lease", 221}}
	}
	shutBy := func(why string) func(*Run) {
		return func(r *Run) {
			barred(r)
			r.Rules[0].Barred = []Count{{why, 2}, {"max", 1}}
		}
	}
	gate := each(func(i int, r *Run) {
		r.Injections[i].Outcome, r.Injections[i].Reason = "never opened", "waited in vain for lease-expired: renewed by heartbeat: 3 times, last on connection 2"
	})
	reason := each(func(i int, r *Run) { r.Injections[i].Reason = "no contender" })
	brief := each(func(i int, r *Run) { r.Injections[i].Ended = r.Injections[i].Confirmed + 30*ms })
	for _, c := range []struct {
		name string
		run  Run
		want string
	}{
		{"shorter", short(), "6 pauses landed inside a section, the longest of 800ms: shorter than the lease of 2s"},
		{"ended early", with(armed(), brief), "the longest of 30ms: shorter than the lease of 500ms"},
		{"heartbeat under a stall", with(armed(), renewed, stalls), "freeze the process instead"},
		{"heartbeat under a freeze", with(armed(), renewed), "the lease was renewed (7 renewals)"},
		{"cut short", with(armed(), cut), "6 of them ended early: max-freeze"},
		{"reason", with(armed(), reason), "inside a section: no contender"},
		{"none", armed(), "asked for the release before the lease ended"},
		{"killed", with(armed(), unreleased), "of 321 leases 2 were not released"},
		{"no lease", with(armed(), leaseless), "barred each time: no lease (221 times) (the lock of these events has no lease: it is there until"},
		{"given back", with(armed(), shutBy("given back")), "given back (2 times), max (once) (the lock of these events had been given back"},
		{"timeout", with(armed(), shutBy("timeout")), "timeout (2 times), max (once) (the gate's timeout is over before the lease"},
		{"a gate and a heartbeat", with(armed(), renewed, stalls, gate), "inside a section; 6 gates never opened: waited in vain for lease-expired: renewed by heartbeat: 3 times, last on connection 2"},
		{"barred", with(armed(), barred), "barred: ttl unknown (218 times) (the events belonged to no open term with a known lease); of 3 events at which it could"},
	} {
		o := c.run.Outcome()
		if len(o.Reasons) != 1 || !strings.Contains(o.Reasons[0], c.want) {
			t.Errorf("%s: %q, want %q", c.name, o.Reasons, c.want)
		}
	}
}

func TestJSONCounts(t *testing.T) {
	var got struct {
		Schema, Exit int
		Counter      struct {
			Acknowledged, Change int64
			Net_deficit          *int64
		}
		Verdicts []struct {
			Code, Level, Class string
			Count, Victims     int
		}
		Facts struct {
			Started  string
			Overlaps []struct {
				From_ns int64
				To_ns   *int64
				From    string
			}
		}
	}
	r := with(lost(), add(verdict("LF201", check.Proven, false, 3, ""), verdict("LF201", check.Proven, false, 0, ""),
		verdict("LF403", check.Proven, true, 6, ""), verdict("LF301", check.Proven, true, 5, "")))
	var b bytes.Buffer
	if err := errors.Join(JSON(&b, r), json.Unmarshal(b.Bytes(), &got)); err != nil {
		t.Fatal(err)
	}
	if got.Schema != 1 || got.Exit != 10 || got.Counter.Acknowledged != 321 || got.Counter.Change != 315 || *got.Counter.Net_deficit != 6 {
		t.Errorf("got %+v", got)
	}
	want := map[string][2]int{"LF104": {6, 12}, "LF102": {2, 0}, "LF201": {4, 0}, "LF101": {6, 0}, "LF403": {1, 0}, "LF301": {5, 0}}
	for _, v := range got.Verdicts {
		if want[v.Code] != [2]int{v.Count, v.Victims} {
			t.Errorf("%s: count %d, victims %d, want %v", v.Code, v.Count, v.Victims, want[v.Code])
		}
		delete(want, v.Code)
	}
	if len(want) > 0 {
		t.Errorf("missing %v", want)
	}
	o := got.Facts.Overlaps
	if len(o) != 2 || o[0].From_ns != int64(650*ms) || *o[0].To_ns != int64(905*ms) || o[1].To_ns != nil {
		t.Errorf("overlaps %+v", o)
	}
	if want := r.Started.Add(650 * time.Millisecond).Format(time.RFC3339Nano); o[0].From != want {
		t.Errorf("overlap from %s, want %s", o[0].From, want)
	}
}

// A figure that is not known is null: a zero would be a figure.
func TestJSONUnknownCounter(t *testing.T) {
	r := quiet()
	r.Result.Counters[0].Known = false
	var b strings.Builder
	if err := JSON(&b, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `"net_deficit": null`) {
		t.Error("net_deficit is not null")
	}
}

func TestJUnitParsesBack(t *testing.T) {
	for name, r := range goldenRuns() {
		var b bytes.Buffer
		if err := JUnit(&b, r); err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(b.Bytes()) {
			t.Errorf("%s: not UTF-8", name)
		}
		var s junitSuite
		if err := xml.Unmarshal(b.Bytes(), &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkSuite(t, name, r, s)
	}
}

func checkSuite(t *testing.T, name string, r Run, s junitSuite) {
	t.Helper()
	failures, errs, skipped := 0, 0, 0
	names := map[string]bool{}
	for _, c := range s.Cases {
		if names[c.Class+"/"+c.Name] {
			t.Errorf("%s: %s %s is there twice", name, c.Class, c.Name)
		}
		names[c.Class+"/"+c.Name] = true
		for _, n := range []*junitNote{c.Failure, c.Error, c.Skipped} {
			if n != nil && (n.Message == "" || !strings.HasPrefix(n.Body, n.Message)) {
				t.Errorf("%s: %s %s: message %q, body %q", name, c.Class, c.Name, n.Message, n.Body)
			}
		}
		failures, errs, skipped = failures+one(c.Failure != nil), errs+one(c.Error != nil), skipped+one(c.Skipped != nil)
	}
	if s.Tests != len(s.Cases) || s.Failures != failures || s.Errors != errs || s.Skipped != skipped {
		t.Errorf("%s: totals %d %d %d %d, counted %d %d %d %d", name, s.Tests, s.Failures, s.Errors, s.Skipped, len(s.Cases), failures, errs, skipped)
	}
	switch exit := r.Outcome().Exit; {
	case exit == 0 && failures+errs > 0:
		t.Errorf("%s: exit 0 with %d failures and %d errors", name, failures, errs)
	case exit == 11 && (failures+errs > 0 || skipped == 0):
		t.Errorf("%s: exit 11 with %d failures, %d errors, %d skipped", name, failures, errs, skipped)
	case exit != 0 && exit != 11 && failures+errs == 0:
		t.Errorf("%s: exit %d without a failure", name, exit)
	}
}

// Without injections the same verdicts are reported: they come from the judge.
func TestInjectionsChangeNoVerdict(t *testing.T) {
	with, without := lost(), lost()
	without.Injections = nil
	a, b := groups(with), groups(without)
	for i := range a {
		if a[i].Code != b[i].Code || a[i].Count != b[i].Count || a[i].Level != b[i].Level {
			t.Errorf("%+v became %+v", a[i], b[i])
		}
	}
}

type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

var errFull = errors.New("disk full")

func TestWritersReturnTheFirstError(t *testing.T) {
	for name, write := range map[string]func(io.Writer, Run) error{"text": Text, "json": JSON, "junit": JUnit, "markdown": Markdown} {
		if err := write(&full{10}, lost()); !errors.Is(err, errFull) {
			t.Errorf("%s: %v, want %v", name, err, errFull)
		}
	}
}

// A lock for each order must not make a file, or a summary, that nobody reads.
func TestManyLocks(t *testing.T) {
	r := quiet()
	for i := range 500 {
		r.Result.Facts.Locks = append(r.Result.Facts.Locks, lockOf("order:"+strings.Repeat("x", i), 1, time.Second))
	}
	r.Result.Verdicts = []check.Verdict{verdict("LF103", check.Proven, false, 1, "")}
	r.Result.Verdicts[0].Lock = "zebra"
	names := map[string]bool{}
	for _, c := range suite(r).Cases {
		names[c.Class] = true
	}
	if !names["lockfaultd.zebra"] {
		t.Error("the lock with a verdict has no case")
	}
	if len(names) > junitLocks+3 {
		t.Errorf("%d classes", len(names))
	}
	if got := text(t, r); !strings.Contains(got, "and 493 more") {
		t.Errorf("the summary does not count the locks that it leaves out:\n%s", got)
	}
}

// The page that people are sent to has a row for every status.
func TestExitStatusesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/exit-statuses.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, exit := range []int{exitHeld, exitInternal, 2, exitHarm, exitInconclusive, exitCommand, exitUnreachable, exitInterrupted} {
		if !strings.Contains(string(page), fmt.Sprintf("\n| %d |", exit)) {
			t.Errorf("no row for %d", exit)
		}
	}
}

// The page on report.json names every field of it.
func TestReportFieldsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/reading-a-report.md")
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	var b bytes.Buffer
	if err := errors.Join(JSON(&b, fenceFigures()), json.Unmarshal(b.Bytes(), &fields)); err != nil {
		t.Fatal(err)
	}
	for _, part := range []any{fields, fields["facts"], fields["counter"], fields["injections"], fields["command"],
		fields["verdicts"].([]any)[0], fields["rules"].([]any)[0], fields["fences"].([]any)[0], fields["monotone"].([]any)[0]} {
		for name := range part.(map[string]any) {
			if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+name+"[]`") {
				t.Errorf("%s is not explained", name)
			}
		}
	}
}
