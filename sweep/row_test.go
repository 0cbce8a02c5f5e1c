package sweep

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

func outcome(happened string, codes ...string) Outcome {
	o := Outcome{Happened: happened, Exit: 11, Why: "not exercised", Reason: "why"}
	for _, c := range codes {
		o.Verdicts = append(o.Verdicts, known[c])
	}
	return o
}

var known = map[string]Verdict{
	"LF104":  {Code: "LF104", Level: "PROVEN", Class: "harm", Harm: true},
	"LF104?": {Code: "LF104", Level: "LIKELY", Class: "harm", Harm: true},
	"LF201":  {Code: "LF201", Level: "PROVEN", Class: "good"},
	"LF101":  {Code: "LF101", Level: "PROVEN", Class: "hazard"},
	"LF309":  {Code: "LF309", Level: "PROVEN", Class: "declared", Harm: true},
	"LF401":  {Code: "LF401", Level: "PROVEN", Class: "inconclusive"},
	"LF403":  {Code: "LF403", Level: "PROVEN", Class: "harm", Harm: true},
}

// of is a verdict on terms.
func of(code string, terms ...lock.TermID) Verdict {
	v := known[code]
	v.Terms = terms
	return v
}

func TestHarmOfSectionsThatOutranTheirLeaseIsBesideTheFault(t *testing.T) {
	for _, tt := range []struct {
		name     string
		verdicts []Verdict
		result   string
		codes    string
	}{
		{"of the held section", []Verdict{of("LF101", 1), of("LF104", 2, 1), of("LF403")}, Fails, "LF104 LF403"},
		{"of others, one of which was late by itself", []Verdict{of("LF101", 1), of("LF101", 7), of("LF104", 7, 8), of("LF403")}, Unclear, ""},
		{"of the held one and one that was late by itself", []Verdict{of("LF101", 7), of("LF104", 1, 7)}, Fails, "LF104"},
		{"of others that were not late", []Verdict{of("LF101", 1), of("LF104", 7, 8)}, Fails, "LF104"},
		{"of both", []Verdict{of("LF101", 1), of("LF101", 7), of("LF104", 7, 8), of("LF309", 1), of("LF403")}, Fails, "LF309 LF403"},
		{"a counter alone", []Verdict{of("LF101", 7), of("LF403")}, Fails, "LF403"},
		{"a defence of others", []Verdict{of("LF101", 7), of("LF201", 7)}, Survives, ""},
		{"a defence at the held section", []Verdict{of("LF101", 1), of("LF201", 1)}, Survives, "LF201"},
	} {
		r := NewRow(Trial{}, []Outcome{{Happened: "landed", Term: 1, Verdicts: tt.verdicts}})
		if r.Result != tt.result || strings.Join(r.Codes, " ") != tt.codes {
			t.Errorf("%s: got %+v", tt.name, r)
		}
	}
	r := NewRow(Trial{}, []Outcome{{Happened: "landed", Term: 1, Verdicts: []Verdict{of("LF101", 7), of("LF104", 7, 8), of("LF403")}}})
	if want := "LF104 LF403 of sections that outran their lease without the fault: it is short for this machine"; r.Note != want {
		t.Errorf("got %q, want %q", r.Note, want)
	}
}

func TestARowSaysWhatItsRunsCameTo(t *testing.T) {
	for _, tt := range []struct {
		name   string
		runs   []Outcome
		result string
		codes  string
		stable int
		note   string
	}{
		{"harm each time", []Outcome{outcome("landed", "LF104"), outcome("landed", "LF104")}, Fails, "LF104", 2, ""},
		{"harm once is a proof", []Outcome{outcome("landed"), outcome("landed", "LF104")}, Fails, "LF104?", 1, ""},
		{"more harm in one", []Outcome{outcome("landed", "LF309"), outcome("landed", "LF104", "LF309"), outcome("landed", "LF309")}, Fails, "LF104? LF309", 2, ""},
		{"harm beside a fault that was none", []Outcome{outcome("", "LF104")}, Fails, "LF104", 1, ""},
		{"a defence worked", []Outcome{outcome("landed", "LF101", "LF201"), outcome("landed", "LF201", "LF401")}, Survives, "LF201", 2, ""},
		{"LIKELY harm clears nothing", []Outcome{outcome("landed", "LF104?")}, Unclear, "", 1, "not exercised"},
		{"a gate that stayed shut", []Outcome{outcome("landed"), outcome("never opened")}, Shut, "", 1, "why"},
		{"a client that gave up", []Outcome{outcome("client-gave-up")}, Gone, "", 1, "why"},
		{"a command that failed", []Outcome{{Happened: "landed", Exit: 12, Why: "status 3"}}, Gone, "", 1, "status 3"},
		{"no fault", []Outcome{outcome("")}, Absent, "", 1, "why"},
		{"refused", []Outcome{outcome("refused")}, Absent, "", 1, "refused: why"},
	} {
		r := NewRow(Trial{}, tt.runs)
		if r.Result != tt.result || strings.Join(r.Codes, " ") != tt.codes || r.Stable != tt.stable || r.Of != len(tt.runs) || r.Note != tt.note {
			t.Errorf("%s: got %+v", tt.name, r)
		}
	}
	if r := NewRow(Trial{}, []Outcome{outcome("landed", "LF101")}); !slices.Equal(r.Hazards, []string{"LF101"}) {
		t.Errorf("hazards: got %v", r.Hazards)
	}
}

func TestTheWorstRowDecidesTheExit(t *testing.T) {
	for _, tt := range []struct {
		results []string
		exit    int
	}{{nil, 0}, {[]string{Survives}, 0}, {[]string{Survives, Shut}, 11}, {[]string{Gone, Fails}, 10}, {[]string{Unclear, Absent}, 11}} {
		var rows []Row
		for _, r := range tt.results {
			rows = append(rows, Row{Result: r})
		}
		if got := Exit(rows); got != tt.exit {
			t.Errorf("%v: got %d, want %d", tt.results, got, tt.exit)
		}
	}
}

func small(t *testing.T) Table {
	all := derived(t, unfenced()).Cross()
	return Table{Section: derived(t, unfenced()), Command: []string{"./service"}, Pruned: []Trial{Only(all, "before write="+DropReply)[0]}, Rows: []Row{
		NewRow(Only(all, "before write="+Short)[0], []Outcome{outcome("landed"), outcome("landed")}),
		NewRow(Only(all, "before write="+NextWrite)[0], []Outcome{outcome("landed", "LF104"), outcome("never opened")}),
		NewRow(Only(all, "before release="+NextWrite)[0], []Outcome{outcome("never opened"), outcome("never opened")}),
	}}
}

func TestTheTableInItsForms(t *testing.T) {
	table := small(t)
	for name, form := range map[string]struct {
		write func(*bytes.Buffer) error
		want  []string
	}{
		"text": {func(b *bytes.Buffer) error { return table.Text(b) }, []string{
			"section   lock:counter (lease 500ms): acquire, read counter, write counter, release; 3 of 3 went this way, by 3 processes\n",
			"anchor          fault                           result        verdicts  stable\n",
			"before write    ttl*0.5                         survives                2 of 2\n",
			"                until:lease-expired+next-write  FAILS         LF104?    1 of 2\n",
			"before release  until:lease-expired+next-write  never opened            2 of 2  why\n",
			"\n1 more were left out, as they could show nothing new (--verbose says why)\n",
			"\n3 trials: 1 FAILS, 1 survives, 1 never opened; 1 not the same each time\n",
		}},
		"markdown": {func(b *bytes.Buffer) error { return table.Markdown(b) }, []string{
			"| before write | `until:lease-expired+next-write` | FAILS | LF104? | 1 of 2 |  |\n",
			"| before write | `drop-reply` | left out | | | nothing has been answered yet that could be lost |\n",
		}},
		"json": {func(b *bytes.Buffer) error { return table.JSON(b) }, []string{
			`"schema": 1`, `"exit": 10`, `"lease_ns": 500000000`, `"rule": "write(counter)#1=until:lease-expired+next-write,max=1"`, `"stable": 1`, `"pruned": "nothing has been`,
		}},
	} {
		var b bytes.Buffer
		if err := form.write(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range form.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, b.String())
			}
		}
	}
	table.Verbose = true
	var b bytes.Buffer
	if err := table.Text(&b); err != nil || !strings.Contains(b.String(), "left out\n  before write, drop-reply: nothing has been answered yet") {
		t.Errorf("--verbose does not say what was left out:\n%s", b.String())
	}
}

func TestAnEstimateCountsWhatTheFaultsWaitFor(t *testing.T) {
	s := derived(t, unfenced())
	trials := []Trial{{Fault: Short}, {Fault: NextRead}, {Fault: DropReply}}
	if got := Estimate(trials, s, 2, time.Second); got != 2*(3*time.Second+ttl/2+ttl) {
		t.Errorf("got %s", got)
	}
}
