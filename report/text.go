package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// How much of a long list the summary shows; report.json has all of it.
const (
	shownProofs = 5 // of what fails the run
	shownOthers = 2 // of what does not
	shownLocks  = 8
)

// Text writes the summary for a terminal: plain, at most 100 columns wide save
// where a single word of a command to be copied is longer. Its first line says
// PASS, FAIL or INCONCLUSIVE, the exit status and the reason. It returns the
// writer's first error.
func Text(w io.Writer, r Run) error {
	p := &page{w: w}
	o := r.Outcome()
	textOutcome(p, r, o)
	textExercised(p, r, o)
	textLocks(p, r.Result.Facts)
	textTables(p, r.Result.Facts)
	textMap(p, r)
	textVerdicts(p, r)
	textCounters(p, r)
	textFences(p, r.Result.Fences)
	textRisings(p, r.Result.Risings)
	textBlind(p, r)
	textEnd(p, r)
	return p.err
}

func textOutcome(p *page, r Run, o Outcome) {
	lines := wrap(plain(fmt.Sprintf("%s (exit %d): %s", o.Word, o.Exit, o.Why)), width-2)
	for i, line := range lines {
		if i > 0 {
			line = "  " + line
		}
		p.raw(line)
	}
	if r.Interrupted && o.Exit != exitInterrupted {
		p.raw("  the run was interrupted before its end")
	}
	switch {
	case !r.CommandRan || o.Exit == exitCommand:
	case r.TimedOut:
		p.raw("  " + r.whyCommand())
	case r.CommandStatus != 0:
		p.raw(fmt.Sprintf("  the command itself ended with status %d", r.CommandStatus))
	}
	if len(o.Missing) > 0 && !strings.HasPrefix(o.Why, "expected") {
		p.raw("  expected and not found: " + strings.Join(titles(o.Missing), ", "))
	}
	p.raw("")
}

// textExercised says whether the hazard came about at all, before anything is
// said of what it did.
func textExercised(p *page, r Run, o Outcome) {
	p.put("exercised", 0, exercised(r))
	if r.Baseline != nil {
		p.sub(2, r.baselineLine())
	}
	for _, q := range r.Require {
		p.sub(2, q.said(r))
	}
	for _, u := range r.Rules {
		t := r.tallyOf(u)
		p.sub(2, u.Text)
		p.sub(6, used(u, t))
		if order := r.orderOf(u); order != "" {
			p.sub(6, order)
		}
		if o.LF401 {
			p.sub(6, "why not: "+u.why(t, r.Result.Facts))
		}
	}
}

func exercised(r Run) string {
	f := r.Result.Facts
	said := endedOf(f)
	if r.Elapsed > 0 {
		said += " in " + span(r.Elapsed)
	}
	switch {
	case len(r.Rules) > 0:
	case r.Unplanned:
		return said + ". No rule fired."
	default:
		return said + ". No rule was armed."
	}
	t := r.tallyAll()
	said += fmt.Sprintf(". %d of %s landed inside a section.", t.Section, many(t.Total, "injection"))
	if n := r.resets(); n > 0 {
		said += fmt.Sprintf(" Connections that were reset under a lock, or while it was asked for: %d.", n)
	}
	switch {
	case r.unexercised() && r.harmed():
		said += " The hazard of a lease that ends was not exercised; the harm below came of something else."
	case r.unexercised():
		said += " The hazard was not exercised."
	}
	return said
}

// harmed reports whether harm was proven, whatever was exercised.
func (r Run) harmed() bool {
	return slices.ContainsFunc(r.Result.Verdicts, func(v check.Verdict) bool { return v.Harm && v.Level == check.Proven })
}

// used is one rule's figures.
func used(u RuleUse, t tally) string {
	said := []string{fmt.Sprintf("seen %d, fired %d, landed inside a section %d", u.Seen, u.Fired, t.Section)}
	if u.Seen < u.Fired { // made from a history, which has what fired and not what was seen
		said[0] = fmt.Sprintf("fired %d, landed inside a section %d; how often it was seen is not in the history", u.Fired, t.Section)
	}
	if t.asked > 0 {
		said = append(said, fmt.Sprintf("frozen for %.2f of the time that was asked for", float64(t.frozen)/float64(t.asked)))
	}
	if t.GaveUp > 0 {
		said = append(said, fmt.Sprintf("the client gave up %s", times(t.GaveUp)))
	}
	if t.Refused > 0 {
		said = append(said, fmt.Sprintf("refused %s: %s", times(t.Refused), because(t.reasons)))
	}
	if t.Cut > 0 {
		said = append(said, fmt.Sprintf("cut short %s", times(t.Cut)))
	}
	if t.Shut > 0 {
		said = append(said, t.gates())
	}
	if len(u.Barred) > 0 {
		said = append(said, "barred, and so not counted: "+counts(u.Barred))
	}
	return strings.Join(said, "; ")
}

func textLocks(p *page, f check.Facts) {
	if len(f.Locks) == 0 {
		p.put("locks", 2, "none was seen")
		return
	}
	var lines []string
	for _, l := range f.Locks[:min(len(f.Locks), shownLocks)] {
		lines = append(lines, lockLine(l))
	}
	if n := len(f.Locks) - shownLocks; n > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", n))
	}
	p.list("locks", lines)
}

func lockLine(l check.LockFact) string {
	parts := []string{many(l.Grants, "grant"), many(l.Refusals, "refusal"), lease(l.TTLs)}
	if l.MedianHeld > 0 {
		parts = append(parts, "held "+span(l.MedianHeld)+" (median)")
	}
	parts = append(parts, many(l.Renewals, "renewal"))
	if l.Fences > 0 {
		parts = append(parts, many(l.Fences, "fence")+" from "+l.FenceKey)
	}
	if l.Marker {
		parts = append(parts, "never released: a marker, and no lock")
	}
	return keyOf(l) + ": " + strings.Join(parts, ", ")
}

func lease(ttls []time.Duration) string {
	if len(ttls) == 0 {
		return "no lifetime"
	}
	low, high := slices.Min(ttls), slices.Max(ttls)
	switch {
	case high == 0:
		return "no lifetime"
	case low == high:
		return "lease " + span(low)
	case low == 0:
		return fmt.Sprintf("leases up to %s, some without a lifetime", span(high))
	}
	return fmt.Sprintf("leases %s to %s", span(low), span(high))
}

func textTables(p *page, f check.Facts) {
	var lines []string
	for _, t := range f.Tables {
		lines = append(lines, tableLine(t))
	}
	if n := len(lines) - shownLocks; n > 0 {
		lines = append(lines[:shownLocks], fmt.Sprintf("and %d more", n))
	}
	p.list("tables", lines)
	if f.Unattributed > 0 {
		belong := "belong"
		if f.Unattributed == 1 {
			belong = "belongs"
		}
		p.put("", 0, many(f.Unattributed, "write")+" to these tables "+belong+" to no section for sure")
	}
}

func tableLine(t check.TableFact) string {
	line := fmt.Sprintf("%s: %s, %s", tableOf(t), many(t.Reads, "read"), many(t.Writes, "write"))
	if t.Perhaps > 0 {
		line += fmt.Sprintf(", %d more that may be of a section", t.Perhaps)
	}
	if t.Lock != "" {
		line += ", under " + t.Lock
	}
	if t.Fence != "" {
		line += ", fence column " + t.Fence
	}
	return line
}

func tableOf(t check.TableFact) string {
	if len(t.Columns) == 0 {
		return t.Table
	}
	return fmt.Sprintf("%s (%s)", t.Table, few(t.Columns, 6))
}

func textVerdicts(p *page, r Run) {
	p.raw("")
	gs := groups(r)
	if len(gs) == 0 {
		p.put("verdicts", 0, "none")
	} else {
		p.put("verdicts", 0, summary(gs))
	}
	for _, g := range gs {
		textGroup(p, r, g)
	}
	textUnproven(p, r)
	textAccepted(p, r)
}

func textUnproven(p *page, r Run) {
	for _, u := range r.unproven() {
		if u.flag == "" {
			p.sub(2, u.text+".")
			continue
		}
		p.sub(2, u.text+". Name what must add up:")
		p.shell("", u.flag)
	}
}

// summary is the verdicts in one line, for a reader in a hurry.
func summary(gs []group) string {
	parts := make([]string, len(gs))
	for i, g := range gs {
		parts[i] = fmt.Sprintf("%s x%d", g.Code, g.Count)
		if g.Level != string(check.Proven) {
			parts[i] += " " + g.Level
		}
	}
	return strings.Join(parts, ", ")
}

func textGroup(p *page, r Run, g group) {
	head := fmt.Sprintf("%s: %s %s", g.title(), g.Level, g.meaning())
	if where := g.where(); where != "" {
		head += " on " + where
	}
	if g.Victims > 0 {
		head += "; " + many(g.Victims, "victim")
	}
	if g.Train > 0 {
		head += fmt.Sprintf("; %d of them follow from others", g.Train)
	}
	if standing := g.standing(r); standing != "" {
		head += "; " + standing
	}
	p.sub(2, head)
	if g.Code == "LF401" {
		p.item(6, g.Proofs[0]+" Why not, rule by rule, is said above.")
		return
	}
	for _, proof := range g.shown() {
		p.item(6, proof)
	}
}

// shown is the proofs that the summary has room for, and a word on the others.
func (g group) shown() []string {
	limit := shownOthers
	if g.fails || g.doubtful() {
		limit = shownProofs
	}
	if len(g.Proofs) <= limit {
		return g.Proofs
	}
	return append(slices.Clone(g.Proofs[:limit]), fmt.Sprintf("and %d more", len(g.Proofs)-limit))
}

// meaning is the class as it applies here: a declared one is harm or a hazard.
func (g group) meaning() string {
	switch {
	case g.Harm:
		return string(check.Harm)
	case g.Class == string(check.Declared):
		return "hazard (the lock is not declared)"
	}
	return g.Class
}

// standing says where the outcome differs from what the class alone would make.
func (g group) standing(r Run) string {
	switch {
	case g.accepted > 0:
		return r.acceptance(g)[len("; "):]
	case g.fails && !g.Harm:
		return "fails by --fail-on"
	case r.expects(g.Code):
		return "expected"
	case r.consequence(g):
		return "left behind by the expected LF104"
	}
	return ""
}
