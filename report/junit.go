package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// junitLocks bounds the locks that get testcases without a verdict: a lock for
// each order would make a file that no CI reads.
const junitLocks = 50

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Stamp    string      `xml:"timestamp,attr,omitempty"`
	Props    []junitProp `xml:"properties>property"`
	Cases    []junitCase `xml:"testcase"`
}

type junitProp struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Time    string     `xml:"time,attr"`
	Failure *junitNote `xml:"failure"`
	Error   *junitNote `xml:"error"`
	Skipped *junitNote `xml:"skipped"`
	Out     string     `xml:"system-out,omitempty"`
}

// A junitNote says its text twice: some CI show only the attribute, some only
// the body.
type junitNote struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Body    string `xml:",chardata"`
}

func note(kind, message, body string) *junitNote {
	message = plain(message)
	if body == "" {
		body = message
	} else {
		body = message + "\n\n" + body
	}
	return &junitNote{Message: message, Type: kind, Body: body}
}

// JUnit writes the run as one test suite: a testcase for the run, for each
// lock and code that was looked for, for each rule, each invariant and each
// expected code. What was not exercised is skipped. It returns the writer's
// first error.
func JUnit(w io.Writer, r Run) error { return writeXML(w, suite(r)) }

// A Suite is one run of several, as JUnitSeries writes it.
type Suite struct{ s junitSuite }

// Suite makes the run's, with the run's number in its name.
func (r Run) Suite(run int) Suite {
	s := suite(r)
	s.Name = fmt.Sprintf("%s run %d", s.Name, run)
	return Suite{s}
}

type junitSuites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Suites   []junitSuite
}

// JUnitSeries writes a suite for each run. It returns the writer's first error.
func JUnitSeries(w io.Writer, list []Suite) error {
	all := junitSuites{Name: "lockfaultd"}
	for _, s := range list {
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.s.Tests, all.Failures+s.s.Failures, all.Errors+s.s.Errors, all.Skipped+s.s.Skipped
		all.Suites = append(all.Suites, s.s)
	}
	return writeXML(w, all)
}

func writeXML(w io.Writer, s any) error {
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode testsuite: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, text); err != nil {
		return fmt.Errorf("write testsuite: %w", err)
	}
	return nil
}

func suite(r Run) junitSuite {
	o, gs := r.Outcome(), groups(r)
	cases := []junitCase{r.runCase(o)}
	cases = append(cases, r.verdictCases(o)...)
	cases = append(cases, r.ruleCases(o)...)
	cases = append(cases, r.invariantCases(gs)...)
	cases = append(cases, r.expectCases(o, gs)...)
	cases = append(cases, r.requireCases()...)
	if o.Exit == exitHarm && !slices.ContainsFunc(cases, junitCase.failed) {
		// What failed has no case of its own: LF401, or an invariant without a figure.
		cases[0].Failure, cases[0].Out = note(fmt.Sprint(o.Exit), cases[0].Out, strings.Join(o.Reasons, "\n")), ""
	}
	s := junitSuite{Name: "lockfaultd", Cases: cases, Tests: len(cases), Time: seconds(r), Stamp: r.stamp(),
		Props: []junitProp{{"exit", fmt.Sprint(o.Exit)}, {"seed", fmt.Sprint(r.Seed)}, {"repeat", plain(r.Repeat)}}}
	for i := range cases {
		cases[i].Time = "0"
		s.Failures += one(cases[i].Failure != nil)
		s.Errors += one(cases[i].Error != nil)
		s.Skipped += one(cases[i].Skipped != nil)
	}
	return s
}

func (c junitCase) failed() bool { return c.Failure != nil }

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func seconds(r Run) string { return fmt.Sprintf("%.3f", r.Elapsed.Seconds()) }

func (r Run) stamp() string {
	if r.Started.IsZero() {
		return ""
	}
	return r.Started.UTC().Format("2006-01-02T15:04:05")
}

// runCase is the run as a whole. A verdict fails in its own case; this one
// fails for what has no other: the command, an upstream, lockfaultd itself.
func (r Run) runCase(o Outcome) junitCase {
	c := junitCase{Class: "lockfaultd", Name: "run"}
	message := fmt.Sprintf("exit %d: %s", o.Exit, o.Why)
	switch o.Exit {
	case exitInternal, exitUnreachable, exitInterrupted:
		c.Error = note(fmt.Sprint(o.Exit), message, "")
	case exitCommand:
		c.Failure = note(fmt.Sprint(o.Exit), message, "")
	case exitInconclusive:
		c.Skipped = note("", message, strings.Join(o.Reasons, "\n"))
	default:
		c.Out = message
	}
	return c
}

// verdictCases has one case for each lock and code: those that were raised,
// and for every lock those that were looked for and not found.
func (r Run) verdictCases(o Outcome) []junitCase {
	var cases []junitCase
	for _, name := range r.lockNames() {
		raised, isLock := r.verdictsOn(name), r.isLock(name)
		for _, c := range Codes() {
			gs := groupsOf(r, raised, c.Code)
			if invariantCode(c.Code) || c.Code == "LF401" || len(gs) == 0 && !(isLock && lookedFor(c)) {
				continue
			}
			cases = append(cases, r.verdictCase(o, name, c, gs))
		}
	}
	return cases
}

// lookedFor reports whether the judge looks for the code at each lock, so that
// its absence says something.
func lookedFor(c Code) bool {
	return slices.Contains([]string{"LF101", "LF102", "LF103", "LF104", "LF105", "LF106", "LF107", "LF202", "LF301", "LF302", "LF303", "LF305", "LF308", "LF309"}, c.Code)
}

// lockNames is every lock with a verdict, and the others up to a bound. Verdicts
// without a lock are under their table's name.
func (r Run) lockNames() []string {
	var names []string
	for _, v := range r.Result.Verdicts {
		if !invariantCode(v.Code) {
			names = addOnce(names, subject(v))
		}
	}
	for _, l := range r.Result.Facts.Locks {
		if len(names) < junitLocks && !l.Marker {
			names = addOnce(names, keyOf(l))
		}
	}
	slices.Sort(names)
	return names
}

// subject is what a verdict is about: its lock, or else its table.
func subject(v check.Verdict) string {
	switch {
	case v.Lock != "":
		return v.Lock
	case v.Table != "":
		return "table " + v.Table
	}
	return "run"
}

// isLock tells a lock from the other things that a verdict may be about.
func (r Run) isLock(name string) bool {
	return slices.ContainsFunc(r.Result.Verdicts, func(v check.Verdict) bool { return v.Lock == name }) ||
		slices.ContainsFunc(r.Result.Facts.Locks, func(l check.LockFact) bool { return keyOf(l) == name && !l.Marker })
}

func (r Run) verdictsOn(name string) []check.Verdict {
	var out []check.Verdict
	for _, v := range r.Result.Verdicts {
		if subject(v) == name {
			out = append(out, v)
		}
	}
	return out
}

// groupsOf groups some of the run's verdicts, of one code.
func groupsOf(r Run, vs []check.Verdict, code string) []group {
	r.Result.Verdicts = slices.DeleteFunc(slices.Clone(vs), func(v check.Verdict) bool { return v.Code != code })
	return slices.DeleteFunc(groups(r), func(g group) bool { return g.Code != code })
}

func (r Run) verdictCase(o Outcome, name string, c Code, gs []group) junitCase {
	out := junitCase{Class: "lockfaultd." + plain(name), Name: c.Code + " " + c.Name}
	for _, g := range gs {
		message := g.Level + " " + g.title() + ": " + c.Short + r.acceptance(g)
		switch {
		case g.fails:
			out.Failure = note(g.Code, message, bodyOf(g))
		case g.doubtful() && !r.excused(g) || g.inconclusive() && !r.expects(g.Code):
			out.Skipped = note("", message+" (the evidence does not suffice)", bodyOf(g))
		default:
			out.Out += plain(message) + "\n" + bodyOf(g) + "\n"
		}
	}
	if out.Failure != nil {
		out.Skipped = nil
	}
	if len(gs) == 0 && o.LF401 {
		out.Skipped = note("", "not exercised: "+nothingEnded(r.Result.Facts)+" while it was held", "")
	}
	return out
}

// bodyOf is a group's proofs, at most as many as the summary shows.
func bodyOf(g group) string {
	var lines []string
	for _, p := range g.shown() {
		lines = append(lines, plain(p))
	}
	return strings.Join(lines, "\n")
}

func (r Run) ruleCases(o Outcome) []junitCase {
	var cases []junitCase
	for _, u := range r.Rules {
		t := r.tallyOf(u)
		c := junitCase{Class: "lockfaultd.rules", Name: plain(u.Text)}
		if t.Section == 0 || o.LF401 {
			c.Skipped = note("", "not exercised: "+u.why(t, r.Result.Facts), used(u, t))
		} else {
			c.Out = plain(used(u, t))
		}
		cases = append(cases, c)
	}
	return cases
}

// invariantCode: these two are about an invariant, and not about a lock.
func invariantCode(code string) bool { return code == "LF403" || code == "LF404" || code == "LF405" }

func (r Run) invariantCases(gs []group) []junitCase {
	var cases []junitCase
	for _, c := range r.Result.Counters {
		out := junitCase{Class: "lockfaultd.invariants", Name: plain(counterName(c))}
		lines := strings.Join(counterLines(c), "\n")
		switch {
		case c.GivenUp != "":
			out.Skipped = note("", "could not be summed", lines)
		case !c.Known:
			out.Skipped = note("", "could not be read", strings.Join(r.Unread, "\n"))
		default:
			out.Out = lines
		}
		for _, g := range gs {
			if g.fails && g.Code == "LF403" && (len(g.Tables) == 0 || slices.Contains(g.Tables, c.Table)) {
				out.Failure, out.Skipped = note(g.Code, g.Level+" "+g.title(), lines+"\n"+bodyOf(g)), nil
			}
		}
		cases = append(cases, out)
	}
	for _, f := range r.Result.Fences {
		cases = append(cases, r.fenceCase(f, gs))
	}
	for _, m := range r.Result.Risings {
		cases = append(cases, r.risingCase(m, gs))
	}
	return cases
}

// risingCase is that a number never falls, which LF404 says of it.
func (r Run) risingCase(m check.Rising, gs []group) junitCase {
	c := junitCase{Class: "lockfaultd.invariants", Name: plain("monotone " + risingName(m)), Out: risingLine(m)}
	if !m.Known {
		c.Skipped = note("", "could not be read", strings.Join(r.Unread, "\n"))
	}
	for _, g := range gs {
		if g.fails && g.Code == "LF404" && (len(g.Tables) == 0 || slices.Contains(g.Tables, m.Table)) {
			c.Failure, c.Skipped = note(g.Code, g.Level+" "+g.title(), risingLine(m)+"\n"+bodyOf(g)), nil
		}
	}
	return c
}

// fenceCase is that a fence only rises, which LF105 says of the row.
func (r Run) fenceCase(f check.FenceFigure, gs []group) junitCase {
	c := junitCase{Class: "lockfaultd.invariants", Name: plain("fence " + fenceName(f)), Out: fenceLine(f)}
	for _, g := range gs {
		if g.fails && g.Code == "LF105" && slices.Contains(g.Tables, f.Table) {
			c.Failure = note(g.Code, g.Level+" "+g.title(), fenceLine(f)+"\n"+bodyOf(g))
		}
	}
	if f.Query != "" && !f.Known && f.Accepted == 0 && c.Failure == nil {
		c.Skipped = note("", "could not be read", strings.Join(r.Unread, "\n"))
	}
	return c
}

func (r Run) expectCases(o Outcome, gs []group) []junitCase {
	var cases []junitCase
	for _, e := range r.Expect {
		code := canonical(e)
		c := junitCase{Class: "lockfaultd.expect", Name: strings.Join(titles([]string{code}), "")}
		switch {
		case slices.Contains(o.Missing, code):
			c.Failure = note("expect", "expected and not found: "+c.Name, strings.Join(o.Reasons, "\n"))
		case r.unsure(gs, code):
			c.Skipped = note("", "found, but not PROVEN: the evidence does not suffice", "")
		}
		cases = append(cases, c)
	}
	return cases
}
