package live

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

func ptr[T any](v T) *T { return &v }

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }
func in(d time.Duration) time.Time  { return noon.Add(d) }

const ms = time.Millisecond

// busy has one of everything that lockfaultd shows.
func busy() Snapshot {
	return Snapshot{
		Now: noon, Name: "lockfaultd", Version: "1.0.0", Since: ago(26 * time.Hour), Control: true,
		Sources: []Source{{Name: "postgres", Address: "127.0.0.1:15432 -> db:5432", Up: true}, {Name: "redis", Address: "127.0.0.1:16379 -> cache:6379", Text: "connection refused"}},
		Locks: []Lock{
			{Name: "lock:counter", Held: true, Holder: "worker-1", TTL: 800, EndsFrom: ago(321 * ms), EndsTo: ago(312 * ms), Overrun: true, Waiters: 1, Fence: ptr(int64(41)), Margin: ptr(-12.0)},
			{Name: "lock:counter", Held: true, Holder: "worker-2", TTL: 800, EndsFrom: in(600 * ms), EndsTo: in(680 * ms), Waiters: 1, Fence: ptr(int64(42))},
			{Name: "lock:import", Held: true, Holder: "importer"},
			{Name: "lock:late", Held: true, Holder: "worker-3", TTL: 10000, EndsFrom: ago(10 * ms), EndsTo: in(40 * ms), Margin: ptr(640.0)},
			{Name: "lock:lost", Held: true, Holder: "billing", TTL: 5000},
			{Name: "lock:orphan", Held: true, Holder: "worker-9", Gone: true, Waiters: 2},
			{Name: "lock:report"},
			{Name: "lock:restart", Waiters: 1, Stranger: true},
			{Name: "lock:short", Held: true, Holder: "worker-3", TTL: 10000, EndsFrom: in(1500 * ms), EndsTo: in(1510 * ms)},
		},
		Actors: []Actor{
			{Label: "billing", State: Running, Sessions: 1, PID: 20411, Holds: []string{"lock:lost"}},
			{Label: "worker-1", State: Frozen, Until: in(480 * ms), By: "pause", Sessions: 2, PID: 20380, Holds: []string{"lock:counter"}},
			{Label: "worker-3", State: Stalled, Until: ago(1 * ms), By: "slow", Sessions: 2, Holds: []string{"lock:late", "lock:short"}},
		},
		Rules: []Rule{
			{Name: "pause", Text: "--freeze-before 'write(counter)#*/20=ttl+20%'", Armed: true, Until: in(432 * time.Second), Seen: 412, Fired: 20, Barred: 3, Why: "cooldown"},
			{Name: "slow", Text: "--stall-after SETNX=800ms", Armed: true, Left: ptr(1), Seen: 96, Fired: 6},
			{Name: "reset", Text: "--reset-before 'commit#3'"},
		},
		Marks: []Mark{
			{At: ago(70 * time.Second), To: ago(50 * time.Second), Kind: MarkSection, Actor: "billing", Lock: "lock:lost"},
			{At: ago(40 * time.Second), To: ago(30 * time.Second), Kind: MarkSection, Actor: "worker-1", Lock: "lock:counter"},
			{At: ago(38 * time.Second), To: ago(34 * time.Second), Kind: MarkFreeze, Actor: "worker-1", Text: "pause"},
			{At: ago(33 * time.Second), Kind: MarkRejected, Actor: "worker-1", Lock: "lock:counter"},
			{At: ago(35 * time.Second), Kind: MarkRefusal, Actor: "worker-3", Lock: "lock:counter"},
			{At: ago(20 * time.Second), To: ago(18 * time.Second), Kind: MarkGap},
			{At: ago(15 * time.Second), Kind: MarkInjection, Actor: "billing"},
			{At: ago(12 * time.Second), Kind: MarkVerdict, Lock: "lock:counter", Text: "LF101"},
			{At: ago(9 * time.Second), Open: true, Kind: MarkSection, Actor: "worker-3", Lock: "lock:late"},
			{At: ago(5 * time.Second), Kind: MarkWrite, Actor: "worker-3", Lock: "lock:late"},
			{At: ago(1 * time.Second), Open: true, Kind: MarkStall, Actor: "worker-3", Text: "slow"},
		},
		Gaps:   1,
		Unseen: []Gap{{At: ago(20 * time.Second), To: ago(18 * time.Second), Lost: 1204, Why: "the disk was slow"}},
	}
}

// away is what probe shows while its source is not seen.
func away() Snapshot {
	s := judged()
	s.Verdicts, s.Invariants, s.Blind = nil, nil, ago(4*time.Second)
	s.Locks = []Lock{{Name: "lock:counter", Held: true, Holder: "A1", TTL: 400, EndsFrom: ago(3 * time.Second), EndsTo: ago(2500 * ms), Overrun: true}}
	s.Sources = []Source{{Name: "postgres", Up: true}, {Name: "source", Since: s.Blind, Text: "connection refused"}}
	return s
}

// judged is what probe shows.
func judged() Snapshot {
	return Snapshot{
		Now: noon, Name: "probe", Version: "1.0.0",
		Verdicts: []Verdict{
			{At: ago(14 * time.Second), Code: "LF104", Name: "lost-update", Level: Proven, Class: Harm, Harm: true, Lock: "lock:counter", Table: "counter", Count: 1, Proof: "worker-1 read 106 and wrote 107; worker-2 read 106 and wrote 107."},
			{At: ago(34 * time.Second), Code: "LF101", Name: "lease-overrun", Level: Proven, Class: Hazard, Lock: "lock:counter", Count: 3},
			{At: ago(30 * time.Hour), Code: "LF201", Name: "fence-rejected", Level: Likely, Class: Good, Table: "counter"},
		},
		Invariants: []Invariant{
			{Name: "counter", Kind: "acked", State: Broken, Value: "1041", Text: "expected 1042 to 1044"},
			{Name: "fence", Kind: "fence", State: Holds, Value: "42"},
			{Name: "orphans", Kind: "zero", State: Unknown, Text: "connection refused"},
		},
	}
}

func render(t *testing.T, s Snapshot, width int, colour bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, s, width, colour); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRender(t *testing.T) {
	for _, tt := range []struct {
		name   string
		s      Snapshot
		width  int
		colour bool
	}{
		{"busy-100", busy(), 100, false},
		{"busy-60", busy(), 60, false},
		{"busy-colour", busy(), 100, true},
		{"judged", judged(), 100, false},
		{"away", away(), 100, false},
		{"quiet", Snapshot{Now: noon, Name: "lockfaultd", Control: true}, 80, false},
		{"quiet-probe", Snapshot{Now: noon, Name: "probe"}, 80, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := render(t, tt.s, tt.width, tt.colour)
			golden(t, filepath.Join("testdata", tt.name+".txt"), got)
			for _, l := range strings.Split(sequence.ReplaceAllString(got, ""), "\n") {
				if cells(l) > tt.width {
					t.Errorf("%d cells, more than %d: %s", cells(l), tt.width, l)
				}
			}
		})
	}
}

var sequence = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
	}
}

// Whatever field of a snapshot has what a terminal acts on, none of it gets there.
func TestRenderSpellsOut(t *testing.T) {
	const evil = "\x1b]0;owned\x07\x9b31m\r\n\u202e\u2028\xff\x00"
	s := busy()
	s.Name, s.Version = evil, evil
	s.Sources = []Source{{Name: evil, Address: evil, Text: evil}}
	s.Locks = []Lock{{Name: evil, Held: true, Holder: evil}}
	s.Actors = []Actor{{Label: evil, State: evil, By: evil, Holds: []string{evil}}}
	s.Rules = []Rule{{Name: evil, Text: evil, Why: evil}}
	s.Verdicts = []Verdict{{Code: evil, Name: evil, Level: evil, Class: evil, Lock: evil, Table: evil, Proof: evil, Harm: true}}
	s.Invariants = []Invariant{{Name: evil, Kind: evil, State: evil, Value: evil, Text: evil}, {Name: evil, State: Broken}}
	s.Marks = []Mark{{At: noon, Kind: evil, Actor: evil, Lock: evil}}
	s.Unseen = []Gap{{At: noon, Why: evil}}
	for _, colour := range []bool{false, true} {
		got := sequence.ReplaceAllString(render(t, s, 300, colour), "")
		for _, r := range strings.ReplaceAll(got, "\n", "") {
			if odd(r) {
				t.Fatalf("%U is in\n%q", r, got)
			}
		}
		for _, l := range strings.Split(got, "\n") {
			if cells(l) > 300 {
				t.Errorf("a line is %d wide", cells(l))
			}
		}
		if !strings.Contains(got, `\x1b]0;owned\x07`) {
			t.Errorf("it is not spelled out in\n%s", got)
		}
	}
}

// What was frozen by hand is not frozen by a rule of that name.
func TestFrozenByHand(t *testing.T) {
	s := busy()
	s.Actors[1].By = "by hand"
	if got := render(t, s, 100, false); !strings.Contains(got, "  by hand, 480 ms left") || strings.Contains(got, "by by") {
		t.Error(got)
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{"lock:größe 鍵": "lock:größe 鍵", "a\tb": `a\x09b`, "\xffé": `\xffé`, "\ufffd": `\ufffd`, "\u202ex": `\u202ex`, "\u009b": `\x9b`} {
		if got := plain(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{{"lock", 4, "lock"}, {"locks", 4, "loc…"}, {"鍵鍵鍵", 4, "鍵…"}, {"鍵鍵", 4, "鍵鍵"}, {"ab", 0, ""}, {"ab", 1, "…"}, {"e\u0301e\u0301", 2, "e\u0301e\u0301"}} {
		if got := cut(tt.in, tt.n); got != tt.want || cells(got) > tt.n {
			t.Errorf("%q to %d: %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		in          string
		first, rest int
		want        string
	}{
		{"", 10, 10, ""},
		{"one two three", 20, 20, "one two three"},
		{"one two three", 7, 5, "one two|three"},
		{"one two three", 2, 7, "|one two|three"},
		{"abcdefghij k", 4, 4, "|abcd|efgh|ij k"},
		{"a 鍵鍵鍵", 5, 3, "a|鍵|鍵|鍵"},
		{"鍵", 0, 0, "|鍵"},
	} {
		if got := strings.Join(wrap(tt.in, tt.first, tt.rest), "|"); got != tt.want {
			t.Errorf("%q to %d, %d: %q, want %q", tt.in, tt.first, tt.rest, got, tt.want)
		}
	}
}

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{312 * ms: "312 ms", 1599 * ms: "1.5 s", 59999 * ms: "59.9 s", 61 * time.Second: "1 min 1 s", time.Minute: "1 min", 26 * time.Hour: "26 h 0 min"} {
		if got := spell(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// No lease, however odd, makes a bar that does not fit.
func TestBarsFit(t *testing.T) {
	p := &sheet{width: 100, now: noon}
	for _, ttl := range []float64{-1, 0, 1, 800, 1e15} {
		for _, from := range []time.Duration{-time.Hour, 0, 1, 400 * ms, time.Hour} {
			for _, open := range []time.Duration{0, ms, time.Hour, -time.Hour} {
				bar, words, _ := p.lease(Lock{Held: true, TTL: ttl, EndsFrom: in(from), EndsTo: in(from + open)})
				if cells(bar) != 20 || words == "" {
					t.Error(fmt.Sprint(ttl, from, open, bar, words))
				}
			}
		}
	}
}

// Nor does a mark whose times are odd leave the picture.
func TestMarksStayInside(t *testing.T) {
	var marks []Mark
	times := []time.Time{{}, noon, ago(time.Minute), in(time.Hour), ago(280 * 365 * 24 * time.Hour), in(280 * 365 * 24 * time.Hour)}
	for _, at := range times {
		for _, to := range times {
			marks = append(marks, Mark{At: at, To: to, Kind: MarkSection, Actor: "a"}, Mark{At: at, To: to, Open: true, Kind: MarkGap})
		}
	}
	for _, l := range strings.Split(render(t, Snapshot{Now: noon, Marks: marks}, 60, false), "\n") {
		if cells(l) > 60 {
			t.Error(l)
		}
	}
}
