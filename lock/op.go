package lock

import (
	"slices"
	"time"
)

// An Instant is a point on the daemon's monotonic clock, in nanoseconds since
// it was started. Zero means that the thing did not happen, or was not seen.
type Instant int64

// Add returns the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Never is later than every instant that a clock can show.
const Never = Instant(1<<63 - 1)

// Protocol names the wire protocol of an op, as rules spell it.
type Protocol string

// The protocols.
const (
	Redis    Protocol = "redis"
	Postgres Protocol = "pg"
)

// Kind is what an op does, by its effect and not by its library.
type Kind string

// The kinds of op. A Read or a Write is a statement; whether it is one of a
// critical section is the ledger's to say (Op.Term).
const (
	Acquire  Kind = "acquire"  // creates a lock key exclusively, or asks to
	Store    Kind = "store"    // plain SET with an expiry: an acquire, if its value is later compared and deleted
	Renew    Kind = "renew"    // moves the end of a lease
	Release  Kind = "release"  // removes a lock key
	Fence    Kind = "fence"    // INCR: issues a number that rises
	Read     Kind = "read"     // SELECT from a table
	Write    Kind = "write"    // INSERT, UPDATE or DELETE
	Begin    Kind = "begin"    // opens an explicit transaction
	Commit   Kind = "commit"   // ends one; Outcome RolledBack if the server said ROLLBACK
	Rollback Kind = "rollback" // ends one, or part of one (Savepoint is then set)
	Other    Kind = "other"    // a command that only a rule cares about
)

// Outcome is what the server's reply says of an op.
type Outcome string

// The outcomes. An op without a reply is Unknown: it may have happened.
const (
	Pending    Outcome = ""            // no reply yet
	Granted    Outcome = "granted"     // an acquire succeeded
	Refused    Outcome = "refused"     // an acquire did not
	Done       Outcome = "done"        // the op took effect (a write: see Rows)
	NotHeld    Outcome = "not-held"    // a release or renewal found another token, or none
	Failed     Outcome = "failed"      // an error reply: no effect
	RolledBack Outcome = "rolled-back" // a statement whose transaction did not commit
	Unknown    Outcome = "unknown"     // the connection ended first
)

// Evidence says how it is known what a call did to a lock.
type Evidence string

// The kinds of evidence, strongest first.
const (
	FromWire      Evidence = ""          // the command and its reply say it themselves
	FromMonitor   Evidence = "monitor"   // the server's MONITOR showed what a script ran
	FromPgLocks   Evidence = "pg_locks"  // the view pg_locks showed what the backend holds
	FromProbe     Evidence = "probe"     // the keys were looked at before and after the call
	FromText      Evidence = "text"      // the script's text suggests it
	FromArguments Evidence = "arguments" // so do its arguments: see Op.Guessed
	FromRule      Evidence = "rule"      // lockfaultd did it, on a side connection, since a rule assumes that it happens
)

// Span says what ends a holding beside its release.
type Span string

// The spans.
const (
	LeaseSpan   Span = ""        // its lifetime, if it has one
	SessionSpan Span = "session" // the end of its connection
	TxSpan      Span = "tx"      // the end of its transaction
)

// A Value is a token, a parameter or a column's value as the project keeps it:
// hashed, since equality is enough, and beside it as an integer where it is one.
// The integer stays in memory; only the history decides which are written down.
type Value struct {
	Hash  string `json:"h,omitempty"` // 16 hex digits; "" when there is no value
	Int   int64  `json:"i,omitempty"`
	IsInt bool   `json:"n,omitempty"`

	// Rel is an integer that is kept secret, shifted by an amount that is the
	// same for one column of one history and told nowhere: the difference of two
	// is that of the integers, and nothing else may be made of it. Only a history
	// that was read back has one, and never beside Int.
	Rel   int64 `json:"s,omitempty"`
	IsRel bool  `json:"sn,omitempty"`
}

// Known reports whether there is a value at all.
func (v Value) Known() bool { return v.Hash != "" || v.IsInt }

// Same reports whether two values are equal as far as can be told.
func (v Value) Same(w Value) bool {
	if v.Hash != "" && w.Hash != "" {
		return v.Hash == w.Hash
	}
	return v.IsInt && w.IsInt && v.Int == w.Int
}

// Minus returns v - w, and false where it is not known. Both are values of one
// column. It wraps around as the integers do.
func (v Value) Minus(w Value) (int64, bool) {
	switch {
	case v.IsInt && w.IsInt:
		return v.Int - w.Int, true
	case v.IsRel && w.IsRel:
		return v.Rel - w.Rel, true
	}
	return 0, false
}

// An Op is one step that matters. A parser fills the request's part when the
// request has been read, and the reply's part when the reply has; the session
// stamps the instants. An Op is owned by its session until its reply has been
// delivered and must not be changed afterwards.
type Op struct {
	Seq      uint64 // place of the request in the engine's order, from 1
	ReplySeq uint64 // place of the reply in the same order; 0 without one

	Session  uint64   // the connection, from 1
	Actor    string   // label of the process that owns the client's end
	Upstream string   // name of the upstream, where there are several; for Postgres with the database
	Proto    Protocol //
	Kind     Kind     //
	Verb     string   // the wire's own word, in capitals: SET, EVALSHA, UPDATE, COMMIT

	// Of what names a table without its schema: stands for the search path by which its
	// session finds that, "" for the default one. Ops of different ones may be of
	// different tables of one name, or have different locks of one Key.
	Path string

	// A lock's. For Postgres Key names what is locked: advisory:42 (advisory:1:2 for
	// two ints), table:NAME, row:TABLE:HASH or lease:TABLE:HASH, where HASH stands
	// for the conditions that choose the row; with ? in place of a number or a HASH
	// that is not told, and * where the table has one row. Such an op comes beside
	// the statement's own, if that is a Read or a Write, and before it.
	DB       int           // database number: part of a lock's identity
	Key      string        // the key, or a script's key that it acts upon
	NX       bool          // creates only if absent (SETNX, SET NX, an acquire script)
	Guarded  bool          // compares the token before it acts
	Racy     bool          // Token is what the client itself has compared, by a GET before the op: another may have come between
	Coarse   bool          // the server reckons the lifetime in whole seconds: it may be one more or less than TTL
	Guessed  bool          // a script whose text was never seen: Kind is read off its arguments, and holds only if Token is the lock's
	Shared   bool          // an acquire beside which others may hold the lock: of a reader
	Member   bool          // Token is one member of the key (a hash field, a set's member), beside which there may be others
	All      bool          // a Release of everything that the session holds in Span; Key is "" then
	Token    Value         // value stored, or compared with
	TTL      time.Duration // lifetime asked for; 0: none
	Until    int64         // absolute end of the lifetime asked for, Unix milliseconds, where TTL is not told; 0: none
	Evidence Evidence      // how the effect is known
	Depth    int           // how often the holder has the lock after the op, where that is told: above 1 re-entrant, a Release with more than 0 left is only a step
	Span     Span          // what ends the holding beside a Release
	FenceKey string        // key of the counter, of a Fence or an acquire script that issues one
	Fence    int64         // number issued in the reply; see HasFence

	// Postgres.
	SQL       *Statement // Read and Write; nil otherwise
	Tx        uint64     // transaction, numbered in its session from 1
	Snapshot  bool       // the transaction reads as of its first statement (REPEATABLE READ, SERIALIZABLE)
	Implicit  bool       // the transaction is the statement's (or the pipeline's) own
	Savepoint bool       // a Rollback TO: only part of the transaction is undone
	HasFence  bool       // a fence was issued. It stands here since an Op is to take no more than 512 bytes
	Since     uint64     // a Rollback TO that was Done: it undoes the transaction's ops whose Seq is not less; 0: not known which
	Tables    []string   // Commit: tables written in the transaction
	Rows      int64      // rows affected, or returned
	Row       []Cell     // the only row returned, if there was exactly one
	Err       string     // SQLSTATE, or the first word of a Redis error

	Outcome Outcome

	// The four instants, and a fifth: A, request's last byte read from the
	// client; F, just before its first byte goes upstream; R, the reply's first
	// byte read; D, the reply handed to the client, 0 if the client had gone;
	// Z, Postgres only: when the implicit transaction was known to be durable.
	// The server's effect lies in [F, R], a write's in [F, Z] or at its COMMIT.
	A, F, R, D, Z Instant

	// Held is how much of the time from A to F a rule has held the request, or what
	// was before it on its connection. It is in no history.
	Held time.Duration

	// Term is what the ledger says of the op when its request was read.
	Term Attribution
}

// Compares reports whether the op acts only if its token is the lock's: one that
// was guessed is believed only then.
func (op *Op) Compares() bool { return op.Guarded || op.Guessed }

// A Statement is what matters of a SQL statement.
type Statement struct {
	Table     string   // as written, without quotes, schema kept if written; lower case unless quoted
	Also      []string // the other tables that it writes, as Table: of a TRUNCATE, or of a WITH list
	Set       []Assign // columns that an INSERT or UPDATE assigns, in order
	Where     []Cond   // comparisons joined by AND; see Opaque
	Columns   []string // result columns of a SELECT or RETURNING, by name ("*" kept)
	Trace     string   // trace id of a comment (traceparent), "" if there is none
	Aside     []string // if set, all that Where lacks are comparisons with these columns ("table.column") of other tables, if those have them
	Cascade   bool     // it may write tables that it does not name, as TRUNCATE ... CASCADE does
	Returning bool     // a write with RETURNING
	ForUpdate bool     // a SELECT that takes row locks which nobody else may have: FOR UPDATE, FOR NO KEY UPDATE
	Upsert    bool     // INSERT ... ON CONFLICT DO UPDATE
	Lease     bool     // its row is a lock, and the op before this one says what it does to it
	Opaque    bool     // has parts that were not understood (OR, subqueries, joins): Where is incomplete; see Aside
}

// An Assign is one column being set.
type Assign struct {
	Column   string
	Value    Value // a parameter or a literal; not Known for any other expression
	Delta    int64 // SET c = c + Delta; see HasDelta
	HasDelta bool
}

// A Cond is one comparison of a column with a parameter or a literal.
type Cond struct {
	Column string
	Op     string // = < <= > >= <>
	Value  Value
}

// A Cell is one column of a returned row.
type Cell struct {
	Column string
	Value  Value
}

// A TermID names one holding of one lock: the n-th grant in the ledger's
// order, counted from 1 over all locks. 0 is no term.
type TermID uint64

// Attribution says to which term an op belongs, and how surely. Who asks whether
// an op is certainly of a term asks a.Sure() && a.Of(id): a statement within nested
// locks, or in a transaction that holds locks of its own, is of several.
type Attribution struct {
	ID         TermID
	Confidence float64  // 1.0, 0.98, 0.95, 0.90, 0.75, 0.60, 0.40; 0: none
	Also       []TermID // it may as well be one of these
	Within     []TermID // and it belongs to these too, as surely: terms of other locks around it, or that span its transaction
}

// Of reports whether the op belongs to the term, as one of those it is within or
// as its own.
func (t Attribution) Of(id TermID) bool {
	return id != 0 && (t.ID == id || slices.Contains(t.Within, id))
}

// Candidates lists the terms of one of which the op may be, the likeliest first.
func (t Attribution) Candidates() []TermID {
	if t.ID == 0 {
		return nil
	}
	return append([]TermID{t.ID}, t.Also...)
}

// Sure reports whether the op certainly belongs to ID (0.9 or better), and with it
// to every term of Within.
func (t Attribution) Sure() bool { return t.ID != 0 && t.Confidence >= 0.9 && len(t.Also) == 0 }
