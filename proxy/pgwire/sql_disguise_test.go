package pgwire

import (
	"fmt"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Writes that do not look like one are ops all the same, with what their reply
// tells of them, and the COMMIT names what they wrote. What CALL and DO write
// cannot be seen.
func TestC061WritesInDisguise(t *testing.T) {
	for _, tt := range []struct {
		sql   string
		reply be
		op    string // verb, table, outcome, rows
		wrote string // of the COMMIT
	}{
		{"with i as (insert into t (a) values (1) returning a) select a from i", be{rowd("a", 23), data("1"), c("SELECT 1")}, "write INSERT t done 1", "[t]"},
		{"with i as (insert into t (a) values (1) returning a) select a from i where a = 2", be{rowd("a", 23), c("SELECT 0")}, "write INSERT t unknown 0", "[t]"},
		{"with d as (delete from t returning *), u as (update v set a = 1) insert into w select * from d", be{c("INSERT 0 3")}, "write INSERT w done 3", "[w t v]"},
		{"explain analyze insert into t values (1)", be{rowd("QUERY PLAN", 25), data("Insert on t"), c("EXPLAIN")}, "write INSERT t unknown 1", "[t]"},
		{"explain (analyze) with d as (delete from t returning *) select * from d", be{rowd("QUERY PLAN", 25), data("x"), c("EXPLAIN")}, "write DELETE t unknown 1", "[t]"},
		{"select a into u from t", be{c("SELECT 4")}, "write SELECT u done 4", "[u]"},
		{"create table u as select a from t", be{c("SELECT 4")}, "write CREATE u done 4", "[u]"},
		{"copy (delete from t returning *) to stdout", be{c("COPY 2")}, "write DELETE t done 2", "[t]"},
		{"explain delete from t", be{rowd("QUERY PLAN", 25), data("x"), c("EXPLAIN")}, "", "[]"},
		{"explain analyze select a from t", be{rowd("QUERY PLAN", 25), data("x"), c("EXPLAIN")}, "", "[]"},
		{"call p()", be{c("CALL")}, "", "[]"},
		{"do 'begin delete from t; commit; end'", be{c("DO")}, "", "[]"},
	} {
		t.Run(tt.sql, func(t *testing.T) {
			pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2],
				fe{q("begin")}, be{c("BEGIN"), z('T')}, fe{q(tt.sql)}, append(tt.reply, z('T')), fe{q("commit")}, be{c("COMMIT"), z('I')})), 0)
			op, wrote := "", ""
			for _, m := range pl.marks {
				switch {
				case m.Op == nil:
				case m.Op.Kind == lock.Write:
					op = fmt.Sprintf("write %s %s %s %d", m.Op.Verb, m.Op.SQL.Table, m.Op.Outcome, m.Op.Rows)
				case m.Op.Kind == lock.Commit:
					wrote = fmt.Sprint(m.Op.Tables)
				}
			}
			if op != tt.op || wrote != tt.wrote {
				t.Errorf("%q and the commit wrote %s, want %q and %s", op, wrote, tt.op, tt.wrote)
			}
		})
	}
	for _, sql := range []string{"call p()", "do 'begin delete from t; commit; end'"} {
		if r := Read(sql)[0]; !r.Maybe {
			t.Errorf("%s: not said to write perhaps", sql)
		}
	}
}
