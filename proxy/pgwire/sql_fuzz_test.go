package pgwire

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lockfaultd/lockfaultd/lock"
)

// FuzzReadSQL holds the reader of SQL to what it promises of any text.
func FuzzReadSQL(f *testing.F) {
	listed(f, func(_, sql string) { f.Add(sql, uint16(len(sql)/2)) })
	for _, s := range []string{`update t set (a,b) = row(1,$2); select 1`, `execute p('`, `E'\`, `$a$`, `"`, `/*/`, `copy t (`, `U&"`, `begin atomic case`, "'a'\n 'b'--\n'c'", `+-+-*+-`} {
		f.Add(s, uint16(3))
	}
	for _, s := range []string{"WITH RECURSIVE 0 AS(000 FROM B), B AS (", "WITH RECURSIVE a AS (SELECT 1 FROM b), b AS (SELECT 2) SELECT 3", "SELECT (WITH RECURSIVE a AS (SELECT 1 FROM b,b), b AS (SELECT 2) SELECT 3)"} {
		for n := range len(s) {
			f.Add(s, uint16(n))
		}
	}
	for _, script := range leaseScripts {
		for _, s := range script.steps {
			f.Add(s.sql, uint16(9))
		}
	}
	f.Fuzz(func(t *testing.T, sql string, n uint16) {
		checkTokens(t, sql)
		list := readSQL(sql, false)
		checkReadings(t, sql, list)
		if got, most := weigh(list), 4*len(sql)+64<<10+templateBytes*len(list); got > most {
			t.Fatalf("templates of %d bytes, expected at most %d", got, most)
		}
		checkFilled(t, sql)
		checkCut(t, sql, list, int(n)%(len(sql)+1))
	})
}

// checkTokens: with what lies between them, tokens are the text.
func checkTokens(t *testing.T, sql string) {
	end := 0
	for l := (lexer{src: sql}); ; {
		tok := l.next()
		from := l.pos - len(tok.text)
		if from < end || l.pos > len(sql) || sql[from:l.pos] != tok.text || tok.kind != tokEnd && tok.text == "" {
			t.Fatalf("a token %q at %d to %d, behind one that ends at %d", tok.text, from, l.pos, end)
		}
		if gap := (lexer{src: sql[end:from]}); gap.next().kind != tokEnd {
			t.Fatalf("%q is left out", sql[end:from])
		}
		if end = l.pos; tok.kind == tokEnd {
			break
		}
	}
	if end != len(sql) {
		t.Fatalf("the text ends at %d, its tokens at %d", len(sql), end)
	}
}

// checkReadings: statements lie in order, nothing but semicolons between them,
// and one alone is read as it is among others.
func checkReadings(t *testing.T, sql string, list []template) {
	end := 0
	for i, r := range Read(sql) {
		if r.From < end || r.To <= r.From || strings.Trim(spaced(sql[end:r.From]), "; ") != "" {
			t.Fatalf("a statement at %d to %d, behind one that ends at %d", r.From, r.To, end)
		}
		end = r.To
		alone := Read(sql[r.From:r.To])
		if len(alone) != 1 || alone[0].line() != r.line() || alone[0].Maybe != r.Maybe || alone[0].Secret != r.Secret {
			t.Fatalf("%q: alone %+v, among others %+v", sql[r.From:r.To], alone, r)
		}
		checkTemplate(t, sql, &list[i], r)
	}
}

// checkFilled: what a text does to locks can be told of any values.
func checkFilled(t *testing.T, sql string) {
	tr := newTracker()
	for _, tm := range sealed(hasher, []byte(sql), false) {
		from := &timed{make(bound, tm.params), make([]moment, tm.params)}
		for i := range from.bound {
			from.bound[i], from.moments[i] = hasher.Of([]byte{byte('0' + i%10)}), moment{momentKind(i % 4), 1.8e9}
		}
		for range 2 { // the second time the table may be known
			d := tr.do(&tm, from, tm.fill(from))
			if len(d.locks) > maxCalls+maxTables+2 {
				t.Fatalf("%q: %d locks", sql, len(d.locks))
			}
			for i := range d.locks {
				l := &d.locks[i]
				if l.op.Key == "" && !l.op.All || l.op.TTL < 0 {
					t.Fatalf("%q: %+v", sql, l.op)
				}
			}
			tr.settleLocks(&d, 1)
		}
	}
}

// spaced returns a text's tokens with a space between them.
func spaced(sql string) string {
	var b strings.Builder
	for l := (lexer{src: sql}); ; {
		tok := l.next()
		if tok.kind == tokEnd {
			return b.String()
		}
		b.WriteString(tok.text + " ")
	}
}

// checkTemplate: a template says what its reading does, and is bounded.
func checkTemplate(t *testing.T, sql string, tm *template, r Reading) {
	switch {
	case tm.verb != r.Verb || !tm.system && tm.kind != r.Kind:
		t.Fatalf("%q: %s and %+v", sql, line(*tm), r)
	case tm.shape.Table != "" && !slices.Contains(r.Tables, tm.shape.Table):
		t.Fatalf("%q: table %q of %q", sql, tm.shape.Table, r.Tables)
	case tm.kind == lock.Write && len(r.Writes) > 0 && !slices.Contains(r.Writes, tm.shape.Table):
		t.Fatalf("%q: writes %q of %q", sql, tm.shape.Table, r.Writes)
	case len(tm.set) > maxSlots || len(tm.where) > maxSlots || len(tm.shape.Columns) > maxSlots || len(tm.also) > maxMentions || tm.params > maxParams:
		t.Fatalf("%q: a template is not bounded", sql)
	case utf8.ValidString(sql) && !utf8.ValidString(tm.shape.Table):
		t.Fatalf("%q: table %q", sql, tm.shape.Table)
	}
}

// checkCut: of a text that was cut, nothing is told that the whole of it belies.
func checkCut(t *testing.T, sql string, whole []template, n int) {
	list := readSQL(sql[:n], true)
	for i := range list {
		if i+1 < len(list) && line(list[i]) != line(whole[i]) {
			t.Fatalf("%q: cut to %q, %q is %q", sql, sql[:n], line(list[i]), line(whole[i]))
		}
	}
	if len(list) == 0 || strings.HasSuffix(strings.TrimSpace(sql[:n]), ";") {
		return
	}
	last := list[len(list)-1]
	r := Read(sql)[len(list)-1]
	switch {
	case !last.shape.Opaque || len(last.set)+len(last.where)+len(last.shape.Columns) > 0:
		if line(last) != line(whole[len(list)-1]) {
			t.Fatalf("%q: cut to %q, %q is %q", sql, sql[:n], line(last), line(whole[len(list)-1]))
		}
	case last.kind == lock.Write && r.Kind != lock.Write, last.kind == lock.Read && r.Kind != lock.Read && r.Kind != lock.Write:
		t.Fatalf("%q: cut to %q, a %s is a %s", sql, sql[:n], last.kind, r.Kind)
	case last.shape.Table != "" && !slices.Contains(r.Tables, last.shape.Table) && !later(sql):
		t.Fatalf("%q: cut to %q, table %q of %q", sql, sql[:n], last.shape.Table, r.Tables)
	}
}

// later reports whether a text may have what changes a name that came before.
func later(sql string) bool {
	return strings.Contains(strings.ToUpper(sql), "UESCAPE")
}

func TestSettled(t *testing.T) {
	for sql, want := range map[string]string{
		"select a from counter where id = 12": "select a from counter where id = ",
		"select a from count":                 "select a from ",
		"select a from s.cou":                 "select a from ",
		"select a from s.":                    "select a from ",
		"select a from s.t w":                 "select a from s.t ",
		"select a from f(":                    "select a from f(",
		"insert into t values ('xxx":          "insert into t values (",
		"select a from t /* x":                "select a from ",
		"select a from t, ":                   "select a from t,",
		"select 1; upd":                       "select 1; ",
		"sel":                                 "",
		"select a from s.u&":                  "select a from ",
		"":                                    "",
	} {
		if got := sql[:settled(sql)]; got != want {
			t.Errorf("%q: settled %q, want %q", sql, got, want)
		}
	}
}

// A text is read in time that grows as its length does, whatever it is made of.
func TestReadingIsLinear(t *testing.T) {
	const n, times = 2 << 10, 64
	for _, part := range []string{
		"(", ")", "[", "'", "\"", "''", "'a'\n", "'a' ", "$$", "$a", "$a$ ", "/*", "*/", "--\n", "+-", "+-*", "a;", "select ", "from t,", "a.", "::", "case ", "end ", "with x as (",
		"with recursive x as (select * from y), ", "(select ", "((a)", "a=1 and ", "a=1 or (", "(a,", "union ", "e'\\", "u&\"a\" uescape ", "begin atomic ", "prepare p as ", "explain ", "a is distinct from ", "set a = (",
	} {
		for _, before := range []string{"", "select a from t where ", "update t set a = ", "insert into t (a) values ("} {
			short, long := before+strings.Repeat(part, n/len(part)), before+strings.Repeat(part, times*n/len(part))
			if !linear(short, long, 12*times) {
				t.Errorf("%q and %q again and again: the time grows faster than %d to %d bytes", before, part, len(short), len(long))
			}
		}
	}
}

// linear reports whether the long text took at most so many times as long as
// the short one, once: whoever else is at work can only make it slower.
func linear(short, long string, most time.Duration) bool {
	for range 10 {
		if quickest(long) <= most*max(quickest(short), 20*time.Microsecond) {
			return true
		}
	}
	return false
}

func quickest(sql string) time.Duration {
	least := time.Hour
	for range 3 {
		start := time.Now()
		readSQL(sql, false)
		least = min(least, time.Since(start))
	}
	return least
}

// Many statements with long lists keep no more than their text is worth, and
// still say what they do.
func TestReadingIsWeighed(t *testing.T) {
	sql := strings.Repeat("update t set a=1"+strings.Repeat(",a=1", maxSlots-1)+";", 500)
	list := readSQL(sql, false)
	if got, most := weigh(list), budgetTimes*len(sql)+budgetLeast+templateBytes*len(list); got > most || len(list) != 500 {
		t.Fatalf("%d templates of %d bytes, expected at most %d", len(list), got, most)
	}
	if first, last := list[0], list[499]; len(first.set) != maxSlots || len(last.set) > 0 || !last.shape.Opaque || last.kind != lock.Write || last.shape.Table != "t" {
		t.Errorf("the first %s, the last %s", line(first), line(last))
	}
}
