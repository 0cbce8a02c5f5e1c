package history

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

var began = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// A writing is a history in parts that is being written, some minutes behind the one before it.
type writing struct {
	*Parts
	t    testing.TB
	n    int
	run  string
	warn []error
}

// writingTo begins a run as a daemon would: what stands there is kept.
func writingTo(t testing.TB, dir, run string, started time.Time, size int64, keep Keep) *writing {
	t.Helper()
	if former, err := look(dir, FileName); err == nil {
		if err := os.Rename(filepath.Join(dir, FileName), ClosedPath(dir, former.header.Started, former.header.Part)); err != nil {
			t.Fatal(err)
		}
	}
	w := &writing{t: t, run: run}
	p, err := OpenParts(dir, PartsOptions{Size: size, Keep: keep, Clock: func() lock.Instant { return lock.Instant(1000 * w.n) },
		Failed: func(err error) { t.Error(err) }, Warn: func(err error) { w.warn = append(w.warn, err) }})
	if err != nil {
		t.Fatal(err)
	}
	w.Parts = p
	fmt.Fprintf(p, `{"type":"header","schema":"1.1","run":%q,"started":%q,"seed":7}`+"\n", run, started.Format(time.RFC3339))
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	return w
}

// lines writes so many more, each with its number, and hands them over.
func (w *writing) lines(n int) *writing {
	for range n {
		w.n++
		fmt.Fprintf(w.Parts, `{"type":"end","session":%d,"at":%d}`+"\n", w.n, w.n)
	}
	if err := w.Flush(); err != nil {
		w.t.Fatal(err)
	}
	return w
}

func (w *writing) end() {
	if err := w.Close(); err != nil {
		w.t.Error(err)
	}
	if len(w.warn) > 0 {
		w.t.Error(w.warn)
	}
}

func filesOf(dir string) (out []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Each part is a history; together they have every line once.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	w := writingTo(t, dir, "aaaa", began, 400, Keep{})
	w.lines(25)
	w.end()
	want := []string{"history-20260801T120000Z.000001.jsonl", "history-20260801T120000Z.000002.jsonl", "history-20260801T120000Z.000003.jsonl", FileName}
	if got := filesOf(dir); !slices.Equal(got, want) {
		t.Fatalf("it left %v, want %v", got, want)
	}
	next := uint64(1)
	for i, name := range want {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 400 {
			t.Errorf("%s has %d bytes", name, len(b))
		}
		h, err := Read(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if h.Header.Part != i+1 || h.Header.First != next || h.Header.Run != "aaaa" || h.Header.Seed != 7 {
			t.Errorf("%s begins with %+v, want part %d from %d", name, h.Header, i+1, next)
		}
		for _, e := range h.Ends {
			if e.Session != next {
				t.Errorf("%s has %d in the place of %d", name, e.Session, next)
			}
			next++
		}
		before := Gap{At: h.Header.At, Lost: int(h.Header.First) - 1, Why: "they are in the parts before this one"}
		if i == 0 && len(h.Gaps) != 0 || i > 0 && !slices.Equal(h.Gaps, []Gap{before}) {
			t.Errorf("%s has gaps %+v", name, h.Gaps)
		}
		if i > 0 && h.Header.At != lock.Instant(1000*h.Header.First) {
			t.Errorf("%s begins at %d, line %d", name, h.Header.At, h.Header.First)
		}
	}
	if next != 26 {
		t.Errorf("the parts have %d lines, want 25", next-1)
	}
}

// A line that is longer than a part has one to itself.
func TestPartsTakeLongLines(t *testing.T) {
	dir := t.TempDir()
	w := writingTo(t, dir, "aaaa", began, 200, Keep{})
	for range 3 {
		fmt.Fprintf(w, `{"type":"vain","why":%q}`+"\n", strings.Repeat("x", 300))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	w.end()
	if got := filesOf(dir); len(got) != 3 {
		t.Errorf("it left %v", got)
	}
}

func TestPartsAreRemoved(t *testing.T) {
	for _, tt := range []struct {
		name string
		keep Keep
		want []string
	}{
		{"two", Keep{Files: 2}, []string{"history-20260801T120100Z.000002.jsonl", "history-20260801T120100Z.000003.jsonl"}},
		{"so many that a former run's is among them", Keep{Files: 4}, []string{"history-20260801T120000Z.000004.jsonl",
			"history-20260801T120100Z.000001.jsonl", "history-20260801T120100Z.000002.jsonl", "history-20260801T120100Z.000003.jsonl"}},
		{"so many bytes", Keep{Bytes: 900}, []string{"history-20260801T120100Z.000002.jsonl", "history-20260801T120100Z.000003.jsonl"}},
		{"one that is what is allowed, and no more", Keep{Bytes: 1}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			mine := []string{"history-of-mine.jsonl", "notes.txt"} // no name that is given here
			for _, name := range mine {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"type":"header","schema":"1.1"}`+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w := writingTo(t, dir, "aaaa", began, 400, Keep{})
			w.lines(25)
			w.end()
			w = writingTo(t, dir, "bbbb", began.Add(time.Minute), 400, tt.keep)
			w.lines(25)
			w.end()
			want := append(append(slices.Clone(tt.want), FileName), mine...)
			slices.Sort(want)
			if got := filesOf(dir); !slices.Equal(got, want) {
				t.Errorf("left: %v\nwant: %v", got, want)
			}
		})
	}
}

// Where the next part cannot be begun, the one that is there grows on and loses nothing.
func TestPartsOutliveARotationThatFails(t *testing.T) {
	dir := t.TempDir()
	w := writingTo(t, dir, "aaaa", began, 400, Keep{})
	obstacle := filepath.Join(dir, nextName)
	if err := os.MkdirAll(filepath.Join(obstacle, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.lines(25)
	if len(w.warn) == 0 || len(w.warn) > 3 {
		t.Errorf("it warned of %v, want so much once each time that it could be tried again", w.warn)
	}
	w.warn = nil
	if err := os.RemoveAll(obstacle); err != nil {
		t.Fatal(err)
	}
	w.lines(25)
	w.end()
	if got := sessions(t, Follow(dir)); got != "aaaa:0-50" {
		t.Errorf("it has %s", got)
	}
	if len(filesOf(dir)) < 3 {
		t.Errorf("it was not tried again: %v", filesOf(dir))
	}
}

func TestPartsTellOfAFailureOnce(t *testing.T) {
	told := 0
	w := &watched{&broken{}, func(error) { told++ }, false}
	for range 3 {
		if _, err := w.Write([]byte("x")); err == nil {
			t.Error("no error")
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}
