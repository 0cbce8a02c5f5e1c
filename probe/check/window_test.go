package check

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"pgregory.net/rapid"
)

// What is found does not depend on how much is judged at once: it is the same in
// windows of whatever size. But what was never answered may have happened at any time
// since, and what orders there are with it is seen only while all of that is in view:
// then windows prove nothing that the whole does not, and may prove less.
func TestAWindowFindsWhatTheWholeDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := simulate(rapid.Uint64().Draw(t, "seed"), drawnSim(t, 20, 60, 0, 0.01, 0.05))
		in := s.input()
		if rapid.Bool().Draw(t, "unnamed") {
			in.Invariants = nil
		}
		sameInWindows(t, in, rapid.IntRange(1, 200).Draw(t, "window"))
	})
}

// Which writes are part of a cycle that only the orders as a whole show is known, in a
// window, on the premise that the column's writes depend on reads of it. Those are no
// stale writes of their own once that turns out to be true.
func TestACycleOfOrdersOnAPremise(t *testing.T) {
	in := simulate(0x1dca, simConfig{
		workers: 3, sections: 48, lease: 500 * time.Millisecond, fenced: "0", broken: "no-nx",
		pauses: 0.05, pause: 80 * time.Millisecond, latency: 15 * time.Millisecond,
	}).input()
	in.Invariants = nil
	sameInWindows(t, in, 3)
}

func sameInWindows(t interface {
	Helper()
	Fatalf(string, ...any)
}, in Input, window int) {
	t.Helper()
	whole := judge(in, len(in.Ops)+1, mostKept).result()
	parts := judge(in, window, mostKept).result()
	got, want := summary(parts), summary(whole)
	if !slices.Equal(got, want) && !slices.ContainsFunc(in.Ops, hangs) {
		t.Fatalf("in windows of %d: %q\nat once: %q", window, got, want)
	}
	for c := range claims(parts) {
		if !claims(whole)[c] {
			t.Fatalf("in windows of %d: %q\nat once: %q\nproven only in windows: %s", window, got, want, c)
		}
	}
	whole.Verdicts, parts.Verdicts = nil, nil
	whole.Facts.Limits, parts.Facts.Limits = nil, nil // which are of the windows
	if !slices.Equal(parts.Facts.Overlaps, whole.Facts.Overlaps) {
		t.Fatalf("in windows of %d other overlaps: %d, %d", window, len(parts.Facts.Overlaps), len(whole.Facts.Overlaps))
	}
	parts.Facts.Overlaps = whole.Facts.Overlaps
	if !reflect.DeepEqual(parts, whole) {
		t.Fatalf("in windows of %d: %s", window, different(parts, whole))
	}
}

// hangs reports whether a statement was forwarded and never answered.
func hangs(op *lock.Op) bool { return op.Proto == lock.Postgres && op.F != 0 && !answered(op) }

func TestGoldenInWindows(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden histories", err)
	}
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			s, err := readScript(path)
			if err != nil {
				t.Fatal(err)
			}
			for window := 1; window < 8; window++ {
				sameInWindows(t, s.in, window)
			}
		})
	}
}

func TestAnyHistoryInWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { sameInWindows(t, anyInput(t), rapid.IntRange(1, 50).Draw(t, "window")) })
}

// different lists the fields that differ.
func different(a, b Result) string {
	var out []string
	each := func(name string, a, b any) {
		v, w := reflect.ValueOf(a), reflect.ValueOf(b)
		for i := range v.NumField() {
			if !reflect.DeepEqual(v.Field(i).Interface(), w.Field(i).Interface()) {
				out = append(out, fmt.Sprintf("%s.%s: %+v, at once %+v", name, v.Type().Field(i).Name, v.Field(i).Interface(), w.Field(i).Interface()))
			}
		}
	}
	each("facts", a.Facts, b.Facts)
	for i := range a.Counters {
		each("counter", a.Counters[i], b.Counters[i])
	}
	for i := range a.Fences {
		each("fence", a.Fences[i], b.Fences[i])
	}
	if len(out) == 0 {
		out = append(out, fmt.Sprintf("%+v, at once %+v", a, b))
	}
	return strings.Join(out, "\n")
}
