package report

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// sqlOp is a statement of a process on one row, answered a millisecond later.
func sqlOp(seq uint64, term lock.TermID, actor string, kind lock.Kind, at int, value lock.Value) lock.Op {
	op := lock.Op{Seq: seq, Actor: actor, Session: uint64(term), Kind: kind, Verb: "SELECT", Outcome: lock.Done, Rows: 1, Proto: lock.Postgres,
		A: lock.Instant(at) * ms, F: lock.Instant(at) * ms, R: lock.Instant(at+1) * ms, D: lock.Instant(at+1) * ms,
		SQL:  &lock.Statement{Table: "counter", Where: []lock.Cond{{Column: "id", Op: "=", Value: lock.Value{Int: 1, IsInt: true}}}},
		Term: lock.Attribution{ID: term, Confidence: 1}}
	if kind == lock.Write {
		op.Verb, op.SQL.Set = "UPDATE", []lock.Assign{{Column: "value", Value: value}}
	} else {
		op.Row = []lock.Cell{{Column: "value", Value: value}}
	}
	return op
}

func lockOp(seq uint64, term lock.TermID, actor string, kind lock.Kind, at int, out lock.Outcome) lock.Op {
	return lock.Op{Seq: seq, Actor: actor, Session: uint64(term), Kind: kind, Verb: "SET", Key: "lock:counter", Outcome: out, Proto: lock.Redis,
		A: lock.Instant(at) * ms, F: lock.Instant(at) * ms, R: lock.Instant(at+1) * ms, D: lock.Instant(at+1) * ms, Term: lock.Attribution{ID: term, Confidence: 1}}
}

// pictured is a run with one lost update, and its picture: A reads, is frozen, and writes
// when B has. Values are those that value makes of 7 and 8.
func pictured(value func(n int64) lock.Value) Run {
	r := exercisedRun()
	grantA, grantB := lockOp(1, 1, "A1", lock.Acquire, 100, lock.Granted), lockOp(7, 2, "A2", lock.Acquire, 620, lock.Granted)
	grantA.TTL, grantB.TTL = 500*time.Millisecond, 500*time.Millisecond
	v := check.Verdict{Code: "LF104", Class: check.Harm, Level: check.Proven, Harm: true, Lock: "lock:counter", Table: "counter",
		Terms: []lock.TermID{1, 2}, Ops: []uint64{3, 5, 9, 11}, Count: 1, Proof: lostProof}
	v.Picture = &check.Picture{
		Holdings: []check.Holding{
			{ID: 1, Lock: "lock:counter", Actor: "A1", Session: 1, Grant: 1, From: 101 * ms, Leased: true, LeaseEnd: lock.Interval{Earliest: 597 * ms, Latest: 604 * ms}, Asked: 912 * ms},
			{ID: 2, Lock: "lock:counter", Actor: "A2", Session: 2, Grant: 7, From: 621 * ms, Leased: true, LeaseEnd: lock.Interval{Earliest: 1117 * ms, Latest: 1124 * ms}, Asked: 640 * ms},
		},
		Ops: []lock.Op{grantA, sqlOp(3, 1, "A1", lock.Read, 103, value(7)), sqlOp(5, 1, "A1", lock.Write, 910, value(8)), grantB,
			sqlOp(9, 2, "A2", lock.Read, 624, value(7)), sqlOp(11, 2, "A2", lock.Write, 630, value(8)), lockOp(13, 2, "A2", lock.Release, 640, lock.Done),
			lockOp(15, 1, "A1", lock.Release, 912, lock.NotHeld)},
	}
	r.Result.Verdicts = []check.Verdict{v}
	r.Injections = []history.Injection{{ID: 1, Rule: r.Rules[0].Text, Effect: "freeze", Actor: "A1", Op: 5, At: 105 * ms, Confirmed: 106 * ms, Ended: 909 * ms, Outcome: "landed", Section: true}}
	return r
}

func integer(n int64) lock.Value { return lock.Value{Int: n, IsInt: true} }

func stepsOf(f *Figure) string {
	var b strings.Builder
	for _, s := range f.Steps {
		b.WriteString(At(s.At) + " " + f.Lanes[s.Lane].Letter + " " + s.Text)
		if s.Late {
			b.WriteString(" LATE")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestFigure(t *testing.T) {
	causes, more := pictured(integer).Causes()
	if len(causes) != 1 || more != 0 || causes[0].Figure == nil {
		t.Fatalf("%+v", causes)
	}
	const want = `101.000 A granted for 500ms
104.000 A reads 7
106.000 A is frozen (injection 1)
597.000 A its lease may be over
604.000 A its lease is over
621.000 B granted for 500ms
625.000 B reads 7
630.000 B writes 8
640.000 B releases
909.000 A goes on, 803ms later
910.000 A writes 8 LATE
912.000 A releases: it holds nothing
`
	if got := stepsOf(causes[0].Figure); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if c := causes[0]; !strings.HasPrefix(c.Premise, "Under a pause of 803ms: A (A1) was frozen, by ") || !strings.Contains(c.Do, "conditional") || !c.Bad {
		t.Errorf("%+v", c)
	}
}

// What is secret of a value stays so, and what is the same is told to be.
func TestFigureLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		value      func(int64) lock.Value
		read, puts string
	}{
		"integers": {integer, "reads 7", "writes 8"},
		"shifted":  {func(n int64) lock.Value { return lock.Value{Hash: "h", Rel: n + 1000, IsRel: true} }, "reads n", "writes n + 1"},
		"hashes":   {func(n int64) lock.Value { return lock.Value{Hash: strings.Repeat("9", int(n))} }, "reads v1", "writes v2"},
		"nothing":  {func(int64) lock.Value { return lock.Value{} }, "reads counter", "writes UPDATE counter"},
	} {
		causes, _ := pictured(tt.value).Causes()
		text := stepsOf(causes[0].Figure)
		if strings.Count(text, " A "+tt.read+"\n") != 1 || strings.Count(text, " B "+tt.read+"\n") != 1 || strings.Count(text, tt.puts) != 2 || strings.Contains(text, "1007") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// A pause of another process, or of another time, is no premise.
func TestPremise(t *testing.T) {
	for name, change := range map[string]func(*history.Injection){
		"another's": func(i *history.Injection) { i.Actor, i.Op = "A9", 99 },
		"earlier":   func(i *history.Injection) { i.At, i.Confirmed, i.Ended, i.Op = 1*ms, 2*ms, 50*ms, 0 },
		"later":     func(i *history.Injection) { i.At, i.Confirmed, i.Ended, i.Op = 2000*ms, 2001*ms, 2050*ms, 0 },
	} {
		r := pictured(integer)
		change(&r.Injections[0])
		causes, _ := r.Causes()
		if !strings.HasPrefix(causes[0].Premise, "No fault was injected") || strings.Contains(stepsOf(causes[0].Figure), "frozen") {
			t.Errorf("%s: %s\n%s", name, causes[0].Premise, stepsOf(causes[0].Figure))
		}
	}
}

// Verdicts about the same holders are one cause, and those about others are not.
func TestCausesAreGrouped(t *testing.T) {
	r := pictured(integer)
	of := func(code string, level check.Level, harm bool, term lock.TermID, key, table string) check.Verdict {
		v := verdict(code, level, harm, 1, "Proof.")
		v.Terms, v.Lock, v.Table = []lock.TermID{term}, key, table
		return v
	}
	r.Result.Verdicts = append(r.Result.Verdicts, of("LF101", check.Proven, false, 1, "lock:counter", ""), of("LF101", check.Proven, false, 9, "lock:counter", ""),
		of("LF101", check.Proven, false, 11, "lock:order:17", ""), of("LF101", check.Proven, false, 12, "lock:order:18", ""), of("LF403", check.Proven, true, 0, "", "counter"))
	causes, _ := r.Causes()
	var got []string
	for _, c := range causes {
		got = append(got, strings.Join(append([]string{c.Code, c.Where, times(c.Count)}, c.With...), "; "))
	}
	want := []string{
		"LF104; lock:counter, table counter; once; LF403 counter-mismatch, PROVEN harm x1; LF101 lease-overrun, PROVEN hazard x1",
		"LF101; lock:counter; once", "LF101; lock:order:*; 2 times",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// As many verdicts as a judge keeps, each of another cause, are laid together at once.
func TestManyCauses(t *testing.T) {
	r := pictured(integer)
	for i := range 1 << 14 {
		v := verdict("LF101", check.Proven, false, 1, "Proof.")
		v.Lock, v.Terms = "lock:"+strings.Repeat("x", i%200)+string(rune('a'+i/200%26))+string(rune('a'+i/5200)), []lock.TermID{lock.TermID(100 + i)}
		r.Result.Verdicts = append(r.Result.Verdicts, v)
	}
	if shown, more := r.Causes(); len(shown) != ShownCauses || more != 1<<14+1-ShownCauses {
		t.Errorf("%d shown, %d more", len(shown), more)
	}
}

func TestCausesAreBounded(t *testing.T) {
	r := pictured(integer)
	for i := range 3 * ShownCauses {
		v := verdict("LF101", check.Proven, false, 1, "Proof.")
		v.Lock, v.Terms = "lock:"+string(rune('a'+i%26))+string(rune('a'+i/26)), []lock.TermID{lock.TermID(100 + i)}
		r.Result.Verdicts = append(r.Result.Verdicts, v)
	}
	if shown, more := r.Causes(); len(shown) != ShownCauses || more != 2*ShownCauses+1 || shown[0].Code != "LF104" {
		t.Errorf("%d shown, %d more, %s first", len(shown), more, shown[0].Code)
	}
}

// However much a term did, a figure has room for so many steps, and the cited ones are among them.
func TestFiguresAreBounded(t *testing.T) {
	r := pictured(integer)
	p := r.Result.Verdicts[0].Picture
	for i := range 60 {
		p.Ops = append(p.Ops, sqlOp(uint64(100+i), 1, "A1", lock.Read, 200+i, integer(7)), lockOp(uint64(200+i), 1, "A1", lock.Renew, 300+i, lock.Done))
	}
	causes, _ := r.Causes()
	f := causes[0].Figure
	if len(f.Steps) > mostSteps || f.Left < 30 || strings.Count(stepsOf(f), "renews") != 1 {
		t.Errorf("%d steps, %d left\n%s", len(f.Steps), f.Left, stepsOf(f))
	}
	if text := stepsOf(f); strings.Count(text, "writes 8") != 2 {
		t.Errorf("what is cited is missing\n%s", text)
	}
}

func TestMermaidGolden(t *testing.T) {
	var b bytes.Buffer
	if err := Markdown(&b, pictured(integer)); err != nil {
		t.Fatal(err)
	}
	compare(t, filepath.Join("testdata", "pictured.md"), b.Bytes())
}

var (
	mermaidWord        = `(?:[A-Za-z0-9 .,()_]|#[0-9]+;)+`
	mermaidParticipant = regexp.MustCompile(`^    participant (L[0-9]|D) as ` + mermaidWord + `$`)
	mermaidMessage     = regexp.MustCompile(`^    (L[0-9]->>D|L[0-9]-xD|D-->>L[0-9]|Note over L[0-9]): ` + mermaidWord + `$`)
	mermaidKeyword     = regexp.MustCompile(`(?i)\bend\b`)
)

// A diagram has no line that mermaid's grammar would read as another, whatever the names are.
func TestMermaidIsValid(t *testing.T) {
	for _, name := range []string{"A1", "end", "x; L0->>D: y", "a\nparticipant z", "#35;", "`````", "<script>alert(1)</script>", "%%{init: {}}%%", "日本", strings.Repeat("x", 3000), "\u202e", ""} {
		r := pictured(integer)
		p := r.Result.Verdicts[0].Picture
		for i := range p.Ops {
			if p.Ops[i].SQL != nil {
				p.Ops[i].SQL.Table = name + "t"
				p.Ops[i].SQL.Set = append(p.Ops[i].SQL.Set, lock.Assign{Column: name, Value: integer(1)})
			}
		}
		p.Holdings[0].Actor, r.Result.Verdicts[0].Table = name, name+"t"
		var b bytes.Buffer
		if err := Markdown(&b, r); err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(b.String(), "\n```mermaid\nsequenceDiagram\n")
		diagram, _, closed := strings.Cut(rest, "\n```\n")
		if !ok || !closed {
			t.Fatalf("%q: no diagram in\n%s", name, b.String())
		}
		for _, line := range strings.Split(diagram, "\n") {
			if !mermaidParticipant.MatchString(line) && !mermaidMessage.MatchString(line) || mermaidKeyword.MatchString(line) {
				t.Errorf("%q: %s", name, line)
			}
		}
	}
}
