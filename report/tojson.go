package report

import (
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

func toJSONCounter(c check.Counter) jsonCounter {
	j := jsonCounter{
		Name: c.Name, Query: c.Query, Table: c.Table, Column: c.Column, Known: c.Known,
		Acknowledged: c.Acknowledged, Unknown: c.Unknown,
		UnknownLow: c.UnknownLow, UnknownHigh: c.UnknownHigh, Unbounded: c.Unbounded,
		StaleBase: c.StaleBase, Victims: c.Victims, Epochs: c.Epochs, GivenUp: c.GivenUp,
	}
	if c.Known {
		j.Start, j.End, j.Change, j.NetDeficit = &c.Start, &c.End, &c.Change, &c.NetDeficit
	}
	return j
}

func toJSONRising(m check.Rising) jsonRising {
	j := jsonRising{Name: m.Name, Query: m.Query, Table: m.Table, Column: m.Column, Known: m.Known, Highest: m.Highest, Falls: m.Falls}
	if m.Known {
		j.Start, j.End = &m.Start, &m.End
	}
	return j
}

func toJSONFence(f check.FenceFigure) jsonFence {
	j := jsonFence{Name: f.Name, Query: f.Query, Table: f.Table, Column: f.Column, Accepted: f.Accepted,
		Rejected: f.Rejected, Lowest: f.Lowest, Highest: f.Highest, Regressions: f.Regressions, Unnumbered: f.Unnumbered, Known: f.Known}
	if f.Known {
		j.Start, j.End = &f.Start, &f.End
	}
	return j
}

func (r Run) toJSONVerdict(g group) jsonVerdict {
	j := jsonVerdict{
		Code: g.Code, Name: g.Name, Level: g.Level, Class: g.Class, Harm: g.Harm,
		Fails: g.fails, Expected: r.expects(g.Code), Count: g.Count, Victims: g.Victims, Train: g.Train,
		Locks: list(g.Locks), Tables: list(g.Tables), Proofs: list(g.Proofs),
	}
	if g.accepted > 0 {
		j.Accepted = r.Accepted[g.accepted-1].Reason
	}
	if len(g.Locks) == 1 {
		j.Lock = g.Locks[0]
	}
	if len(g.Tables) == 1 {
		j.Table = g.Tables[0]
	}
	return j
}

func (r Run) toJSONFacts() jsonFacts {
	f := r.Result.Facts
	f.Gaps = r.gaps()
	return jsonFacts{
		Started: r.wall(0), ElapsedNs: int64(r.Elapsed), Numbers: f.Numbers, Actors: f.Actors,
		Locks: each(f.Locks, toJSONLock), Tables: each(f.Tables, toJSONTable),
		Overlaps: each(f.Overlaps, r.toJSONOverlap),
		Limits:   each(f.Limits, func(l check.Limit) jsonLimit { return jsonLimit(l) }),
		Unproven: each(r.unproven(), func(u unproven) jsonUnproven { return jsonUnproven{u.table, u.column, u.writes, u.flag} }),
	}
}

func toJSONLock(l check.LockFact) jsonLock {
	return jsonLock{Lock: keyOf(l), Grants: l.Grants, Refusals: l.Refusals, Renewals: l.Renewals,
		TTLsNs: each(l.TTLs, func(d time.Duration) int64 { return int64(d) }), MedianHeldNs: int64(l.MedianHeld),
		Declared: l.Declared, Marker: l.Marker, Fences: l.Fences, FenceKey: l.FenceKey, Overrun: l.Overrun, Lost: l.Lost}
}

func toJSONTable(t check.TableFact) jsonTable {
	return jsonTable{Table: t.Table, Columns: list(t.Columns), Reads: t.Reads, Writes: t.Writes, Perhaps: t.Perhaps, Lock: t.Lock, Fence: t.Fence}
}

func (r Run) toJSONOverlap(o check.Overlap) jsonOverlap {
	j := jsonOverlap{Lock: o.Lock, A: o.A, B: o.B, FromNs: int64(o.From), From: r.wall(o.From)}
	if o.To != 0 && o.To != lock.Never {
		to := int64(o.To)
		j.ToNs, j.To = &to, r.wall(o.To)
	}
	return j
}

// wall is the wall clock at an instant; "" when the history does not say when
// it started.
func (r Run) wall(i lock.Instant) string {
	if r.Started.IsZero() {
		return ""
	}
	return r.Started.Add(time.Duration(i)).UTC().Format(time.RFC3339Nano)
}

func (r Run) toJSONRule(u RuleUse, o Outcome) jsonRule {
	t := r.tallyOf(u)
	j := jsonRule{Text: u.Text, Name: u.Name, Could: u.Could, Fired: u.Fired, Section: t.Section,
		Barred: u.Barred, Nearest: u.Nearest}
	if u.Seen >= u.Fired { // else it was made from a history, which does not have it
		j.Seen = &u.Seen
	}
	if o.LF401 {
		j.WhyNot = u.why(t, r.Result.Facts)
	}
	return j
}

func (r Run) toJSONInjections() jsonInjections {
	t := r.tallyAll()
	return jsonInjections{Total: t.Total, Landed: t.Landed, Section: t.Section, GaveUp: t.GaveUp,
		Refused: t.Refused, CutShort: t.Cut, List: each(r.Injections, toJSONInjection), Turns: each(r.Turns, toJSONTurn)}
}

func toJSONInjection(i history.Injection) jsonInjection {
	return jsonInjection{
		ID: i.ID, Rule: i.Rule, Name: i.Name, Effect: i.Effect, Phase: i.Phase, Scope: i.Scope,
		Matched: i.Matched, Actor: i.Actor, Op: i.Op, ForNs: int64(i.For), AtNs: int64(i.At),
		ConfirmedNs: int64(i.Confirmed), EndedNs: int64(i.Ended),
		Outcome: i.Outcome, Reason: i.Reason, Section: i.Section,
		Until: i.Until, OpenedNs: int64(i.Opened),
		Met: each(i.Met, func(m history.Met) jsonMet { return jsonMet{m.Condition, int64(m.At), m.Op} }),
	}
}

// list makes an empty array of a nil slice: readers of JSON like one type.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// each maps a slice, never to nil.
func each[T, U any](in []T, f func(T) U) []U {
	out := make([]U, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}
