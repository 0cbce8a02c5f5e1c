package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A View is a report in words and figures, laid out by none: what draws a page takes it
// from here, so that every form of a report says the same. All text may hold whatever came
// from the wire.
type View struct {
	Outcome    Outcome
	Notes      []string // on the outcome: what else happened
	Exercised  string
	Facts      []Fact // what was seen, in numbers
	Checks     []string
	Rules      []RuleView
	Invariants []InvariantView
	Locks      []string
	Tables     []string
	Map        []LockView
	Injections []InjectionView
	Skipped    int // injections for which there was no room
	Verdicts   []VerdictView
	Causes     []Cause
	More       int // causes for which there was no room
	Unproven   []string
	NotSeen    []string
	Limits     string
	Suggest    []string
	Accepted   []string
	Repeat     string
	RepeatNote string // what Repeat lacks, where it was made from a history
	Seed       string
	Command    string
	Started    string
	Elapsed    string
	Files      []string
}

// A Fact is a number with what it counts.
type Fact struct {
	N    int
	What string
}

// A RuleView is one rule and what became of it, in lines.
type RuleView struct {
	Text  string
	Lines []string
}

// An InvariantView is one number by which the run is judged.
type InvariantView struct {
	Kind, Name string
	Figures    []FigureView
	Lines      []string
	Word       string // holds, broken or not known
}

// A FigureView is one figure of an invariant.
type FigureView struct{ Name, Value string }

// A LockView is an entry of the map of locks.
type LockView struct {
	Lock, About  string
	Guards       []string
	Sections     int
	Half, P99    string
	P999, Lease  string
	Least, Left  string // of the lease at the last write
	Suffices     string
	Over         bool    // a section wrote after its lease
	Used, Needed float64 // of the longest of lease and what would suffice: their share
}

// An InjectionView is one thing that was injected.
type InjectionView struct {
	ID                      uint64
	At, Lasted, Effect      string
	Target, Rule, Came, Met string
	Section                 bool
}

// A VerdictView is the verdicts of one code and level.
type VerdictView struct {
	Code, Name, Level, Meaning, Where, Standing string
	Count                                       int
	Fails, Good                                 bool
}

// shownInjections is how many injections a view lists.
const shownInjections = 200

// View returns the report in words and figures.
func (r Run) View() View {
	v := View{Outcome: r.Outcome(), Exercised: exercised(r), Limits: blindness, NotSeen: r.notSeen(), Accepted: r.AcceptedInVain(), Files: r.Files,
		Command: strings.Join(r.Command, " ")}
	v.Notes = r.outcomeNotes(v.Outcome)
	v.Facts = r.countedFacts()
	if r.Baseline != nil {
		v.Checks = append(v.Checks, r.baselineLine())
	}
	for _, q := range r.Require {
		v.Checks = append(v.Checks, q.said(r))
	}
	for _, u := range r.Rules {
		v.Rules = append(v.Rules, r.ruleView(u, v.Outcome))
	}
	v.Invariants = r.invariantViews()
	v.Locks = each(r.Result.Facts.Locks, lockLine)
	v.Tables = each(r.Result.Facts.Tables, tableLine)
	v.Map = each(r.Result.Map, lockView)
	v.Injections = each(r.Injections[:min(len(r.Injections), shownInjections)], injectionView)
	v.Skipped = len(r.Injections) - len(v.Injections)
	for _, g := range groups(r) {
		v.Verdicts = append(v.Verdicts, VerdictView{Code: g.Code, Name: g.Name, Level: g.Level, Meaning: g.meaning(), Where: g.where(),
			Standing: g.standing(r), Count: g.Count, Fails: g.fails, Good: g.Class == string(check.Good)})
	}
	v.Causes, v.More = r.Causes()
	v.Unproven = each(r.unproven(), func(u unproven) string { return strings.TrimSpace(u.text + ". " + u.flag) })
	if r.Watching {
		v.Suggest = r.suggested()
	}
	r.origin(&v)
	return v
}

// origin says where the report comes from, and how to have it again.
func (r Run) origin(v *View) {
	v.Repeat = r.Repeat
	if len(r.Rules) > 0 {
		v.Seed = fmt.Sprint(r.Seed)
	}
	if r.Repeat == "" && r.Unplanned && len(r.Rules) > 0 {
		v.Repeat, v.RepeatNote = r.again(), "Made from the history: put the command that ran behind it, and what else lockfaultd run was given."
	}
	if !r.Started.IsZero() {
		v.Started = r.Started.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	if r.Elapsed > 0 {
		v.Elapsed = span(r.Elapsed)
	}
}

// again is the command line that arms the rules that fired.
func (r Run) again() string {
	words := []string{"lockfaultd", "run"}
	for _, u := range r.Rules {
		flag, rule, ok := strings.Cut(u.Text, " ")
		if !ok || !strings.HasPrefix(flag, "--") {
			continue
		}
		words = append(words, flag, "'"+strings.ReplaceAll(rule, "'", `'\''`)+"'")
	}
	return strings.Join(append(words, "--seed", fmt.Sprint(r.Seed), "--", "COMMAND"), " ")
}

func (r Run) outcomeNotes(o Outcome) (notes []string) {
	if r.Interrupted && o.Exit != exitInterrupted {
		notes = append(notes, "The run was interrupted before its end.")
	}
	switch {
	case !r.CommandRan || o.Exit == exitCommand:
	case r.TimedOut:
		notes = append(notes, r.whyCommand()+".")
	case r.CommandStatus != 0:
		notes = append(notes, fmt.Sprintf("The command itself ended with status %d.", r.CommandStatus))
	}
	if len(o.Missing) > 0 && !strings.HasPrefix(o.Why, "expected") {
		notes = append(notes, "Expected and not found: "+strings.Join(titles(o.Missing), ", ")+".")
	}
	return notes
}

func (r Run) countedFacts() []Fact {
	f := r.Result.Facts
	t := r.tallyAll()
	return []Fact{
		{f.Grants, "grants of a lock"}, {f.Sections, "sections that were released"}, {f.Refusals, "refusals"},
		{f.Reads, "reads inside sections"}, {f.Writes, "writes inside sections"}, {f.Rejected, "writes that a guard refused"},
		{t.Total, "injections"}, {t.Section, "of them inside a section"}, {f.EndedWhileHeld, "leases that ended while held"},
		{f.Overlap, "pairs of sections that overlapped"}, {f.Actors, "processes"}, {f.Ops, "operations"},
	}
}

func (r Run) ruleView(u RuleUse, o Outcome) RuleView {
	t := r.tallyOf(u)
	v := RuleView{Text: u.Text, Lines: []string{used(u, t)}}
	if order := r.orderOf(u); order != "" {
		v.Lines = append(v.Lines, order)
	}
	if o.LF401 {
		v.Lines = append(v.Lines, "why not: "+u.why(t, r.Result.Facts))
	}
	return v
}

func (r Run) invariantViews() (out []InvariantView) {
	for _, c := range r.Result.Counters {
		out = append(out, counterView(c))
	}
	for _, f := range r.Result.Fences {
		v := InvariantView{Kind: "fence", Name: fenceName(f), Lines: []string{fenceLine(f)}, Word: invariantWord(f.Known || f.Accepted > 0, f.Regressions > 0),
			Figures: []FigureView{{"accepted", fmt.Sprint(f.Accepted)}, {"refused", fmt.Sprint(f.Rejected)}, {"fell", times(f.Regressions)}}}
		if f.Accepted > 0 {
			v.Figures = append(v.Figures, FigureView{"range", fmt.Sprintf("%d to %d", f.Lowest, f.Highest)})
		}
		out = append(out, v)
	}
	for _, m := range r.Result.Risings {
		v := InvariantView{Kind: "monotone", Name: risingName(m), Lines: []string{risingLine(m)}, Word: invariantWord(m.Known, m.Falls > 0)}
		if m.Known {
			v.Figures = []FigureView{{"start", fmt.Sprint(m.Start)}, {"end", fmt.Sprint(m.End)}, {"highest", fmt.Sprint(m.Highest)}, {"fell", times(m.Falls)}}
		}
		out = append(out, v)
	}
	return out
}

func counterView(c check.Counter) InvariantView {
	v := InvariantView{Kind: "counter", Name: strings.TrimPrefix(counterName(c), "counter: "), Lines: counterLines(c),
		Word: invariantWord(c.Known && c.GivenUp == "", brokenCounter(c))}
	if c.GivenUp != "" {
		return v
	}
	v.Figures = []FigureView{{"acknowledged", fmt.Sprint(c.Acknowledged)}}
	if c.Known {
		v.Figures = append(v.Figures, FigureView{"start", fmt.Sprint(c.Start)}, FigureView{"end", fmt.Sprint(c.End)}, FigureView{"change", fmt.Sprint(c.Change)},
			FigureView{"net deficit", fmt.Sprint(c.NetDeficit)})
	}
	if c.Known {
		v.Lines = v.Lines[1 : len(v.Lines)-1] // the others are the figures, in words
	}
	v.Figures = append(v.Figures, FigureView{"from a stale base", fmt.Sprint(c.StaleBase)}, FigureView{"overwritten", fmt.Sprint(c.Victims)})
	return v
}

// brokenCounter: it moved by other than what its writes can explain, or they undid some.
func brokenCounter(c check.Counter) bool {
	short := c.Known && !c.Unbounded && (c.Change < c.Acknowledged+c.UnknownLow || c.Change > c.Acknowledged+c.UnknownHigh)
	return c.GivenUp == "" && (short || c.StaleBase > 0)
}

// invariantWord is an invariant in one word.
func invariantWord(known, broken bool) string {
	switch {
	case broken:
		return "broken"
	case known:
		return "holds"
	}
	return "not known"
}

func lockView(m check.MapEntry) LockView {
	title := mapTitle(m)
	v := LockView{Lock: m.Lock, About: strings.Trim(strings.TrimPrefix(title, m.Lock), " ()"), Sections: m.Sections, Lease: "none"}
	for _, g := range m.Guards {
		v.Guards = append(v.Guards, verbOf(g)+guardLine(g))
	}
	if m.Length.N > 0 {
		v.Half, v.P99, v.P999 = span(m.Length.P50), span(m.Length.P99), span(m.Length.P999)
	}
	if m.Lifetime > 0 {
		v.Lease = span(m.Lifetime)
	}
	if m.Margin.N > 0 {
		v.Least, v.Left, v.Over = span(m.Margin.Min), span(m.Margin.P50), m.Margin.Min < 0
	}
	if m.Suffices > 0 {
		v.Suffices = span(sufficing(m))
		if longest := max(m.Lifetime, m.Suffices); m.Lifetime > 0 {
			v.Used, v.Needed = float64(m.Lifetime)/float64(longest), float64(m.Suffices)/float64(longest)
		}
	}
	return v
}

func injectionView(i history.Injection) InjectionView {
	v := InjectionView{ID: i.ID, At: At(i.At), Effect: i.Effect, Rule: i.Rule, Came: string(i.Outcome), Section: i.Section}
	if i.Phase != "" {
		v.Effect += " " + i.Phase
	}
	if d := lasted(i); d > 0 && !strings.HasPrefix(i.Outcome, refused) {
		v.Lasted = span(d)
	}
	var target []string
	for _, part := range []string{i.Actor, i.Matched} {
		target = addOnce(target, part)
	}
	if i.Op > 0 {
		target = append(target, fmt.Sprintf("op %d", i.Op))
	}
	v.Target = strings.Join(target, ", ")
	if i.Reason != "" {
		v.Came += ": " + i.Reason
	}
	var met []string
	for _, m := range i.Met {
		met = append(met, m.Condition+" after "+span(time.Duration(m.At-i.At)))
	}
	v.Met = strings.Join(met, ", ")
	return v
}
