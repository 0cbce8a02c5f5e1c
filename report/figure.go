package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Figure is one verdict as a sequence: who held the lock, what was done to them, and
// what they did, step by step in the order of time. What draws it decides where.
type Figure struct {
	Lanes []Lane // the holders, the one to blame first; A, B and so on as in the proof
	Data  string // what they read and wrote; "" if nothing of that is in it
	Steps []Step // by time; never none
	Left  int    // ops for which there was no room
}

// A Lane is what one holder had.
type Lane struct {
	Letter string // "" for who held no lock that is known
	Who    string
	Title  string // of the term, in words
	Holds  bool
	Given  lock.Instant // the server had granted it
	From   lock.Instant // that was delivered
	Asked  lock.Instant // the release was asked for, 0: it was not
	Leased bool
	Lease  lock.Interval // where it ended by itself
	Pauses []Pause
}

// A Pause is what an injection did to a holder, while that lasted.
type Pause struct {
	From, To  lock.Instant
	Injection uint64
	Effect    string
}

// What a step is.
const (
	StepHeld  = "held"  // of the lock: granted, renewed, released
	StepLease = "lease" // the lease ends, or may
	StepPause = "pause" // what was injected begins or ends
	StepRead  = "read"
	StepWrite = "write"
	StepEnd   = "end" // of a transaction
)

// A Step is one thing that happened, or may have from then on.
type Step struct {
	At   lock.Instant
	Lane int // index of Figure.Lanes
	Kind string
	Text string // in words
	Op   uint64 // its Seq; 0: none
	Late bool   // a write by a holder whose lease was over, or after the next grant
	Void bool   // it did not take effect

	cited bool
}

// Words are what a step says, its being late first.
func (s Step) Words() string {
	if s.Late {
		return "late: " + s.Text
	}
	return s.Text
}

// Bounds of a figure.
const (
	mostLanes = 4
	mostSteps = 26

	soon = 5 * time.Millisecond // a grant that is delivered by then is one step with that
)

// figure draws a verdict's picture, with what was injected meanwhile; nil if it has none.
func (r Run) figure(v check.Verdict) *Figure {
	if v.Picture == nil || len(v.Picture.Holdings) == 0 {
		return nil
	}
	b := &figureBuilder{cited: map[uint64]bool{}, labels: labels{}, Figure: &Figure{Left: v.Picture.Left}}
	for _, seq := range v.Ops {
		b.cited[seq] = true
	}
	for i, h := range v.Picture.Holdings {
		if i < mostLanes {
			b.lane(h)
		}
	}
	b.learn(v.Table, v.Picture.Ops)
	for i := range v.Picture.Ops {
		b.op(&v.Picture.Ops[i], v.Picture.Holdings)
	}
	b.leases()
	b.pauses(r.Injections)
	b.choose()
	return b.Figure
}

// A figureBuilder puts a figure together.
type figureBuilder struct {
	*Figure
	cited   map[uint64]bool
	columns []string // that are told of
	labels  labels
}

func (b *figureBuilder) lane(h check.Holding) {
	l := Lane{Letter: string(rune('A' + len(b.Lanes))), Who: h.Actor, Holds: true, Given: cmp.Or(h.Granted, h.From), From: h.From, Asked: h.Asked, Leased: h.Leased, Lease: h.LeaseEnd}
	if l.Who == "" {
		l.Who = fmt.Sprintf("session %d", h.Session)
	}
	l.Title = fmt.Sprintf("term %d of %s", h.ID, h.Lock)
	if h.HasFence {
		l.Title += fmt.Sprintf(", fence %d", h.Fence)
	}
	if l.From-l.Given >= lock.Instant(soon) {
		b.Steps = append(b.Steps, Step{At: l.From, Lane: len(b.Lanes), Kind: StepHeld, Text: "hears of its grant", cited: true})
	} else {
		l.From = l.Given
	}
	b.Lanes = append(b.Lanes, l)
}

// learn finds which table and columns the figure is about: those that are written.
func (b *figureBuilder) learn(table string, ops []lock.Op) {
	for _, op := range ops {
		if op.SQL == nil {
			continue
		}
		if b.Data == "" && (table == "" || lock.TableName(op.SQL.Table) == table) {
			b.Data = op.SQL.Table
		}
		for _, a := range op.SQL.Set {
			if len(b.columns) < 3 {
				b.columns = addOnce(b.columns, a.Column)
			}
		}
	}
	if b.Data != "" && len(b.columns) == 1 {
		b.Data += "." + b.columns[0]
	}
}

// laneOf finds whose an op is: that of its term, of its process, or a new one beside the holders'.
func (b *figureBuilder) laneOf(op *lock.Op, holdings []check.Holding) int {
	at := slices.IndexFunc(holdings, func(h check.Holding) bool { return h.Grant == op.Seq })
	if at < 0 {
		at = slices.IndexFunc(holdings, func(h check.Holding) bool { return op.Term.Of(h.ID) })
	}
	if at < 0 && op.Actor != "" {
		at = slices.IndexFunc(b.Lanes, func(l Lane) bool { return l.Who == op.Actor })
	}
	if at >= 0 && at < len(b.Lanes) {
		return at
	}
	if len(b.Lanes) >= mostLanes {
		return -1
	}
	b.Lanes = append(b.Lanes, Lane{Who: cmp.Or(op.Actor, fmt.Sprintf("session %d", op.Session)), Title: "holds no lock for sure"})
	return len(b.Lanes) - 1
}

func (b *figureBuilder) op(op *lock.Op, holdings []check.Holding) {
	lane := b.laneOf(op, holdings)
	s := Step{At: op.F, Lane: lane, Op: op.Seq, cited: b.cited[op.Seq]}
	if s.At == 0 {
		s.At = op.A
	}
	if lane < 0 || !b.told(op, &s) {
		b.Left++
		return
	}
	b.Steps = append(b.Steps, s)
}

// told says what an op is in a figure, and whether it is one of its steps.
func (b *figureBuilder) told(op *lock.Op, s *Step) bool {
	s.Kind = StepHeld
	switch op.Kind {
	case lock.Acquire, lock.Store, lock.Renew, lock.Release, lock.Fence:
		return b.toldOfLock(op, s)
	case lock.Read:
		s.Kind, s.At = StepRead, cmp.Or(op.R, op.A)
		s.Text = "reads" + b.row(op)
	case lock.Write:
		s.Kind = StepWrite
		s.Text = "writes" + b.put(op)
		s.Late = b.late(s.Lane, s.At)
	case lock.Commit, lock.Rollback:
		s.Kind, s.Text = StepEnd, string(op.Kind)
		s.Late = op.Kind == lock.Commit && b.late(s.Lane, s.At)
	default:
		return false
	}
	switch {
	case op.Outcome == lock.Unknown || op.Outcome == lock.Pending:
		s.Text += ": no answer"
	case op.Outcome == lock.Failed:
		s.void("failed" + spaced(op.Err))
	case op.Outcome == lock.RolledBack:
		s.void("rolled back")
	case op.Kind == lock.Write && op.Rows == 0 && len(op.SQL.Where) > 0:
		s.void("refused")
	}
	return true
}

// void says of a step that it did not take effect, before what it is.
func (s *Step) void(why string) {
	s.Void, s.Late, s.Text = true, false, why+": "+s.Text
}

func spaced(word string) string {
	if word == "" {
		return ""
	}
	return " (" + word + ")"
}

func (b *figureBuilder) toldOfLock(op *lock.Op, s *Step) bool {
	switch {
	case op.Outcome == lock.Granted, op.Kind == lock.Store && op.Outcome == lock.Done:
		s.At, s.Text = cmp.Or(op.R, op.A), "granted"
		if op.TTL > 0 {
			s.Text += " for " + span(op.TTL)
		}
		if op.HasFence {
			s.Text += fmt.Sprintf(", fence %d", op.Fence)
		}
	case op.Kind == lock.Fence:
		s.At, s.Text = cmp.Or(op.R, op.A), fmt.Sprintf("is issued fence %d", op.Fence)
	case op.Kind == lock.Renew:
		s.Text = "renews"
	case op.Kind == lock.Release:
		s.Text = "releases"
	case op.Outcome == lock.Refused:
		s.Void, s.Text = true, "is refused the lock"
	default:
		s.Text = "asks for the lock"
	}
	switch op.Outcome {
	case lock.NotHeld:
		s.Void, s.Text = true, s.Text+": it holds nothing"
	case lock.Unknown, lock.Pending:
		s.Text += ": no answer"
	case lock.Failed:
		s.void("failed" + spaced(op.Err))
	}
	return true
}

// late reports whether a holder acted after its lease, or after another one's grant.
func (b *figureBuilder) late(lane int, at lock.Instant) bool {
	l := b.Lanes[lane]
	if !l.Holds {
		return false
	}
	if l.Leased && l.Lease.Latest != lock.Never && at > l.Lease.Latest {
		return true
	}
	return slices.ContainsFunc(b.Lanes, func(o Lane) bool { return o.Holds && o.From > l.From && o.From <= at })
}

// leases adds where the leases end, as far as the figure goes.
func (b *figureBuilder) leases() {
	last := lock.Instant(0)
	for _, s := range b.Steps {
		last = max(last, s.At)
	}
	for i, l := range b.Lanes {
		switch e := l.Lease; {
		case !l.Holds || !l.Leased || l.Asked > 0 && l.Asked <= e.Earliest || e.Earliest > last:
		case e.Latest == lock.Never:
			b.Steps = append(b.Steps, Step{At: max(e.Earliest, l.From), Lane: i, Kind: StepLease, Text: "its lease may be over from here on", cited: true})
		default:
			b.Steps = append(b.Steps, Step{At: max(e.Earliest, l.From), Lane: i, Kind: StepLease, Text: "its lease may be over", cited: true},
				Step{At: e.Latest, Lane: i, Kind: StepLease, Text: "its lease is over", cited: true})
		}
	}
}

// pauses adds what was done to the holders while the figure lasts.
func (b *figureBuilder) pauses(all []history.Injection) {
	from, to := lock.Never, lock.Instant(0)
	for _, s := range b.Steps {
		from, to = min(from, s.At), max(to, s.At)
	}
	for _, i := range all {
		p := Pause{From: cmp.Or(i.Confirmed, i.At), To: i.Ended, Injection: i.ID, Effect: i.Effect}
		lane := b.struck(i)
		if lane < 0 || p.From > to || max(p.To, p.From) < from || len(b.Lanes[lane].Pauses) >= 3 {
			continue
		}
		begins, ends := pauseWords(i, p)
		b.Steps = append(b.Steps, Step{At: p.From, Lane: lane, Kind: StepPause, Text: begins, cited: true})
		if ends != "" && p.To > p.From {
			b.Steps = append(b.Steps, Step{At: p.To, Lane: lane, Kind: StepPause, Text: ends, cited: true})
		}
		b.Lanes[lane].Pauses = append(b.Lanes[lane].Pauses, p)
	}
}

// struck is the lane that an injection was about: of its op, or of its process.
func (b *figureBuilder) struck(i history.Injection) int {
	if i.Op != 0 {
		if at := slices.IndexFunc(b.Steps, func(s Step) bool { return s.Op == i.Op }); at >= 0 {
			return b.Steps[at].Lane
		}
	}
	if i.Actor == "" {
		return -1
	}
	return slices.IndexFunc(b.Lanes, func(l Lane) bool {
		return l.Who == i.Actor && (l.Asked == 0 || cmp.Or(i.Confirmed, i.At) < l.Asked)
	})
}

// pauseWords says that an injection begins, and that it ends, "" if it only happens.
func pauseWords(i history.Injection, p Pause) (begins, ends string) {
	by := fmt.Sprintf(" (injection %d)", i.ID)
	switch i.Effect {
	case "freeze":
		return "is frozen" + by, "goes on, " + span(p.To.Sub(p.From)) + " later"
	case "stall", "hold":
		what := "its request is held up"
		if i.Phase == "after" {
			what = "its reply is held up"
		}
		return what + by, "let go, " + span(p.To.Sub(p.From)) + " later"
	case "drop-reply":
		return "its reply is dropped" + by, ""
	case "reset":
		return "its connection is reset" + by, ""
	case "lose-key":
		return "the server is made to forget the key" + by, ""
	case "kill-backend":
		return "its backend is killed" + by, ""
	}
	return i.Effect + by, ""
}

// choose sorts the steps and keeps those for which there is room, the cited ones first.
func (b *figureBuilder) choose() {
	b.Steps = onlyLastRenewals(b.Steps)
	for i := len(b.Steps) - 1; i >= 0 && len(b.Steps) > mostSteps; i-- {
		if !b.Steps[i].cited && b.Steps[i].Kind != StepHeld {
			b.Steps = slices.Delete(b.Steps, i, i+1)
			b.Left++
		}
	}
	slices.SortStableFunc(b.Steps, func(x, y Step) int { return cmp.Compare(x.At, y.At) })
	if n := len(b.Steps) - mostSteps; n > 0 {
		b.Left += n
		b.Steps = b.Steps[:mostSteps]
	}
}

// onlyLastRenewals has the last renewal of a lane stand for those before it.
func onlyLastRenewals(steps []Step) []Step {
	count := map[int]int{}
	for _, s := range steps {
		if s.Text == "renews" {
			count[s.Lane]++
		}
	}
	seen := map[int]int{}
	return slices.DeleteFunc(steps, func(s Step) bool {
		if s.Text != "renews" || s.cited {
			return false
		}
		seen[s.Lane]++
		return seen[s.Lane] < count[s.Lane]
	})
}

// Wait is how long it is from one instant to another, in words.
func Wait(from, to lock.Instant) string { return span(to.Sub(from)) }

// At is an instant as proofs write it: in milliseconds since the history began.
func At(i lock.Instant) string {
	return fmt.Sprintf("%.3f", float64(i)/float64(time.Millisecond))
}
