package report

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes the run as a page for a pull request or a CI's summary: the
// outcome, the verdicts with their first proofs, a diagram of each root cause, the figures
// and the map of locks.
// It returns the writer's first error.
func Markdown(w io.Writer, r Run) error {
	m := &markdown{w: w}
	o, gs := r.Outcome(), groups(r)
	m.line("## %s (exit %d)", o.Word, o.Exit)
	m.line("")
	m.line("%s", cellText(o.Why))
	m.line("")
	m.line("%s", cellText(exercised(r)))
	if r.Baseline != nil {
		m.line("")
		m.line("%s", cellText(r.baselineLine()))
	}
	for _, q := range r.Require {
		m.line("")
		m.line("%s", cellText(q.said(r)))
	}
	m.verdicts(r, gs)
	m.causes(r)
	m.figures(r)
	m.lockMap(r)
	m.line("")
	m.line("%s", blindness)
	return m.err
}

// MapMarkdown writes the map of locks alone. It returns the writer's first error.
func MapMarkdown(w io.Writer, r Run) error {
	m := &markdown{w: w}
	m.lockMap(r)
	return m.err
}

// A markdown writes lines. Its first error sticks, and silences the rest.
type markdown struct {
	w   io.Writer
	err error
}

func (m *markdown) line(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format+"\n", args...)
	}
}

// row writes one row of a table.
func (m *markdown) row(cells ...string) {
	for i := range cells {
		cells[i] = cellText(cells[i])
	}
	m.line("| %s |", strings.Join(cells, " | "))
}

func (m *markdown) head(cells ...string) {
	m.line("")
	m.line("| %s |", strings.Join(cells, " | "))
	m.line("|%s", strings.Repeat("---|", len(cells)))
}

// cellText keeps what came from the wire from being read as Markdown.
func cellText(s string) string {
	return strings.NewReplacer("|", `\|`, "`", `\`+"`", "*", `\*`, "_", `\_`, "<", "&lt;", ">", "&gt;", "[", `\[`, "]", `\]`).Replace(plain(s))
}

func (m *markdown) verdicts(r Run, gs []group) {
	if len(gs) == 0 {
		m.line("")
		m.line("No verdicts.")
		return
	}
	m.head("verdict", "level", "class", "count", "where", "")
	for _, g := range gs {
		m.row(g.Code+" "+g.Name, g.Level, g.meaning(), fmt.Sprint(g.Count), g.where(), g.standing(r))
	}
	for _, g := range gs {
		if !g.fails && !g.doubtful() || len(g.Proofs) == 0 {
			continue
		}
		m.line("")
		m.line("**%s**", cellText(g.title()))
		m.line("")
		for _, proof := range g.shown() {
			m.line("- %s", cellText(proof))
		}
	}
}

// shownDiagrams is how many root causes a page in Markdown draws.
const shownDiagrams = 10

// causes draws the root causes of which there is a picture, the worst first.
func (m *markdown) causes(r Run) {
	all, more := r.Causes()
	drawn := 0
	for _, c := range all {
		switch {
		case c.Figure == nil:
			continue
		case drawn == shownDiagrams:
			more++
			continue
		}
		drawn++
		m.line("")
		m.line("### %s", cellText(c.Code+" "+c.Name+": "+c.Level+" "+c.Meaning))
		m.line("")
		m.line("%s", cellText(c.Premise))
		m.mermaid(c.Figure)
		if c.Do != "" {
			m.line("")
			m.line("**What to do** %s", c.Do)
		}
	}
	if more > 0 && drawn > 0 {
		m.line("")
		m.line("And %s not drawn: report.html has more, and report.json has each proof.", many(more, "root cause"))
	}
}

func (m *markdown) figures(r Run) {
	for _, c := range r.Result.Counters {
		m.line("")
		m.line("**counter** %s: %s", cellText(counterName(c)), cellText(strings.Join(counterLines(c), "; ")))
	}
	for _, f := range r.Result.Fences {
		m.line("")
		m.line("**fence** %s: %s", cellText(fenceName(f)), cellText(fenceLine(f)))
	}
	for _, g := range r.Result.Risings {
		m.line("")
		m.line("**monotone** %s: %s", cellText(risingName(g)), cellText(risingLine(g)))
	}
	for _, line := range r.notSeen() {
		m.line("")
		m.line("**not seen** %s", cellText(line))
	}
}

func (m *markdown) lockMap(r Run) {
	if len(r.Result.Map) == 0 {
		m.line("")
		m.line("No lock was seen.")
		return
	}
	m.head("lock", "guards", "sections", "p50", "p99", "p99.9", "lease", "left at the last write (least, p50)", "would have sufficed")
	for _, e := range r.Result.Map {
		guards := "no table that was seen to be written"
		for i, g := range e.Guards {
			if guards += "; "; i == 0 {
				guards = ""
			}
			guards += guardLine(g)
		}
		length, left, enough := []string{"", "", ""}, "", ""
		if e.Length.N > 0 {
			length = []string{span(e.Length.P50), span(e.Length.P99), span(e.Length.P999)}
		}
		if e.Margin.N > 0 {
			left = span(e.Margin.Min) + ", " + span(e.Margin.P50)
		}
		if e.Suffices > 0 {
			enough = span(sufficing(e))
		}
		lease := "none"
		if e.Lifetime > 0 {
			lease = span(e.Lifetime)
		}
		m.row(mapTitle(e), guards, fmt.Sprint(e.Sections), length[0], length[1], length[2], lease, left, enough)
	}
}
