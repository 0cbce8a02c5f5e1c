package check

import (
	"slices"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

func TestDeclarationsThatNothingAnswersTo(t *testing.T) {
	fence := func(key, table, column string) lock.Declaration {
		return lock.Declaration{Key: key, Table: table, FenceColumn: column, Declared: true}
	}
	for _, test := range []struct {
		what string
		line []string // beside a section that reads counter.value by its id
		decl lock.Declaration
		want UnmetPart
	}{
		{"as spelled", nil, fence("lock:c*", "counter", ""), ""},
		{"with its schema", nil, fence("lock:c", "public.counter", "value"), ""},
		{"another key", nil, fence("lock:d*", "counter", ""), UnmetKey},
		{"of no lock", nil, lock.Declaration{Key: "lock:d", Ignore: true}, ""},
		{"another table", nil, fence("lock:c", "countre", ""), UnmetTable},
		{"another column", nil, fence("lock:c", "counter", "fence"), UnmetFence},
		{"a column of WHERE", nil, fence("lock:c", "counter", "id"), ""},
		{"refused alone", []string{"B", "acquire", "lock:r=b", "60-61", "refused"}, fence("lock:r", "counter", ""), ""},
	} {
		s := &script{hash: lock.NewHasher([]byte("script")), lease: 500e6, label: map[string]uint64{}}
		for _, line := range [][]string{
			{"A", "acquire", "lock:c=a", "10-11"},
			{"A", "select", "counter[id=1]", "value=7", "20-21"},
			{"A", "update", "counter[id=1]", "value:=8", "30-40"},
			{"A", "release", "lock:c=a", "50-51"},
			test.line,
		} {
			if line == nil {
				continue
			}
			if err := s.line(line); err != nil {
				t.Fatal(err)
			}
		}
		s.in.Declarations = []lock.Declaration{test.decl, test.decl}
		var got UnmetPart
		list := Judge(s.in).Facts.Unmet
		if len(list) > 0 {
			got = list[0].What
		}
		if got != test.want || len(list) > 1 {
			t.Errorf("%s: %+v, want %q once", test.what, list, test.want)
		}
		if got == UnmetFence && !slices.Equal(list[0].Columns, []string{"id", "value"}) {
			t.Errorf("%s: %v", test.what, list[0].Columns)
		}
	}
}

// What was not understood of a statement may name any column.
func TestFenceOfAStatementThatWasNotUnderstood(t *testing.T) {
	n := &namedTable{}
	n.see(&lock.Statement{Table: "t", Opaque: true})
	c := &carry{declared: map[string]*namedTable{"t": n}, lockKnown: map[lock.LockID]*lockState{}}
	c.limits[boundLocks] = 1 // nor is it known which locks there were
	if u, missing := c.unmet(lock.Declaration{Key: "k", Table: "t", FenceColumn: "fence"}); missing {
		t.Errorf("%+v", u)
	}
	n.vague = false
	if u, missing := c.unmet(lock.Declaration{Key: "k", Table: "t", FenceColumn: "fence"}); !missing {
		t.Errorf("%+v", u)
	}
}
