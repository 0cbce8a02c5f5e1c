package pgwire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

func TestBlind(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script []any
		server string
		want   string
	}{
		{"client's length too small", []any{[]byte("Q\x00\x00\x00\x03abc")}, "", `blind client's message 'Q': length 3, expected 4 to 1073741824`},
		{"client's length too large", []any{[]byte("B\xff\xff\xff\xffabc")}, "", `blind client's message 'B': length 4294967295, expected 4 to 1073741824`},
		{"upstream's length", []any{fe{q("select 1")}}, "T\x00\x00\x00\x00", `blind upstream's message 'T': length 0, expected 4 to 1073741824`},
		{"not asked", nil, "1\x00\x00\x00\x04", `blind upstream's message '1': nothing was asked`},
		{"not asked for readiness", nil, "Z\x00\x00\x00\x05I", `blind upstream's message 'Z': nothing was asked`},
		{"another reply", []any{fe{p("", "x")}}, "2\x00\x00\x00\x04", `blind upstream's message '2': expected the reply to 'P'`},
		{"ready too early", []any{fe{p("", "x"), syn}}, "Z\x00\x00\x00\x05I", `blind upstream's message 'Z': expected the reply to 'P'`},
		{"ready after an error without a Sync", []any{fe{p("", "x")}}, "E\x00\x00\x00\x05\x00Z\x00\x00\x00\x05I", `blind upstream's message 'Z': no Sync was sent after an error, expected none`},
		{"not ready after an error", []any{fe{p("", "x"), syn}}, "E\x00\x00\x00\x051\x00\x00\x00\x04", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want == "" {
				tt.server = "E\x00\x00\x00\x05\x001\x00\x00\x00\x04"
				tt.want = `blind upstream's message '1': expected ReadyForQuery after an error`
			}
			for n := range 9 {
				pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], tt.script...)), n)
				pl.play([]turn{{false, []byte(tt.server)}}, n)
				if pl.text() != tt.want || pl.tracker.phase != opaque {
					t.Fatalf("in pieces of %d: %s", n, pl.text())
				}
				pl.play(encode(t, []any{fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')}}), n)
				if pl.text() != tt.want || pl.clear != pl.pos {
					t.Fatalf("what followed was read, or withheld: %s", pl.text())
				}
			}
		})
	}
}

func TestTooManyAsked(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  fe
		most int
		want string
	}{
		{"of nothing", fe{q("")}, maxAsked, `4194304 requests are unanswered, with 0 KiB of ops and names, expected fewer`},
		{"Queries", fe{q("savepoint a; savepoint b")}, maxWeight / 4, `262144 requests are unanswered, with 1048576 KiB of ops and names, expected fewer`},
		{"Describes of a statement", fe{ds("s")}, maxWeight, `1048576 requests are unanswered, with 1048576 KiB of ops and names, expected fewer`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			msgs := enc(t, tt.ask)
			tr := newTracker()
			newPlayer(t, tr).play(encode(t, append(started[:2:2], fe{p("s", sqlWrite), syn}, be{parsed, z('I')})), 0)
			const step = 1 << 10
			chunk := bytes.Repeat(msgs, step)
			for range tt.most / step {
				if tr.Client(chunk, nil); tr.phase == opaque {
					t.Fatal("it is given up too early")
				}
			}
			marks, _ := tr.Client(msgs, nil)
			if len(marks) != 1 || !strings.HasSuffix(marks[0].Reason, fmt.Sprintf("client's message %q: %s", msgs[0], tt.want)) {
				t.Errorf("%+v", marks)
			}
		})
	}
}

// An implicit transaction whose end does not come is given up, whether its
// statements run or are skipped.
func TestTooManyUnsettled(t *testing.T) {
	ask := enc(t, fe{b("", "s", "1", "1"), e("")})
	for _, reply := range []be{{boundOK, c("UPDATE 1")}, nil} {
		pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], fe{p("s", sqlWrite), syn}, be{parsed, z('I')})), 0)
		answer := encode(t, []any{reply})[0].bytes
		if reply == nil {
			pl.play(encode(t, []any{fe{p("", "x")}, be{bad("42601")}}), 0)
		}
		for range maxUnsettled + 2 {
			pl.feed(true, ask)
			pl.feed(false, answer)
		}
		pl.play(encode(t, []any{fe{syn}, be{z('I')}}), 0)
		if n := len(pl.marks); pl.marks[n-1].Kind != wire.Blind || pl.tracker.phase != opaque {
			t.Errorf("the last mark is %+v", pl.marks[n-1])
		}
	}
}

func TestOp(t *testing.T) {
	turns := encode(t, append(started[:2:2],
		fe{p("s", sqlClaim), ds("s"), flush}, be{parsed, types(20), rowd("value", 23)},
		fe{bin(b("", "s", eight)), e(""), syn}, be{boundOK, data(four), c("UPDATE 1"), z('I')}))
	pl := newPlayer(t, newTracker()).play(turns, 0)
	op := pl.marks[0].Op
	if op.Session != 7 || op.Upstream != "main/u" || op.Proto != lock.Postgres || op.Kind != lock.Write || op.Verb != "UPDATE" {
		t.Errorf("op %+v", op)
	}
	want := hasher.Of([]byte("8"))
	sql := op.SQL
	if sql.Set[0] != (lock.Assign{Column: "fence", Value: want}) || sql.Where[0] != (lock.Cond{Column: "id", Op: "=", Value: hasher.Of([]byte("1"))}) ||
		sql.Where[1] != (lock.Cond{Column: "fence", Op: "<", Value: want}) || !sql.Returning {
		t.Errorf("statement %+v", sql)
	}
	if len(op.Row) != 1 || op.Row[0] != (lock.Cell{Column: "value", Value: hasher.Of([]byte("7"))}) {
		t.Errorf("row %+v", op.Row)
	}
}

// Two executions of one text share nothing that is theirs.
func TestTemplatesAreNotShared(t *testing.T) {
	cache := NewCache()
	var ops []*lock.Op
	for _, v := range []string{"1", "2"} {
		tr := NewTracker(Options{Hash: hasher, Statements: cache})
		pl := newPlayer(t, tr).play(encode(t, append(started[:2:2], fe{p("", "update t set a = $1, n = n - $1"), b("", "", v), e("")})), 0)
		ops = append(ops, pl.marks[0].Op)
	}
	if ops[0].SQL.Set[0].Value == ops[1].SQL.Set[0].Value || ops[0].SQL.Set[1].Delta != -1 || ops[1].SQL.Set[1].Delta != -2 || !ops[1].SQL.Set[1].HasDelta {
		t.Errorf("%+v %+v", ops[0].SQL, ops[1].SQL)
	}
}

// The names of a client that never closes its statements do not pile up.
func TestC053StatementsAreBounded(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	for i := range 3 * maxStatements {
		name := fmt.Sprintf("s%d", i)
		pl.play(encode(t, []any{fe{p(name, sqlRead), b(name, name, "1"), syn}, be{parsed, boundOK, z('T')}}), 0)
	}
	for _, n := range []int{len(pl.tracker.statements.named.young) + len(pl.tracker.statements.named.old), len(pl.tracker.portals.named.young) + len(pl.tracker.portals.named.old)} {
		if n > maxStatements {
			t.Errorf("%d names are kept", n)
		}
	}
	last := fmt.Sprintf("s%d", 3*maxStatements-1)
	pl.play(encode(t, []any{fe{b("", last, "1"), e(""), syn}}), 0)
	if len(pl.marks) != 1 {
		t.Error("the newest statement has been forgotten")
	}
}

func TestStore(t *testing.T) {
	s := store[int]{entries: 8, bytes: 1000}
	get := func(key string) int { v, _ := s.get([]byte(key)); return v }
	s.set("a", 1)
	s.set("b", 2)
	s.set("c", 3)
	s.set("x", 9) // the younger generation is full
	if get("a") != 1 || get("b") != 2 || get("c") != 3 {
		t.Error("a recent entry is gone")
	}
	s.drop("b")
	if get("b") != 0 {
		t.Error("a dropped entry is there")
	}
	s.set("d", 4)
	s.clear()
	if get("a")+get("c")+get("d") != 0 {
		t.Error("entries survive clear")
	}
}

func TestTrafficWithoutOpsAllocatesNothing(t *testing.T) {
	msgs := enc(t, fe{q("select 1"), q("set x = 1"), p("", "select $1"), b("", "", "1"), dp(""), e(""), syn, copyData, flush})
	reply := encode(t, []any{be{rowd("x", 23), data("1"), c("SELECT 1"), z('I'), c("SET"), status, z('I'), parsed, boundOK, rowd("x", 23), data("1"), notice, c("SELECT 1"), z('I')}})[0].bytes
	pl := newPlayer(t, newTracker()).play(encode(t, started), 0)
	var marks []wire.Mark
	if n := testing.AllocsPerRun(1000, func() {
		marks, _ = pl.tracker.Client(msgs[:11], marks[:0])
		marks, _ = pl.tracker.Client(msgs[11:], marks)
		marks, _ = pl.tracker.Upstream(reply[:20], marks)
		marks, _ = pl.tracker.Upstream(reply[20:], marks)
	}); n > 0 || len(marks) > 0 {
		t.Errorf("%v allocations, %d marks", n, len(marks))
	}
}

// An expression does not take the name of its alias, be it told by the text or
// by upstream.
func TestExpressionsHaveNoName(t *testing.T) {
	for sql, want := range map[string]string{
		"select value + 1 as value from counter":    "",
		"select count(*) as value from counter":     "",
		"select * from counter":                     "value",
		"select other as value from counter":        "other",
		"select coalesce(other, 0) as value from t": "other",
	} {
		pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], fe{q(sql)}, be{rowd("value", 23), data("42"), c("SELECT 1"), z('I')})), 0)
		if row := pl.marks[1].Op.Row; len(row) != 1 || row[0].Column != want {
			t.Errorf("%s: row %+v, want column %q", sql, row, want)
		}
	}
	desc := &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("id"), TableOID: 1}, {Name: []byte("value")}}}
	pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], fe{q("select * from counter, (select 1 as value) x")}, be{desc, data("1", "42"), c("SELECT 1"), z('I')})), 0)
	if row := pl.marks[1].Op.Row; row[0].Column != "id" || row[1].Column != "" {
		t.Errorf("row %+v", row)
	}
}

// Copy data behind many Syncs must not look at all of them each time.
func TestCopyDataBehindSyncs(t *testing.T) {
	const n = 100_000
	for _, first := range []fe{{p("", "copy t from stdin"), b("", ""), e("")}, {q("select 1")}} {
		tr := newTracker()
		newPlayer(t, tr).play(encode(t, append(started[:2:2], first)), 0)
		began := time.Now()
		tr.Client(bytes.Repeat([]byte("S\x00\x00\x00\x04"), n), nil)
		tr.Client(bytes.Repeat([]byte("d\x00\x00\x00\x04"), n), nil)
		if took := time.Since(began); took > 5*time.Second || tr.asked.len() < n {
			t.Errorf("took %v, with %d requests", took, tr.asked.len())
		}
	}
}
