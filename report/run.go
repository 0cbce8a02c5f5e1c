package report

import (
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// A Run is all that a report is made from. It is read and never changed.
type Run struct {
	Result     check.Result        // what the judge found, from ops alone
	Injections []history.Injection // what was injected, in order
	Turns      []history.Turn      // what waited behind the gates of those
	Rules      []RuleUse           // the plan's rules, in order; empty: the run only watched
	Watching   bool                // no rule was given: say what was seen, and what to try
	Unplanned  bool                // made from a history: which rules were armed is not known, save those that fired
	Suggest    []string            // rules to try; empty: made from what was seen

	Command       []string // the wrapped command; empty when there was none
	CommandRan    bool     // it was started
	CommandStatus int      // its exit status, 128+N when signal N ended it
	TimedOut      bool     // it was ended because its time was up

	Baseline *Baseline // the clean stretch that was asked for; nil: none was

	Sessions int // connections of the command to its upstreams, through lockfaultd; 0: none, or not known

	Interrupted bool     // somebody asked for the end before it came
	Diverged    string   // where a schedule that was to be repeated was left, in words; "" if it was not
	Internal    error    // lockfaultd itself failed
	Unreachable []string // upstreams that the command was pointed at and that could not be reached, with the reason
	Unread      []string // invariants that could not be read, with the reason
	Gaps        int      // gaps in the record, if more than the judge was told of
	Blind       []string // blind spots, each in words

	FailOn   []string      // as ParseCodes("fail-on", ...) returns them
	Expect   []string      // as ParseCodes("expect", ...) returns them
	Accepted []Accepted    // findings that are known
	Require  []Requirement // what must have been counted, as ParseRequirement returns it

	Seed    uint64
	Repeat  string        // a shell command that repeats the run; "" when there is none
	Files   []string      // files written
	Started time.Time     // wall clock at instant 0 of the history; zero: unknown
	Elapsed time.Duration // of the run; 0: unknown
}

// A RuleUse is one rule and what became of it.
type RuleUse struct {
	Text    string  // the rule as typed, with its flag
	Name    string  // its name, where it has one
	Seen    int     // events that it matched
	Could   int     // of those, at which it could have fired: the ones that # counts
	Fired   int     // of those, at which it did
	Barred  []Count // the others, by reason
	Nearest []Count // for a rule that never matched: the nearest events that were seen
}

// A Count is how often something happened.
type Count struct {
	What string `json:"what"`
	N    int    `json:"n"`
}

// An Outcome is what a run came to.
type Outcome struct {
	Exit    int      // exit status; see docs/exit-statuses.md
	Word    string   // PASS, FAIL or INCONCLUSIVE
	Why     string   // the reason, in one sentence without its full stop
	LF401   bool     // rules were armed, and no lease ended while it was held
	Reasons []string // why not, rule by rule; empty without LF401
	Failing []string // codes that failed the run
	Missing []string // codes that were expected and not found at any level
}
