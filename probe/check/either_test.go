package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func judgeScript(t *testing.T, text string) Result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := readScript(path)
	if err != nil {
		t.Fatal(err)
	}
	return Judge(s.in)
}

func goldenText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "good", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What may be written under a lock is listed as such, with how often.
func TestWhatMayBeWrittenUnderALockIsListed(t *testing.T) {
	r := judgeScript(t, goldenText(t, "LF104-of-several-tasks.txt"))
	tables := r.Facts.Tables
	if len(tables) != 1 || tables[0].Writes != 0 || tables[0].Perhaps != 3 || !slices.Equal(tables[0].Numbers, []string{"total"}) {
		t.Errorf("tables %+v", tables)
	}
	if e := r.Facts.Either; len(e) != 1 || e[0] != (EitherFact{"o", 1}) {
		t.Errorf("either %+v", e)
	}
	if len(r.Map) != 1 || len(r.Map[0].Guards) != 1 {
		t.Fatalf("map %+v", r.Map)
	}
	if g := r.Map[0].Guards[0]; g.Writes != 0 || g.Perhaps != 3 || g.Sure != 0.6 || g.Rows != 2 {
		t.Errorf("guards %+v", g)
	}
}

// after has two processes use a row under lock:o:1, each time with a section of another lock
// open beside it that is not always the same.
func after() string {
	var b strings.Builder
	for i := range 12 {
		who, at, beside := "AB"[i%2], 2000+20*i, 2+i%3
		fmt.Fprintf(&b, "%c acquire lock:o:1=x%d %d-%d\n%c acquire lock:o:%d=y%d @5 %d-%d\n", who, i, at, at+1, who, beside, i, at+1, at+2)
		fmt.Fprintf(&b, "%c select o[id=1] total=%d %d-%d\n%c update o[id=1] total:=%d %d-%d\n", who, i+8, at+3, at+4, who, i+9, at+5, at+6)
		fmt.Fprintf(&b, "%c release lock:o:1=x%d %d-%d\n%c release lock:o:%d=y%d @5 %d-%d\n", who, i, at+7, at+8, who, beside, i, at+8, at+9)
	}
	return b.String()
}

// Of the terms that a write may be of that one is named first under whose lock, and no other,
// all may have been that was done to the row.
func TestTheLockOfARowIsNamedFirst(t *testing.T) {
	text := goldenText(t, "LF104-of-several-tasks.txt")
	bare := judgeScript(t, text)
	known := judgeScript(t, text+after())
	lost := func(r Result) Verdict {
		return r.Verdicts[slices.IndexFunc(r.Verdicts, func(v Verdict) bool { return v.Code == "LF104" })]
	}
	if v := lost(bare); v.Lock != "lock:o:2" || strings.Contains(v.Proof, "Likely") {
		t.Errorf("%s: %s", v.Lock, v.Proof)
	}
	if v := lost(known); v.Lock != "lock:o:1" || v.Level != Possible || !strings.Contains(v.Proof, fmt.Sprintf("Likely A is of term %d", v.Terms[0])) {
		t.Errorf("%s %s: %s", v.Lock, v.Level, v.Proof)
	}
}

// A counter decides of its own column and row, if it has a sum and both readings.
func TestWhatNoCounterSumsIsTold(t *testing.T) {
	text := goldenText(t, "LF402-of-several-tasks.txt")
	summed := strings.NewReplacer("A update o[id=2] total:=4 20-21\n", "", "A insert o id:=9 total:=1 610-611\n", "", "[id=2]", "[id=1]",
		"A update o[id=2] total:=5 600-601", "A select o[id=1] total=7 500-501\nA update o[id=1] total:=8 600-601").Replace(text)
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"none":           {summed, 1},
		"its row":        {"counter o.total 7 8\n" + summed, 0},
		"another column": {"counter o.other 7 8\n" + summed, 1},
		"no reading":     {"counter o.total\n" + summed, 1},
		"another row":    {"counter o.total 7 8\n" + strings.ReplaceAll(summed, "[id=1]", "[id=2]"), 1},
	} {
		n := 0
		r := judgeScript(t, c.text)
		for _, e := range r.Facts.Either {
			n += e.Writes
		}
		if n != c.want {
			t.Errorf("%s: %d are told, want %d: %+v", name, n, c.want, r.Counters)
		}
	}
}
