package fault

import (
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A baseline is a stretch in which no rule acts, so that what is found in it is no
// rule's doing. It begins with the first lock that is seen to be held: until then there
// is nothing to be found.
type baseline struct {
	length time.Duration // 0: there is none
	from   lock.Instant  // 0: no lock has been held
}

// Baseline has no rule act before so much time has passed since a lock was first seen to
// be held. Events until then are barred, and so not counted.
func (p *Plan) Baseline(length time.Duration) { p.baseline.length = length }

// BaselineSpan returns from when until when no rule acts; zeros if no lock was held, or
// there is no baseline.
func (p *Plan) BaselineSpan() (from, until lock.Instant) {
	if p.baseline.length <= 0 || p.baseline.from == 0 {
		return 0, 0
	}
	return p.baseline.from, p.baseline.from.Add(p.baseline.length)
}

// note begins it with the first grant, or with the first op that is known to be of a
// term: not every lock is known by its grant.
func (b *baseline) note(m Moment, now lock.Instant) {
	if b.length <= 0 || b.from != 0 {
		return
	}
	if m.Op.Term.ID != 0 || m.Phase == After && m.Op.Kind == lock.Acquire && m.Op.Outcome == lock.Granted {
		b.from = now
	}
}

func (b *baseline) goesOn(now lock.Instant) bool {
	return b.length > 0 && (b.from == 0 || now < b.from.Add(b.length))
}
