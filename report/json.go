package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// Schema is the version of report.json. It rises when a field changes its
// meaning or goes; a new field leaves it as it is.
const Schema = 1

type jsonReport struct {
	Schema     int            `json:"schema"`
	Exit       int            `json:"exit"`
	Outcome    string         `json:"outcome"`
	Stopped    bool           `json:"interrupted,omitempty"`
	Why        string         `json:"why"`
	Failing    []string       `json:"failing"`
	Missing    []string       `json:"missing"`
	Counter    *jsonCounter   `json:"counter"`
	Counters   []jsonCounter  `json:"counters"`
	Fences     []jsonFence    `json:"fences"`
	Risings    []jsonRising   `json:"monotone"`
	Verdicts   []jsonVerdict  `json:"verdicts"`
	Facts      jsonFacts      `json:"facts"`
	Map        []jsonMap      `json:"map"`
	Rules      []jsonRule     `json:"rules"`
	Injections jsonInjections `json:"injections"`
	Seed       uint64         `json:"seed"`
	Repeat     string         `json:"repeat"`
	Command    *jsonCommand   `json:"command"`
	Accepted   []jsonAccepted `json:"accepted,omitempty"`
	Suggest    []string       `json:"suggest,omitempty"`
	NotSeen    []string       `json:"not_seen"`
	Limits     string         `json:"limits"`
	Files      []string       `json:"files"`
}

// A jsonCounter has null for what is not known, since a zero would be a figure.
type jsonCounter struct {
	Name         string `json:"name,omitempty"`
	Query        string `json:"query,omitempty"`
	Table        string `json:"table"`
	Column       string `json:"column"`
	Known        bool   `json:"known"`
	Acknowledged int64  `json:"acknowledged"`
	Unknown      int64  `json:"unknown"`
	UnknownLow   int64  `json:"unknown_low"`
	UnknownHigh  int64  `json:"unknown_high"`
	Unbounded    bool   `json:"unbounded"`
	Start        *int64 `json:"start"`
	End          *int64 `json:"end"`
	Change       *int64 `json:"change"`
	NetDeficit   *int64 `json:"net_deficit"`
	StaleBase    int    `json:"stale_base"`
	Victims      int    `json:"victims"`
	Epochs       int    `json:"epochs"`
	GivenUp      string `json:"given_up,omitempty"`
}

// A jsonLimit is one that the judge met.
type jsonLimit struct {
	What string `json:"what"`
	N    int    `json:"n"`
}

// A jsonRising has null for a row that was not read.
type jsonRising struct {
	Name    string `json:"name,omitempty"`
	Query   string `json:"query,omitempty"`
	Table   string `json:"table"`
	Column  string `json:"column"`
	Known   bool   `json:"known"`
	Start   *int64 `json:"start"`
	End     *int64 `json:"end"`
	Highest int64  `json:"highest"`
	Falls   int    `json:"falls"`
}

// A jsonFence has null for a row that was not read.
type jsonFence struct {
	Name        string `json:"name,omitempty"`
	Query       string `json:"query,omitempty"`
	Table       string `json:"table"`
	Column      string `json:"column"`
	Accepted    int    `json:"accepted"`
	Rejected    int    `json:"rejected"`
	Lowest      int64  `json:"lowest"`
	Highest     int64  `json:"highest"`
	Regressions int    `json:"regressions"`
	Unnumbered  int    `json:"unnumbered,omitempty"`
	Known       bool   `json:"known"`
	Start       *int64 `json:"start"`
	End         *int64 `json:"end"`
}

type jsonVerdict struct {
	Code     string   `json:"code"`
	Name     string   `json:"name"`
	Level    string   `json:"level"`
	Class    string   `json:"class"`
	Harm     bool     `json:"harm"`
	Fails    bool     `json:"fails"`
	Expected bool     `json:"expected"`
	Count    int      `json:"count"`
	Victims  int      `json:"victims"`
	Train    int      `json:"train,omitempty"` // of count, those that follow from others
	Lock     string   `json:"lock,omitempty"`  // the only one
	Table    string   `json:"table,omitempty"` // likewise
	Locks    []string `json:"locks"`
	Tables   []string `json:"tables"`
	Proofs   []string `json:"proofs"`
	Accepted string   `json:"accepted,omitempty"` // the reason for which it is
}

// A jsonAccepted is an entry of --accept and what became of it.
type jsonAccepted struct {
	Code    string `json:"code"`
	Lock    string `json:"lock,omitempty"`
	Table   string `json:"table,omitempty"`
	Reason  string `json:"reason"`
	Until   string `json:"until"`
	Line    int    `json:"line"`
	Expired bool   `json:"expired"`
	Matched int    `json:"matched"` // verdicts
}

type jsonFacts struct {
	Started        string        `json:"started,omitempty"` // wall clock at instant 0
	ElapsedNs      int64         `json:"elapsed_ns,omitempty"`
	Ops            int           `json:"ops"`
	Grants         int           `json:"grants"`
	Refusals       int           `json:"refusals"`
	Sections       int           `json:"sections"`
	Reads          int           `json:"reads"`
	Writes         int           `json:"writes"`
	Rejected       int           `json:"rejected"`
	Unattributed   int           `json:"unattributed"`
	EndedWhileHeld int           `json:"ended_while_held"`
	Lost           int           `json:"lost_while_held,omitempty"`
	Gaps           int           `json:"gaps"`
	Unsettled      int           `json:"unsettled"`
	Actors         int           `json:"actors"`
	OverlapPairs   int           `json:"overlap"` // pairs, of which overlaps lists the first few thousand
	Locks          []jsonLock    `json:"locks"`
	Tables         []jsonTable   `json:"tables"`
	Overlaps       []jsonOverlap `json:"overlaps"`

	Guessed  int            `json:"guessed,omitempty"`
	Believed int            `json:"believed,omitempty"`
	Limits   []jsonLimit    `json:"limits,omitempty"`
	Unproven []jsonUnproven `json:"unproven,omitempty"`
}

type jsonUnproven struct {
	Table  string `json:"table"`
	Column string `json:"column"`
	Writes int    `json:"writes"`
	Try    string `json:"try,omitempty"` // the flag that would have them judged
}

type jsonLock struct {
	Lock         string  `json:"lock"`
	Declared     bool    `json:"declared"`
	Marker       bool    `json:"marker"`
	Grants       int     `json:"grants"`
	Refusals     int     `json:"refusals"`
	Renewals     int     `json:"renewals"`
	TTLsNs       []int64 `json:"ttls_ns"`
	MedianHeldNs int64   `json:"median_held_ns"`
	Fences       int     `json:"fences"`
	FenceKey     string  `json:"fence_key,omitempty"`
	Overrun      int     `json:"overrun"`
	Lost         int     `json:"lost,omitempty"`
}

type jsonTable struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
	Reads   int      `json:"reads"`
	Writes  int      `json:"writes"`
	Perhaps int      `json:"perhaps,omitempty"`
	Lock    string   `json:"lock,omitempty"`
	Fence   string   `json:"fence,omitempty"`
}

// A jsonOverlap gives its ends twice: in nanoseconds since facts.started, and
// on the wall clock. An overlap that had not ended has no end.
type jsonOverlap struct {
	Lock   string      `json:"lock"`
	A      lock.TermID `json:"a"`
	B      lock.TermID `json:"b"`
	FromNs int64       `json:"from_ns"`
	ToNs   *int64      `json:"to_ns"`
	From   string      `json:"from,omitempty"`
	To     string      `json:"to,omitempty"`
}

type jsonRule struct {
	Text    string  `json:"text"`
	Name    string  `json:"name,omitempty"`
	Seen    *int    `json:"seen"`
	Could   int     `json:"could"`
	Fired   int     `json:"fired"`
	Section int     `json:"in_section"`
	Barred  []Count `json:"barred,omitempty"`
	Nearest []Count `json:"nearest,omitempty"`
	WhyNot  string  `json:"why_not,omitempty"` // with LF401 only
}

type jsonInjections struct {
	Total    int             `json:"total"`
	Landed   int             `json:"landed"`
	Section  int             `json:"in_section"`
	GaveUp   int             `json:"client_gave_up"`
	Refused  int             `json:"refused"`
	CutShort int             `json:"cut_short"`
	List     []jsonInjection `json:"list"`
}

type jsonInjection struct {
	ID          uint64 `json:"id"`
	Rule        string `json:"rule"`
	Name        string `json:"name,omitempty"`
	Effect      string `json:"effect"`
	Phase       string `json:"phase,omitempty"`
	Scope       string `json:"scope,omitempty"`
	Matched     string `json:"matched,omitempty"`
	Actor       string `json:"actor,omitempty"`
	Op          uint64 `json:"op,omitempty"`
	ForNs       int64  `json:"for_ns"`
	AtNs        int64  `json:"at_ns"`
	ConfirmedNs int64  `json:"confirmed_ns,omitempty"`
	EndedNs     int64  `json:"ended_ns,omitempty"`
	Outcome     string `json:"outcome"`
	Reason      string `json:"reason,omitempty"`
	Section     bool   `json:"in_section"`
}

type jsonCommand struct {
	Argv     []string `json:"argv"`
	Ran      bool     `json:"ran"`
	Status   int      `json:"status"`
	TimedOut bool     `json:"timed_out"`
}

// JSON writes report.json: everything that Text shows, unshortened. See
// docs/reading-a-report.md for what each field means. It returns the writer's
// first error.
func JSON(w io.Writer, r Run) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(toJSON(r)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func toJSON(r Run) jsonReport {
	o := r.Outcome()
	j := jsonReport{
		Schema: Schema, Exit: o.Exit, Outcome: o.Word, Stopped: r.Interrupted, Why: o.Why,
		Failing: list(o.Failing), Missing: list(o.Missing),
		Counters:   each(r.Result.Counters, toJSONCounter),
		Fences:     each(r.Result.Fences, toJSONFence),
		Risings:    each(r.Result.Risings, toJSONRising),
		Verdicts:   each(groups(r), r.toJSONVerdict),
		Facts:      r.toJSONFacts(),
		Map:        each(r.Result.Map, toJSONMap),
		Rules:      each(r.Rules, func(u RuleUse) jsonRule { return r.toJSONRule(u, o) }),
		Injections: r.toJSONInjections(),
		Seed:       r.Seed, Repeat: r.Repeat, Limits: blindness,
		NotSeen: r.notSeen(), Files: list(r.Files),
		Accepted: r.toJSONAccepted(),
	}
	if len(j.Counters) > 0 {
		j.Counter = &j.Counters[0]
	}
	if len(r.Command) > 0 {
		j.Command = &jsonCommand{Argv: r.Command, Ran: r.CommandRan, Status: r.CommandStatus, TimedOut: r.TimedOut}
	}
	if r.Watching {
		j.Suggest = r.suggested()
	}
	return j
}

func toJSONCounter(c check.Counter) jsonCounter {
	j := jsonCounter{
		Name: c.Name, Query: c.Query, Table: c.Table, Column: c.Column, Known: c.Known,
		Acknowledged: c.Acknowledged, Unknown: c.Unknown,
		UnknownLow: c.UnknownLow, UnknownHigh: c.UnknownHigh, Unbounded: c.Unbounded,
		StaleBase: c.StaleBase, Victims: c.Victims, Epochs: c.Epochs, GivenUp: c.GivenUp,
	}
	if c.Known {
		j.Start, j.End, j.Change, j.NetDeficit = &c.Start, &c.End, &c.Change, &c.NetDeficit
	}
	return j
}

func toJSONRising(m check.Rising) jsonRising {
	j := jsonRising{Name: m.Name, Query: m.Query, Table: m.Table, Column: m.Column, Known: m.Known, Highest: m.Highest, Falls: m.Falls}
	if m.Known {
		j.Start, j.End = &m.Start, &m.End
	}
	return j
}

func toJSONFence(f check.FenceFigure) jsonFence {
	j := jsonFence{Name: f.Name, Query: f.Query, Table: f.Table, Column: f.Column, Accepted: f.Accepted,
		Rejected: f.Rejected, Lowest: f.Lowest, Highest: f.Highest, Regressions: f.Regressions, Unnumbered: f.Unnumbered, Known: f.Known}
	if f.Known {
		j.Start, j.End = &f.Start, &f.End
	}
	return j
}

func (r Run) toJSONVerdict(g group) jsonVerdict {
	j := jsonVerdict{
		Code: g.Code, Name: g.Name, Level: g.Level, Class: g.Class, Harm: g.Harm,
		Fails: g.fails, Expected: r.expects(g.Code), Count: g.Count, Victims: g.Victims, Train: g.Train,
		Locks: list(g.Locks), Tables: list(g.Tables), Proofs: list(g.Proofs),
	}
	if g.accepted > 0 {
		j.Accepted = r.Accepted[g.accepted-1].Reason
	}
	if len(g.Locks) == 1 {
		j.Lock = g.Locks[0]
	}
	if len(g.Tables) == 1 {
		j.Table = g.Tables[0]
	}
	return j
}

func (r Run) toJSONFacts() jsonFacts {
	f := r.Result.Facts
	return jsonFacts{
		Started: r.wall(0), ElapsedNs: int64(r.Elapsed),
		Ops: f.Ops, Grants: f.Grants, Refusals: f.Refusals, Sections: f.Sections,
		Reads: f.Reads, Writes: f.Writes, Rejected: f.Rejected, Unattributed: f.Unattributed,
		EndedWhileHeld: f.EndedWhileHeld, Lost: f.Lost, Gaps: r.gaps(),
		Unsettled: f.Unsettled, Actors: f.Actors, OverlapPairs: f.Overlap,
		Locks: each(f.Locks, toJSONLock), Tables: each(f.Tables, toJSONTable),
		Overlaps: each(f.Overlaps, r.toJSONOverlap),
		Guessed:  f.Guessed, Believed: f.Believed,
		Limits:   each(f.Limits, func(l check.Limit) jsonLimit { return jsonLimit(l) }),
		Unproven: each(r.unproven(), func(u unproven) jsonUnproven { return jsonUnproven{u.table, u.column, u.writes, u.flag} }),
	}
}

func toJSONLock(l check.LockFact) jsonLock {
	return jsonLock{Lock: keyOf(l), Grants: l.Grants, Refusals: l.Refusals, Renewals: l.Renewals,
		TTLsNs: each(l.TTLs, func(d time.Duration) int64 { return int64(d) }), MedianHeldNs: int64(l.MedianHeld),
		Declared: l.Declared, Marker: l.Marker, Fences: l.Fences, FenceKey: l.FenceKey, Overrun: l.Overrun, Lost: l.Lost}
}

func toJSONTable(t check.TableFact) jsonTable {
	return jsonTable{Table: t.Table, Columns: list(t.Columns), Reads: t.Reads, Writes: t.Writes, Perhaps: t.Perhaps, Lock: t.Lock, Fence: t.Fence}
}

func (r Run) toJSONOverlap(o check.Overlap) jsonOverlap {
	j := jsonOverlap{Lock: o.Lock, A: o.A, B: o.B, FromNs: int64(o.From), From: r.wall(o.From)}
	if o.To != 0 && o.To != lock.Never {
		to := int64(o.To)
		j.ToNs, j.To = &to, r.wall(o.To)
	}
	return j
}

// wall is the wall clock at an instant; "" when the history does not say when
// it started.
func (r Run) wall(i lock.Instant) string {
	if r.Started.IsZero() {
		return ""
	}
	return r.Started.Add(time.Duration(i)).UTC().Format(time.RFC3339Nano)
}

func (r Run) toJSONRule(u RuleUse, o Outcome) jsonRule {
	t := r.tallyOf(u)
	j := jsonRule{Text: u.Text, Name: u.Name, Could: u.Could, Fired: u.Fired, Section: t.Section,
		Barred: u.Barred, Nearest: u.Nearest}
	if u.Seen >= u.Fired { // else it was made from a history, which does not have it
		j.Seen = &u.Seen
	}
	if o.LF401 {
		j.WhyNot = u.why(t, r.Result.Facts)
	}
	return j
}

func (r Run) toJSONInjections() jsonInjections {
	t := r.tallyAll()
	return jsonInjections{Total: t.Total, Landed: t.Landed, Section: t.Section, GaveUp: t.GaveUp,
		Refused: t.Refused, CutShort: t.Cut, List: each(r.Injections, toJSONInjection)}
}

func toJSONInjection(i history.Injection) jsonInjection {
	return jsonInjection{
		ID: i.ID, Rule: i.Rule, Name: i.Name, Effect: i.Effect, Phase: i.Phase, Scope: i.Scope,
		Matched: i.Matched, Actor: i.Actor, Op: i.Op, ForNs: int64(i.For), AtNs: int64(i.At),
		ConfirmedNs: int64(i.Confirmed), EndedNs: int64(i.Ended),
		Outcome: i.Outcome, Reason: i.Reason, Section: i.Section,
	}
}

// list makes an empty array of a nil slice: readers of JSON like one type.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// each maps a slice, never to nil.
func each[T, U any](in []T, f func(T) U) []U {
	out := make([]U, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}
