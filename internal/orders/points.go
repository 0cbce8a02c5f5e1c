package orders

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A kind says what happens at a point.
type kind int

const (
	snap  kind = iota // a transaction takes its snapshot
	look              // a statement reads, and locks the row if it is FOR UPDATE
	put               // a write of its own transaction takes effect
	take              // a write of an explicit one gets its row's lock
	miss              // a write finds its guard false
	keep              // a transaction commits
	drop              // it is rolled back
	maybe             // it does one or the other
	grant             // a section is granted its lock
)

// A point is an instant that has to be placed.
type point struct {
	kind
	op       *lock.Op
	n        int // index of op
	tx       int
	lo, hi   lock.Instant // where it lies
	optional bool         // or nowhere
	after    uint32       // points that come before it, one bit each
}

// pointsOf lists the points of a history, at most 32.
func pointsOf(h History, all []*trans, of []int) []point {
	var out []point
	last := map[int]int{} // of each explicit transaction, its last op
	done := map[int]bool{}
	for i, op := range h.Ops {
		t := of[i]
		if h.Grants && t < 0 && granted(op) && h.Section[i] > 0 {
			out = append(out, at(grant, op, i, -1))
		}
		if t < 0 {
			continue
		}
		last[t] = i
		if all[t].snapshot && all[t].first == op {
			out = append(out, at(snap, op, i, t))
		}
		if p, ok := pointOf(op, i, t); ok {
			out = append(out, p)
			done[t] = done[t] || p.kind >= keep
		}
	}
	for t, i := range last {
		if all[t].explicit && !done[t] { // its connection ended, and it with that, some time
			p := at(drop, h.Ops[i], i, t)
			p.hi, p.optional = lock.Never, true
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b point) int { return a.n - b.n })
	relate(out)
	return out
}

func granted(op *lock.Op) bool {
	return answered(op) && (op.Kind == lock.Acquire && op.Outcome == lock.Granted || op.Kind == lock.Store && op.Outcome == lock.Done)
}

func at(k kind, op *lock.Op, n, tx int) point {
	p := point{kind: k, op: op, n: n, tx: tx, lo: op.F, hi: max(op.R, op.Z)}
	if !answered(op) {
		p.hi = lock.Never
	}
	return p
}

func pointOf(op *lock.Op, n, tx int) (point, bool) {
	switch {
	case op.F == 0 || op.Outcome == lock.Failed:
		return point{}, false
	case op.Kind == lock.Read:
		return at(look, op, n, tx), answered(op)
	case op.Kind == lock.Commit && !answered(op):
		p := at(maybe, op, n, tx)
		p.optional = true
		return p, true
	case op.Kind == lock.Commit && op.Outcome == lock.Done:
		return at(keep, op, n, tx), true
	case op.Kind == lock.Commit || op.Kind == lock.Rollback:
		p := at(drop, op, n, tx)
		p.optional = !answered(op)
		return p, true
	case op.Kind == lock.Write:
		return writePoint(op, n, tx)
	}
	return point{}, false
}

func writePoint(op *lock.Op, n, tx int) (point, bool) {
	p := at(take, op, n, tx)
	switch {
	case answered(op) && op.Rows == 0:
		p.kind = miss
	case op.Implicit:
		p.kind, p.optional = put, !answered(op)
	case !answered(op):
		return p, false // nothing commits it
	}
	return p, true
}

// relate notes which points certainly come before which.
func relate(points []point) {
	for i := range points {
		for j := range points {
			a, b := points[i], points[j]
			fifo := a.op.Session == b.op.Session && i < j
			if i != j && (a.hi <= b.lo || fifo) {
				points[j].after |= 1 << i
			}
		}
	}
}
