package history

import (
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Schema is the version that is written: major.minor. A reader of one major
// version understands all of its minor versions.
const Schema = "1.1"

// A Header is the first line.
type Header struct {
	Schema       string             `json:"schema"`
	Run          string             `json:"run,omitempty"`     // of the start of the daemon that wrote it, random: 16 hex digits
	Started      time.Time          `json:"started"`           // wall clock at Instant 0
	Seed         uint64             `json:"seed"`              //
	KeyID        string             `json:"key_id,omitempty"`  // of the hasher: histories with different ones do not merge
	Version      string             `json:"version,omitempty"` // of the program that wrote it
	Declarations []lock.Declaration `json:"declarations,omitempty"`
	Invariants   []Invariant        `json:"invariants,omitempty"`
	Upstreams    []Upstream         `json:"upstreams,omitempty"`

	// Of a history in parts: which this is, from 1, the number that its first line
	// behind the header has in the run, and an instant by which all that came before it had been written.
	Part  int          `json:"part,omitempty"`
	First uint64       `json:"first,omitempty"`
	At    lock.Instant `json:"at,omitempty"`
}

// part returns the header of the part of a run that begins with line first.
func (h Header) part(n int, first uint64, at lock.Instant) Header {
	h.Part, h.First, h.At = n, first, at
	return h
}

// before returns the gap that stands for the parts before this one where they are not read; nil: there are none.
func (h Header) before() *Gap {
	if h.First <= 1 {
		return nil
	}
	return &Gap{At: h.At, Lost: int(h.First - 1), Why: "they are in the parts before this one"}
}

// An Invariant is a number by which the run is judged, with its readings.
type Invariant struct {
	Name   string `json:"name,omitempty"`
	Kind   string `json:"kind"`
	Query  string `json:"query"`
	Table  string `json:"table,omitempty"`
	Column string `json:"column,omitempty"`
	Lock   string `json:"lock,omitempty"`
	Start  int64  `json:"start,omitempty"`
	End    int64  `json:"end,omitempty"`
	// ReadAt is when Start was read, if that was during the run: what was
	// written before is in it.
	ReadAt   lock.Instant `json:"read_at,omitempty"`
	HasStart bool         `json:"has_start,omitempty"`
	HasEnd   bool         `json:"has_end,omitempty"`
}

// An Actor is what was known of a process when its label first occurred.
type Actor struct {
	Label   string `json:"label"`
	PID     int    `json:"pid,omitempty"`
	Start   uint64 `json:"start,omitempty"` // of the process, in clock ticks since boot
	Exe     string `json:"exe,omitempty"`
	Cgroup  string `json:"cgroup,omitempty"`
	Address string `json:"address,omitempty"`
}

// An Injection is a decision that was carried out, in plain words: nothing
// here depends on what made it.
type Injection struct {
	ID        uint64        `json:"id"`
	Rule      string        `json:"rule"`
	Name      string        `json:"name,omitempty"`
	Effect    string        `json:"effect"`            // stall, freeze, hold, drop-reply, reset, lose-key or kill-backend
	Phase     string        `json:"phase,omitempty"`   // before or after
	Matched   string        `json:"matched,omitempty"` // the key or table
	Actor     string        `json:"actor,omitempty"`
	Scope     string        `json:"scope,omitempty"`
	For       time.Duration `json:"for_ns"`
	Op        uint64        `json:"op,omitempty"` // its Seq
	At        lock.Instant  `json:"at"`           // decided
	Confirmed lock.Instant  `json:"confirmed,omitempty"`
	Ended     lock.Instant  `json:"ended,omitempty"`
	Outcome   string        `json:"outcome"` // landed, client-gave-up, refused: ..., cut short, never opened
	Reason    string        `json:"reason,omitempty"`
	Section   bool          `json:"section,omitempty"` // its target was inside a section
	Asked     bool          `json:"asked,omitempty"`   // it was not, and its op asked for a lock; told of what resets connections

	// Of a gate: what it waited for, what of that came about, and when all of it had.
	Until  string       `json:"until,omitempty"`
	Met    []Met        `json:"met,omitempty"`
	Opened lock.Instant `json:"opened,omitempty"` // 0: it did not
}

// A Met is a condition of a gate that came about.
type Met struct {
	Condition string       `json:"condition"`
	At        lock.Instant `json:"at"`
	Op        uint64       `json:"op,omitempty"` // the Seq of what brought it about
}

// A Vain says of a rule, when that is known, that it waits for what cannot come about, or will not as it looks.
type Vain struct {
	At      lock.Instant `json:"at"`
	Rule    string       `json:"rule"`
	Matched string       `json:"matched,omitempty"` // the key or table of the event
	Why     string       `json:"why"`
}

// A Turn is a request of another that waited behind an injection's op when its gate had opened.
type Turn struct {
	Injection uint64       `json:"injection"`
	Op        uint64       `json:"op"` // its Seq
	Session   uint64       `json:"session"`
	Actor     string       `json:"actor,omitempty"`
	At        lock.Instant `json:"at"`
	Ended     lock.Instant `json:"ended"`
	Cut       string       `json:"cut,omitempty"` // what it was let go for although that op had no answer
}

// An End is the end of a session.
type End struct {
	Session uint64       `json:"session"`
	At      lock.Instant `json:"at"`
	Seq     uint64       `json:"seq,omitempty"` // its place in the order of requests and replies; 0: not known
}

// A Gap is a stretch of which the record is not complete: it lacks Lost entries,
// none of which came later than At.
type Gap struct {
	At   lock.Instant `json:"at"`
	Lost int          `json:"lost"`
	Why  string       `json:"why,omitempty"`
}

// A Clock is one look at an upstream's wall clock, by which leases with an
// absolute end are placed, and steps of it are seen.
type Clock struct {
	Upstream string        `json:"upstream,omitempty"`
	At       lock.Instant  `json:"at"`                 // half way between question and answer
	Wall     time.Time     `json:"wall"`               // what it answered
	Trip     time.Duration `json:"trip_ns"`            // from question to answer
	Slept    time.Duration `json:"slept_ns,omitempty"` // how far CLOCK_BOOTTIME has parted from CLOCK_MONOTONIC since the start

	// Who answered, by its INFO; "" where that is not told. A process has a Run of
	// its own, and what was replicated from it keeps its Data (master_replid) until
	// another primary takes over: a lock granted under one Data may be lost under
	// the next.
	Run  string `json:"run,omitempty"`
	Data string `json:"data,omitempty"`
	Role string `json:"role,omitempty"` // master or slave
}

// A Bypass is a command on a lock's key by a client that is not behind the
// proxies, as MONITOR showed it. One line stands for all that the same address
// does to the key by the same command.
type Bypass struct {
	Upstream string       `json:"upstream,omitempty"`
	At       lock.Instant `json:"at"` // when the first was shown
	DB       int          `json:"db,omitempty"`
	Key      string       `json:"key,omitempty"`
	KeyHex   string       `json:"key_hex,omitempty"` // instead of Key, when that is not text
	Verb     string       `json:"verb"`
	Address  string       `json:"address,omitempty"` // of the client, as the server sees it
}

// A Tally is how many rows of a table the server itself counted as written in
// the run (pg_stat_user_tables), whoever wrote them, and whether that held.
type Tally struct {
	Upstream string `json:"upstream,omitempty"` // as of the ops: name and database
	Table    string `json:"table"`
	Inserted int64  `json:"inserted"`
	Updated  int64  `json:"updated"` // those of transactions that were rolled back are among them
	Deleted  int64  `json:"deleted"`
}

// An Upstream is a server that the run spoke to.
type Upstream struct {
	Name  string        `json:"name,omitempty"` // as ops name it, without a database
	Proto lock.Protocol `json:"proto"`
}

// A History is a record that was read back.
type History struct {
	Header     Header
	Actors     []Actor
	Ops        []*lock.Op
	Injections []Injection
	Turns      []Turn
	Vains      []Vain
	Ends       []End
	Gaps       []Gap
	Clocks     []Clock
	Tallies    []Tally
	Bypasses   []Bypass
}
