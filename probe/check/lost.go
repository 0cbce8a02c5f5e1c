package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// lostBy returns by when a lock had certainly gone from a holder who had not given it back, without the end
// of a lease: the server was made to forget it; or a session has it, to which the server admits nobody else, so
// that it had ended when another was granted the lock. It is Never where nothing shows that.
func (c *kase) lostBy(t *lock.Term) lock.Instant {
	if del := c.forgotten(t); del != nil {
		return del.R
	}
	if t.Span != lock.SessionSpan || t.Marker || gaveBack(t) {
		return lock.Never
	}
	terms := c.terms[t.Lock]
	at, _ := slices.BinarySearchFunc(terms, t.Grant.ReplySeq, func(o *lock.Term, seq uint64) int { return cmp.Compare(o.Grant.ReplySeq, seq) })
	o := c.grantedBefore(t, terms[at:], lock.Never)
	if o != nil && t.LeaseEnd.Earliest <= o.Grant.R { // later, its session was seen to go on
		return o.Grant.R
	}
	return lock.Never
}

// lostHow says how it is known that a lock had gone: see lostBy.
func (c *kase) lostHow(t *lock.Term) string {
	if c.forgotten(t) != nil {
		return "the server was made to forget it, as a rule assumes"
	}
	return "another was granted it"
}

// gaveBack reports whether the server said that the term's own session had given the
// lock back: then it had it until then, whatever somebody else was granted.
func gaveBack(t *lock.Term) bool {
	return t.Release != nil && t.Release.Session == t.Session && answered(t.Release)
}

// lostWhileHeld reports whether a lock without a lease went from its holder before
// that one asked for its release, or did its last as the holder.
func (c *kase) lostWhileHeld(t *lock.Term) bool {
	if t.Marker || t.Span != lock.SessionSpan && c.forgotten(t) == nil {
		return false
	}
	if t.Span == lock.SessionSpan && t.EndBy == lock.Closed && c.actedAfter(t, t.End) != nil {
		return true
	}
	i, ok := c.belief(t)
	return ok && c.lostBy(t) < i.Latest
}

// over reports whether a term's lease had certainly ended by itself at an instant, or
// its lock had gone.
func (c *kase) over(t *lock.Term, at lock.Instant) bool { return t.Dead(at) || c.lostBy(t) < at }

// sentBeside says when a write was sent whose holder's lock has no lease that ends.
func sentBeside(w *write, next *lock.Term) string {
	if w.op.A > next.Grant.R {
		return fmt.Sprintf("It was sent at %s, after B was granted: A had not noticed (kind b).", ms(w.op.A))
	}
	return fmt.Sprintf("It was sent at %s, when A may still have had the lock: it was late on its way (kind a).", ms(w.op.A))
}
