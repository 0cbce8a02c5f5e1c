package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Clock is one look at an upstream: what its clock showed, and who answered.
type Clock struct {
	Upstream string
	From, To lock.Instant  // when it was asked and answered
	Offset   time.Duration // of its clock from that of the record
	Slept    time.Duration // how long the host had slept
	Run      string        // of the process that answered; "" where that is not told
	Data     string        // of what it was replicated from
}

// A change is two looks that follow each other, of which the second was answered by
// another primary than the first.
type change struct {
	before, after Clock
	certain       bool // it came after the first grant and before the second
}

// primaryChanged returns the change of the primary that may lie between two grants,
// or nil.
func (c *kase) primaryChanged(upstream string, a, b *lock.Op) *change {
	var last *Clock
	for _, k := range c.looks(upstream, a.F, b.R) {
		if k.Run == "" && k.Data == "" {
			continue
		}
		if last != nil && another(*last, k) {
			return &change{*last, k, last.From >= a.R && k.To <= b.F}
		}
		last = &k
	}
	return nil
}

// failedOver reports whether the primary may have changed between a term's grant and an op: what
// the op found there may be what the new one had never heard to be gone.
func (c *kase) failedOver(t *lock.Term, op *lock.Op) bool {
	return c.primaryChanged(t.Lock.Upstream, t.Grant, op) != nil
}

// looks lists the looks at an upstream from the last before an instant to the
// first after another.
func (c *carry) looks(upstream string, from, to lock.Instant) []Clock {
	list := c.clocks[upstream]
	first, _ := slices.BinarySearchFunc(list, from, func(k Clock, at lock.Instant) int { return cmp.Compare(k.To, at) })
	last, _ := slices.BinarySearchFunc(list, to, func(k Clock, at lock.Instant) int { return cmp.Compare(k.From, at) })
	return list[max(0, first-1):min(len(list), last+1)]
}

// another reports whether two looks were answered by different primaries.
func another(x, y Clock) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return differ(x.Data, y.Data) || differ(x.Run, y.Run)
}

func (c *kase) failover(a, b *lock.Term, ch *change) {
	level := Likely
	if ch.certain && a.Actor != "" && b.Actor != "" && !a.GuessedLease && c.clockDoubt(a) == "" {
		level = Proven
	}
	m := many{id: a.Lock, code: "LF306", more: "There are %d such pairs."}
	c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
		p := doubleProof(a, b)
		p.say("The server that answered at %s was not the primary that had answered at %s: it had never heard of A's grant.", ms(ch.after.To), ms(ch.before.To))
		if !ch.certain {
			p.say("Whether it took over between the two grants was not seen so exactly, so this is not proven.")
		}
		return p, Verdict{Terms: []lock.TermID{a.ID, b.ID}}, []*lock.Op{a.Grant, b.Grant}
	})
}
