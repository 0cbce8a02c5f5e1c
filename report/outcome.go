package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// The exit statuses that a run can come to. 2, for usage and configuration, is
// settled before there is a run.
const (
	exitHeld         = 0
	exitInternal     = 1
	exitHarm         = 10
	exitInconclusive = 11
	exitCommand      = 12
	exitUnreachable  = 13
	exitInterrupted  = 130
)

// Outcome says what the run came to. The reasons for each status are looked at
// in the order of precedence, and the first that holds decides.
func (r Run) Outcome() Outcome {
	gs := groups(r)
	o := Outcome{LF401: r.unexercised(), Missing: r.missing(gs)}
	if o.LF401 {
		o.Reasons = r.whyUnexercised()
	}
	for _, g := range gs {
		if g.fails && !slices.Contains(o.Failing, g.Code) {
			o.Failing = append(o.Failing, g.Code)
		}
	}
	o.Exit, o.Word, o.Why = r.decide(gs, o)
	return o
}

func (r Run) decide(gs []group, o Outcome) (exit int, word, why string) {
	rows := []struct {
		exit int
		word string
		why  string
	}{
		{exitInternal, "FAIL", r.whyInternal()},
		{exitUnreachable, "FAIL", r.whyUnreachable()},
		// Before harm: a service that is broken without faults says nothing of them.
		{exitInconclusive, "INCONCLUSIVE", r.whySoiled()},
		{exitHarm, "FAIL", whyHarm(gs)},
		// Before the next four: a run that was cut short has neither the
		// command's own status nor the time in which an expected verdict or a
		// lapse might have come. What it had already proven stands.
		{exitInterrupted, "INCONCLUSIVE", r.whyInterrupted()},
		{exitInconclusive, "INCONCLUSIVE", r.whyDiverged()},
		{exitHarm, "FAIL", r.whyMissing(o)},
		{exitCommand, "FAIL", r.whyCommand()},
		{exitInconclusive, "INCONCLUSIVE", r.whyInconclusive(gs, o)},
	}
	for _, row := range rows {
		if row.why != "" {
			return row.exit, row.word, row.why
		}
	}
	return exitHeld, "PASS", r.whyHeld(gs)
}

func (r Run) whyInternal() string {
	if r.Internal == nil {
		return ""
	}
	return "lockfaultd itself failed: " + r.Internal.Error()
}

func (r Run) whyUnreachable() string {
	if len(r.Unreachable) == 0 {
		return ""
	}
	return "upstream not reached: " + strings.Join(r.Unreachable, "; ")
}

// whyHarm names what failed the run: harm first, then what --fail-on asked for.
func whyHarm(gs []group) string {
	var harm, asked []string
	for _, g := range gs {
		switch {
		case !g.fails:
		case g.Harm && g.Level == string(check.Proven):
			harm = append(harm, g.title())
		default:
			asked = append(asked, g.title())
		}
	}
	var parts []string
	if len(harm) > 0 {
		parts = append(parts, "PROVEN harm: "+strings.Join(harm, ", "))
	}
	if len(asked) > 0 {
		parts = append(parts, "by --fail-on: "+strings.Join(asked, ", "))
	}
	return strings.Join(parts, "; ")
}

func (r Run) whyInterrupted() string {
	if !r.Interrupted {
		return ""
	}
	return "interrupted before the end"
}

// whyDiverged stands before what the command came to, as it was ended there.
func (r Run) whyDiverged() string {
	if r.Diverged == "" {
		return ""
	}
	return "the replay diverged at " + r.Diverged
}

func (r Run) whyMissing(o Outcome) string {
	if len(o.Missing) == 0 {
		return ""
	}
	why := "expected and not found: " + strings.Join(titles(o.Missing), ", ")
	if o.LF401 {
		why += " (the hazard was not exercised)"
	}
	if slices.Contains(o.Missing, "LF104") {
		why += r.butUnproven()
	}
	return why
}

func (r Run) whyCommand() string {
	switch {
	case !r.CommandRan:
		return ""
	case r.TimedOut: // whatever it made of being ended: it had not finished
		return fmt.Sprintf("the command was ended when its time was up (its status: %d)", r.CommandStatus)
	case r.CommandStatus == 0:
		return ""
	}
	return fmt.Sprintf("the command failed with status %d", r.CommandStatus)
}

func (r Run) whyInconclusive(gs []group, o Outcome) string {
	var parts []string
	if r.Result.Facts.Ops == 0 && r.Sessions == 0 {
		parts = append(parts, "nothing was seen, so nothing was checked")
	}
	if o.LF401 && !r.expects("LF401") {
		parts = append(parts, "the hazard was not exercised: "+nothingEnded(r.Result.Facts)+" while it was held")
	}
	if why := r.whyNoBaseline(); why != "" {
		parts = append(parts, why)
	}
	parts = append(parts, r.unmetRequirements()...)
	for _, u := range r.Unread {
		parts = append(parts, "could not be read: "+u)
	}
	parts = append(parts, r.unknownFigures()...)
	if n := r.gaps(); n > 0 {
		parts = append(parts, fmt.Sprintf("the record has %s", many(n, "gap")))
	}
	for _, g := range gs {
		if g.doubtful() && !r.excused(g) || r.expects(g.Code) && r.unsure(gs, g.Code) {
			parts = append(parts, g.title()+" is "+g.Level+" only")
		} else if g.inconclusive() && g.Code != "LF401" && !r.expects(g.Code) {
			parts = append(parts, g.title())
		}
	}
	if len(parts) > 0 {
		parts = append(parts, r.either()...)
	}
	return strings.Join(parts, "; ")
}

// either says how many writes may be of a section that was over, or of another, and
// what decides it.
func (r Run) either() (out []string) {
	for _, e := range r.Result.Facts.Either {
		out = append(out, fmt.Sprintf("%s to %s could be of several sections, one of which was over: "+
			"name what must add up there with --counter, or the lock that protects it and the column of its fence with --lock 'KEY=%s.COLUMN'", many(e.Writes, "write"), e.Table, e.Table))
	}
	return out
}

// excused: an expected code that was proven too is no doubt at a lower level.
func (r Run) excused(g group) bool {
	return r.expects(g.Code) && r.proven(g.Code)
}

func (r Run) whyHeld(gs []group) string {
	why := "every check held"
	switch f := r.Result.Facts; {
	case f.Ops == 0:
		why = fmt.Sprintf("no lock and no use of a table was seen on %s, so nothing was checked", many(r.Sessions, "connection"))
	case f.Grants == 0:
		why += ", and no lock was seen"
	case r.Unplanned && f.EndedWhileHeld == 0:
		why += "; " + noneEnded(f) + ", so nothing was exercised"
	}
	if len(r.Expect) > 0 {
		why += ", and " + strings.Join(titles(r.Expect), ", ") + " was found as expected"
	}
	return why + whyRefused(gs) + whyAccepted(gs) + r.butUnproven() + r.butUnmet()
}

// whyRefused counts what guards turned away. What was a current holder's is no defence,
// and is not to be read as one.
func whyRefused(gs []group) (why string) {
	stale, current := 0, 0
	for _, g := range gs {
		switch {
		case g.Class == string(check.Good):
			stale += g.Count
		case g.noDefence():
			current += g.Count
		}
	}
	if stale > 0 {
		why += "; stale writes or claims refused: " + fmt.Sprint(stale)
	}
	if current > 0 {
		why += "; but the lock's current holder was refused " + times(current) + ", since its fence is not above the row's"
	}
	return why
}

// butUnproven says what a green run did not judge.
func (r Run) butUnproven() string {
	var columns []string
	flag := ""
	for _, u := range r.unproven() {
		columns = append(columns, u.where())
		if flag == "" {
			flag = u.flag
		}
	}
	if len(columns) == 0 {
		return ""
	}
	why := "; but late writes to " + few(columns, 3) + " were accepted, and nothing shows whether they undid others"
	if flag != "" {
		why += ": name what must add up, as " + flag
	}
	return why
}

// unexercised is LF401: rules were armed and no lease ended between its grant
// and its owner's release request, nor was a connection reset under one.
func (r Run) unexercised() bool {
	return len(r.Rules) > 0 && r.Result.Facts.EndedWhileHeld == 0 && r.resets() == 0 && !r.ownHazard()
}

func (r Run) expects(code string) bool {
	return slices.ContainsFunc(r.Expect, func(e string) bool { return canonical(e) == code })
}

// proven reports whether the judge raised the code at PROVEN.
func (r Run) proven(code string) bool {
	return slices.ContainsFunc(r.Result.Verdicts, func(v check.Verdict) bool {
		return v.Code == code && v.Level == check.Proven
	})
}

// missing lists the expected codes that were not found at any level. One that
// was found below PROVEN is not missing: the evidence does not suffice.
func (r Run) missing(gs []group) []string {
	var out []string
	for _, e := range r.Expect {
		code := canonical(e)
		found := slices.ContainsFunc(gs, func(g group) bool { return g.Code == code && !g.noDefence() })
		if !found {
			out = append(out, code)
		}
	}
	return out
}

// failsOn reports whether --fail-on asks for the group.
func (r Run) failsOn(g group) bool {
	for _, f := range r.FailOn {
		switch {
		case f == failAny:
			if g.Class != string(check.Good) && g.Class != string(check.Inconclusive) {
				return true
			}
		case f == failHazard:
			if g.Class == string(check.Hazard) || g.Class == string(check.Declared) {
				return true
			}
		case canonical(f) == g.Code:
			return true
		}
	}
	return false
}

// fails reports whether the group by itself fails the run.
func (r Run) fails(g group) bool {
	if g.accepted > 0 || r.expects(g.Code) || r.consequence(g) {
		return false
	}
	sure := g.Level == string(check.Proven) || g.Class == string(check.Inconclusive)
	return sure && (g.Harm || r.failsOn(g))
}

// consequence: a counter that fell short is what an expected lost update
// leaves behind, and not a second fault. One that ran ahead is.
func (r Run) consequence(g group) bool {
	if g.Code != "LF403" || !r.expects("LF104") || !r.proven("LF104") {
		return false
	}
	for _, c := range r.Result.Counters {
		if c.Known && c.NetDeficit < 0 {
			return false
		}
	}
	return true
}

// canonical is the code for a code or a name; anything else is itself.
func canonical(text string) string {
	if c, ok := lookup(text); ok {
		return c.Code
	}
	return text
}

// titles gives each code with its name.
func titles(codes []string) []string {
	out := make([]string, len(codes))
	for i, text := range codes {
		out[i] = text
		if c, ok := lookup(text); ok {
			out[i] = c.Code + " " + c.Name
		}
	}
	return out
}
