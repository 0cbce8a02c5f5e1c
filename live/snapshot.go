package live

import "time"

// A Snapshot is what a daemon sees at one instant. Names, keys, labels and texts may come from the wire: whoever shows
// them has to escape them. A list that is empty may be null in JSON. Times are of the daemon's clock, as Now is, so
// that a reader whose clock is another can tell how long something has left.
type Snapshot struct {
	Now     time.Time `json:"now"`
	Name    string    `json:"name"` // lockfaultd or probe
	Version string    `json:"version,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when the daemon began
	Control bool      `json:"control"`        // it has rules to switch and takes POST /v1/stop

	// Blind is since when nobody can tell which locks are held, since what tells of them is not seen; zero: it is seen.
	Blind time.Time `json:"blind_since,omitzero"`

	Sources    []Source    `json:"sources"`    // what it looks at, sorted by name
	Locks      []Lock      `json:"locks"`      // sorted by name, then by the grant
	Actors     []Actor     `json:"actors"`     // sorted by label
	Rules      []Rule      `json:"rules"`      // in their order: the first that matches wins
	Verdicts   []Verdict   `json:"verdicts"`   // the newest first, 100 at most
	Marks      []Mark      `json:"marks"`      // of the last minute, in the order of At, 2000 at most
	Invariants []Invariant `json:"invariants"` // in the config's order
	Gaps       int         `json:"gaps"`       // stretches that could not be seen, since the daemon began
	Unseen     []Gap       `json:"unseen"`     // the last of them, the newest first, 20 at most
}

// A Source is what a daemon looks at: the upstream of a proxy, a daemon whose events probe follows, a database that it asks.
type Source struct {
	Name    string    `json:"name"`
	Address string    `json:"address,omitempty"` // with no password
	Up      bool      `json:"up"`
	At      time.Time `json:"at,omitzero"`    // when it was last heard of
	Since   time.Time `json:"since,omitzero"` // since when it is not up, where that is known
	Text    string    `json:"text,omitempty"` // why it is not up, or how far behind the daemon is with it
}

// A Lock is one term of a lock that is open, or a lock that nobody holds. A lock with several open terms (the lease of
// one has ended and another has been granted; a semaphore) has an entry for each, with the same name.
type Lock struct {
	Name   string `json:"name"` // the config's name, or the key
	Held   bool   `json:"held"`
	Holder string `json:"holder,omitempty"` // the actor's label
	// Gone: the holder went away and has not given the lock back. Others are refused it until its lease ends, and for good
	// where it has none.
	Gone  bool      `json:"gone,omitempty"`
	Since time.Time `json:"since,omitzero"` // the grant
	// TTL is the lifetime that the lease was granted or last renewed with, in milliseconds; 0 is none.
	TTL float64 `json:"ttl_ms,omitempty"`
	// The lease ends by itself between these two, if nobody renews it: the server's clock leaves it open where. Both
	// are zero for a lock without a lifetime, and where a renewal without an answer has left the end unknown.
	EndsFrom time.Time `json:"ends_from,omitzero"`
	EndsTo   time.Time `json:"ends_to,omitzero"`
	Overrun  bool      `json:"overrun"` // the lease has certainly ended, and its holder has not asked for the release
	Waiters  int       `json:"waiters"` // actors that were refused and have not been granted it since
	// Stranger: nobody is known to hold it, and one of those was refused it all the same. It was taken before the daemon
	// began, or past the daemon.
	Stranger bool     `json:"stranger,omitempty"`
	Fence    *int64   `json:"fence,omitempty"`
	Margin   *float64 `json:"margin_ms,omitempty"` // what was left of the lease at the last protected write
}

// The states of an actor.
const (
	Running = "running"
	Stalled = "stalled" // a connection of it is held
	Frozen  = "frozen"  // the process is stopped
)

// An Actor is a process that has connections.
type Actor struct {
	Label    string    `json:"label"`
	State    string    `json:"state"`
	Until    time.Time `json:"until,omitzero"` // when the stall or freeze ends at the latest
	By       string    `json:"by,omitempty"`   // the rule that stalls or freezes it, or "by hand"
	Sessions int       `json:"sessions"`
	PID      int       `json:"pid,omitempty"`
	Holds    []string  `json:"holds"` // names of locks, sorted
}

// A Rule is one line of the plan and what has come of it.
type Rule struct {
	Name   string    `json:"name"`
	Text   string    `json:"text"` // in the flags' grammar
	Armed  bool      `json:"armed"`
	Until  time.Time `json:"until,omitzero"` // when it will be disarmed by itself
	Left   *int      `json:"left,omitempty"` // how many times it may fire yet
	Seen   int       `json:"seen"`           // events that it matched
	Fired  int       `json:"fired"`          // of these, those at which it acted
	Barred int       `json:"barred"`         // of these, those at which a bound kept it from acting
	Why    string    `json:"why,omitempty"`  // why it was barred last, or disarmed
}

// The levels of a verdict.
const (
	Proven   = "PROVEN"
	Likely   = "LIKELY"
	Possible = "POSSIBLE"
)

// The classes of a verdict.
const (
	Harm         = "harm"
	Declared     = "declared"
	Hazard       = "hazard"
	Good         = "good"
	Inconclusive = "inconclusive"
)

// A Verdict is what the judge has found.
type Verdict struct {
	ID    string    `json:"id,omitempty"` // stable, where the judge has one
	At    time.Time `json:"at"`           // when what it is about was over
	Code  string    `json:"code"`         // LF104
	Name  string    `json:"name"`         // lost-update
	Level string    `json:"level"`
	Class string    `json:"class"`
	Harm  bool      `json:"harm"` // of class harm, or declared and the lock guards correctness
	Lock  string    `json:"lock,omitempty"`
	Table string    `json:"table,omitempty"`
	Count int       `json:"count"`           // how many alike it stands for; 0 is 1
	Proof string    `json:"proof,omitempty"` // in words
}

// The kinds of a mark.
const (
	MarkSection   = "section"   // from the grant to the release request
	MarkFreeze    = "freeze"    // a process was stopped
	MarkStall     = "stall"     // a connection was held
	MarkRefusal   = "refusal"   // a lock was asked for in vain
	MarkWrite     = "write"     // a protected write was accepted
	MarkRejected  = "rejected"  // one was refused by its fence or another guard
	MarkInjection = "injection" // a rule did something that takes no time: a reset, a lost key
	MarkVerdict   = "verdict"
	MarkGap       = "gap" // could not be seen
)

// A Mark is something on the timeline: an instant, or a stretch.
type Mark struct {
	At   time.Time `json:"at"`
	To   time.Time `json:"to,omitzero"`    // zero for an instant, and for what goes on
	Open bool      `json:"open,omitempty"` // it goes on
	Kind string    `json:"kind"`
	Lock string    `json:"lock,omitempty"`
	// Actor is the label of whose lane it is on; what has none is on that of the lock, or on all.
	Actor string `json:"actor,omitempty"`
	Text  string `json:"text,omitempty"`
}

// The states of an invariant.
const (
	Holds   = "holds"
	Broken  = "broken"
	Unknown = "unknown" // it could not be read, or what was read allows no answer
)

// An Invariant is one of the config's, as of the last look.
type Invariant struct {
	Name  string    `json:"name"`
	Kind  string    `json:"kind"`
	State string    `json:"state"`
	Value string    `json:"value,omitempty"` // the figure that was read, or several in words
	At    time.Time `json:"at,omitzero"`     // the last look
	Text  string    `json:"text,omitempty"`  // what was expected and what came, or why it could not be read
}

// A Gap is a stretch that could not be seen.
type Gap struct {
	At   time.Time `json:"at"`
	To   time.Time `json:"to,omitzero"`
	Lost int       `json:"lost,omitempty"` // lines of the history, where they were counted
	Why  string    `json:"why"`
}
