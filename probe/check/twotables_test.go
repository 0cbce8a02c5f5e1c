package check

import (
	"sync/atomic"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/orders"
	"github.com/lockfaultd/lockfaultd/lock"
)

// otherSchema makes the second row of a history the first one of a table of the same name
// that its clients find by another search path.
func otherSchema(ops []*lock.Op) {
	first := lock.Value{}
	for _, op := range ops {
		if op.SQL == nil || len(op.SQL.Where) == 0 {
			continue
		}
		row := &op.SQL.Where[0].Value
		if !first.Known() {
			first = *row
		} else if !row.Same(first) {
			*row, op.Path = first, "other"
		}
	}
}

// TestEveryOrderOfTwoTablesOfOneName holds the judge against every order where what looks
// like one row may be of two tables.
func TestEveryOrderOfTwoTablesOfOneName(t *testing.T) {
	var proven atomic.Int64
	eachHistory(3000, func(seed uint64, h orders.History, want orders.Result) {
		otherSchema(h.Ops)
		r := Judge(inputOf(h))
		for code, w := range talliesOf(want) {
			if level(r, code) != "every" {
				continue
			}
			if proven.Add(1); !w.Every() {
				t.Errorf("seed %d: %s is proven; the orders say %s\n%s", seed, code, levelOf(w), h)
			}
		}
	})
	t.Logf("%d proven", proven.Load())
}
