package service

import (
	"fmt"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// compare judges a reading by the steps since the last one from which they are summed. What does not add up is told if it
// still does not at the next look, by what lines have come until then.
func (a *Acked) compare(r reading) Opinion {
	o := a.weigh(r)
	first := a.suspect
	a.suspect = nil
	if o.State != Broken || a.mem.Deficit+a.mem.Pending != 0 {
		return a.moveOn(r, o)
	}
	if first == nil || a.weigh(*first).State != Broken {
		a.suspect = &r
		return Opinion{State: Unknown, Value: o.Value, Text: o.Text + ": that is told if it is so at the next look"}
	}
	return a.moveOn(r, o)
}

// moveOn makes the reading the one from which steps are summed, if nothing was under way at it.
func (a *Acked) moveOn(r reading, o weighed) Opinion {
	switch {
	case o.bounded && a.clean(r):
		a.base(r, o.acknowledged, o.lacks)
		a.mem.Doubt = o.doubt
	case o.bounded:
		a.mem.Pending = o.lacks
	}
	return o.Opinion
}

// A weighed is an opinion with what becomes of the sum if it is taken.
type weighed struct {
	Opinion
	bounded             bool
	acknowledged, lacks int64 // since the last reading from which steps are summed
	doubt               bool  // whether what was lacking before still is, is not known
}

// weigh compares, and takes no step of the sum: but it forgets what was lacking before the counter was set anew.
func (a *Acked) weigh(r reading) weighed {
	result := check.Judge(a.input(r))
	if len(result.Counters) != 1 {
		return weighed{Opinion: Opinion{State: Unknown, Value: fmt.Sprint(r.Value), Text: "the judge has no figure of it"}}
	}
	c := result.Counters[0]
	if c.GivenUp != "" || c.Unbounded || !c.Known {
		return weighed{Opinion: a.noBounds(r, c)}
	}
	a.vague = 0
	low, high := c.Acknowledged+c.UnknownLow-c.Change, c.Acknowledged+c.UnknownHigh-c.Change
	if c.Epochs > 0 { // it was set anew: what it lacked before is no matter
		a.mem.Acknowledged, a.mem.First, a.mem.Deficit, a.mem.Pending, a.mem.Doubt = 0, c.Start, 0, 0, false
	}
	least, most := a.before()
	least, most, told := least+low, most+high, a.mem.Deficit+a.mem.Pending
	lacks := outside(least, most)
	o := weighed{bounded: true, acknowledged: c.Acknowledged, lacks: lacks - a.mem.Deficit}
	o.Opinion = Opinion{State: Holds, Value: fmt.Sprint(r.Value), Figures: a.figures(r.Value, c.Acknowledged, c.Unknown, lacks)}
	o.Text = fmt.Sprintf("%d and what was acknowledged since, %d, is expected%s", a.mem.First, o.Figures.Acknowledged, modulo(c))
	switch {
	case lacks != 0:
		o.State, o.Text = Broken, lacking(lacks)+modulo(c)
		o.Breaches = []Breach{a.breachOf(lacks, r, c, a.proofIn(result))}
	case told != 0 && least <= told && told <= most: // no end of it, then
		o.State, o.Text = Unknown, "as before "+lacking(told)+", or nothing"+modulo(c)
		o.doubt, o.lacks, o.Figures.Deficit = true, a.mem.Pending, told
	}
	return o
}

// before is how much it lacked when it was read last, at least and at most.
func (a *Acked) before() (least, most int64) {
	if a.mem.Doubt {
		return min(0, a.mem.Deficit), max(0, a.mem.Deficit)
	}
	return a.mem.Deficit, a.mem.Deficit
}

// lacking says what a counter lacks, or has too much.
func lacking(n int64) string {
	if n < 0 {
		return fmt.Sprintf("it has %d more than what was acknowledged", -n)
	}
	return fmt.Sprintf("it lacks %d of what was acknowledged", n)
}

// proofIn returns the proof that the counter is not what was acknowledged since it was read last, "" if there is none, and
// keeps in mind how sure that is.
func (a *Acked) proofIn(result check.Result) (proof string) {
	for _, v := range result.Verdicts {
		if v.Code == "LF403" {
			proof, a.mem.Level = v.Proof, v.Level
		}
	}
	return proof
}

// outside returns how far 0 lies outside an interval, with the sign of what is nearest; 0: it is inside.
func outside(low, high int64) int64 {
	switch {
	case low > 0:
		return low
	case high < 0:
		return high
	}
	return 0
}

// modulo says within which bounds more may have come, "" if none may.
func modulo(c check.Counter) string {
	if c.Unknown == 0 {
		return ""
	}
	return fmt.Sprintf(", with from %d to %d more by %d writes that were under way or have no answer", c.UnknownLow, c.UnknownHigh, c.Unknown)
}

// noBounds is for a sum that cannot be told. It may be by the next look, once what was under way is over.
func (a *Acked) noBounds(r reading, c check.Counter) Opinion {
	why := c.GivenUp
	if why == "" {
		why = "by how much some writes may have moved it is not known"
	}
	o := Opinion{State: Unknown, Value: fmt.Sprint(r.Value), Text: "not summed: " + why}
	if a.vague++; a.vague >= mostVague && a.clean(r) {
		o.Limit, o.From = "not summed, since "+why+": the sum goes on from a new reading", a.mem.Wall
		a.base(r, 0, a.mem.Pending)
	}
	return o
}

func (a *Acked) figures(value, acknowledged int64, unknown int64, deficit int64) *Figures {
	return &Figures{Acknowledged: a.mem.Acknowledged + acknowledged, Unknown: unknown, Value: value, Deficit: deficit, Known: true}
}

// breachOf is that the counter is not what was acknowledged.
func (a *Acked) breachOf(lacks int64, r reading, c check.Counter, proof string) Breach {
	b := a.breach(fmt.Sprintf(" It was read between %.3f ms and %.3f ms of the daemon's clock, at %s.", millis(r.before.At), millis(r.after.At), stamp(r.at)))
	b.Count = int(max(lacks, -lacks))
	if proof == "" {
		sum := a.mem.Acknowledged + c.Acknowledged
		proof = fmt.Sprintf("Let S be the sum of the steps that were acknowledged since the first reading, which was %d: %d%s. Then the counter should be %d. However it was read as %d: %s.",
			a.mem.First, sum, modulo(c), a.mem.First+sum, r.Value, lacking(lacks))
	}
	b.Proof = proof + b.Proof
	return b
}

func (a *Acked) breach(proof string) Breach {
	level := a.mem.Level
	if level == "" {
		level = check.Proven
	}
	return Breach{Code: "LF403", Name: "counter-mismatch", Class: check.Harm, Level: level, Harm: true, Lock: a.Invariant.Lock,
		Table: lock.TableName(a.Invariant.Table), Proof: proof}
}

func millis(at lock.Instant) float64 { return float64(at) / 1e6 }

// input is the history as it was when the counter was read, of what may be in the reading and not in the one before, and
// of what tells whose that is.
func (a *Acked) input(r reading) check.Input {
	inv := a.Invariant
	inv.Kind = "counter"
	inv.Start, inv.HasStart, inv.ReadAt = a.mem.Base, true, a.mem.BaseAt
	inv.End, inv.HasEnd = r.Value, true
	in := check.Input{Declarations: slices.Concat(a.header.Declarations, a.Declared), Invariants: []check.Invariant{inv}}
	late := a.committedLater(r)
	terms, txs := a.concerned(r)
	for _, op := range a.ops {
		tx := [2]uint64{op.Session, op.Tx}
		switch {
		case op.F >= r.after.At || op.F == 0, late[tx] && op.Tx != 0 && !op.Implicit:
		case overOp(op) > a.mem.BaseFrom, op.R == 0, op.Tx != 0 && txs[tx], mine(terms, op.Term):
			in.Ops = append(in.Ops, a.straddling(a.asOf(op, r)))
		}
	}
	for _, e := range a.ends {
		if e.At <= r.before.At {
			in.Ends = append(in.Ends, e)
		}
	}
	return in
}

// straddling has what was answered while the last reading was taken answered behind it: it may be in it or not.
func (a *Acked) straddling(op *lock.Op) *lock.Op {
	if !a.moves(op) || op.R == 0 || max(op.R, op.Z) <= a.mem.BaseFrom || max(op.R, op.Z) > a.mem.BaseAt {
		return op
	}
	own := *op
	own.R, own.D = a.mem.BaseAt+1, max(op.D, a.mem.BaseAt+2)
	if own.Z != 0 {
		own.Z = own.R
	}
	return &own
}

// concerned are the terms and transactions of what came after the last reading.
func (a *Acked) concerned(r reading) (map[lock.TermID]bool, map[[2]uint64]bool) {
	terms, txs := map[lock.TermID]bool{}, map[[2]uint64]bool{}
	for _, op := range a.ops {
		if overOp(op) <= a.mem.BaseFrom || op.F >= r.after.At {
			continue
		}
		txs[[2]uint64{op.Session, op.Tx}] = true
		for _, id := range append(op.Term.Candidates(), op.Term.Within...) {
			terms[id] = true
		}
	}
	return terms, txs
}

func mine(terms map[lock.TermID]bool, a lock.Attribution) bool {
	if terms[a.ID] {
		return true
	}
	for _, id := range a.Within {
		if terms[id] {
			return true
		}
	}
	return false
}

// committedLater are transactions whose COMMIT was sent when the counter had been read.
func (a *Acked) committedLater(r reading) map[[2]uint64]bool {
	late := map[[2]uint64]bool{}
	for _, op := range a.ops {
		if op.Kind == lock.Commit && op.F >= r.after.At {
			late[[2]uint64{op.Session, op.Tx}] = true
		}
	}
	return late
}

// asOf is an op as it was known when the counter was read: what could have been in effect or not has no answer yet. What
// leaves the counter alone, such as a claim at the read, has its answer: a step may be computed from that.
func (a *Acked) asOf(op *lock.Op, r reading) *lock.Op {
	if !a.moves(op) || max(op.R, op.Z) <= r.before.At || op.Outcome == lock.Failed || op.Outcome == lock.RolledBack {
		return op
	}
	own := *op
	own.R, own.D, own.Z, own.ReplySeq = 0, 0, 0, 0
	own.Outcome, own.Rows, own.Row, own.Err = lock.Unknown, 0, nil, ""
	return &own
}

// moves reports whether an op may change the counter, or settle that it was changed.
func (a *Acked) moves(op *lock.Op) bool {
	if op.Kind != lock.Write {
		return op.Kind == lock.Commit
	}
	if op.SQL == nil || op.Verb != "UPDATE" || op.SQL.Opaque || len(op.SQL.Also) > 0 {
		return true
	}
	return lock.TableName(op.SQL.Table) == lock.TableName(a.Invariant.Table) &&
		slices.ContainsFunc(op.SQL.Set, func(s lock.Assign) bool { return s.Column == a.Invariant.Column })
}
