package main

import "testing"

func TestOnlyAFaultThatMissedItsMomentIsTriedAgain(t *testing.T) {
	good := outcome{trial: trial{row: late}, missed: 1, verdicts: "LF401", wrong: []string{"verdicts"}}
	if !good.mistimed() {
		t.Error("the witness was late, and nothing was exercised")
	}
	for name, change := range map[string]func(*outcome){
		"another verdict":   func(o *outcome) { o.verdicts = "LF104" },
		"beside it":         func(o *outcome) { o.verdicts = "LF304, LF401" },
		"no call missed":    func(o *outcome) { o.missed = 0 },
		"as written down":   func(o *outcome) { o.wrong = nil },
		"a row of no fault": func(o *outcome) { o.row = clean },
	} {
		o := good
		if change(&o); o.mistimed() {
			t.Errorf("%s: it is tried again", name)
		}
	}
}
