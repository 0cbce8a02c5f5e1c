package check

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

func where(column string, n int64) lock.Cond {
	return lock.Cond{Column: column, Op: "=", Value: lock.Value{Int: n, IsInt: true}}
}

// A statement with conditions on other tables is of the rows that it names: if the
// other tables have what those conditions name, and if it was of any.
func TestTheRowOfAnAsideStatement(t *testing.T) {
	by := []string{"public.f.n"}
	sets := lock.Assign{Column: "n", Value: lock.Value{Int: 1, IsInt: true}}
	tells := map[string]*lock.Op{
		"set":      {Kind: lock.Write, Verb: "UPDATE", SQL: &lock.Statement{Table: "f", Set: []lock.Assign{sets}}},
		"compared": {Kind: lock.Write, Verb: "DELETE", SQL: &lock.Statement{Table: "f", Where: []lock.Cond{where("n", 1)}}},
	}
	hides := map[string]*lock.Op{
		"nothing":    {Kind: lock.Read, Verb: "SELECT", SQL: &lock.Statement{Table: "f"}},
		"opaque":     {Kind: lock.Write, Verb: "DELETE", SQL: &lock.Statement{Table: "f", Where: []lock.Cond{where("n", 1)}, Opaque: true}},
		"failed":     {Kind: lock.Write, Verb: "UPDATE", SQL: &lock.Statement{Table: "f", Set: []lock.Assign{sets}}, Outcome: lock.Failed},
		"unanswered": {Kind: lock.Write, Verb: "UPDATE", SQL: &lock.Statement{Table: "f", Set: []lock.Assign{sets}}, Outcome: lock.Unknown},
	}
	row := func(first *lock.Op, rows int64) string {
		op := &lock.Op{Kind: lock.Write, Verb: "UPDATE", Upstream: "u", R: 1, Rows: rows, Outcome: lock.Done,
			SQL: &lock.Statement{Table: "t", Where: []lock.Cond{where("id", 1)}, Opaque: true, Aside: by}}
		if first.R = 1; first.Outcome == "" {
			first.Outcome = lock.Done
		}
		known := NewSurvey(nil)
		known.Op(first)
		known.Op(op)
		return (&kase{carry: &carry{known: known}}).rowOf(op)
	}
	for name, op := range tells {
		if got := row(op, 1); got != "u/id=n1" {
			t.Errorf("%s: row %s", name, got)
		}
		if got := row(op, 0); got != unknownRow {
			t.Errorf("%s, and refused: row %s", name, got)
		}
	}
	for name, op := range hides {
		if got := row(op, 1); got != unknownRow {
			t.Errorf("%s: row %s", name, got)
		}
	}
}

// That a statement with a condition on another table was of one row does not tell
// that what it names is one; that it was of several tells that it is not, and with
// another value of a column that changes, that it may not be.
func TestWhatAnAsideStatementTells(t *testing.T) {
	op := func(rows int64, conds ...lock.Cond) *lock.Op {
		return &lock.Op{Kind: lock.Write, Verb: "UPDATE", R: 1, Rows: rows, Outcome: lock.Done,
			SQL: &lock.Statement{Table: "t", Where: conds, Opaque: true, Aside: []string{"f.n"}}}
	}
	known := NewSurvey(nil)
	s := known.shapeOf("t")
	s.mutable["owner"] = true
	if known.Op(op(1, where("id", 1))); s.alone["/id"] {
		t.Error("its conditions were taken for all that chose the row")
	}
	if known.Op(op(2, where("id", 1))); !s.many["/id"] {
		t.Error("several rows were not noticed")
	}
	known.Op(op(1, where("id", 1), where("owner", 1)))
	if known.Op(op(1, where("id", 1), where("owner", 2))); !s.isSplit("/id=n1") {
		t.Error("two owners were not noticed")
	}
}
