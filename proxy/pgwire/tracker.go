package pgwire

import (
	"fmt"
	"sync/atomic"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// Options are what a [Tracker] is told of its session.
type Options struct {
	Session  uint64
	Upstream string
	Hash     *lock.Hasher // nil: one with an empty key
	// Statements is shared by the sessions of a daemon, which have one Hash.
	// nil: one of its own.
	Statements *Cache
	// Wants reports whether a rule names a verb, which then makes an op of
	// what otherwise is none. nil: none does. It is asked for each statement.
	Wants func(verb string) bool
	// Reads reports whether a SELECT from a table, named as [lock.TableName]
	// does, matters to anybody now. It is asked for each of them, more than
	// once; one that does not matter is no op. nil: all do.
	Reads func(table string) bool
	// StripPlus takes SCRAM-SHA-256-PLUS off the list of mechanisms that
	// upstream offers: whoever ends TLS between the two cannot bind channels.
	StripPlus bool
	// KeyData is told the key that upstream gives out for cancelling. It may
	// not keep the slice. nil: nobody asks.
	KeyData func(pid int32, key []byte)
	// Refused is told of an error of upstream before the session was ready.
	// nil: nobody asks.
	Refused func(sqlstate, message string)
}

// phase is how far the connection has got.
type phase uint8

const (
	starting phase = iota // no startup message yet
	running               // messages have a type byte
	opaque                // passed on without being read
)

// A Tracker follows one Postgres connection. It implements [wire.Tracker].
type Tracker struct {
	opt   Options
	phase phase
	marks []wire.Mark // of the call that is under way

	client   scanner
	upstream scanner

	application atomic.Pointer[string] // read by others
	pid         atomic.Int32           // likewise
	working     atomic.Bool            // likewise

	asked      queue
	statements names[statement]
	portals    names[portal]
	tables     [4]string // names of tables read last
	group      group
	reply      reply
	tx         transactions
	advised    advisedLocks
	token      lock.Value // of what the session holds

	changes map[string]*change // the last that is not answered, of each name
	forgets int                // of all names that are not answered; what was changed before is not in changes
	segment uint64             // counts the client's Syncs and Queries
	live    *statement         // the unnamed one that upstream has, nil if that is not certain
	unnamed uint32             // which of the unnamed statements was asked for last
	piped   bool               // the client has sent an Execute and no Sync since
	failing bool               // upstream skips to the next Sync
	surplus int                // Syncs in the queue that upstream may have swallowed
}

// NewTracker returns a tracker for one connection from its first byte on.
func NewTracker(opt Options) *Tracker {
	if opt.Hash == nil {
		opt.Hash = lock.NewHasher(nil)
	}
	if opt.Statements == nil {
		opt.Statements = NewCache()
	}
	return &Tracker{
		opt:        opt,
		statements: names[statement]{named: sessionStore((*statement).weighs)},
		portals:    names[portal]{named: sessionStore((*portal).weighs)},
		reply:      reply{start: none},
		group:      group{start: none},
		tx:         transactions{paths: &paths{}},
	}
}

const (
	maxStatements = 4096     // prepared statements or portals of a session, half of them surely
	maxNamed      = 32 << 20 // bytes of either with their names, half of them surely
)

// none is the offset of what is not there.
const none = -1

// ApplicationName returns the application_name of the startup message, "" if
// it had none or has not been read.
func (t *Tracker) ApplicationName() string {
	if name := t.application.Load(); name != nil {
		return *name
	}
	return ""
}

// BackendPID returns the process id of the backend, 0 before upstream has told
// it.
func (t *Tracker) BackendPID() int32 { return t.pid.Load() }

// Working reports whether the session has begun what it has not ended: upstream
// may hold locks for it until its client says more.
func (t *Tracker) Working() bool { return t.working.Load() }

// begun reports whether what the client asks for next belongs to something that
// it has begun already: a transaction, or a pipeline without its Sync.
func (t *Tracker) begun() bool { return t.tx.explicit || t.piped }

// Client scans bytes that the client sent. See [wire.Tracker].
func (t *Tracker) Client(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	t.marks = marks
	for t.phase != opaque && len(chunk) > 0 {
		if t.phase == starting {
			chunk = t.startup(chunk)
		} else {
			chunk = t.requests(chunk)
		}
	}
	t.client.pass(chunk)
	return t.taken(), t.client.cleared(t.clientClear())
}

// Upstream scans bytes that upstream sent. See [wire.Tracker].
func (t *Tracker) Upstream(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	t.marks = marks
	if t.phase == running {
		chunk = t.replies(chunk)
	}
	t.upstream.pass(chunk)
	return t.taken(), t.upstream.cleared(t.upstreamClear())
}

func (t *Tracker) taken() []wire.Mark {
	if works := t.begun(); works != t.working.Load() {
		t.working.Store(works)
	}
	marks := t.marks
	t.marks = nil
	return marks
}

// blind gives the connection up, from the offset on.
func (t *Tracker) blind(from int64, format string, args ...any) {
	t.marks = append(t.marks, wire.Mark{Kind: wire.Blind, Start: from, End: from, Reason: fmt.Sprintf("at byte %d: "+format, append([]any{from}, args...)...)})
	t.pass()
}

// pass lets everything through from now on.
func (t *Tracker) pass() {
	t.phase = opaque
	t.asked = queue{}
	t.statements.clear()
	t.portals.clear()
	t.changes, t.forgets, t.live = nil, 0, nil
	t.client.done()
	t.upstream.done()
	t.reply = reply{start: none}
	t.group = group{start: none}
	t.tx, t.piped = transactions{paths: t.tx.paths}, false
	t.advised = advisedLocks{}
}

// clientClear returns what of the client's bytes is clear: all but a message
// that is not whole, and what leads up to it.
func (t *Tracker) clientClear() int64 {
	s := &t.client
	if !s.keeping() {
		return s.pos
	}
	if t.phase == running && t.group.leadsTo(s.head[0]) && s.pos-t.group.start <= wire.MaxHeld {
		return t.group.start
	}
	return s.start
}

// upstreamClear returns what of upstream's bytes is clear: all but the reply
// to an op, or a message that may turn out to be one.
func (t *Tracker) upstreamClear() int64 {
	s := &t.upstream
	if r := t.reply.start; r != none && s.pos-r <= wire.MaxHeld {
		return r
	}
	if s.partial() && (s.nhead < headSize || s.head[0] == 'Z' || s.head[0] == 'R' && s.limit > 0 && s.size <= maxMechanisms) {
		return s.start
	}
	return s.pos
}
