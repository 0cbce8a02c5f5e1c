package lock

import (
	"fmt"
	"strings"
	"time"
)

// TableName returns a table's name as the ledger compares it: the default
// schema left out.
func TableName(table string) string { return strings.TrimPrefix(table, "public.") }

// A LockID names one lock: the same key in another database is another lock.
// Of Postgres the database is part of Upstream.
type LockID struct {
	Upstream string // Quorum for one that several servers, or several keys of one, grant together
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

// IDOf returns the lock that an op speaks of, as one server knows it. See
// [Ledger.LockOf] for those that are granted by several.
func IDOf(op *Op) LockID { return LockID{op.Upstream, op.DB, op.Key} }

// AddressOnly reports whether an actor's label stands for an address and not
// for a process: everything at that address speaks under it.
func AddressOnly(label string) bool { return label == "" || label[0] == '@' }

// EndBy says what ended a section.
type EndBy string

// The ways in which a section ends.
const (
	Released   EndBy = "release"    // its release was requested, or the end of the transaction that it spans
	Closed     EndBy = "closed"     // its process, or its only connection, went away
	Superseded EndBy = "superseded" // the same client was granted the same lock again
	Abandoned  EndBy = "abandoned"  // nothing was heard of it for long after its lease
	Undone     EndBy = "undone"     // the transaction that took it was rolled back: it was never there
)

// A Term is one holding of one lock. It belongs to the ledger; callers read.
type Term struct {
	ID      TermID
	Lock    LockID
	Token   Value // as it was stored last
	Actor   string
	Session uint64
	TTL     time.Duration // lifetime asked for; 0: none
	Grant   *Op           // of a Store that was read again, a copy as of its reply

	Span   Span   // what ends it beside its release
	Tx     uint64 // the transaction that it spans, numbered in its session
	Shared bool   // others may hold the lock at the same time: it is a reader's, or has become one's
	Member bool   // it is one member of the key, beside which there may be others
	Depth  int    // how often its holder has it: above 1 it was taken again while held

	// Votes are the holdings that make up one of a quorum, by server or key, in
	// the order of their grants. It is held while Needed of them are; until so many
	// were granted it is a Marker. Grant is the one that made so many.
	Votes  []*Vote
	Needed int

	// Handed are other processes to which its token went, as a [Survey] found: they
	// may act under it too.
	Handed []string

	// Again is the last term of the same lock and token before this one, nil if
	// there was none that is remembered. Revived: that one's release had not been
	// asked for, so what opened this term re-created, for its holder, a lock that
	// had lapsed or was lost. Its Grant may then be a Renew or a Store.
	Again   *Term
	Revived bool

	// LeaseEnd is where the lease ends by itself, drift included. Latest is
	// Never when there is no lifetime or a renewal went unanswered. Gone bounds
	// it from above, and leaves nothing known from below: see Held. Of a session's
	// or transaction's lock Earliest is when it was last seen to be there.
	LeaseEnd Interval
	Renewals int // those that were answered Done
	// GuessedLease: the renewal that moved the end last was guessed.
	GuessedLease bool

	Fence    int64
	HasFence bool
	FenceOp  *Op // what issued it: a Fence, or the grant

	// ReleaseAt is when the owner's first release request was read (0: never). The
	// end of a transaction is the release of what it spans.
	ReleaseAt Instant
	Release   *Op // that request
	Released  *Op // what removed the key while this term had it, whoever sent it
	Lost      *Op // the owner's release that found another token, or none
	Gone      *Op // the owner's renewal or release that found the same first, since the lease was set last
	Releases  int // release requests of the owner

	// End is when the section ended (0: it is open); EndBy says by what.
	End   Instant
	EndBy EndBy

	// Marker: the key behaves as a once-marker, or the grants do not make a
	// majority, so the term owns no statements.
	Marker bool

	lease
	first   Value // the token of the grant, where a renewal stored another
	reread  bool  // Grant is a copy from before it was delivered
	group   *groupState
	sort    Sort  // as declared
	steps   int   // releases in flight that do not end it, unless their answer says so
	readers int   // how many of its holdings are a reader's, where not all are
	told    bool  // Depth is told by the server and not counted
	outer   *Term // the open section of the same task in which it was taken
	inner   int   // sections that were taken directly within it
	alone   bool  // it outlives the section around it: nothing of its process may happen before it ends too
	doubt   bool  // part of its transaction was undone, and it may have been in that part
	traces  []string
	ballot  *ballot
	maybe   int      // servers that were asked for a vote and have not answered
	left    []string // of the processes that may act under it, those that have gone
	pins    int      // what still needs it to be remembered
	retired bool     // it waits to be forgotten
	at      int      // its place among the open terms
}

// Open reports whether the section has not ended.
func (t *Term) Open() bool { return t.End == 0 }

// Dead reports whether the lease had certainly ended by itself at the instant.
func (t *Term) Dead(at Instant) bool { return at > t.LeaseEnd.Latest }

// Sort says how many may hold the lock of the term at once, as far as it is
// known by now: see [Ledger.Sort].
func (t *Term) Sort() Sort {
	if t.sort != Unsorted {
		return t.sort
	}
	return t.group.learned(t.Lock.Key)
}

// Held returns until when the lease, unless someone else ended it, was certainly
// running: by the clock, and by no answer to the owner that it had gone. A
// transaction's or session's was certainly there when it was last seen to be.
func (t *Term) Held() Instant {
	if t.Votes == nil {
		return t.held()
	}
	return t.majority(0, func(v *Vote) Instant { return v.held() })
}

// Clock returns where the lease ends by the clock alone, whatever the owner was
// answered: LeaseEnd without Gone.
func (t *Term) Clock() Interval {
	if t.Votes != nil {
		return t.LeaseEnd
	}
	return t.clock()
}

// revives reports whether a term is what the holder of another one has since that
// lapsed, and has no fence of its own.
func (t *Term) revives(old *Term) bool {
	for o := t; o.Revived && !o.HasFence && o.Again != nil && o.Again.Actor == t.Actor; o = o.Again {
		if o.Again == old {
			return true
		}
	}
	return false
}

func (t *Term) settle() {
	t.LeaseEnd = t.ends()
	if t.Votes == nil {
		t.Gone = t.gone
	}
}

func (t *Term) ends() Interval {
	if t.Votes != nil {
		return Interval{
			t.majority(0, func(v *Vote) Instant { return v.end(v.Grant).Earliest }),
			t.majority(t.maybe, func(v *Vote) Instant { return v.end(v.Grant).Latest }),
		}
	}
	return t.end(t.Grant)
}

// leaseOf returns the lease that an op on a key of the term is about.
func (t *Term) leaseOf(op *Op) *lease {
	for _, v := range t.Votes {
		if v.Lock == IDOf(op) {
			return &v.lease
		}
	}
	return &t.lease
}
