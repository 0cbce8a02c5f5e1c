package check

import (
	"cmp"
	"slices"
	"sort"

	"github.com/lockfaultd/lockfaultd/lock"
)

// acts are the acquires, stores and releases of one lock key.
type acts struct {
	all     []*lock.Op     // by Seq
	byF     []*lock.Op     // those that were forwarded and answered, by F
	maxR    []lock.Instant // the latest R up to there
	hanging []*lock.Op     // those that were forwarded and never answered
}

// collectActs sorts what was done to lock keys. A key that was only stored is
// none.
func (c *kase) collectActs() {
	locks := map[lock.LockID]bool{}
	for _, op := range c.ops {
		if op.Kind == lock.Acquire || op.Kind == lock.Store && op.Term.ID != 0 {
			id := c.ledger.LockOf(op)
			if !locks[id] {
				locks[id] = true
				c.locks = append(c.locks, id)
				c.acts[id] = &acts{}
			}
		}
	}
	for _, op := range c.ops {
		if op.Kind != lock.Acquire && op.Kind != lock.Store && op.Kind != lock.Release {
			continue
		}
		if a := c.acts[c.ledger.LockOf(op)]; a != nil {
			a.all = append(a.all, op)
		}
	}
	for _, id := range c.locks {
		a, s := c.acts[id], c.state(id)
		a.index()
		for _, op := range a.all {
			if op.Kind == lock.Acquire && op.Outcome == lock.Refused {
				s.turnedAway(op)
			}
		}
		s.shown = s.shown || slices.ContainsFunc(a.all, showsLock)
	}
}

// showsLock reports whether an op shows that its key is a lock: it creates it
// exclusively, or compares a token that was stored in it.
func showsLock(op *lock.Op) bool {
	return op.Kind == lock.Acquire || op.Kind == lock.Release && op.Guarded && !op.Guessed && op.Term.ID != 0
}

func (a *acts) index() {
	for _, op := range a.all {
		switch {
		case op.F == 0 && op.R == 0:
		case answered(op):
			a.byF = append(a.byF, op)
		default:
			a.hanging = append(a.hanging, op)
		}
	}
	slices.SortStableFunc(a.byF, func(x, y *lock.Op) int { return cmp.Compare(x.F, y.F) })
	a.maxR = make([]lock.Instant, len(a.byF))
	var latest lock.Instant
	for i, op := range a.byF {
		latest = max(latest, op.R)
		a.maxR[i] = latest
	}
}

// since adds those that were answered no earlier than the instant.
func (a *acts) since(at lock.Instant, to map[*lock.Op]bool) {
	for _, op := range a.all {
		if op.R >= at {
			to[op] = true
		}
	}
}

// during lists what may have taken effect on the key after from and before to.
func (c *kase) during(id lock.LockID, from, to lock.Instant) []*lock.Op {
	a := c.acts[id]
	if a == nil {
		return nil
	}
	var out []*lock.Op
	for _, op := range a.hanging {
		if op.F < to {
			out = append(out, op)
		}
	}
	end := sort.Search(len(a.byF), func(i int) bool { return a.byF[i].F >= to })
	for i := end - 1; i >= 0 && a.maxR[i] > from; i-- {
		if a.byF[i].R > from {
			out = append(out, a.byF[i])
		}
	}
	return out
}
