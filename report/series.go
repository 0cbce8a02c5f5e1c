package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Series is several runs of one command, one after the other.
type Series struct {
	Runs        []Saved  // those that came to an end, in order
	Folders     []string // of each, where its files are; "" if they were not kept
	Asked       int      // how many there were to be
	Interrupted bool     // somebody asked for the end before all had run

	Seed    uint64
	Armed   bool // rules were
	Command []string
	Repeat  string
	Files   []string // of the series itself
}

// worst lists the exit statuses of runs, the worst first: what wins in one run wins
// among several.
func worst() []int {
	return []int{exitInternal, exitUnreachable, exitHarm, exitInterrupted, exitCommand, exitInconclusive, exitHeld}
}

// Worse reports whether exit status a is worse than b.
func Worse(a, b int) bool { return slices.Index(worst(), a) < slices.Index(worst(), b) }

// Worst returns the place of the first of the worst runs, -1 if none came to an end.
func (s Series) Worst() int {
	at := -1
	for i, r := range s.Runs {
		if at < 0 || Worse(r.j.Exit, s.Runs[at].j.Exit) {
			at = i
		}
	}
	return at
}

// Outcome is that of the worst run.
func (s Series) Outcome() Outcome {
	at := s.Worst()
	if at < 0 || s.Interrupted && Worse(exitInterrupted, s.Runs[at].j.Exit) {
		return Outcome{Exit: exitInterrupted, Word: "INCONCLUSIVE", Why: fmt.Sprintf("interrupted after %d of %s", len(s.Runs), many(s.Asked, "run"))}
	}
	j, alike := s.Runs[at].j, 0
	for _, r := range s.Runs {
		alike += one(r.j.Exit == j.Exit)
	}
	return Outcome{Exit: j.Exit, Word: j.Outcome, Why: fmt.Sprintf("in %d of %s; run %d: %s", alike, many(len(s.Runs), "run"), at+1, j.Why)}
}

// An alike is the runs that gave the same exit status and the same verdicts, each at
// the same level, however often.
type alike struct {
	Runs     []int    `json:"runs"` // from 1
	Exit     int      `json:"exit"`
	Verdicts []string `json:"verdicts"`
}

func (a alike) String() string {
	verdicts := strings.Join(a.Verdicts, ", ")
	if verdicts == "" {
		verdicts = "no verdicts"
	}
	return fmt.Sprintf("exit %d, %s", a.Exit, verdicts)
}

// alikes sorts the runs by what they gave; what most gave comes first.
func (s Series) alikes() []alike {
	var out []alike
	for n, r := range s.Runs {
		is := alike{Exit: r.j.Exit, Verdicts: r.verdicts()}
		i := slices.IndexFunc(out, func(a alike) bool { return a.Exit == is.Exit && slices.Equal(a.Verdicts, is.Verdicts) })
		if i < 0 {
			out, i = append(out, is), len(out)
		}
		out[i].Runs = append(out[i].Runs, n+1)
	}
	slices.SortStableFunc(out, func(a, b alike) int { return cmp.Compare(len(b.Runs), len(a.Runs)) })
	return out
}

// verdicts names each verdict of the run with its level, once.
func (s Saved) verdicts() []string {
	out := []string{}
	for _, v := range s.j.Verdicts {
		said := v.Code + " " + v.Level
		if v.Accepted != "" {
			said += " accepted"
		}
		out = addOnce(out, said)
	}
	slices.Sort(out)
	return out
}

// Stable is how many of the runs gave what most of them gave.
func (s Series) Stable() int {
	if all := s.alikes(); len(all) > 0 {
		return len(all[0].Runs)
	}
	return 0
}

// A frequency is one verdict, in how many runs it was, and how often in each of them.
type frequency struct {
	jsonVerdict
	runs, least, most int
}

func (f frequency) String() string { return f.title() }

func (s Series) frequencies() []frequency {
	var out []frequency
	for _, r := range s.Runs {
		for _, v := range r.j.Verdicts {
			i := slices.IndexFunc(out, func(f frequency) bool { return f.kind() == v.kind() })
			if i < 0 {
				out, i = append(out, frequency{jsonVerdict: v, least: v.Count}), len(out)
			}
			f := &out[i]
			f.runs++
			f.least, f.most, f.Fails = min(f.least, v.Count), max(f.most, v.Count), f.Fails || v.Fails
		}
	}
	slices.SortStableFunc(out, func(a, b frequency) int { return byWeight(a.group(), b.group()) })
	return out
}

func (v jsonVerdict) group() group {
	return group{Code: v.Code, Class: v.Class, Level: v.Level, Harm: v.Harm, accepted: one(v.Accepted != "")}
}

// A ranged is one figure over the runs in which it is known.
type ranged struct {
	figure
	runs        int
	least, most int64
}

func (s Series) ranges() []ranged {
	var out []ranged
	for _, r := range s.Runs {
		for _, f := range r.figures() {
			i := slices.IndexFunc(out, func(o ranged) bool { return o.Name == f.Name })
			if i < 0 {
				out, i = append(out, ranged{figure: f, least: f.value, most: f.value}), len(out)
			}
			if o := &out[i]; f.known {
				if o.runs++; o.runs == 1 {
					o.least, o.most = f.value, f.value
				}
				o.least, o.most = min(o.least, f.value), max(o.most, f.value)
			}
		}
	}
	return out
}

func (r ranged) said() string {
	switch {
	case r.runs == 0:
		return "not known"
	case r.least == r.most:
		return r.of(r.least)
	}
	return r.of(r.least) + " to " + r.of(r.most)
}

// SeriesText writes the summary of several runs for a terminal; of each run its own
// is in its folder. It returns the writer's first error.
func SeriesText(w io.Writer, s Series) error {
	p, o := &page{w: w}, s.Outcome()
	for i, line := range wrap(plain(fmt.Sprintf("%s (exit %d): %s", o.Word, o.Exit, o.Why)), width-2) {
		p.raw(strings.Repeat("  ", min(i, 1)) + line)
	}
	p.raw("")
	p.list("runs", s.runLines())
	p.raw("")
	p.list("verdicts", s.verdictLines())
	p.raw("")
	for i, r := range s.ranges() {
		label := ""
		if i == 0 {
			label = "figures"
		}
		p.put(label, 2, r.Name+": "+r.said())
	}
	s.textEnd(p)
	return p.err
}

func (s Series) runLines() []string {
	lines := []string{fmt.Sprintf("stable %d of %d", s.Stable(), len(s.Runs))}
	if s.Asked > len(s.Runs) {
		lines[0] += fmt.Sprintf("; %s did not take place", many(s.Asked-len(s.Runs), "run"))
	}
	for _, a := range s.alikes() {
		lines = append(lines, fmt.Sprintf("%s: %s", numbers(a.Runs), a))
	}
	return lines
}

// numbers names runs: all of them in a row, or the first few.
func numbers(runs []int) string {
	if n := len(runs); n > 2 && runs[n-1]-runs[0] == n-1 {
		return fmt.Sprintf("runs %d to %d", runs[0], runs[n-1])
	}
	names := make([]string, len(runs))
	for i, n := range runs {
		names[i] = fmt.Sprint(n)
	}
	word := "runs "
	if len(runs) == 1 {
		word = "run "
	}
	return word + few(names, 12)
}

func (s Series) verdictLines() []string {
	lines := []string{}
	for _, f := range s.frequencies() {
		each := fmt.Sprintf("%d each", f.least)
		if f.least != f.most {
			each = fmt.Sprintf("%d to %d each", f.least, f.most)
		}
		lines = append(lines, fmt.Sprintf("%s in %d of %s, %s", f, f.runs, many(len(s.Runs), "run"), each))
	}
	if len(lines) == 0 {
		return []string{"none"}
	}
	return lines
}

func (s Series) textEnd(p *page) {
	p.raw("")
	p.put("limits", 0, blindness)
	if s.Armed {
		p.put("seed", 0, fmt.Sprintf("%d, of every run", s.Seed))
	}
	if s.Repeat != "" {
		p.shell("repeat", s.Repeat)
	}
	for i, f := range s.files() {
		label := "files"
		if i > 0 {
			label = ""
		}
		p.raw(pad(label, margin) + plain(f))
	}
}

// files lists those of the series, and the folder of the first run of each sort.
func (s Series) files() []string {
	out := slices.Clone(s.Files)
	for _, a := range s.alikes() {
		if folder := s.folder(a.Runs[0]); folder != "" {
			out = append(out, folder)
		}
	}
	return out
}

func (s Series) folder(run int) string {
	if run > len(s.Folders) {
		return ""
	}
	return s.Folders[run-1]
}

// SeriesMarkdown writes the same as a page. It returns the writer's first error.
func SeriesMarkdown(w io.Writer, s Series) error {
	m, o := &markdown{w: w}, s.Outcome()
	m.line("## %s (exit %d)", o.Word, o.Exit)
	m.line("")
	m.line("%s", cellText(o.Why))
	m.head("runs", "exit", "verdicts")
	for _, a := range s.alikes() {
		m.row(numbers(a.Runs), fmt.Sprint(a.Exit), strings.Join(a.Verdicts, ", "))
	}
	m.line("")
	m.line("Stable %d of %d.", s.Stable(), len(s.Runs))
	m.head("verdict", "runs", "least", "most")
	for _, f := range s.frequencies() {
		m.row(f.title(), fmt.Sprint(f.runs), fmt.Sprint(f.least), fmt.Sprint(f.most))
	}
	m.head("figure", "")
	for _, r := range s.ranges() {
		m.row(r.Name, r.said())
	}
	m.line("")
	m.line("%s", blindness)
	return m.err
}
