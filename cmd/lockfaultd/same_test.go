package main

import (
	"bytes"
	"encoding/json"

	"github.com/rogpeppe/go-internal/testscript"
)

// judged are the fields of a report.json that the judge alone fills.
var judged = []string{"verdicts", "counter", "counters", "fences", "monotone", "map", "facts"}

// sameJudgement is `samejudgement A B`: in two files report.json, what was judged is
// the same, byte for byte.
func sameJudgement(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samejudgement A B")
	}
	a, b := fieldsOf(ts, ts.ReadFile(args[0])), fieldsOf(ts, ts.ReadFile(args[1]))
	for _, name := range judged {
		x, y := a[name], b[name]
		if name == "facts" { // which say how long the run was as well
			x, y = without(ts, x, "elapsed_ns"), without(ts, y, "elapsed_ns")
		}
		if len(x) == 0 || !bytes.Equal(x, y) {
			ts.Fatalf("%s:\n%s\n%s", name, x, y)
		}
	}
}

func fieldsOf(ts *testscript.TestScript, text string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	ts.Check(json.Unmarshal([]byte(text), &out))
	return out
}

func without(ts *testscript.TestScript, object json.RawMessage, name string) json.RawMessage {
	fields := fieldsOf(ts, string(object))
	delete(fields, name)
	out, err := json.Marshal(fields)
	ts.Check(err)
	return out
}
