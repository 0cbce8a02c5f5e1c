package lock

import (
	"slices"
	"time"
)

// An Interval is where an instant lies, both ends included.
type Interval struct{ Earliest, Latest Instant }

// clockSlop is how far two wall clocks may be apart that are taken to agree.
const clockSlop = 5 * time.Millisecond

// Lease returns where a lease that was set by op to last ttl ends: its effect
// lies in [F, R], Redis rounds up to a millisecond, and the two clocks may
// drift apart by 2 ms and 500 ppm. Where op says until when the lease is to last,
// ttl was counted from A, and two wall clocks had to agree, within 5 ms. A server that
// reckons in whole seconds may be out by one.
func Lease(op *Op, ttl time.Duration) Interval {
	if ttl <= 0 {
		return Interval{Never, Never}
	}
	drift := 2*time.Millisecond + ttl/2000
	if op.Coarse {
		drift += time.Second
	}
	if op.Until != 0 {
		end := op.A.Add(ttl)
		return Interval{end.Add(-drift - clockSlop), end.Add(time.Millisecond + drift + clockSlop)}
	}
	return Interval{op.F.Add(ttl - drift), op.R.Add(ttl + time.Millisecond + drift)}
}

// A lease is what is known of a lease's end.
type lease struct {
	lasts    time.Duration // what it was set to last, 0 if it has no end
	known    Interval      // the end as of the last answer
	knownBy  Interval      // F and R of what was answered so
	gone     *Op           // the owner's that found nothing first, since the lease was set last
	denied   []*Op         // answers that the token is not held, which may be later than that
	blind    *Op           // the last that set the lease, if it named no token
	sure     Instant       // the earliest end as of the last that did
	inflight int           // renewals that have no answer
	inEarly  Instant       // earliest end that one of those could make
}

// maxDenied is how many such answers of one lease are kept: the first ones tell.
const maxDenied = 64

func leaseBy(op *Op, ttl time.Duration) lease {
	return lease{lasts: ttl, known: Lease(op, ttl), knownBy: Interval{op.F, op.R}}
}

func (l *lease) clock() Interval {
	if l.inflight > 0 {
		return Interval{min(l.known.Earliest, l.inEarly), Never}
	}
	return l.known
}

func (l *lease) held() Instant {
	until := l.clock().Earliest
	for _, op := range l.denied {
		until = min(until, op.F)
	}
	return until
}

// end returns where the lease of what was granted so ends.
func (l *lease) end(grant *Op) Interval {
	end := l.clock()
	if l.gone != nil && l.inflight == 0 {
		end = Interval{min(end.Earliest, grant.R), min(end.Latest, l.gone.R)}
	}
	return end
}

// denies notes that the owner was answered that it held nothing. If that may have
// been before the lease was set last, it does not show that it is over.
func (l *lease) denies(op *Op) {
	if !op.Guarded || op.Guessed || op.R <= l.knownBy.Earliest {
		return
	}
	if len(l.denied) < maxDenied {
		l.denied = append(l.denied, op)
	}
	if l.gone == nil && op.F >= l.knownBy.Latest {
		l.gone = op
	}
}

// set notes that an answered op set the lease anew.
func (l *lease) set(op *Op, ttl time.Duration) {
	if l.blind == nil {
		l.sure = l.known.Earliest
	}
	if l.blind = nil; op.Kind == Renew && !op.names() {
		l.blind = op
	}
	l.lasts = ttl
	l.known, l.knownBy, l.gone = Lease(op, ttl), Interval{op.F, op.R}, nil
	l.denied = slices.DeleteFunc(l.denied, func(d *Op) bool { return d.R <= op.F })
}

// suspend makes the end unknown until the renewal is answered.
func (l *lease) suspend(op *Op) {
	early := Lease(&Op{A: op.A, F: op.A, R: op.A, Until: op.Until, Coarse: op.Coarse}, op.TTL).Earliest
	if l.inflight == 0 || early < l.inEarly {
		l.inEarly = early
	}
	l.inflight++
}
