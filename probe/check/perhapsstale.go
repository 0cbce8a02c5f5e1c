package check

import "github.com/lockfaultd/lockfaultd/lock"

// perhapsGranted returns a term that may have been granted after t and before w took
// effect. What is granted to one alone was not while t had it.
func (c *kase) perhapsGranted(t *lock.Term, w *write) *lock.Term {
	if t.Span != lock.LeaseSpan {
		return nil
	}
	for _, o := range c.terms[t.Lock] {
		switch {
		case o == t || o.Span != lock.LeaseSpan || o.Grant.F >= w.hi || o.Grant.R <= t.Grant.F:
		case sameHolder(o, t) || sameClient(o, t) || c.besides(t, o):
		case c.unsorted(t, o):
			return o
		case o.Grant.Kind == lock.Acquire && c.heldUnless(t, o.Grant.F) >= w.hi && !c.removableBy(t, w.hi):
		default:
			return o
		}
	}
	return nil
}

// seenBefore reports whether a write was certainly over by an instant though its reply
// was not there: another statement found what it had put, or was kept out by its row.
func (c *kase) seenBefore(w *write, at lock.Instant) bool {
	for _, a := range w.op.SQL.Set {
		k := cell{lock.TableName(w.op.SQL.Table), w.row, a.Column}
		for _, r := range c.readsOf[k] {
			if r.op.R <= at && r.op.R > w.lo {
				return true // it may have seen it: that is left open
			}
		}
		for _, x := range c.written[k] {
			if x != w && x.hi > w.lo && x.lo < w.hi {
				return true
			}
		}
	}
	return false
}
