package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// Schema is the version of report.json. It rises when a field changes its
// meaning or goes; a new field leaves it as it is.
const Schema = 1

type jsonReport struct {
	Schema     int               `json:"schema"`
	Exit       int               `json:"exit"`
	Outcome    string            `json:"outcome"`
	Stopped    bool              `json:"interrupted,omitempty"`
	Why        string            `json:"why"`
	Diverged   string            `json:"diverged,omitempty"`
	Failing    []string          `json:"failing"`
	Missing    []string          `json:"missing"`
	Counter    *jsonCounter      `json:"counter"`
	Counters   []jsonCounter     `json:"counters"`
	Fences     []jsonFence       `json:"fences"`
	Risings    []jsonRising      `json:"monotone"`
	Verdicts   []jsonVerdict     `json:"verdicts"`
	Facts      jsonFacts         `json:"facts"`
	Map        []jsonMap         `json:"map"`
	Rules      []jsonRule        `json:"rules"`
	Injections jsonInjections    `json:"injections"`
	Seed       uint64            `json:"seed"`
	Repeat     string            `json:"repeat"`
	Command    *jsonCommand      `json:"command"`
	Required   []jsonRequirement `json:"requirements,omitempty"`
	Baseline   *jsonBaseline     `json:"baseline,omitempty"`
	Accepted   []jsonAccepted    `json:"accepted,omitempty"`
	Suggest    []string          `json:"suggest,omitempty"`
	NotSeen    []string          `json:"not_seen"`
	Limits     string            `json:"limits"`
	Files      []string          `json:"files"`
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

// A jsonRequirement is one of --require, or the one that rules bring along.
type jsonRequirement struct {
	Text    string `json:"text"`
	Counted int    `json:"counted"`
	Met     bool   `json:"met"`
	Implied bool   `json:"implied"` // by rules, and by no --require
}

type jsonFacts struct {
	Started   string `json:"started,omitempty"` // wall clock at instant 0
	ElapsedNs int64  `json:"elapsed_ns,omitempty"`
	check.Numbers
	Actors   int            `json:"actors"`
	Locks    []jsonLock     `json:"locks"`
	Tables   []jsonTable    `json:"tables"`
	Overlaps []jsonOverlap  `json:"overlaps"` // the first few thousand
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
	Turns    []jsonTurn      `json:"turns,omitempty"`
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

	Until    string    `json:"until,omitempty"` // of a gate, as Met and OpenedNs are
	Met      []jsonMet `json:"met,omitempty"`
	OpenedNs int64     `json:"opened_ns,omitempty"`
}

type jsonMet struct {
	Condition string `json:"condition"`
	AtNs      int64  `json:"at_ns"`
	Op        uint64 `json:"op,omitempty"`
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
		Schema: Schema, Exit: o.Exit, Outcome: o.Word, Stopped: r.Interrupted, Why: o.Why, Diverged: r.Diverged,
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
		Accepted: r.toJSONAccepted(), Required: r.toJSONRequirements(), Baseline: r.toJSONBaseline(),
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
