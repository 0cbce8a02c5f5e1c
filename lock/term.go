package lock

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Declaration is what a user said of a lock: which keys, and what they guard.
type Declaration struct {
	Key         string `json:"key"`                // the lock's key; * stands for any text
	Table       string `json:"table,omitempty"`    // table that it protects; "" when none was named
	FenceColumn string `json:"fence,omitempty"`    // column of Table that keeps the fence; "" when there is none
	Purpose     string `json:"purpose,omitempty"`  // "", "correctness" or "efficiency"
	Kind        Sort   `json:"kind,omitempty"`     // "" where it is to be learned
	Ignore      bool   `json:"ignore,omitempty"`   // such keys are no locks, whatever they look like
	Declared    bool   `json:"declared,omitempty"` // it was declared to guard correctness
}

// A Sort says how many may hold a lock at once.
type Sort string

// The sorts.
const (
	Unsorted  Sort = ""          // not known
	Exclusive Sort = "exclusive" // one term
	Reentrant Sort = "reentrant" // one holder, several times
	ReadWrite Sort = "shared"    // one writer, or readers
	Semaphore Sort = "semaphore" // several, up to a number
)

// Covers reports whether the declaration speaks of the key.
func (d Declaration) Covers(key string) bool { return Glob(d.Key, key) }

// Glob reports whether text matches pattern, in which * stands for any text.
func Glob(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	if !strings.HasPrefix(text, head) {
		return false
	}
	text = text[len(head):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], more
	}
}

// TableName returns a table's name as the ledger compares it: the default
// schema left out.
func TableName(table string) string { return strings.TrimPrefix(table, "public.") }

// A LockID names one lock: the same key in another database is another lock.
type LockID struct {
	Upstream string
	DB       int
	Key      string
}

// String returns the key, with its database where that is not 0.
func (id LockID) String() string {
	if id.DB != 0 {
		return fmt.Sprintf("%s db %d", id.Key, id.DB)
	}
	return id.Key
}

// AddressOnly reports whether an actor's label stands for an address and not
// for a process: everything at that address speaks under it.
func AddressOnly(label string) bool { return label == "" || label[0] == '@' }

// An Interval is where an instant lies, both ends included.
type Interval struct{ Earliest, Latest Instant }

// EndBy says what ended a section.
type EndBy string

// The ways in which a section ends.
const (
	Released   EndBy = "release"    // its release was requested
	Closed     EndBy = "closed"     // its process, or its only connection, went away
	Superseded EndBy = "superseded" // the same client was granted the same lock again
	Abandoned  EndBy = "abandoned"  // nothing was heard of it for long after its lease
)

// A Term is one holding of one lock. It belongs to the ledger; callers read.
type Term struct {
	ID      TermID
	Lock    LockID
	Token   Value
	Actor   string
	Session uint64
	TTL     time.Duration // lifetime asked for; 0: none
	Grant   *Op           // of a Store that was read again, a copy as of its reply

	// LeaseEnd is where the lease ends by itself, drift included. Latest is
	// Never when there is no lifetime or a renewal went unanswered. Gone bounds
	// it from above, and leaves nothing known from below: see Held.
	LeaseEnd Interval
	Renewals int // those that were answered Done
	// GuessedLease: the renewal that moved the end last was guessed.
	GuessedLease bool

	Fence    int64
	HasFence bool
	FenceOp  *Op // what issued it: a Fence, or the grant

	// ReleaseAt is when the owner's first release request was read (0: never).
	ReleaseAt Instant
	Release   *Op // that request
	Released  *Op // what removed the key while this term had it, whoever sent it
	Lost      *Op // the owner's release that found another token, or none
	Gone      *Op // the owner's renewal or release that found the same first, since the lease was set last
	Releases  int // release requests of the owner

	// End is when the section ended (0: it is open); EndBy says by what.
	End   Instant
	EndBy EndBy

	// Marker: the key behaves as a once-marker, so the term owns no statements.
	Marker bool

	reread   bool     // Grant is a copy from before it was delivered
	known    Interval // the lease's end as of the last answer
	knownBy  Interval // F and R of what was answered so; zero: the grant
	denied   []*Op    // answers that the token is not held, which may be later than that
	inflight int      // renewals that have no answer
	inEarly  Instant  // earliest end that one of those could make
}

// Open reports whether the section has not ended.
func (t *Term) Open() bool { return t.End == 0 }

// Dead reports whether the lease had certainly ended by itself at the instant.
func (t *Term) Dead(at Instant) bool { return at > t.LeaseEnd.Latest }

// Lease returns where a lease that was set by op to last ttl ends: its effect
// lies in [F, R], Redis rounds up to a millisecond, and the two clocks may
// drift apart by 2 ms and 500 ppm.
func Lease(op *Op, ttl time.Duration) Interval {
	if ttl <= 0 {
		return Interval{Never, Never}
	}
	drift := 2*time.Millisecond + ttl/2000
	return Interval{op.F.Add(ttl - drift), op.R.Add(ttl + time.Millisecond + drift)}
}

// Held returns until when the lease, unless someone else ended it, was certainly
// running: by the clock, and by no answer to the owner that it had gone.
func (t *Term) Held() Instant {
	until := t.clock().Earliest
	for _, op := range t.denied {
		until = min(until, op.F)
	}
	return until
}

func (t *Term) clock() Interval {
	if t.inflight > 0 {
		return Interval{min(t.known.Earliest, t.inEarly), Never}
	}
	return t.known
}

func (t *Term) settle() {
	t.LeaseEnd = t.clock()
	if t.Gone != nil && t.inflight == 0 {
		t.LeaseEnd = Interval{min(t.LeaseEnd.Earliest, t.Grant.R), min(t.LeaseEnd.Latest, t.Gone.R)}
	}
}

// maxDenied is how many such answers of one term are kept: the first ones tell.
const maxDenied = 64

// gone notes that the owner was answered that it held nothing. If that may have
// been before the lease was set last, it does not show that it is over.
func (t *Term) gone(op *Op) {
	set := t.knownBy
	if set == (Interval{}) {
		set = Interval{t.Grant.F, t.Grant.R}
	}
	if !op.Guarded || op.Guessed || op.R <= set.Earliest {
		return
	}
	if len(t.denied) < maxDenied {
		t.denied = append(t.denied, op)
	}
	if t.Gone == nil && op.F >= set.Latest {
		t.Gone = op
		t.settle()
	}
}

// set notes that an answered op set the lease anew.
func (t *Term) set(op *Op) {
	t.known, t.knownBy, t.Gone = Lease(op, op.TTL), Interval{op.F, op.R}, nil
	t.denied = slices.DeleteFunc(t.denied, func(d *Op) bool { return d.R <= op.F })
}
