package report

import (
	"fmt"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

func textCounters(p *page, r Run) {
	for _, c := range r.Result.Counters {
		p.raw("")
		p.put("counter", 2, counterName(c))
		for _, line := range counterLines(c) {
			p.sub(margin, line)
		}
	}
}

func counterName(c check.Counter) string {
	switch {
	case c.Query != "" && c.Name != "" && c.Name != c.Query:
		return c.Name + ": " + c.Query
	case c.Query != "":
		return c.Query
	case c.Name != "":
		return c.Name
	}
	return c.Table + "." + c.Column
}

func counterLines(c check.Counter) []string {
	if c.GivenUp != "" {
		return []string{"not summed, since " + c.GivenUp}
	}
	first := fmt.Sprintf("acknowledged %d; its change is not known, since it could not be read", c.Acknowledged)
	if c.Known {
		first = fmt.Sprintf("acknowledged %d, change %d (%d to %d), net deficit %d",
			c.Acknowledged, c.Change, c.Start, c.End, c.NetDeficit)
	}
	lines := []string{first}
	if c.Unknown != 0 {
		lines = append(lines, unknownLine(c))
	}
	if c.Epochs > 0 {
		lines = append(lines, fmt.Sprintf("set anew %s: the sum starts at the last one", times(c.Epochs)))
	}
	return append(lines, fmt.Sprintf("%s from a stale base, %s overwritten",
		many(c.StaleBase, "write"), many(c.Victims, "acknowledged write")))
}

func unknownLine(c check.Counter) string {
	said := fmt.Sprintf("unknown: %s without an answer or a known step", many(int(c.Unknown), "write"))
	if c.Unbounded {
		return said + ", which may have added anything"
	}
	return said + fmt.Sprintf(", which may have added %d to %d", c.UnknownLow, c.UnknownHigh)
}

func textFences(p *page, fences []check.FenceFigure) {
	for _, f := range fences {
		p.raw("")
		p.put("fence", 2, fenceName(f))
		p.sub(margin, fenceLine(f))
	}
}

func fenceName(f check.FenceFigure) string {
	column := f.Table + "." + f.Column
	switch {
	case f.Query != "" && f.Name != "" && f.Name != f.Query:
		return f.Name + ": " + f.Query
	case f.Query != "":
		return f.Query
	case f.Name != "" && f.Name != column:
		return f.Name + " (" + column + ")"
	}
	return column
}

func fenceLine(f check.FenceFigure) string {
	said := fmt.Sprintf("%s accepted, %d refused", many(f.Accepted, "write"), f.Rejected)
	if f.Accepted > 0 {
		said += fmt.Sprintf("; fences %d to %d", f.Lowest, f.Highest)
	}
	if f.Accepted > 0 || f.Regressions > 0 {
		said += ", " + fell(f)
	}
	if f.Unnumbered > 0 {
		said += fmt.Sprintf("; %s without an answer or a known number", many(f.Unnumbered, "write"))
	}
	if f.Known {
		said += fmt.Sprintf("; the row went from %d to %d", f.Start, f.End)
		if f.End < f.Start && f.Regressions == 0 {
			said += ", having been made anew"
		}
	}
	return said
}

func fell(f check.FenceFigure) string {
	switch {
	case f.Regressions > 0:
		return times(f.Regressions) + " lower than before"
	case f.Unnumbered > 0 || f.Known && f.End < max(f.Start, f.Highest):
		return "never lower than before as far as is known"
	}
	return "never lower than before"
}

func textRisings(p *page, list []check.Rising) {
	for _, m := range list {
		p.raw("")
		p.put("monotone", 2, risingName(m))
		p.sub(margin, risingLine(m))
	}
}

func risingName(m check.Rising) string {
	return counterName(check.Counter{Name: m.Name, Query: m.Query, Table: m.Table, Column: m.Column})
}

func risingLine(m check.Rising) string {
	said := "it could not be read"
	if m.Known {
		said = fmt.Sprintf("%d to %d, at most %d", m.Start, m.End, m.Highest)
	}
	if m.Falls > 0 {
		return said + "; " + times(m.Falls) + " lower than before"
	}
	return said + "; never seen lower than before"
}

func textBlind(p *page, r Run) {
	if lines := r.notSeen(); len(lines) > 0 {
		p.raw("")
		p.list("not seen", lines)
	}
}

// blindness is the sentence that every report carries, the green ones above all.
const blindness = "Figures that agree prove nothing about what took another way: other stores, mail or HTTP " +
	"calls made under the lock, and writes that did not pass through lockfaultd."

func textEnd(p *page, r Run) {
	p.raw("")
	p.put("limits", 0, blindness)
	if r.Watching {
		textSuggest(p, r)
	}
	if len(r.Rules) > 0 {
		p.put("seed", 0, fmt.Sprint(r.Seed))
	}
	if r.Repeat != "" {
		p.shell("repeat", r.Repeat)
	}
	for i, f := range r.Files {
		label := "files"
		if i > 0 {
			label = ""
		}
		p.raw(pad(label, margin) + plain(f))
	}
}

func textSuggest(p *page, r Run) {
	rules := r.suggested()
	if len(rules) == 0 {
		p.put("to try", 0, "no lock was seen, so there is no rule to propose"+r.whyNoLock())
		return
	}
	for i, rule := range rules {
		label := "to try"
		if i > 0 {
			label = ""
		}
		p.shell(label, rule)
	}
}
