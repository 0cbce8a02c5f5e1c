package pgwire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// The quick look at a text finds the table that the reader finds, or nothing.
func TestSelected(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT abalance FROM pgbench_accounts WHERE aid = 7;": "pgbench_accounts",
		"select a, b.c, * from t":                              "t",
		"select distinct a as x\nfrom s.t\nwhere b = ';'":      "",
		"select a from public.t where b = 'x' for update ; \n": "",
		"select a from t where b in (select FOR from u)":       "",
		"select a from t where \"pg_try_advisory_lock\"(1)":    "",
		"select from t":                  "t",
		"select a from t; delete from u": "",
		"select a into u from t":         "",
		"select f(a) from t":             "",
		"select a from f(1)":             "",
		"select a from t, u":             "",
		"select a from only t":           "",
		"select a from T":                "",
		"select 'x' from t":              "",
		"select a /* from t */ from u":   "",
		"select a from":                  "",
		"select 1":                       "",
		"select":                         "",
		"delete from t":                  "",
		"":                               "",
		"selection from t":               "",
		"select a from 7":                "",
		"select a from lateral t":        "",

		"select a as from from t":                  "",
		"select a AS b from t":                     "t",
		"select as from t":                         "",
		"select t.from from t":                     "",
		"select t . from from t":                   "",
		"select t.* from t":                        "t",
		"select a is distinct from b from t":       "",
		"select a from rows from (f(1)), t":        "",
		"select value as from from t where id = 1": "",
	} {
		if got := string(selected([]byte(sql))); got != want {
			t.Errorf("%s: table %q, want %q", sql, got, want)
		}
	}
}

// FuzzSelected holds the quick look to what the reader says.
func FuzzSelected(f *testing.F) {
	for _, s := range []string{sqlRead, sqlAccount, "select a, b.c as d from s.t where x = 1;", "select distinct a from t for update",
		"select a as from from t", "select t.from from t", "select a is distinct from b from t", "select a as b, c as from from t as u"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		table := string(selected([]byte(sql)))
		if table == "" {
			return
		}
		if wrong := readsOtherwise(sql, table); wrong != "" {
			t.Fatalf("%q: quick look says %q, the reader %s", sql, table, wrong)
		}
	})
}

// readsOtherwise returns what the reader finds in a text, if that is not a
// SELECT from the table.
func readsOtherwise(sql, table string) string {
	list := readSQL(sql, false)
	if len(list) == 1 && len(list[0].holds) == 0 && (list[0].kind == "" || list[0].kind == lock.Read) && (list[0].kind == "" && list[0].shape.Table == "" || list[0].shape.Table == table) {
		return ""
	}
	return fmt.Sprintf("%+v", list)
}

// Words in any order, as they stand around a FROM.
func TestSelectedWords(t *testing.T) {
	words := strings.Split("a|b|,|.|*|FROM|t|public.t|rows|only|as|WHERE|is|=|1|(|)|;|UNION|FOR|UPDATE|with|table|join|on|lateral|'s'|--c|\n|distinct|all|order|by|select|from|window|except|", "|")
	rnd := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 40000 {
		sql := "SELECT"
		for range 2 + rnd.IntN(8) {
			sql += " " + words[rnd.IntN(len(words))]
			if rnd.IntN(3) == 0 {
				sql += " FROM"
			}
		}
		table := string(selected([]byte(sql)))
		if table == "" {
			continue
		}
		found++
		if wrong := readsOtherwise(sql, table); wrong != "" {
			t.Fatalf("%q: quick look says %q, the reader %s", sql, table, wrong)
		}
	}
	if found < 100 {
		t.Errorf("a table in %d texts", found)
	}
}

func reading(answer *bool, asked *[]string) *Tracker {
	tr := newTracker()
	tr.opt.Reads = func(table string) bool {
		*asked = append(*asked, table)
		return *answer
	}
	return tr
}

// A SELECT that does not matter is no op, and one that does again is one, be it
// with a statement prepared meanwhile.
func TestReads(t *testing.T) {
	row := be{boundOK, rowd("value", 23), data("7"), c("SELECT 1"), z('I')}
	for _, tt := range []struct {
		name string
		ask  fe
		got  be
		want string
	}{
		{"simple", fe{q("select value from public.counter where id = 1")}, be{rowd("value", 23), data("7"), c("SELECT 1"), z('I')}, "[Q]"},
		{"read by the reader", fe{q("select coalesce(value, 0) from public.counter where id = 1")}, be{rowd("value", 23), data("7"), c("SELECT 1"), z('I')}, "[Q]"},
		{"unnamed", fe{p("", "select value from public.counter where id = $1"), b("", "", "1"), dp(""), e(""), syn}, append(be{parsed}, row...), "[PBDE]"},
		{"prepared", fe{b("", "s", "1"), dp(""), e(""), syn}, row, "[BDE]"},
		{"from a portal with a name", fe{b("p", "s", "1"), dp("p"), e("p"), syn}, row, "[BDE]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var answer bool
			var asked []string
			pl := newPlayer(t, reading(&answer, &asked))
			pl.play(encode(t, append(started[:2:2], fe{p("s", "select value from public.counter where id = $1"), syn}, be{parsed, z('I')})), 0)
			for _, n := range []int{0, 1, 9} {
				asked = nil
				for _, answer = range []bool{false, true, false} {
					pl.marks = nil
					pl.play(encode(t, []any{tt.ask, tt.got}), n)
					if !answer && len(pl.marks) > 0 {
						t.Fatalf("in pieces of %d: %s", n, pl.text())
					}
					if answer && (len(pl.marks) != 3 || pl.covers(pl.marks[0]) != tt.want[1:len(tt.want)-1] || len(pl.marks[1].Op.Row) != 1 || pl.marks[1].Op.Row[0].Column != "value") {
						t.Fatalf("in pieces of %d: %s", n, pl.text())
					}
				}
				for _, name := range asked {
					if name != "counter" {
						t.Fatalf("asked about %q", name)
					}
				}
				if len(asked) < 3 {
					t.Fatalf("asked %d times", len(asked))
				}
			}
		})
	}
}

// What changes between Bind and Execute makes no half an op.
func TestReadsChangeBeforeExecute(t *testing.T) {
	answer, asked := false, []string(nil)
	pl := newPlayer(t, reading(&answer, &asked)).play(encode(t, append(started[:2:2], fe{p("", sqlRead), b("", "", "1")})), 0)
	answer = true
	pl.play(encode(t, []any{fe{e(""), syn}, be{parsed, boundOK, data("7"), c("SELECT 1"), z('I')}}), 0)
	if pl.text() != "" {
		t.Error(pl.text())
	}
	pl.play(encode(t, []any{fe{p("", sqlRead), b("", "", "1")}}), 0)
	answer = false
	pl.play(encode(t, []any{fe{e(""), syn}, be{parsed, boundOK, data("7"), c("SELECT 1"), z('I')}}), 0)
	if pl.text() != "" {
		t.Error(pl.text())
	}
}

// Nothing of a SELECT that does not matter waits, is copied or costs memory,
// whatever values it has in it.
func TestReadsThatDoNotMatterCostNothing(t *testing.T) {
	var simple [][]byte
	for i := range 64 {
		simple = append(simple, enc(t, fe{q(fmt.Sprintf("SELECT abalance FROM pgbench_accounts WHERE aid = %d;", i))}))
	}
	exec := enc(t, fe{b("", "P_0", "7"), dp(""), e(""), syn})
	row := be{rowd("abalance", 23), data("-5"), c("SELECT 1"), z('I')}
	answer, prepared := encode(t, []any{row})[0].bytes, encode(t, []any{append(be{boundOK}, row...)})[0].bytes
	pl := newPlayer(t, unread()).play(encode(t, append(started[:2:2], fe{p("P_0", sqlAccount), syn}, be{parsed, z('I')})), 0)
	var marks []wire.Mark
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		i++
		marks, _ = pl.tracker.Client(simple[i%64], marks[:0])
		marks, _ = pl.tracker.Upstream(answer, marks)
		marks, _ = pl.tracker.Client(exec, marks)
		marks, _ = pl.tracker.Upstream(prepared, marks)
	}); n > 0 || len(marks) > 0 {
		t.Errorf("%v allocations, %d marks", n, len(marks))
	}
	large := enc(t, fe{b("", "P_0", string(make([]byte, 300_000)))})
	pl.held = 0
	pl.pos[0], pl.clear[0] = pl.tracker.client.pos, pl.tracker.client.pos
	pl.play([]turn{{true, large}}, 1000)
	if pl.held > 2048 || cap(pl.tracker.client.buf) > 2048 {
		t.Errorf("withheld %d, copied %d", pl.held, cap(pl.tracker.client.buf))
	}
}

// A statement that a rule comes to name is an op from then on, be it one that was prepared before.
func TestWantedFromNowOn(t *testing.T) {
	for _, ask := range []fe{{q("LISTEN jobs")}, {b("", "s"), e(""), syn}} {
		var wanted bool
		tr := newTracker()
		tr.opt.Wants = func(verb string) bool { return wanted && verb == "LISTEN" }
		pl := newPlayer(t, tr).play(encode(t, append(started[:2:2], fe{p("s", "LISTEN jobs"), syn}, be{parsed, z('I')})), 0)
		for _, wanted = range []bool{false, true, false, true} {
			pl.marks = nil
			got := be{c("LISTEN"), z('I')}
			if len(ask) > 1 {
				got = append(be{boundOK}, got...)
			}
			pl.play(encode(t, []any{ask, got}), 0)
			if ops := len(pl.marks) > 0; ops != wanted || wanted && pl.marks[0].Op.Verb != "LISTEN" {
				t.Errorf("wanted %t: %s", wanted, pl.text())
			}
		}
	}
}
