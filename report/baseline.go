package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Baseline is the stretch at the start of a run in which no rule acted. What is
// found in it no injection has made.
type Baseline struct {
	Asked       time.Duration
	From, Until lock.Instant    // zeros: no lock was held, and it did not begin
	Over        bool            // it was, before the run's end
	Ops         map[uint64]bool // those that had their answers in it, by Seq
}

// has reports whether all that a verdict rests on is of the baseline. A verdict that
// cites nothing is of the run as a whole, and a run that ended before is all baseline.
func (b *Baseline) has(v check.Verdict) bool {
	return !b.Over || len(v.Ops) > 0 && !slices.ContainsFunc(v.Ops, func(op uint64) bool { return !b.Ops[op] })
}

// soils reports whether a verdict has no place in a run without faults: what fails a
// run, expected or not, and what shows that a lease ended while it was held.
func (r Run) soils(v check.Verdict) bool {
	if v.Level != check.Proven || r.acceptedBy(v) > 0 {
		return false
	}
	g := group{Code: v.Code, Class: string(v.Class), Level: string(v.Level), Harm: v.Harm}
	return v.Harm || r.failsOn(g) || slices.Contains([]string{"LF101", "LF102", "LF103"}, v.Code)
}

// soiled lists, by title, what a baseline has that it should not have.
func (r Run) soiled() []string {
	if r.Baseline == nil {
		return nil
	}
	var gs []group
	for _, v := range r.Result.Verdicts {
		if !r.Baseline.has(v) || !r.soils(v) {
			continue
		}
		i := slices.IndexFunc(gs, func(g group) bool { return g.Code == v.Code })
		if i < 0 {
			gs, i = append(gs, group{Code: v.Code, Name: nameOf(v), Class: string(v.Class), Level: string(v.Level), Harm: v.Harm}), len(gs)
		}
		gs[i].add(v)
	}
	slices.SortStableFunc(gs, byWeight)
	titles := make([]string, len(gs))
	for i, g := range gs {
		titles[i] = g.title()
	}
	return titles
}

// whySoiled is why nothing is said of the faults: it was broken without them.
func (r Run) whySoiled() string {
	titles := r.soiled()
	if len(titles) == 0 {
		return ""
	}
	return "the baseline is not clean: " + strings.Join(titles, ", ") + " came before any rule could act, so the harness or the service is already broken"
}

// whyNoBaseline is why no rule could act at all.
func (r Run) whyNoBaseline() string {
	switch b := r.Baseline; {
	case b == nil || b.Over:
		return ""
	case b.From == 0:
		return fmt.Sprintf("the baseline of %s did not begin, since no lock was held", span(b.Asked))
	default:
		return fmt.Sprintf("the command ended before the baseline of %s was over, so no rule could act", span(b.Asked))
	}
}

// baselineLine says in the summary what the baseline was like.
func (r Run) baselineLine() string {
	said := fmt.Sprintf("baseline of %s from the first lock: ", span(r.Baseline.Asked))
	switch {
	case r.whySoiled() != "":
		return said + "not clean: " + strings.Join(r.soiled(), ", ")
	case r.whyNoBaseline() != "":
		return said + "not over"
	}
	return said + fmt.Sprintf("clean, with %s", many(len(r.Baseline.Ops), "op"))
}

type jsonBaseline struct {
	AskedNs int64    `json:"asked_ns"`
	FromNs  int64    `json:"from_ns"`
	UntilNs int64    `json:"until_ns"`
	Over    bool     `json:"over"`
	Ops     int      `json:"ops"`
	Soiled  []string `json:"soiled"` // empty: it is clean
}

func (r Run) toJSONBaseline() *jsonBaseline {
	b := r.Baseline
	if b == nil {
		return nil
	}
	return &jsonBaseline{int64(b.Asked), int64(b.From), int64(b.Until), b.Over, len(b.Ops), list(r.soiled())}
}
