package main

import (
	"os"
	"strings"
	"testing"
)

func TestDocsHaveWhatGatesComeTo(t *testing.T) {
	doc, err := os.ReadFile("../../docs/gates.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	writeGates(&want)
	if !strings.Contains(string(doc), want.String()) {
		t.Errorf("docs/gates.md has not the table that `go run ./internal/demo gates -markdown` prints:\n%s", want.String())
	}
}

// proven returns a report with these codes, each with a proof about op 7, which was held.
func proven(codes ...string) report {
	r := report{Injections: injections{List: []injection{{Op: 7}}}}
	for _, c := range codes {
		class := map[string]string{"LF101": "hazard", "LF201": "good"}[c]
		r.Verdicts = append(r.Verdicts, verdict{Code: c, Level: "PROVEN", Class: class, Harm: class == "", Count: 1, Proofs: []string{"However A's op 7 (UPDATE counter) was late."}})
	}
	return r
}

func TestWhatAGateComesTo(t *testing.T) {
	lost, refused, vain := gateRow{want: loss()}, gateRow{want: refusal()}, gateRow{want: renewed()}
	twice := func(r report, code string) report {
		for i := range r.Verdicts {
			if r.Verdicts[i].Code == code {
				r.Verdicts[i].Count = 2
			}
		}
		return r
	}
	counting := func(r report, deficit int) report {
		r.Counter.NetDeficit = deficit
		return r
	}
	losing := counting(proven("LF104", "LF403", "LF101"), 1)
	heartbeat := report{Injections: injections{List: []injection{{Op: 7, Reason: "waited in vain: renewed by heartbeat: 3 times"}}}}
	another := proven("LF201", "LF101")
	another.Injections.List[0].Op = 8
	fell := counting(proven("LF104", "LF403", "LF101"), 1)
	fell.Fences = []fence{{Regressions: 1}}
	for _, tt := range []struct {
		name  string
		row   gateRow
		got   outcome
		wrong string
	}{
		{"one loss", lost, outcome{exit: 10, report: losing, load: load{Lost: 1}}, ""},
		{"one loss that the service does not know of", lost, outcome{exit: 10, report: losing}, "the service lost 0"},
		{"two losses", lost, outcome{exit: 10, report: counting(losing, 2), load: load{Lost: 2}}, "expected a deficit of 1, got 2"},
		{"two losses, of two late sections", lost, outcome{exit: 10, report: counting(twice(proven("LF104", "LF403", "LF101"), "LF101"), 2), load: load{Lost: 2}}, ""},
		{"less than a loss, of two late sections", lost, outcome{exit: 10, report: twice(counting(proven("LF104", "LF101"), 1), "LF101"), load: load{Lost: 1}}, "expected [LF104 LF403], got [LF104]"},
		{"a fence that fell", lost, outcome{exit: 10, report: fell, load: load{Lost: 1}}, "a fence fell"},
		{"one refusal", refused, outcome{report: proven("LF201", "LF101"), load: load{Rejected: 1}}, ""},
		{"one refusal that the service does not know of", refused, outcome{report: proven("LF201", "LF101")}, "expected 1 to be rejected, got 0"},
		{"a refusal of another", refused, outcome{report: another, load: load{Rejected: 1}}, "expected one LF201 that names the held op, got 0"},
		{"two refusals", refused, outcome{report: twice(proven("LF201", "LF101"), "LF201"), load: load{Rejected: 1}}, "expected LF201 once, got 2"},
		{"a refusal and harm", refused, outcome{exit: 10, report: proven("LF201", "LF101", "LF403"), load: load{Rejected: 1}}, "expected [LF201], got [LF201 LF403]"},
		{"nothing", refused, outcome{}, "expected one LF201 that names the held op, got 0"},
		{"a refusal, and not known whether that is all", refused, outcome{exit: 11, report: proven("LF201", "LF101"), load: load{Rejected: 1}}, "expected exit 0, got 11: "},
		{"a heartbeat", vain, outcome{exit: 11, report: heartbeat}, ""},
		{"a gate that opened", vain, outcome{exit: 11, report: report{}}, "expected that it says renewed by heartbeat"},
	} {
		if got := tt.row.must(tt.got); got != tt.wrong {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.wrong)
		}
	}
}

func TestWhichRunsAreMadeAnew(t *testing.T) {
	var got gateTally
	anew := 0
	for range mostDisturbed + 2 {
		anew += got.count("another outcome", true)
	}
	for _, wrong := range []string{"", "another outcome"} {
		anew += got.count(wrong, false)
	}
	anew += got.count("", true)
	if anew != mostDisturbed || got.anew != mostDisturbed || got.met != 2 || got.disturbed != mostDisturbed+3 {
		t.Errorf("%d are run anew, %+v", anew, got)
	}
}

func TestWorkersAreSummed(t *testing.T) {
	const one = `{"name": "a", "writes": 3, "rejected": 1, "sections": [[1.5, 2]]}` + "\n"
	if got, err := reported("lockfaultd: seed 1\n" + one + one + one + "PASS (exit 0)\n"); err != nil || got.Writes != 9 || got.Rejected != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := reported(one + one); err == nil {
		t.Error("two are taken for three")
	}
}
