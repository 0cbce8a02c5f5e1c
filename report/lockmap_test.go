package report

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// mapped is a run whose locks show everything that the map can say.
func mapped() Run {
	return with(quiet(), func(r *Run) {
		r.Result.Map = []check.MapEntry{
			{Lock: "lock:counter", Keys: 1, Sort: "exclusive", Purpose: "correctness", Declared: true, Sections: 321, Lifetime: 500 * time.Millisecond,
				Guards: []check.Guarded{{Table: "counter", Columns: []string{"value", "fence"}, Where: "id = ...", Rows: 1, Writes: 321, Sure: 1, Declared: true}},
				Length: check.Quantiles{N: 321, Min: 20 * time.Millisecond, P50: 23500 * time.Microsecond, P99: 31 * time.Millisecond, P999: 820 * time.Millisecond, Max: 821 * time.Millisecond},
				Margin: check.Quantiles{N: 321, Min: -312 * time.Millisecond, P50: 470 * time.Millisecond}, Suffices: 821512345 * time.Nanosecond},
			{Lock: "lock:order:*", Keys: 77, Purpose: "correctness", Because: "it issues fences", Sections: 77, Lifetime: 30 * time.Second,
				Guards: []check.Guarded{{Table: "orders", Columns: []string{"state"}, Where: "id = ...", Rows: 70, Writes: 70, Elsewhere: 3, Nobodys: 4, Sure: 0.9},
					{Table: "audit", Columns: []string{"what"}, Writes: 70, Sure: 0.9}},
				Length: check.Quantiles{N: 77, P50: 2 * time.Second, P99: 3 * time.Second, P999: 3 * time.Second, Max: 3 * time.Second}, Suffices: 3 * time.Second},
			{Lock: "nightly|\x1b[31m<b>_x_", Keys: 1},
		}
	})
}

func TestMap(t *testing.T) {
	for file, write := range map[string]func(io.Writer, Run) error{"map.txt": Map, "map.md": MapMarkdown} {
		var b bytes.Buffer
		if err := write(&b, mapped()); err != nil {
			t.Fatal(err)
		}
		compare(t, filepath.Join("testdata", "alone", file), b.Bytes())
		if err := write(&full{10}, mapped()); !errors.Is(err, errFull) {
			t.Error(file, err)
		}
		b.Reset()
		if err := write(&b, quiet()); err != nil || !strings.Contains(strings.ToLower(b.String()), "no lock was seen") {
			t.Error(file, err, b.String())
		}
	}
}

// What came from the wire is text in a page of Markdown, and never its markup.
func TestMarkdownKeepsNamesAsText(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, mapped()); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if strings.Contains(line, "nightly") && (strings.Contains(line, "<b>") || strings.Contains(line, " _x_") || strings.Contains(line, "\x1b") || !strings.Contains(line, `nightly\|`)) {
			t.Errorf("%q", line)
		}
	}
}
