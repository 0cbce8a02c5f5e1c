package proxy

import (
	"net/netip"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// Patience is the longest that a call's request and its reply wait for a
// witness, both together.
const Patience = 5 * time.Millisecond

// A Witness tells, from beside the wire, what calls do of which the wire does
// not tell it.
type Witness interface {
	// Watch begins to watch a session; nil: it will tell nothing of it.
	Watch(w Watched) Watcher
}

// Watched says whose calls a [Watcher] is asked about.
type Watched struct {
	Session uint64
	Route   Route
	Local   netip.AddrPort // of the connection to the upstream, as this side sees it
}

// A Watcher is what a witness has of one session. Its methods are called in the
// order of the session's streams and under its lock: they do no I/O and wait for
// nobody.
type Watcher interface {
	// Before is asked before a call is forwarded, which waits for the look that
	// it returns; nil: for nothing.
	Before(c wire.Call) *Look
	// After is asked when a call's reply is whole, which waits for the look; nil:
	// there is nothing to tell.
	After(c wire.Call) *Look
	// Missed is told that a look at a call has not been given in time: nobody waits
	// for it any more, but what a look after the call tells is still heard.
	Missed(c wire.Call)
	// Passed is told of an op that is being forwarded.
	Passed(op *lock.Op)
	// Replied is told of an op whose reply goes on.
	Replied(op *lock.Op)
	// Closed is told of the session's end.
	Closed()
}

// A Look is what a witness will have seen. It is given once.
type Look struct {
	gate    *Gate
	lasting bool

	mu   sync.Mutex
	tell func()
}

// NewLook returns a look that is to be given.
func NewLook() *Look { return &Look{gate: newGate()} }

// Lasting says that what will be told is true however late it comes. What is told
// of another look must be told before the session sends any more.
func (l *Look) Lasting() *Look {
	l.lasting = true
	return l
}

// Give ends the waiting. tell puts what was seen into the call, and is called
// under the session's lock, unless nobody listens any more; nil: nothing was.
func (l *Look) Give(tell func()) {
	l.mu.Lock()
	l.tell = tell
	l.mu.Unlock()
	l.gate.Open()
}

func (l *Look) given() bool { return l.gate.Opened() }

func (l *Look) told() {
	l.mu.Lock()
	tell := l.tell
	l.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// Given reports whether the look was given.
func (l *Look) Given() bool { return l.gate.Opened() }

// Take has what was seen put into the call, as the session does.
func (l *Look) Take() { l.told() }
