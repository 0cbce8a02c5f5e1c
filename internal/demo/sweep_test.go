package main

import (
	"strings"
	"testing"
)

// The tables say what the fences are for.
func TestTheGoldenTablesAreRead(t *testing.T) {
	for form, rows := range map[string]int{"unfenced": 20, "write-fenced": 23, "read-claimed": 23, "heartbeat": 20} {
		table, err := goldenTable(form)
		if err != nil || len(table) != rows {
			t.Errorf("%s: %d rows, %v", form, len(table), err)
		}
		for _, g := range table {
			if len(g.results) == 0 || strings.Contains(g.results[0], " or") || form == "read-claimed" && g.results[0] != "survives" {
				t.Errorf("%s: %+v", form, g)
			}
		}
	}
}

func TestARowIsComparedWithItsGoldenOne(t *testing.T) {
	want := goldenRow{"before write", "f", []string{"FAILS", "survives"}, []string{"LF104", "LF201?"}}
	for _, tt := range []struct {
		name string
		got  sweptRow
		why  string
	}{
		{"as it must be", sweptRow{Anchor: "before write", Fault: "f", Result: "FAILS", Codes: []string{"LF104"}}, ""},
		{"with what may be", sweptRow{Anchor: "before write", Fault: "f", Result: "survives", Codes: []string{"LF104", "LF201"}}, ""},
		{"now and then", sweptRow{Anchor: "before write", Fault: "f", Result: "FAILS", Codes: []string{"LF104?"}}, "unexpected LF104?"},
		{"more", sweptRow{Anchor: "before write", Fault: "f", Result: "FAILS", Codes: []string{"LF104", "LF301"}}, "unexpected LF301"},
		{"less", sweptRow{Anchor: "before write", Fault: "f", Result: "FAILS"}, "expected LF104 each time"},
		{"another result", sweptRow{Anchor: "before write", Fault: "f", Result: "gave up"}, "expected FAILS or survives, got gave up "},
		{"another row", sweptRow{Anchor: "after read", Fault: "f", Result: "FAILS", Codes: []string{"LF104"}}, "expected the row before write, f"},
	} {
		if got := want.unlike(tt.got); got != tt.why {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.why)
		}
	}
	row := sweptRow{Anchor: "before write", Fault: "f", Result: "FAILS", Codes: []string{"LF104"}}
	if got := compare([]goldenRow{want, want}, []sweptRow{row}); len(got) != 1 {
		t.Errorf("a row is missing: got %v", got)
	}
	if got := compare([]goldenRow{want}, []sweptRow{row, row}); len(got) != 1 {
		t.Errorf("a row is too much: got %v", got)
	}
}
