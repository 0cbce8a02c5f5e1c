package report

import (
	"fmt"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// keyOf is a lock as reports and rules name it.
func keyOf(l check.LockFact) string { return l.Lock }

// gaps is the number of gaps in the record, by whoever counted them.
func (r Run) gaps() int { return max(r.Gaps, r.Result.Facts.Gaps) }

// unknownFigures names the invariants without a figure, unless the caller has
// said why they could not be read.
func (r Run) unknownFigures() []string {
	var out []string
	if len(r.Unread) > 0 {
		return nil
	}
	for _, c := range r.Result.Counters {
		switch {
		case c.GivenUp != "":
			out = append(out, "counter "+counterName(c)+" could not be summed, since "+c.GivenUp)
		case !c.Known:
			out = append(out, "counter "+counterName(c)+" could not be read")
		}
	}
	for _, m := range r.Result.Risings {
		if !m.Known {
			out = append(out, "monotone "+risingName(m)+" could not be read")
		}
	}
	for _, f := range r.Result.Fences {
		// One that was learned has no query; and where writes under a fence were
		// seen, they say more than two readings of its row.
		if !f.Known && f.Query != "" && f.Accepted == 0 {
			out = append(out, "fence "+fenceName(f)+" could not be read")
		}
	}
	return out
}

// notSeen lists what kept the run from being seen whole.
func (r Run) notSeen() []string {
	lines := []string{}
	if n := r.gaps(); n > 0 {
		lines = append(lines, many(n, "gap")+" in the record: what lies across one is LIKELY at most")
	}
	for _, u := range r.Unread {
		lines = append(lines, "not read: "+u)
	}
	for _, u := range r.Result.Facts.Unmet {
		lines = append(lines, r.unmet(u))
	}
	if n := r.Result.Facts.Unsettled; n > 0 {
		lines = append(lines, fmt.Sprintf("ops without an answer, each of which may have happened: %d", n))
	}
	if f := r.Result.Facts; f.Guessed > 0 {
		lines = append(lines, fmt.Sprintf("%s of scripts whose text was not seen, read off their arguments: %d carry the token of a lock, "+
			"and count as its release or renewal; what rests on one is LIKELY at most", many(f.Guessed, "call"), f.Believed))
	}
	for _, l := range r.Result.Facts.Limits {
		lines = append(lines, fmt.Sprintf("a limit was met: %d %s", l.N, l.What))
	}
	return append(lines, r.Blind...)
}

func (r Run) suggested() []string {
	if len(r.Suggest) > 0 {
		return r.Suggest
	}
	out := Suggest(r.Result.Facts)
	if len(r.Result.Counters) == 0 {
		out = append(out, suggestCounters(r.Result.Facts)...)
	}
	return out
}

// unproven says of each column whose late writes could not be judged that they
// were not, with a flag that would have them judged where there is one.
func (r Run) unproven() []unproven {
	var out []unproven
	for _, u := range r.Result.Facts.Unproven {
		said := unproven{table: u.Table, column: u.Column, writes: u.Writes}
		said.text = fmt.Sprintf("not judged: %s to %s accepted after the holder's lease or the next grant. Nothing shows what "+
			"they were computed from, so whether they undid another's update cannot be told", many(u.Writes, "write"), said.where())
		if u.Number {
			said.flag = counterFlag(u.Table, u.Column, u.Where)
		}
		out = append(out, said)
	}
	return out
}

type unproven struct {
	table, column string
	writes        int
	text          string
	flag          string // "" where there is none
}

func (u unproven) where() string { return u.table + "." + u.column }

// unsure: the code was raised, but nowhere at PROVEN. What is inconclusive by
// its class cannot be surer.
func (r Run) unsure(gs []group, code string) bool {
	found := false
	for _, g := range gs {
		if g.Code != code {
			continue
		}
		if g.Level == string(check.Proven) || g.Class == string(check.Inconclusive) {
			return false
		}
		found = true
	}
	return found
}
