package check

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/orders"
	"github.com/lockfaultd/lockfaultd/lock"
)

// oneLabel gives several of a history's clients the label of one process; not one that has
// no lock, which could not be told from a section of the others.
func oneLabel(ops []*lock.Op, seed uint64) {
	for _, op := range ops {
		if n := op.Actor[0] - 'A'; op.Actor != "X" && seed>>n&1 == 1 {
			op.Actor = "A"
		}
	}
}

// A txOf is one transaction of one connection.
type txOf struct{ session, tx uint64 }

// onePool gives each transaction of the process one of its connections that is free.
func onePool(ops []*lock.Op, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	last := map[txOf]lock.Instant{}
	for _, op := range ops {
		end := op.R
		if !answered(op) {
			end = lock.Never
		}
		k := txOf{op.Session, op.Tx}
		last[k] = max(last[k], end)
	}
	given := map[txOf]txOf{}
	var free []lock.Instant // since when each connection is
	var used []uint64
	for _, op := range ops {
		if op.Actor != "A" || op.Proto != lock.Postgres {
			continue
		}
		k := txOf{op.Session, op.Tx}
		if _, known := given[k]; !known {
			n := slices.IndexFunc(free, func(since lock.Instant) bool { return since <= op.F && r.IntN(3) > 0 })
			if n < 0 {
				n, free, used = len(free), append(free, 0), append(used, 0)
			}
			free[n] = last[k]
			used[n]++
			given[k] = txOf{uint64(1000 + n), used[n]}
		}
		op.Session, op.Tx = given[k].session, given[k].tx
	}
}

// TestEveryOrderOfTasksOfOneProcess holds the judge against every order where several sections
// are one process's, with its connections, whatever of it is noted late: whose a statement is
// is not given then.
func TestEveryOrderOfTasksOfOneProcess(t *testing.T) {
	proven := 0
	for seed := range histories(6000) {
		h := drawn(seed)
		if seed%2 == 0 {
			notedLater(h.Ops, seed)
		}
		oneLabel(h.Ops, seed/6)
		if seed%4 < 3 {
			onePool(h.Ops, seed)
		}
		for _, o := range opinions(h) {
			if o.got != "every" {
				continue
			}
			if proven++; o.want != "every" {
				t.Errorf("seed %d: %s is proven; the orders say %s\n%s", seed, o.code, o.want, h)
			}
		}
	}
	t.Logf("%d proven", proven)
}

// TestTheOrdersOfAKeyOfTasksOfOneProcess does so with the word on the lock service.
func TestTheOrdersOfAKeyOfTasksOfOneProcess(t *testing.T) {
	for seed := range histories(6000) {
		ops := orders.DrawKey(seed, keyShapeOf(seed))
		want := orders.Key(ops, 20000)
		if want.Enough {
			continue
		}
		if seed%2 == 0 {
			notedLater(ops, seed)
		}
		oneLabel(ops, seed/6)
		r := judgeKey(ops)
		for code, w := range keyTalliesOf(want) {
			if level(r, code) == "every" && !w.Every() {
				t.Errorf("seed %d: %s is proven; the orders say %s:\n%s", seed, code, levelOf(w), orders.KeyString(ops))
			}
		}
	}
}

// A cycle in every order is not proven where in some it takes what may be another's.
func TestWhatMayBeAnothersProvesNoCycle(t *testing.T) {
	for _, seed := range []uint64{32789, 53629} {
		h := drawn(seed)
		oneLabel(h.Ops, seed/6)
		onePool(h.Ops, seed)
		if got := level(Judge(inputOf(h)), "LF104"); got == "every" {
			t.Errorf("seed %d: it is proven", seed)
		}
	}
}
