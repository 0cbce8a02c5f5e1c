package check

import (
	"strconv"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// What a statement writes beside its own table, or in a way that is not
// understood, may be the reason why a fence fell or a counter changed.
func TestNothingIsProvenAcrossAWriteBeside(t *testing.T) {
	hash := lock.NewHasher([]byte("beside"))
	v := func(n int64) lock.Value { return hash.Of([]byte(strconv.FormatInt(n, 10))) }
	op := func(at lock.Instant, verb string, rows int64, s *lock.Statement) *lock.Op {
		return &lock.Op{Session: 1, Seq: uint64(at), Actor: "A", Proto: lock.Postgres, Kind: lock.Write, Verb: verb, Implicit: true, Tx: uint64(at), Rows: rows,
			Outcome: lock.Done, A: at, F: at, R: at + 5, D: at + 5, Z: at + 5, SQL: s}
	}
	one := []lock.Cond{{Column: "id", Op: "=", Value: v(1)}}
	fence := func(at lock.Instant, n int64) *lock.Op {
		return op(at, "UPDATE", 1, &lock.Statement{Table: "t", Where: one, Set: []lock.Assign{{Column: "fence", Value: v(n)}}})
	}
	step := func(at lock.Instant) *lock.Op {
		return op(at, "UPDATE", 1, &lock.Statement{Table: "public.t", Where: one, Set: []lock.Assign{{Column: "n", Delta: 1, HasDelta: true}}})
	}
	failed := op(20, "TRUNCATE", 0, &lock.Statement{Table: "users", Also: []string{"t"}})
	failed.Outcome = lock.Failed
	unanswered := op(20, "TRUNCATE", 0, &lock.Statement{Table: "users", Also: []string{"t"}})
	unanswered.Outcome, unanswered.R, unanswered.Z, unanswered.D = lock.Unknown, 0, 0, 0
	for _, c := range []struct {
		name    string
		between *lock.Op
		proven  int
	}{
		{"nothing of the table", op(20, "TRUNCATE", 0, &lock.Statement{Table: "users"}), 1},
		{"others beside", op(20, "TRUNCATE", 0, &lock.Statement{Table: "users", Also: []string{"u"}}), 1},
		{"the second of two", op(20, "TRUNCATE", 0, &lock.Statement{Table: "users", Also: []string{"t"}}), 0},
		{"by its full name", op(20, "TRUNCATE", 0, &lock.Statement{Table: "users", Also: []string{"u", "public.t"}}), 0},
		{"what refers to another", op(20, "TRUNCATE", 0, &lock.Statement{Table: "users", Cascade: true}), 0},
		{"it failed", failed, 1},
		{"it may have happened", unanswered, 0},
		{"in a WITH list", op(20, "UPDATE", 0, &lock.Statement{Table: "users", Also: []string{"t"}, Opaque: true}), 0},
		{"by a MERGE", op(20, "MERGE", 1, &lock.Statement{Table: "t", Opaque: true}), 0},
		{"by a COPY", op(20, "COPY", 1, &lock.Statement{Table: "t", Opaque: true}), 0},
	} {
		in := Input{Ops: []*lock.Op{fence(10, 9), c.between, fence(30, 2)}, Invariants: []Invariant{{Kind: "fence",
			Query: "SELECT fence FROM t WHERE id = 1", Table: "t", Column: "fence", HasStart: true, HasEnd: true, End: 2}}}
		if got := count(Judge(in), "LF105", Proven); got != c.proven {
			t.Errorf("%s: %d LF105, want %d", c.name, got, c.proven)
		}
		in = Input{Ops: []*lock.Op{step(10), c.between, step(30)}, Invariants: []Invariant{{Kind: "counter",
			Query: "SELECT n FROM t WHERE id = 1", Table: "t", Column: "n", HasStart: true, HasEnd: true, End: 7}}}
		if got := count(Judge(in), "LF403", Proven); got != c.proven {
			t.Errorf("%s: %d LF403, want %d", c.name, got, c.proven)
		}
	}
}
