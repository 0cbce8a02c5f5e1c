package report

import (
	"os"
	"path/filepath"
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

// TestEveryCodeHasGoldenHistories holds the judge's golden histories against the list
// of codes: of each code there is a history that gives it, and one that is named after
// it, since it nearly does, and does not.
func TestEveryCodeHasGoldenHistories(t *testing.T) {
	paths, err := filepath.Glob("../probe/check/testdata/*/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden histories", err)
	}
	given, spared := map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		wanted := map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "want" && strings.HasPrefix(f[1], "LF") {
				wanted[f[1]], given[f[1]] = true, true
			}
		}
		if code, _, named := strings.Cut(filepath.Base(path), "-"); named && !wanted[code] {
			spared[code] = true
		}
	}
	for _, c := range Codes() {
		switch {
		case c.Code == "LF401": // made here, of what was injected
		case c.Code == "LF313" || c.Code == "LF405": // of live databases: package probe/service has the tests
		case !given[c.Code]:
			t.Errorf("no golden history gives %s", c.Code)
		case !spared[c.Code]:
			t.Errorf("no golden history nearly gives %s: one that is called %s-... and wants none", c.Code, c.Code)
		}
	}
}
