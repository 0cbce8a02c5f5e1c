package main

import (
	"slices"
	"strings"
	"testing"
)

// What make test runs of the broken services has each code, and services that are sound.
func TestTheQuickRowsGiveEachCode(t *testing.T) {
	quick := quickly(brokenRows())
	if len(quick) >= len(brokenRows()) || !slices.ContainsFunc(quick, func(r row) bool { return len(r.codes) == 0 }) {
		t.Fatalf("%d rows", len(quick))
	}
	for _, r := range brokenRows() {
		for _, code := range r.codes {
			if !strings.HasPrefix(code, "?") && !slices.ContainsFunc(quick, func(q row) bool { return slices.Contains(q.codes, code) }) {
				t.Errorf("no quick row gives %s, as %s does", code, r.service)
			}
		}
	}
}
