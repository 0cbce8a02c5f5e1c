package check

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// How much a Live keeps, and for how long.
const (
	liveContext  = 1 << 12          // ops that are over, for what they teach of locks, tables and columns
	liveKept     = 1 << 14          // ops of what goes on
	liveGrace    = time.Second      // a line comes when its op has its answer: so long it is waited for
	liveRead     = 10 * time.Second // what was written may be read so much later, and tell of its order
	liveAnswer   = 10 * time.Second // an answer that is held may tell so much later who took a key
	livePatience = 2 * time.Minute  // what goes on for longer holds up the judging of others no more
	liveTold     = 512
	liveLooks    = 64 // at the clocks of servers
)

// A Live judges one run of a daemon while it goes on. It is told of the lines of its
// history as they come, and says from time to time what has come to be certain: of
// what is over, with all that it met, and each thing once.
//
// It keeps the lines of what goes on, and some of what is over; from those it judges
// anew each time, so that what comes late, or changes what came before, is taken into
// account. What it has said it does not take back. Its memory and the time that a
// [Live.Settle] takes are bounded by that, and do not depend on how long the run is.
//
// What goes on for more than two minutes, or 16,384 ops, keeps others waiting no longer: no
// verdict about it is more than LIKELY then. Terms are numbered from the first that is
// in view, so that a number says nothing beside the verdict it stands in.
//
// It knows no clock: the caller says how late it is. It is not safe for concurrent use.
type Live struct {
	header     history.Header
	declared   []lock.Declaration
	invariants []Invariant

	lines []line // in the order in which they came
	ops   int    // of them
	next  uint64 // above the number of the last
	state LiveState
	now   lock.Instant // the latest instant that a line tells of

	context, kept int
}

// A line is one that is kept, with its place in the run's history.
type line struct {
	at    uint64
	entry history.Entry
}

// A LiveState is what a Live has to know beside its lines to go on after a restart. It
// may be written as JSON; what is in it is nobody else's.
type LiveState struct {
	Mark  lock.Instant `json:"mark"`            // what was over before it has been judged
	Now   lock.Instant `json:"now"`             // when that was said
	Next  uint64       `json:"next"`            // above the number of the last line that was known then
	Floor lock.Instant `json:"floor,omitempty"` // what began before it and went on is let go of
	Told  []LiveTold   `json:"told,omitempty"`  // the last verdicts
}

// A LiveTold is a verdict that was told, and how often it was counted then.
type LiveTold struct {
	Key   string `json:"key"`
	Count int    `json:"count"`
}

// NewLive returns a Live for the run that has this header. More was declared than it
// says, and the invariants are those to judge by: of the kinds counter, fence and
// monotone. Their readings are left aside.
func NewLive(h history.Header, declared []lock.Declaration, invariants []Invariant) *Live {
	invariants = slices.Clone(invariants)
	for i := range invariants {
		inv := &invariants[i]
		inv.Start, inv.End, inv.ReadAt, inv.HasStart, inv.HasEnd = 0, 0, 0, false, false
	}
	return &Live{header: h, declared: slices.Concat(h.Declarations, declared), invariants: invariants, context: liveContext, kept: liveKept}
}

// ResumeLive returns a Live that goes on where another was: it has to be given the lines
// that [Live.Keeps] named then, those that came later, and no others, in their order.
func ResumeLive(h history.Header, declared []lock.Declaration, invariants []Invariant, s LiveState) *Live {
	l := NewLive(h, declared, invariants)
	l.state, l.now, l.next = s, s.Now, s.Next
	l.state.Told = slices.Clone(s.Told)
	return l
}

// State returns what ResumeLive needs.
func (l *Live) State() LiveState {
	s := l.state
	s.Told = slices.Clone(s.Told)
	return s
}

// Entry takes in the line with the number at, which is above those before. The entry is the Live's from then on; of
// those that the judge has no use for nothing is kept.
func (l *Live) Entry(at uint64, e history.Entry) {
	switch {
	case e.Op != nil:
		l.ops++
		l.now = max(l.now, e.Op.A, e.Op.R, e.Op.D, e.Op.Z)
	case e.End != nil:
		l.now = max(l.now, e.End.At)
	case e.Gap != nil:
		l.now = max(l.now, e.Gap.At)
	case e.Clock == nil && e.Bypass == nil:
		return
	}
	l.lines, l.next = append(l.lines, line{at, e}), at+1
}

// Now is the latest instant that a line has told of.
func (l *Live) Now() lock.Instant { return l.now }

// Fresh is how many lines have come since the last Settle, of those that are kept.
func (l *Live) Fresh() int { return len(l.lines) - l.known() }

// Keeps lists the numbers of the lines that are still needed, ascending as they came.
func (l *Live) Keeps() []uint64 {
	out := make([]uint64, len(l.lines))
	for i, k := range l.lines {
		out[i] = k.at
	}
	return out
}

// A Settlement is what has come to be certain since the one before.
type Settlement struct {
	Verdicts []Verdict    // those that are new; of one that counts many, how many came to it
	Numbers  Numbers      // how much more was seen
	Mark     lock.Instant // all that is told was over before it
}

// Settle judges what is over by the instant now on the daemon's clock, which is not
// later than that clock shows.
func (l *Live) Settle(now lock.Instant) Settlement {
	l.now = max(l.now, now)
	return l.settle(false)
}

// End judges everything that is left: the run is over. The Live is of no use after it.
func (l *Live) End() Settlement { return l.settle(true) }

func (l *Live) settle(all bool) Settlement {
	limit := l.limit()
	before := l.pass(l.lines[:l.known()])
	before.letGo(l.state, 0, l.state.Now)
	before.waitAsOf(l.state.Now)
	before.cut(l.state.Mark)
	after := l.pass(l.lines)
	after.letGo(l.state, limit, l.now)
	l.state.Floor = max(l.state.Floor, limit)
	after.floor = l.state.Floor
	horizon := lock.Never
	if !all {
		horizon = max(l.state.Mark, min(after.earliest(), l.now.Add(-liveGrace)))
		after.waitAsOf(l.now)
	}
	after.cut(horizon)
	out := l.compare(before, after)
	out.Mark = horizon
	if !all {
		l.state.Mark, l.state.Now, l.state.Next = horizon, l.now, l.next
		l.trim(after)
	}
	return out
}

// known is how many of the lines had come by the last Settle.
func (l *Live) known() int {
	n, _ := slices.BinarySearchFunc(l.lines, l.state.Next, func(k line, next uint64) int { return cmp.Compare(k.at, next) })
	return n
}

// limit is the instant before which what goes on keeps others waiting no more.
func (l *Live) limit() lock.Instant {
	limit := l.now.Add(-livePatience)
	if l.ops <= l.kept {
		return limit
	}
	n := l.ops - l.kept/2
	for _, k := range l.lines {
		if op := k.entry.Op; op != nil {
			if n--; n == 0 {
				return max(limit, op.A)
			}
		}
	}
	return limit
}

// trim forgets the lines that nothing which comes can have to do with.
func (l *Live) trim(p *pass) {
	keeps := p.needed(l.context)
	oldest := l.now
	for i := range keeps {
		oldest = min(oldest, l.lines[i].entry.Op.A)
	}
	l.ops = len(keeps)
	looks := 0 // at clocks
	for i, k := range slices.Backward(l.lines) {
		e := k.entry
		if e.Clock != nil {
			looks++
		}
		keeps[i] = keeps[i] || e.Op == nil && instant(e) >= oldest || e.Clock != nil && looks <= liveLooks
	}
	kept := l.lines[:0]
	for i, k := range l.lines {
		if keeps[i] {
			kept = append(kept, k)
		}
	}
	clear(l.lines[len(kept):])
	l.lines = kept
}
