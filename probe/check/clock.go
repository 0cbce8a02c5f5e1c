package check

import (
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// steady is by how much the offset of two clocks may change between two looks, and
// be called the same, beside what they may drift apart.
const steady = 5 * time.Millisecond

// clockDoubt says why the end of the term's lease is not certain, though a clock
// tells it; "" if nothing speaks against that.
func (c *kase) clockDoubt(t *lock.Term) string {
	from, to := t.Grant.F, t.LeaseEnd.Latest
	absolute := t.Grant.Until != 0
	for _, op := range c.settings(t) {
		absolute = absolute || op.Until != 0
	}
	if slices.ContainsFunc(c.renewalsOf(t.Lock).unknown, func(op *lock.Op) bool { return op.F <= to && op.R >= from }) {
		return "A script that was not seen was called with the lock's key in that time, and may have set its lifetime"
	}
	if to == lock.Never || to < from {
		to = max(from, c.end)
	}
	var last *Clock
	before, after := false, false
	for _, k := range c.looks(t.Lock.Upstream, from, to) {
		if last != nil && stepped(*last, k) {
			return "The server's clock took a step in that time, or the host slept"
		}
		before, after = before || k.To <= t.Grant.R, after || k.To >= min(to, c.end)
		last = &k
	}
	if absolute && !(before && after) {
		return "The lease's end was given as a time on a clock that was not looked at before and after"
	}
	return ""
}

// stepped reports whether the offset of two clocks changed between two looks by
// more than what their drift explains.
func stepped(x, y Clock) bool {
	if x.Slept != y.Slept {
		return true
	}
	by := (y.Offset - x.Offset).Abs()
	trips := x.To.Sub(x.From)/2 + y.To.Sub(y.From)/2
	return by > steady+trips+y.To.Sub(x.From).Abs()/1000
}
