package check

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

func tallied(t *testing.T, change func(*Invariant)) Result {
	t.Helper()
	s := &script{hash: lock.NewHasher([]byte("script")), lease: 500e6, label: map[string]uint64{}}
	for _, line := range [][]string{
		{"counter", "counter.value", "7", "7"},
		{"A", "acquire", "lock:c=a", "10-11"},
		{"A", "select", "counter[id=1]", "value=7", "20-21"},
		{"A", "update", "counter[id=1]", "value:=8", "30-40"},
		{"A", "release", "lock:c=a", "50-51"},
	} {
		if err := s.line(line); err != nil {
			t.Fatal(err)
		}
	}
	change(&s.in.Invariants[0])
	return Judge(s.in)
}

func TestCounterRowByItsQuery(t *testing.T) {
	for query, want := range map[string]Level{
		"SELECT value FROM counter":                              Proven,
		"SELECT value FROM counter WHERE id = 1":                 Proven,
		"SELECT value FROM counter WHERE name = 'main'":          "",
		"SELECT value FROM counter WHERE id = 'it''s'":           Likely,
		"SELECT value FROM counter WHERE id = 1 AND tenant = 2":  "",
		"SELECT value FROM counter WHERE id = 1 AND name = 'it'": "",

		// As they may be written.
		"SELECT VALUE FROM Counter WHERE ID = 1":             Proven,
		`SELECT c.value FROM counter c WHERE c."id" = 1 ; `:  Proven,
		"SELECT c.value FROM counter c WHERE public.c.id=2":  "",
		`SELECT value FROM counter WHERE "ID" = 1`:           "",
		"SELECT value FROM counter WHERE id = 'a' AND id= 1": Likely,

		// What is not understood may choose another row.
		"SELECT c.value FROM counter c WHERE abs(c.id) = 1":     "",
		"SELECT value FROM counter WHERE 2 = id":                "",
		"SELECT value FROM counter WHERE id IN (2)":             "",
		"SELECT value FROM counter WHERE id = 1 OR id = 2":      "",
		"SELECT value FROM counter WHERE id = 1 AND name <> ''": "",
		"SELECT value FROM counter WHERE id = 1.5":              "",
		"SELECT value FROM counter WHERE":                       "",
		"SELECT value FROM counter WHERE id = 1 LIMIT 1":        "",
		"SELECT value FROM counter ORDER BY id LIMIT 1":         "",
	} {
		r := tallied(t, func(inv *Invariant) { inv.Query = query })
		var got Level
		if len(r.Verdicts) > 0 {
			got = r.Verdicts[0].Level
		}
		if got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// The first reading is of some instant before ReadAt: a write that was under way
// then may be in it.
func TestAWriteThatWasUnderWayAtTheFirstReading(t *testing.T) {
	for at, want := range map[lock.Instant]int{25e6: 1, 35e6: 0, 45e6: 0} {
		if r := tallied(t, func(inv *Invariant) { inv.ReadAt = at }); len(r.Verdicts) != want {
			t.Errorf("read at %v: %d verdicts, want %d", at, len(r.Verdicts), want)
		}
	}
}

func TestNoStepWasSeenAndSomeWereLost(t *testing.T) {
	inv := Invariant{Name: "n", Kind: "counter", Query: "SELECT value FROM counter", Table: "counter", Column: "value", Start: 7, End: 9, HasStart: true, HasEnd: true}
	r := Judge(Input{Gaps: []Gap{{At: 5, Lost: 1}}, Invariants: []Invariant{inv}})
	if len(r.Verdicts) != 1 || r.Verdicts[0].Level != Likely {
		t.Errorf("%+v", r.Verdicts)
	}
}
