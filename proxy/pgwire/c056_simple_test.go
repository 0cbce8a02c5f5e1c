package pgwire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// A said is a Query, what the server answers, and the ops as they ended.
type said struct{ sql, on15, on18, want string }

func tryQueries(t *testing.T, setup string, list []said) {
	for _, tt := range list {
		t.Run(tt.sql, func(t *testing.T) {
			both(t, setup, func(w *tap) {
				w.send(q(tt.sql))
				on15 := tt.on15
				if w.version == 18 && tt.on18 != "" {
					on15 = tt.on18
				}
				w.want(on15)
				if strings.HasSuffix(on15, "Z:T") || strings.HasSuffix(on15, "Z:E") {
					w.send(q("rollback"))
					w.want("C:ROLLBACK Z:I")
				}
				if got := trimmed(outcomes(w.pl.marks)); got != lines(tt.want) {
					t.Errorf("got\n%s\nwant\n%s", got, lines(tt.want))
				}
				checkSettled(t, w.pl.marks)
			})
		})
	}
}

func TestC056SeveralStatements(t *testing.T) {
	tryQueries(t, tables, []said{
		{"select 1; " + sqlUpdate + ";; select value from counter where id = 1 /* ; */; set a.b = ';'", "T D C:SELECT_1 C:UPDATE_1 T D C:SELECT_1 C:SET Z:I", "",
			"UPDATE done 1 value:8+0\nSELECT done 1 value=8"},
		{sqlUpdate + "; select 1 / 0; delete from counter", "C:UPDATE_1 E:22012 Z:I", "", "UPDATE rolled-back 1 value:8+0\nDELETE failed 0 skipped"},
		{sqlUpdate + "; no sql; delete from counter", "E:42601 Z:I", "", "UPDATE failed 0 value:8+0 42601\nDELETE failed 0 skipped"},
	})
}

func TestC057EmptyQueries(t *testing.T) {
	tryQueries(t, tables, []said{{"", "I Z:I", "", ""}, {"-- nothing", "I Z:I", "", ""}, {";;", "I Z:I", "", ""}, {" /* ; */ ; ", "I Z:I", "", ""}})
	both(t, tables, func(w *tap) {
		w.send(p("", ""), b("", ""), dp(""), e(""), syn, q(sqlUpdate))
		w.want("1 2 n I Z:I C:UPDATE_1 Z:I")
		w.marks(`ask UPDATE counter write tx1i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`)
	})
}

func TestC058ImplicitAndExplicitInOneQuery(t *testing.T) {
	insert := "insert into counter (id) values (5)"
	tryQueries(t, tables, []said{
		{insert + "; commit; select 1 / 0", "C:INSERT_0_1 N:25P01 C:COMMIT E:22012 Z:I", "", "INSERT done 1 id:5+0\nCOMMIT done 0"},
		{insert + "; begin; select 1 / 0", "C:INSERT_0_1 C:BEGIN E:22012 Z:E", "", "INSERT rolled-back 1 id:5+0\nBEGIN done 0\nROLLBACK done 0"},
		{insert + "; begin; " + sqlUpdate + "; commit; delete from counter; rollback", "C:INSERT_0_1 C:BEGIN C:UPDATE_1 C:COMMIT C:DELETE_3 N:25P01 C:ROLLBACK Z:I", "",
			"INSERT done 1 id:5+0\nBEGIN done 0\nUPDATE done 1 value:8+0\nCOMMIT done 0\nDELETE rolled-back 3\nROLLBACK done 0"},
	})
}

func TestC059EndsOfTransactions(t *testing.T) {
	tryQueries(t, tables, []said{
		{"begin; " + sqlUpdate + "; end", "C:BEGIN C:UPDATE_1 C:COMMIT Z:I", "", "BEGIN done 0\nUPDATE done 1 value:8+0\nEND done 0"},
		{"start transaction; abort", "C:START_TRANSACTION C:ROLLBACK Z:I", "", "START done 0\nABORT done 0"},
		{"begin; " + sqlUpdate + "; commit and chain", "C:BEGIN C:UPDATE_1 C:COMMIT Z:T", "", "BEGIN done 0\nUPDATE done 1 value:8+0\nCOMMIT done 0\nROLLBACK done 0"},
		{"begin; rollback and chain", "C:BEGIN C:ROLLBACK Z:T", "", "BEGIN done 0\nROLLBACK done 0\nROLLBACK done 0"},
		{"begin; insert into child values (5); commit", "C:BEGIN C:INSERT_0_1 E:23503 Z:I", "", "BEGIN done 0\nINSERT done 1\nCOMMIT failed 0 23503"},
	})
	both(t, tables, func(w *tap) {
		w.send(q("begin"), q("select 1 / 0"), q(sqlUpdate), q("commit"))
		w.want("C:BEGIN Z:T E:22012 Z:E E:25P02 Z:E C:ROLLBACK Z:I")
		w.marks(`ask BEGIN begin tx1 [Q]
			ask UPDATE counter write tx1 [Q]
			ask COMMIT commit tx1 tables=counter [Q]
			got BEGIN done rows=0 [C]
			got UPDATE failed rows=0 err=25P02 [E]
			got COMMIT rolled-back rows=0 [C]`)
	})
	both(t, tables, func(w *tap) {
		w.send(q("begin; "+sqlUpdate+"; savepoint a; "+sqlUpdate+"; savepoint b; "+sqlUpdate), q("rollback to a; release a"), q(sqlUpdate), q("commit and chain"), q(sqlUpdate), q("rollback"))
		w.want("C:BEGIN C:UPDATE_1 C:SAVEPOINT C:UPDATE_1 C:SAVEPOINT C:UPDATE_1 Z:T C:ROLLBACK C:RELEASE Z:T C:UPDATE_1 Z:T C:COMMIT Z:T C:UPDATE_1 Z:T C:ROLLBACK Z:I")
		got := w.pl.text()
		for _, want := range []string{"got ROLLBACK done rows=0 since=3 [", "ask COMMIT commit tx1 tables=counter", "ask ROLLBACK rollback tx2 ["} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: not in\n%s", want, got)
			}
		}
	})
	// Two phases need a table that stays.
	both(t, "create table if not exists two_phase (id int)", func(w *tap) {
		name := fmt.Sprint("'c059_", w.version, "'")
		w.send(q("begin; insert into two_phase values (1); prepare transaction "+name), q("commit prepared "+name))
		w.want("C:BEGIN C:INSERT_0_1 C:PREPARE_TRANSACTION Z:I C:COMMIT_PREPARED Z:I")
		if got := trimmed(outcomes(w.pl.marks)); got != "BEGIN done 0\nINSERT done 1\nPREPARE unknown 0" {
			t.Error(got)
		}
	})
}

func TestC060CommitOfNothing(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(q(sqlUpdate), q("commit"), q("rollback"))
		w.want("C:UPDATE_1 Z:I N:25P01 C:COMMIT Z:I N:25P01 C:ROLLBACK Z:I")
		w.marks(`ask UPDATE counter write tx1i [Q]
			ask COMMIT commit tx2 [Q]
			ask ROLLBACK rollback tx3 [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]
			got COMMIT done rows=0 [C]
			got ROLLBACK done rows=0 [C]`)
	})
}

// Tags do not tell what was written: the texts do.
func TestC061WhatTagsDoNotTell(t *testing.T) {
	both(t, tables, func(w *tap) {
		for _, sql := range []string{
			"with i as (insert into counter (id) values (5) returning id) select count(*) from i",
			"explain analyze update counter set value = 1", "select * into temp copied from counter",
			"create temp table made as select * from counter", "explain update counter set value = 2",
			"declare c cursor for select value from counter",
		} {
			w.send(q(sql))
			w.until('Z')
		}
		writes := map[string]bool{}
		for _, m := range w.pl.marks {
			writes[fmt.Sprint(m.Op.Kind, " ", m.Op.SQL.Table, " ", m.Op.Outcome)] = true
		}
		for _, want := range []string{"write counter unknown", "write copied done", "write made done"} {
			if !writes[want] {
				t.Errorf("%s is not among %v", want, writes)
			}
		}
	})
	// What a procedure committed stays, though nothing tells: on 15 the update
	// does, on 18 the procedure may not commit here.
	procedure := tables + `; create procedure pg_temp.commits() language plpgsql as 'begin commit; perform 1 / 0; end'`
	both(t, procedure, func(w *tap) {
		w.send(segments(ext(sqlWrite, "9", "1"), ext("call pg_temp.commits()"), fe{syn})...)
		w.want("1 2 C:UPDATE_1 1 2 E:" + w.by("22012", "2D000") + " Z:I")
		w.marks(`ask UPDATE counter write tx1i [PBE]
			got UPDATE unknown rows=1 [12C]
			end UPDATE unknown [Z]`)
		w.send(q("select value from counter where id = 1"))
		w.until('Z')
		if op := w.pl.marks[len(w.pl.marks)-1].Op; fmt.Sprint(op.Row[0].Value.Int) != w.by("9", "7") {
			t.Errorf("the value is %d", op.Row[0].Value.Int)
		}
	})
}

func TestC071FunctionCallAndUnknownMessages(t *testing.T) {
	both(t, tables, func(w *tap) {
		call := &pgproto3.FunctionCall{Function: 1299, ResultFormatCode: 1} // now()
		w.send(call, q(sqlUpdate))
		w.want("V Z:I C:UPDATE_1 Z:I")
		w.send(&pgproto3.FunctionCall{Function: 1}, q(sqlUpdate))
		w.want("E:42883 Z:I C:UPDATE_1 Z:I")
		w.marks(`ask UPDATE counter write tx1i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]
			ask UPDATE counter write tx2i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`)
		w.raw([]byte("y\x00\x00\x00\x04"))
		w.want("E:08P01 EOF")
		w.marks("")
	})
}

func TestC075StatusOfEveryReady(t *testing.T) {
	both(t, tables, func(w *tap) {
		for _, step := range []struct {
			sql  string
			open bool
		}{
			{"begin", true}, {sqlUpdate, true}, {"commit and chain", true}, {"select 1/0", true}, {"rollback and chain", true}, {"end", false}, {sqlUpdate, false},
			{"do 'begin perform 1; end'; begin", true}, {"rollback", false},
		} {
			w.send(q(step.sql))
			w.until('Z')
			if w.pl.tracker.tx.open != step.open || w.pl.tracker.tx.explicit != step.open {
				t.Errorf("after %s: open %v, explicit %v", step.sql, w.pl.tracker.tx.open, w.pl.tracker.tx.explicit)
			}
		}
	})
}

func TestC076LongNamesAndTexts(t *testing.T) {
	both(t, tables, func(w *tap) {
		name := strings.Repeat("n", 300) // the tracker does not follow such
		w.send(p(name, sqlWrite), b("", name, "8", "1"), e(""), cs(name), syn)
		w.want("1 2 C:UPDATE_1 3 Z:I")
		w.marks("")
		long := "/* " + strings.Repeat("x", 1<<20) + " */"
		w.send(q("update counter set value = 8 where id = 1 " + long))
		w.want("C:UPDATE_1 Z:I")
		w.send(q(long + "update counter set value = 8 where id = 1"))
		w.want("C:UPDATE_1 Z:I")
		w.send(ext("update counter set value = $1 where id = 1 "+long, "9")...)
		w.send(syn)
		w.want("1 2 C:UPDATE_1 Z:I")
		w.marks(`ask UPDATE counter write tx1i []
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]
			ask UPDATE counter write tx2i [E]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`)
	})
}
