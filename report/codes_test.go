package report

import (
	"slices"
	"strings"
	"testing"
)

func TestParseCodes(t *testing.T) {
	for _, c := range []struct {
		flag, text string
		want       []string
	}{
		{"expect", "LF104", []string{"LF104"}},
		{"--expect", "lost-update", []string{"LF104"}},
		{"expect", "lf104, Stale-Write", []string{"LF104", "LF103"}},
		{"expect", "LF104,lost-update,LF104", []string{"LF104"}},
		{"fail-on", "any", []string{"any"}},
		{"--fail-on", "Hazard,LF201", []string{"hazard", "LF201"}},
	} {
		got, err := ParseCodes(c.flag, c.text)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("ParseCodes(%q, %q) = %q, %v, want %q", c.flag, c.text, got, err, c.want)
		}
	}
}

func TestParseCodesRefuses(t *testing.T) {
	for _, c := range []struct {
		flag, text string
		want       []string // all in the message
	}{
		{"expect", "LF14", []string{"--expect", `"LF14"`, "entry 1", "nearest is LF104 lost-update", "expected a code or a name"}},
		{"expect", "lost-updates", []string{"LF104 lost-update"}},
		{"fail-on", "LF103,stale-wriet", []string{"--fail-on", "entry 2", "LF103 stale-write", "any, hazard"}},
		{"fail-on", "hazrd", []string{"nearest is hazard"}},
		{"expect", "any", []string{`unknown verdict "any"`}},
		{"expect", "", []string{"--expect", "entry 1 is empty", "LF104"}},
		{"fail-on", "LF103,", []string{"entry 2 is empty", "any, hazard"}},
		{"expect", "LF104 LF103", []string{"unknown verdict"}},
		{"expect", "\x00", []string{`"\x00"`}},
	} {
		got, err := ParseCodes(c.flag, c.text)
		if err == nil {
			t.Errorf("ParseCodes(%q, %q) = %q, want an error", c.flag, c.text, got)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("ParseCodes(%q, %q): %q lacks %q", c.flag, c.text, err, want)
			}
		}
	}
}

func TestCodesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Codes() {
		if seen[c.Code] || seen[c.Name] || c.Short == "" {
			t.Errorf("%+v is incomplete or there twice", c)
		}
		seen[c.Code], seen[c.Name] = true, true
	}
	if !slices.IsSortedFunc(Codes(), func(a, b Code) int { return strings.Compare(a.Code, b.Code) }) {
		t.Error("codes are out of order")
	}
}

func TestNearest(t *testing.T) {
	for entry, want := range map[string]string{
		"LF305": "LF305 double-grant", "duble-grant": "LF305 double-grant", "overlaps": "LF102 overlap",
	} {
		if got := closest(entry, nil); got != want {
			t.Errorf("closest(%q) = %q, want %q", entry, got, want)
		}
	}
}
