package check

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// What a constant puts is computed from what was read before if that is so time and
// again, whatever was read.
func TestWritesApartFromTheirReads(t *testing.T) {
	number := func(n int) lock.Value { return lock.Value{Int: int64(n), IsInt: true} }
	for _, tt := range []struct {
		name      string
		n         int
		base, put func(i int) lock.Value
		steady    bool
	}{
		{"steps", cleanSections, number, func(i int) lock.Value { return number(i + 2) }, true},
		{"too few", cleanSections - 1, number, func(i int) lock.Value { return number(i + 2) }, false},
		{"copies", cleanSections, number, number, false},
		{"one base", cleanSections, func(int) lock.Value { return number(5) }, func(int) lock.Value { return number(7) }, false},
		{"one otherwise", cleanSections + 1, number, func(i int) lock.Value { return number(i + 2 + min(i, 1)) }, false},
		{"one that is not told", cleanSections + 1, number, func(i int) lock.Value {
			if i == 3 {
				return lock.Value{Hash: "x"}
			}
			return number(i + 2)
		}, false},
	} {
		var s apart
		for i := range tt.n {
			s.learn(tt.base(i), tt.put(i))
		}
		if s.steady() != tt.steady {
			t.Errorf("%s: steady %v", tt.name, s.steady())
		}
	}
}
