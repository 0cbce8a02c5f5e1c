package check

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A pass is one look of a Live at the lines that it keeps.
type pass struct {
	*Judging
	lineOf map[*lock.Op]int
}

// pass tells a new judging of lines, which has judged nothing yet.
func (l *Live) pass(lines []line) *pass {
	in := Input{Declarations: l.declared, Invariants: l.invariants}
	p := &pass{lineOf: map[*lock.Op]int{}}
	var ops []*lock.Op
	for i, k := range lines {
		switch e := k.entry; {
		case e.Op != nil:
			own := *e.Op
			own.Term = lock.Attribution{}
			ops = append(ops, &own)
			p.lineOf[&own] = i
		case e.End != nil:
			in.Ends = append(in.Ends, End(*e.End))
		case e.Clock != nil:
			in.Clocks = append(in.Clocks, clockOf(l.header.Started, *e.Clock))
		case e.Gap != nil:
			in.Gaps = append(in.Gaps, Gap(*e.Gap))
		case e.Bypass != nil:
			in.Bypasses = append(in.Bypasses, bypassOf(*e.Bypass))
		}
	}
	p.Judging = NewJudging(in.setup(), surveyOf(l.declared, ops))
	p.Judging.window, p.Judging.kept = len(ops)+1, len(ops)+1
	p.tallies = nil // the sums of counters are for the end of a run
	for _, g := range in.Gaps {
		p.Gap(g)
	}
	replay(eventsOf(ops), in.Ends, p.tell)
	return p
}

// letGo lets go of what began before the limit and goes on, and of what a former pass
// has let go of and that had not been over by its mark.
func (p *pass) letGo(s LiveState, limit, now lock.Instant) {
	p.now = max(p.now, now)
	for _, t := range p.terms {
		goesOn := !t.Marker && (t.Open() || p.leased(t))
		if t.Grant.A < limit && goesOn || t.Grant.A < s.Floor && (goesOn || p.lasted(t, s.Mark)) {
			p.pinned[t.ID] = true
			p.pins++
		}
	}
	limit = max(limit, s.Floor)
	maps.DeleteFunc(p.asked, func(op *lock.Op, _ bool) bool { return op.A < limit })
	maps.DeleteFunc(p.txs, func(_ uint64, tx openTx) bool { return tx.first.A < limit })
}

// waitAsOf has it wait for what may yet be heard at the instant now.
func (p *pass) waitAsOf(now lock.Instant) {
	p.ghostsBy, p.readBy, p.answersBy = now.Add(-livePatience), now.Add(-liveRead), now.Add(-liveAnswer)
}

// lasted reports whether a term was not over by the instant, or its lease was not.
func (p *pass) lasted(t *lock.Term, at lock.Instant) bool {
	return t.End >= at || t.Released == nil && t.LeaseEnd.Latest != lock.Never && t.LeaseEnd.Latest >= at
}

// needed lists the lines of the ops that something may have to do with which goes on, and
// those of the last ones. Of a term that goes on one renewal more is kept, so that its
// lease is known from the first of these on.
func (p *pass) needed(context int) map[int]bool {
	keeps := map[int]bool{}
	for _, op := range p.ops {
		keeps[p.lineOf[op]] = true
	}
	all := slices.SortedFunc(maps.Keys(p.lineOf), func(a, b *lock.Op) int { return cmp.Compare(p.lineOf[a], p.lineOf[b]) })
	first := max(0, len(all)-context)
	for _, op := range all[first:] {
		keeps[p.lineOf[op]] = true
	}
	renewed := map[lock.TermID]bool{}
	for _, op := range slices.Backward(all[:first]) {
		if t := p.term[op.Term.ID]; t != nil && t.Open() && op.Kind == lock.Renew && !renewed[t.ID] {
			renewed[t.ID], keeps[p.lineOf[op]] = true, true
		}
	}
	return keeps
}

// instant is when a line that is no op tells of.
func instant(e history.Entry) lock.Instant {
	switch {
	case e.End != nil:
		return e.End.At
	case e.Gap != nil:
		return e.Gap.At
	case e.Clock != nil:
		return e.Clock.At
	case e.Bypass != nil:
		return e.Bypass.At
	}
	return 0
}

// compare tells what a pass has beyond the one before, by what was known then.
func (l *Live) compare(before, after *pass) Settlement {
	old, now := before.result(), after.result()
	return Settlement{Verdicts: l.fresher(old.Verdicts, now.Verdicts), Numbers: now.Facts.less(old.Facts.Numbers)}
}

// fresher lists the verdicts that were not there before, or count more by now.
func (l *Live) fresher(old, now []Verdict) (out []Verdict) {
	had := map[string]int{}
	for _, t := range l.state.Told {
		had[t.Key] = t.Count
	}
	for _, v := range old {
		had[keyOf(v)] = v.Count
	}
	for _, v := range now {
		key := keyOf(v)
		if v.Count <= had[key] {
			continue
		}
		l.tell(LiveTold{key, v.Count})
		v.Count -= had[key]
		out = append(out, v)
	}
	return out
}

func (l *Live) tell(t LiveTold) {
	l.state.Told = slices.DeleteFunc(l.state.Told, func(o LiveTold) bool { return o.Key == t.Key })
	l.state.Told = append(l.state.Told, t)
	if over := len(l.state.Told) - liveTold; over > 0 {
		l.state.Told = slices.Delete(l.state.Told, 0, over)
	}
}

// keyOf is what makes a verdict the same as another of the same run, however sure it is.
func keyOf(v Verdict) string {
	if v.pile != "" {
		return v.pile
	}
	parts := []string{v.Code, v.Lock, v.Table}
	for _, op := range v.Ops {
		parts = append(parts, strconv.FormatUint(op, 10))
	}
	return strings.Join(parts, "|")
}
