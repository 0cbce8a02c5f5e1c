package check

import (
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An Invariant is a number in the database that the run is judged by, with the
// readings taken before and after it.
type Invariant struct {
	Name   string
	Kind   string // counter, fence or monotone
	Query  string
	Table  string // of a query of the form SELECT column FROM table WHERE ...; "" for any other
	Column string
	Lock   string // the lock that guards it, if the user named one

	Start, End       int64
	ReadAt           lock.Instant // when Start was read, if after the first op: earlier writes are in it
	HasStart, HasEnd bool         // the reading exists
}

// An End is the end of a session.
type End struct {
	Session uint64
	At      lock.Instant
	Seq     uint64 // its place in the order of requests and replies; 0: not known
}

// A Gap is a stretch of which the record is not complete.
type Gap struct {
	At   lock.Instant // when the last of the lost ops was lost
	Lost int          // how many
	Why  string
}

// Input is what there is to judge. The judge sets Op.Term and nothing else of it.
type Input struct {
	Ops          []*lock.Op
	Ends         []End
	Gaps         []Gap
	Clocks       []Clock
	Tallies      []Tally
	Bypasses     []Bypass
	Declarations []lock.Declaration
	Invariants   []Invariant
}

// A Setup is what is known of a history beside what happened in it.
type Setup struct {
	Declarations []lock.Declaration
	Invariants   []Invariant
	Clocks       []Clock
	Tallies      []Tally
	Bypasses     []Bypass
}

// A Class says what a verdict means for the outcome of a run.
type Class string

// The classes.
const (
	Harm         Class = "harm"
	Declared     Class = "declared" // harm if the lock was declared to guard correctness
	Hazard       Class = "hazard"
	Good         Class = "good" // a defence that worked
	Inconclusive Class = "inconclusive"
)

// A Level says how sure a verdict is.
type Level string

// The levels.
const (
	Proven   Level = "PROVEN"
	Likely   Level = "LIKELY"
	Possible Level = "POSSIBLE"
)

// atLeast reports whether a level is as sure as another.
func (l Level) atLeast(m Level) bool { return l == Proven || l == m || m == Possible }

// A Verdict is one thing that the history shows.
type Verdict struct {
	Code  string // LF104
	Name  string // lost-update
	Class Class
	Level Level
	Harm  bool // of class harm, or declared and the lock was declared to guard correctness

	Lock  string
	Table string
	Terms []lock.TermID // the terms concerned, the one to blame first
	Ops   []uint64      // the ops that the proof cites, by Seq
	Count int           // how often: victims, pairs or writes, by code; at least 1
	Train int           // of those, the ones that follow from another verdict's, or from the first of this one
	Proof string        // in words

	pile string // what it stands for, where it counts all of a kind

	Picture *Picture // of it, where there is one; see Draw
}

// A Counter is the sum of an invariant of kind counter.
type Counter struct {
	Name, Query, Table, Column string

	Acknowledged int64 // sum of the steps that were acknowledged
	Unknown      int64 // writes that have no answer, or whose step is not known
	UnknownLow   int64 // what those may have added, at least (0 or less)
	UnknownHigh  int64 // and at most (0 or more)
	Unbounded    bool  // some of those may have added anything, or the sum was given up
	Start, End   int64
	Change       int64  // End - Start
	NetDeficit   int64  // Acknowledged - Change
	StaleBase    int    // accepted writes from a base that was no longer current
	Victims      int    // accepted writes that those overwrote unread
	Epochs       int    // times the value was set anew (INSERT, DELETE, a constant): the sum starts there
	Known        bool   // Change and NetDeficit are known
	GivenUp      string // why there is no sum, in words; "" if there is one. Of one that was given up no figure is told
}

// A FenceFigure is what was seen of an invariant of kind fence, or of a fence
// column that was learned.
type FenceFigure struct {
	Name, Query, Table, Column string
	Accepted                   int // writes accepted with a fence
	Rejected                   int // writes refused by one
	Lowest, Highest            int64
	Regressions                int // times that it was certainly lower than before, by writes or by the readings
	Unnumbered                 int // writes of it without an answer, or whose number is not known
	Start, End                 int64
	Known                      bool
}

// A Rising is what was seen of an invariant of kind monotone.
type Rising struct {
	Name, Query, Table, Column string

	Highest    int64 // that was seen to be there
	Falls      int   // times that it was certainly lower than before, by writes, else by the readings
	Start, End int64
	Known      bool
}

// Numbers are how much was seen. Those of stretches that follow each other add up.
type Numbers struct {
	Ops            int `json:"ops"`
	Grants         int `json:"grants"`
	Refusals       int `json:"refusals"`
	Sections       int `json:"sections"` // terms whose section ended by a release request
	Reads          int `json:"reads"`    // attributed for sure, as the writes are
	Writes         int `json:"writes"`
	Rejected       int `json:"rejected"`                  // writes and claims that were refused by a guard
	Unattributed   int `json:"unattributed"`              // accepted writes to protected tables that belong to no section for sure
	EndedWhileHeld int `json:"ended_while_held"`          // leases that ended, and locks that were lost, between the grant and the owner's release request
	Lost           int `json:"lost_while_held,omitempty"` // of those, the locks that were lost: their session ended, or the server forgot them
	Forgotten      int `json:"-"`                         // of those, the ones that the server was made to forget
	Gaps           int `json:"gaps"`
	Unsettled      int `json:"unsettled"`          // statements and commits without an answer
	Overlap        int `json:"overlap"`            // pairs of terms that were in their sections at once
	Guessed        int `json:"guessed,omitempty"`  // calls of scripts whose text was not seen, read off their arguments
	Believed       int `json:"believed,omitempty"` // of those, the ones that carry the token of a lock on their key
}

// Plus adds what was seen in another stretch.
func (n Numbers) Plus(o Numbers) Numbers { return n.and(o, 1) }

// less takes away what was seen before.
func (n Numbers) less(o Numbers) Numbers { return n.and(o, -1) }

func (n Numbers) and(o Numbers, times int) Numbers {
	return Numbers{
		Ops: n.Ops + times*o.Ops, Grants: n.Grants + times*o.Grants, Refusals: n.Refusals + times*o.Refusals, Sections: n.Sections + times*o.Sections,
		Reads: n.Reads + times*o.Reads, Writes: n.Writes + times*o.Writes, Rejected: n.Rejected + times*o.Rejected,
		Unattributed: n.Unattributed + times*o.Unattributed, EndedWhileHeld: n.EndedWhileHeld + times*o.EndedWhileHeld,
		Lost: n.Lost + times*o.Lost, Forgotten: n.Forgotten + times*o.Forgotten, Gaps: n.Gaps + times*o.Gaps,
		Unsettled: n.Unsettled + times*o.Unsettled, Overlap: n.Overlap + times*o.Overlap,
		Guessed: n.Guessed + times*o.Guessed, Believed: n.Believed + times*o.Believed,
	}
}

// Facts are what was seen.
type Facts struct {
	Numbers
	Actors   int
	Overlaps []Overlap // of those that there are, no more than 4096, by A, then B
	Locks    []LockFact
	Tables   []TableFact
	Unproven []Unproven
	Unmet    []Unmet
	Either   []EitherFact // by table
	Limits   []Limit
}

// An Unproven is a column to which late writes were accepted, and of which
// nothing shows whether those were computed from what had been read: no
// invariant names it, and written less read is not constant.
type Unproven struct {
	Table, Column string
	Where         string // how its row is chosen: "id = ..."; "" if by nothing
	Writes        int    // those by a term whose lease was over, or after the next grant
	Number        bool   // some were integers
}

// An EitherFact is a table to which writes were accepted that may be of a section that
// was over by then, or of another one.
type EitherFact struct {
	Table  string
	Writes int
}

// An Overlap is a stretch in which two terms of one lock were both in their
// section. Facts lists the first few thousand.
type Overlap struct {
	Lock     string
	A, B     lock.TermID // A was granted first
	From, To lock.Instant
}

// A LockFact is what was seen of one lock.
type LockFact struct {
	Lock             string
	Grants, Refusals int
	TTLs             []time.Duration // the different lifetimes asked for, ascending; 0 is none
	Renewals         int
	MedianHeld       time.Duration // from the grant's delivery to the release's request
	Fences           int           // terms that were issued a fence
	FenceKey         string        // what issued the first of them
	Overrun          int           // leases that ended, and locks that were lost, while held
	Lost             int           // of those, the locks that were lost: their session ended, or the server forgot them
	Marker           bool          // taken and never released, again and again: no lock
	Declared         bool
}

// A TableFact is what was seen of one table inside sections.
type TableFact struct {
	Table         string
	Columns       []string // assigned, in order of first use
	Numbers       []string // of those, the integers that sections read and wrote, or added to
	Where         string   // how the first write of one chose its row: "id = ..."
	Reads, Writes int
	Perhaps       int    // accepted writes that may be of a section, and of none for sure
	Lock          string // the lock under which it is written most
	Fence         string // its fence column, declared or learned
}
