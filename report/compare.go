package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Comparison sets two runs side by side, such as before a fix and after it.
type Comparison struct {
	A, B         Saved
	NameA, NameB string // where they were read
}

// The standings of a verdict in a comparison.
const (
	standingGone = "gone" // in A alone
	standingNew  = "new"  // in B alone
	standingBoth = "same" // in both, however often and at whatever level
)

// A compared is one code in both runs.
type compared struct {
	code, name string
	a, b       []jsonVerdict
	newWhere   []string // locks and tables on which it is bad in B, and not in A
}

func (c compared) standing() string {
	switch {
	case len(c.b) == 0:
		return standingGone
	case len(c.a) == 0:
		return standingNew
	}
	return standingBoth
}

// worse reports whether the code is bad in B where it was not in A.
func (c compared) worse() bool {
	return bad(c.b) && (!bad(c.a) || len(c.newWhere) > 0)
}

func bad(list []jsonVerdict) bool { return slices.ContainsFunc(list, jsonVerdict.bad) }

// bad is what fails a run, and harm that does not because it was expected.
func (v jsonVerdict) bad() bool {
	return v.Fails || v.Harm && v.Level == string(check.Proven) && v.Accepted == ""
}

// compared lists the codes of both runs: what is gone, what is new, what is in both.
func (c Comparison) compared() []compared {
	var out []compared
	for _, known := range Codes() {
		of := compared{code: known.Code, name: known.Name, a: c.A.of(known.Code), b: c.B.of(known.Code)}
		if len(of.a)+len(of.b) == 0 {
			continue
		}
		was := c.A.where(of.a)
		of.newWhere = slices.DeleteFunc(c.B.where(of.b), func(w string) bool { return slices.Contains(was, w) })
		out = append(out, of)
	}
	slices.SortStableFunc(out, func(a, b compared) int {
		return slices.Index(standings(), a.standing()) - slices.Index(standings(), b.standing())
	})
	return out
}

func standings() []string { return []string{standingGone, standingNew, standingBoth} }

func (s Saved) of(code string) (out []jsonVerdict) {
	for _, v := range s.j.Verdicts {
		if v.Code == code {
			out = append(out, v)
		}
	}
	return out
}

// where lists the locks and tables on which verdicts are bad. Keys that differ in
// an identifier alone are one: they differ from run to run.
func (s Saved) where(list []jsonVerdict) (out []string) {
	for _, v := range list {
		if !v.bad() {
			continue
		}
		for _, key := range v.Locks {
			out = addOnce(out, "lock "+s.patternOf(key))
		}
		for _, table := range v.Tables {
			out = addOnce(out, "table "+table)
		}
	}
	return out
}

func (s Saved) patternOf(key string) string {
	for _, m := range s.j.Map {
		if lock.Glob(m.Lock, key) {
			return m.Lock
		}
	}
	return key
}

// Outcome says whether B is worse than A. What is bad in both is not new: B's own exit
// status tells it.
func (c Comparison) Outcome() Outcome {
	var worse, gone, still []string
	for _, v := range c.compared() {
		title := v.code + " " + v.name
		switch {
		case v.worse() && bad(v.a):
			worse = append(worse, title+" on "+few(v.newWhere, 3))
		case v.worse():
			worse = append(worse, title)
		case bad(v.a) && !bad(v.b):
			gone = append(gone, title)
		case bad(v.b):
			still = append(still, title)
		}
	}
	if len(worse) > 0 {
		return Outcome{Exit: exitHarm, Word: "FAIL", Why: "new in B: " + strings.Join(worse, ", ")}
	}
	if why := c.untold(gone); why != "" {
		return Outcome{Exit: exitInconclusive, Word: "INCONCLUSIVE", Why: why}
	}
	why := "nothing is worse in B"
	if len(gone) > 0 {
		why += "; gone: " + strings.Join(gone, ", ")
	}
	if len(still) > 0 {
		why += "; still there: " + strings.Join(still, ", ")
	}
	return Outcome{Exit: exitHeld, Word: "PASS", Why: why}
}

// untold says why the two do not tell whether B is worse.
func (c Comparison) untold(gone []string) string {
	switch {
	case slices.Contains([]int{exitInternal, exitUnreachable, exitInterrupted}, c.A.j.Exit):
		return fmt.Sprintf("A was not carried out (exit %d): %s", c.A.j.Exit, c.A.j.Why)
	case c.B.j.Exit != exitHeld && c.B.j.Exit != exitHarm:
		return fmt.Sprintf("B came to no conclusion (exit %d): %s", c.B.j.Exit, c.B.j.Why)
	case len(gone) > 0 && c.A.j.Facts.EndedWhileHeld > 0 && c.B.j.Facts.EndedWhileHeld == 0:
		return "what is gone (" + strings.Join(gone, ", ") + ") had no occasion in B: no lease ended while it was held"
	}
	return ""
}

// unlike says what the runs do not have in common, so that what differs may come of it.
func (c Comparison) unlike() []string {
	out := []string{}
	for _, p := range []struct {
		what string
		of   func(Saved) string
	}{
		{"rules", Saved.rules}, {"seed", Saved.seed}, {"command", Saved.command},
		{"locks", func(s Saved) string { return few(s.locks(), 8) }}, {"counters", Saved.counters},
	} {
		if a, b := p.of(c.A), p.of(c.B); a != b {
			out = append(out, fmt.Sprintf("%s: %s -> %s", p.what, orNone(a), orNone(b)))
		}
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (s Saved) rules() string {
	return strings.Join(each(s.j.Rules, func(r jsonRule) string { return r.Text }), ", ")
}

// seed is what random choices were made by, where there were rules to make any.
func (s Saved) seed() string {
	if len(s.j.Rules) == 0 {
		return ""
	}
	return fmt.Sprint(s.j.Seed)
}

func (s Saved) command() string {
	if s.j.Command == nil {
		return ""
	}
	return strings.Join(s.j.Command.Argv, " ")
}

func (s Saved) counters() string {
	return strings.Join(each(s.j.Counters, jsonCounter.name), ", ")
}

func (s Saved) locks() (out []string) {
	for _, l := range s.j.Facts.Locks {
		out = addOnce(out, s.patternOf(l.Lock))
	}
	slices.Sort(out)
	return out
}

// A pair is one figure of both.
type pair struct {
	name string
	a, b figure
}

func (c Comparison) pairs() []pair {
	var out []pair
	for _, f := range c.A.figures() {
		out = append(out, pair{f.Name, f, figure{}})
	}
	for _, f := range c.B.figures() {
		i := slices.IndexFunc(out, func(p pair) bool { return p.name == f.Name })
		if i < 0 {
			out, i = append(out, pair{name: f.Name}), len(out)
		}
		out[i].b = f
	}
	return out
}

// CompareText writes both side by side for a terminal. It returns the writer's first error.
func CompareText(w io.Writer, c Comparison) error {
	p, o := &page{w: w}, c.Outcome()
	for i, line := range wrap(plain(fmt.Sprintf("%s (exit %d): %s", o.Word, o.Exit, o.Why)), width-2) {
		p.raw(strings.Repeat("  ", min(i, 1)) + line)
	}
	p.raw("")
	p.put("A", 2, c.A.line(c.NameA))
	p.put("B", 2, c.B.line(c.NameB))
	p.list("unlike", c.unlike())
	p.raw("")
	said := ""
	for _, v := range c.compared() {
		label := v.standing()
		if label == said {
			label = ""
		}
		p.put(label, 2, v.String())
		said = v.standing()
	}
	if said == "" {
		p.put("verdicts", 0, "none")
	}
	p.raw("")
	c.figures(p)
	return p.err
}

// figures writes them in two columns.
func (c Comparison) figures(p *page) {
	const column = 14
	row := func(label, name, a, b string) {
		p.raw(fmt.Sprintf("%s%s%*s%*s", pad(label, margin), pad(plain(name), width-margin-2*column), column, a, column, b))
	}
	row("figures", "", "A", "B")
	for _, f := range c.pairs() {
		row("", f.name, f.a.String(), f.b.String())
	}
}

func (s Saved) line(name string) string {
	return fmt.Sprintf("%s: %s (exit %d): %s", name, s.j.Outcome, s.j.Exit, s.j.Why)
}

func (c compared) String() string {
	said := fmt.Sprintf("%s %s: %s -> %s", c.code, c.name, levels(c.a), levels(c.b))
	if c.worse() && bad(c.a) {
		said += "; new on " + few(c.newWhere, 3)
	}
	return said
}

// levels says what one run has of a code.
func levels(list []jsonVerdict) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(each(list, func(v jsonVerdict) string {
		said := fmt.Sprintf("%s %s x%d", v.Level, group{Class: v.Class, Harm: v.Harm}.meaning(), v.Count)
		if v.Victims > 0 {
			said += ", " + many(v.Victims, "victim")
		}
		if v.Accepted != "" {
			said += ", accepted"
		}
		return said
	}), " and ")
}
