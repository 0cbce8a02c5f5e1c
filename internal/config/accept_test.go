package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func anyCode(s string) (string, error) {
	if strings.HasPrefix(s, "LF") {
		return s, nil
	}
	return "", fmt.Errorf("unknown verdict %s", s)
}

func TestAccepted(t *testing.T) {
	got, err := ParseAccepted("x.yaml", []byte(`
version: 1
accept:
  - code: LF103
    lock: "lock:*"
    table: counter
    reason: known since the spring
    until: 2027-01-31
  - {code: LF304, lock: migrations, reason: "it is short, and by hand", until: "2026-12-31"}
`), anyCode)
	want := []Accepted{
		{"LF103", "lock:*", "counter", "known since the spring", time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC), 4},
		{"LF304", "migrations", "", "it is short, and by hand", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), 9},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBadAccepted(t *testing.T) {
	const head = "version: 1\naccept:\n  - "
	for _, b := range []mistake{
		{"", "1:1: the file is empty, expected version: 1"},
		{"version: 1", "1:1: the field accept is missing"},
		{"version: 2\naccept: []", "1:10: unknown version 2, expected 1"},
		{"version: 1\naccept: {}", "2:9: expected a list, found a mapping"},
		{"version: 1\naccepted: []", "2:1: unknown field accepted, expected one of version, accept"},
		{head + "LF103", "3:5: expected a mapping, found a value"},
		{head + "{lock: l, reason: r, until: 2027-01-31}", "3:5: the field code is missing"},
		{head + "{code: FL1, lock: l, reason: r, until: 2027-01-31}", "3:12: unknown verdict FL1"},
		{head + "{code: LF1, reason: r, until: 2027-01-31}", "3:5: neither lock nor table is given, expected a glob for one of them"},
		{head + "{code: LF1, lock: '', reason: r, until: 2027-01-31}", "3:23: lock is empty, expected a glob or no such field"},
		{head + "{code: LF1, lock: [a], reason: r, until: 2027-01-31}", "3:23: expected a text or a number, found a list"},
		{head + "{code: LF1, lock: l, until: 2027-01-31}", "3:5: the field reason is missing"},
		{head + "{code: LF1, lock: l, reason: ' ', until: 2027-01-31}", "3:34: the reason is empty, expected why this is accepted"},
		{head + "{code: LF1, lock: l, reason: r}", "3:5: the field until is missing"},
		{head + "{code: LF1, lock: l, reason: r, until: 31.1.2027}", "3:44: expected a date such as 2027-01-31, found 31.1.2027"},
		{head + "{code: LF1, lock: l, reason: r, until: 2027-02-30}", "3:44: expected a date such as 2027-01-31, found 2027-02-30"},
		{head + "{code: LF1, lock: l, reason: r, until: 2027-01-31, who: me}", "3:56: unknown field who, expected one of code, lock, table, reason, until"},
		{head + "{code: LF1, lock: l, reason: r, until: 2027-01-31}\n  - {code: LF1, lock: l, reason: s, until: 2028-01-31}", "4:5: this accepts the same as line 3, expected one entry for it"},
	} {
		b.refusedBy(t, func(text []byte) error {
			_, err := ParseAccepted("x.yaml", text, anyCode)
			return err
		})
	}
}

func FuzzAccepted(f *testing.F) {
	f.Add([]byte("version: 1\naccept:\n  - {code: LF1, lock: l, reason: r, until: 2027-01-31}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := ParseAccepted("x.yaml", text, anyCode)
		hasItsPlace(t, err)
	})
}
