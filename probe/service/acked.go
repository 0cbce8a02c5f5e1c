package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Tick is what a daemon's clock showed, and what it was doing then.
type Tick struct {
	Run     string       `json:"run"`
	At      lock.Instant `json:"at"`
	Holding lock.Instant `json:"holding,omitempty"` // when the oldest injection began that still holds something; 0: there is none
}

// A Clock tells the time of the daemon whose history is followed.
type Clock interface {
	Name() string // whose it is, as the source is called
	Tick(ctx context.Context) (Tick, error)
}

// Acked is a counter that must move by what was acknowledged, and by nothing else: the steps of the history, from a
// reading on.
//
// A reading lies between two looks at the daemon's clock. What was answered before the first is in it for sure, what was
// sent after the second is not, and what was under way in between may be: so the judge of histories (package check) is
// given the history as it was then, with that unanswered, and says within which bounds the counter may be.
type Acked struct {
	Is        About
	Invariant check.Invariant // its query, and what the query reads
	Declared  []lock.Declaration
	Read      func(ctx context.Context) (Reading, error)
	Clock     Clock
	// CaughtUp reports whether what the daemon had told by an instant of its clock, and of ours, has been taken in.
	CaughtUp func(at lock.Instant, ours time.Time) bool

	run     string
	header  history.Header
	ops     []*lock.Op
	ends    []check.End
	latest  atomic.Pointer[ticked]
	lost    string   // why the sum cannot go on; "" if it can
	suspect *reading // the last one, if it did not add up
	vague   int      // judgements in a row that told no bounds
	mem     acked
}

// acked is what is remembered.
type acked struct {
	Run          string       `json:"run,omitempty"`
	Has          bool         `json:"has"` // there is a reading from which steps are summed
	Base         int64        `json:"base"`
	BaseFrom     lock.Instant `json:"base_from"` // it was read between these two
	BaseAt       lock.Instant `json:"base_at"`
	Wall         time.Time    `json:"wall"`
	Acknowledged int64        `json:"acknowledged"`      // up to Base, from the first reading on
	Deficit      int64        `json:"deficit"`           // up to Base
	Pending      int64        `json:"pending,omitempty"` // told at the last look, behind Base
	Doubt        bool         `json:"doubt,omitempty"`   // whether the deficit is still there is not known
	First        int64        `json:"first"`             // the first reading
	Level        check.Level  `json:"level,omitempty"`
}

// A ticked is a tick with the time at which it was heard.
type ticked struct {
	Tick
	heard time.Time
}

// Bounds of what is kept of the history.
const (
	contextFor   = 20 * time.Second // before the reading from which steps are summed
	mostOps      = 60000
	mostVague    = 5
	settlesAfter = 5 * time.Second // how long it is waited for a run that a tick spoke of
	mostWait     = 3 * time.Minute // and for what a rule holds
)

// About says what it is.
func (a *Acked) About() About { return a.Is }

// Memory is how far the sum has come.
func (a *Acked) Memory() any { return &a.mem }

// Keeps is the instant from which lines are needed again.
func (a *Acked) Keeps() lock.Instant {
	if !a.mem.Has || a.mem.Run != a.run {
		return lock.Never
	}
	return a.mem.BaseAt.Add(-contextFor)
}

// Entry takes in a line of the history, on the desk.
func (a *Acked) Entry(run string, e history.Entry) {
	if run != a.run {
		a.run, a.ops, a.ends = run, nil, nil
		a.header = history.Header{}
	}
	switch {
	case e.Header != nil:
		a.header = *e.Header
	case e.Gap != nil && a.mem.Has && a.mem.Run == run && e.Gap.At <= a.mem.BaseAt: // the sum has begun anew behind it
	case e.Gap != nil:
		a.lost = "lines of the history were lost"
	case e.End != nil:
		a.ends = append(a.ends, check.End(*e.End))
	case e.Op != nil && a.matters(e.Op):
		own := *e.Op // the judge of the whole has the other
		a.ops = append(a.ops, &own)
	}
	if len(a.ops) > mostOps {
		a.lost = fmt.Sprintf("there were more than %d ops since the last reading from which steps could be summed", mostOps)
		a.ops = slices.Clone(a.ops[len(a.ops)/2:])
	}
}

// matters reports whether an op is of the counter's table, or may tell whose such an op is.
func (a *Acked) matters(op *lock.Op) bool {
	if op.SQL == nil {
		return op.Kind != lock.Other
	}
	table := lock.TableName(a.Invariant.Table)
	return lock.TableName(op.SQL.Table) == table || op.SQL.Cascade || op.SQL.Lease ||
		slices.ContainsFunc(op.SQL.Also, func(t string) bool { return lock.TableName(t) == table })
}

// reading is one look.
type reading struct {
	Reading
	before, after Tick
	at            time.Time
}

// Look reads the counter between two looks at the daemon's clock.
func (a *Acked) Look(ctx context.Context) (func() Opinion, error) {
	var r reading
	var err error
	if r.before, err = a.tick(ctx); err != nil {
		return nil, err
	}
	if r.Reading, err = a.Read(ctx); err != nil {
		return nil, err
	}
	if r.after, err = a.tick(ctx); err != nil {
		return nil, err
	}
	if r.at = time.Now(); r.before.Run != r.after.Run {
		return nil, unreached{a.Clock.Name(), errors.New("the daemon was started anew while the counter was read")}
	}
	select {
	case <-time.After(inFlight + inFlight/2):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, err = a.tick(ctx); err != nil {
		return nil, err
	}
	return func() Opinion { return a.judge(r) }, nil
}

// inFlight is how long an answer may be on its way from the database to the daemon: what is in a reading, and which a rule
// then held, is held by then.
const inFlight = 100 * time.Millisecond

func (a *Acked) tick(ctx context.Context) (Tick, error) {
	t, err := a.Clock.Tick(ctx)
	if err != nil {
		return t, unreached{a.Clock.Name(), fmt.Errorf("ask for the daemon's clock: %w", err)}
	}
	a.latest.Store(&ticked{t, time.Now()})
	return t, nil
}

// judge waits until the history has told of all that the reading may have in it, and compares.
func (a *Acked) judge(r reading) Opinion {
	switch {
	case r.after.Run != a.run && time.Since(r.at) < settlesAfter:
		return Opinion{Wait: true}
	case r.after.Run != a.run:
		return Opinion{State: Unknown, Text: "the history that is followed is of another run than the daemon's"}
	case !a.complete(r) && time.Since(r.at) < mostWait:
		return Opinion{Wait: true}
	case !a.complete(r):
		return Opinion{State: Unknown, Text: "a rule has held a request, or the history has not been told, for so long that nobody knows what is in the reading"}
	case !r.Exists:
		a.mem.Has = false
		return Opinion{State: Unknown, Text: "there is no such row"}
	case !a.mem.Has || a.mem.Run != a.run || a.lost != "":
		return a.begin(r)
	}
	return a.compare(r)
}

// complete reports whether the history has told of all that had begun by the reading: what a rule came to hold of it is
// over, and the lines of it have come.
func (a *Acked) complete(r reading) bool {
	t, settled := a.latest.Load(), r.after.At.Add(inFlight)
	return t.Run == r.after.Run && t.At > settled && (t.Holding == 0 || t.Holding > settled) && a.CaughtUp(t.At, t.heard)
}

// begin takes a reading from which steps are summed. What was under way at it may be in it or not, until a reading comes
// at which nothing was.
func (a *Acked) begin(r reading) Opinion {
	o := Opinion{State: Holds, Value: fmt.Sprint(r.Value), Text: "steps are summed from here on"}
	switch {
	case a.mem.Has && a.mem.Run != a.run:
		o.Limit = "the daemon was started anew: what was written meanwhile is not in the sum"
	case a.mem.Has:
		o.Limit = a.lost + ": the sum goes on from a new reading"
	default:
		a.mem = acked{First: r.Value}
	}
	if o.Limit != "" {
		o.From = a.mem.Wall
	}
	a.lost, a.suspect = "", nil
	a.base(r, 0, a.mem.Pending)
	switch {
	case a.mem.Deficit != 0 && a.mem.Doubt:
		o.State, o.Text = Unknown, "what it lacked before may be lacking still"
	case a.mem.Deficit != 0:
		o.State, o.Text = Broken, "what it lacked before is still lacking, as far as can be told"
		o.Breaches = []Breach{a.breach("When it was last summed, " + lacking(a.mem.Deficit) + ".")}
	}
	o.Figures = a.figures(r.Value, 0, 0, 0)
	return o
}

// base makes a reading the one from which steps are summed.
func (a *Acked) base(r reading, acknowledged, deficit int64) {
	a.mem.Has, a.mem.Run, a.mem.Base, a.mem.BaseFrom, a.mem.BaseAt, a.mem.Wall = true, a.run, r.Value, r.before.At, r.after.At, r.at
	a.mem.Acknowledged += acknowledged
	a.mem.Deficit += deficit
	a.mem.Pending = 0
	from := r.after.At.Add(-contextFor)
	a.ops = slices.DeleteFunc(a.ops, func(op *lock.Op) bool { return overOp(op) < from })
	a.ends = slices.DeleteFunc(a.ends, func(e check.End) bool { return e.At < from })
	a.vague = 0
}

func overOp(op *lock.Op) lock.Instant { return max(op.A, op.F, op.R, op.D, op.Z) }

// clean reports whether no write of the counter's table was under way when it was read.
func (a *Acked) clean(r reading) bool {
	underWay := func(op *lock.Op) bool {
		return (op.Kind == lock.Write || op.Kind == lock.Commit) && op.F != 0 && op.F < r.after.At && overOp(op) > r.before.At
	}
	return !slices.ContainsFunc(a.ops, underWay) && !a.openAt(r)
}

// openAt reports whether a transaction that writes the table was open when it was read, and is not known to have ended
// since.
func (a *Acked) openAt(r reading) bool {
	open := map[[2]uint64]bool{}
	for _, op := range a.ops {
		id := [2]uint64{op.Session, op.Tx}
		switch {
		case op.Tx == 0 || op.Implicit:
		case op.Kind == lock.Write && op.F < r.after.At:
			open[id] = true
		case op.Kind == lock.Commit && op.F < r.after.At, op.Kind == lock.Rollback && !op.Savepoint:
			delete(open, id)
		}
	}
	for id := range open {
		if !slices.ContainsFunc(a.ops, func(op *lock.Op) bool {
			return op.Kind == lock.Commit && op.Session == id[0] && op.Tx == id[1]
		}) && !slices.ContainsFunc(a.ends, func(e check.End) bool { return e.Session == id[0] }) {
			return true
		}
	}
	return false
}
