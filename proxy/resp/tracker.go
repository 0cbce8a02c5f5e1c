package resp

import (
	"fmt"
	"sync/atomic"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// Options says whose connection a tracker follows.
type Options struct {
	Session  uint64
	Upstream string
	Hash     *lock.Hasher // of tokens; nil: ops carry none
	Scripts  *Scripts     // shared by the connections to one upstream; nil: the tracker's own

	// Wants reports whether a rule names a verb, in capitals; each command of
	// that verb is then an op. Its answer may be remembered while Epoch stays the
	// same. nil: none.
	Wants func(verb string) bool

	// Epoch returns another number once Wants may answer otherwise. nil: it never
	// does.
	Epoch func() uint64

	// Could returns what reports whether a rule that names a verb may match a
	// key; where that answers false, the command need be no op. It may be
	// remembered, and asked of one request more than once or not at all: while Epoch
	// stays the same its answer depends on the key alone. nil: any key may be matched.
	Could func(verb string) func(key []byte) bool

	// Witnessed says that somebody beside the wire can tell what scripts and
	// functions do: each call of one is then marked as a [Call].
	Witnessed bool

	// EffectsOnly has no script be told by its text, nor by its arguments.
	EffectsOnly bool

	// Leaves is told, at most once a connection, what has named other addresses
	// to the client, at which it may go on past the proxy: a command's name,
	// MOVED, ASK or MOVING. nil: nobody wants to know.
	Leaves func(what string)
}

// A Tracker follows one Redis connection; see [wire.Tracker] for how it is
// used. But for ClientName it is not safe for concurrent use.
type Tracker struct {
	opt   Options
	req   requests
	rep   replies
	queue queue
	tx    transaction
	modes modes
	subs  subscriptions

	script *program // of the EVAL or EVALSHA at hand, once that argument was read
	option int      // where the next option of the HELLO at hand is

	blindOut bool // client to upstream is not read any more
	blindIn  bool // upstream to client is not read any more
	told     bool // a Blind mark has been given
	left     bool // Leaves was told
	late     bool // whose the frame at hand is can be told at its end only

	careful bool // every request is an entry, since an AUTH's reply may be missing
	doubt   bool // an AUTH's reply may have been missing
	shaky   int  // AUTHs sent while replies were due, and not answered
	queued  bool // what is sent now will be queued, if every MULTI succeeds: known while careful

	db       int // selected, by the replies read so far
	asked    int // selected, if every SELECT that is not answered succeeds
	watching int // MONITORs that are not answered
	asking   int // SELECT and RESET that are not answered
	waiting  int // entries and their ops that wait, in the queue and the transaction
	due      int // the ops and calls among them
	kept     int // bytes of the calls' words

	watched []uint64       // sums of the keys that are watched, if every WATCH succeeds
	multi   bool           // what is sent now is queued, if every MULTI succeeds
	pledged bool           // of what is queued so, something renews or releases
	notes   [maxNotes]note // what GETs have told
	gets    uint16         // those that were heeded

	name  atomic.Pointer[string] // read by others while the tracker is at work
	memos map[string]memo        // so that Wants and Could cost no allocation
	last  remembered             // the last name that was hopped over, or not
}

var (
	_ wire.Tracker = (*Tracker)(nil)
	_ wire.Skipper = (*Tracker)(nil)
)

// NewTracker returns a tracker for a connection at its beginning.
func NewTracker(opt Options) *Tracker {
	if opt.Scripts == nil {
		opt.Scripts = NewScripts()
	}
	t := &Tracker{opt: opt}
	t.rep.pushes = opt.Leaves != nil
	return t
}

// ClientName returns the name that the client has given itself with CLIENT
// SETNAME or HELLO, once the server agreed; "" before. It is safe to call while
// the tracker is at work.
func (t *Tracker) ClientName() string {
	if name := t.name.Load(); name != nil {
		return *name
	}
	return ""
}

func (t *Tracker) setName(name string) { t.name.Store(&name) }

// Client scans the next bytes from the client.
func (t *Tracker) Client(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	for len(chunk) > 0 && !t.blindOut {
		if chunk = chunk[t.hopRequests(chunk):]; len(chunk) == 0 {
			break
		}
		n, ev := t.req.next(chunk)
		chunk = chunk[n:]
		switch ev {
		case emptied:
			t.empty()
		case named:
			t.choose()
		case argued:
			t.reconsider()
		case framed:
			marks = t.request(marks)
		case malformed:
			marks = t.goBlind(marks, t.req.pos, t.req.fault)
		}
	}
	if t.blindOut {
		t.req.pos += int64(len(chunk))
		return marks, t.req.pos
	}
	return marks, t.req.clear()
}

// Upstream scans the next bytes from the server.
func (t *Tracker) Upstream(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	for len(chunk) > 0 && !t.blindIn {
		if t.lost() {
			t.blindIn = true
			break
		}
		if chunk = chunk[t.hopReplies(chunk):]; len(chunk) == 0 {
			break
		}
		n, ev := t.rep.next(chunk)
		if ev == header {
			marks, ev = t.header(marks)
		}
		switch ev {
		case opened:
			marks = t.opened(marks)
		case framed:
			marks = t.reply(marks)
		case malformed:
			marks = t.giveUp(marks, t.rep.pos, t.rep.fault)
		}
		chunk = chunk[n:]
	}
	if t.blindIn {
		t.rep.pos += int64(len(chunk))
		return marks, t.rep.pos
	}
	return marks, t.rep.clear()
}

// endless is more than any stream has left: Rest of one that is not read any more.
const endless = 1 << 62

// Rest implements [wire.Skipper].
func (t *Tracker) Rest(fromClient bool) int64 {
	switch {
	case fromClient && t.blindOut, !fromClient && (t.blindIn || t.lost()):
		return endless
	case fromClient:
		return t.req.rest()
	}
	return t.rep.rest()
}

// Skip implements [wire.Skipper].
func (t *Tracker) Skip(fromClient bool, n int64) {
	if fromClient {
		t.req.skip(n)
		return
	}
	t.rep.skip(n)
}

// lost reports whether what comes next answers a request behind which nothing
// can be counted.
func (t *Tracker) lost() bool {
	if !t.rep.idle() {
		return false
	}
	e := t.queue.next()
	return e != nil && e.act == blinds
}

// goBlind stops reading requests at once, and replies when those to the
// requests before have come. It says so once.
func (t *Tracker) goBlind(marks []wire.Mark, at int64, why string) []wire.Mark {
	if !t.blindOut {
		t.blindOut = true
		t.req.buf, t.req.args = nil, nil
		t.queue.push(entry{act: blinds})
	}
	if t.told {
		return marks
	}
	t.told = true
	return append(marks, wire.Mark{Kind: wire.Blind, Start: at, End: at, Reason: why})
}

// giveUp stops reading both directions at once.
func (t *Tracker) giveUp(marks []wire.Mark, at int64, why string) []wire.Mark {
	marks = t.goBlind(marks, at, why)
	t.blindIn = true
	t.queue, t.tx, t.rep.levels, t.kept = queue{}, transaction{}, nil, 0
	return marks
}

// request takes in a whole request.
func (t *Tracker) request(marks []wire.Mark) []wire.Mark {
	if !t.req.chosen {
		t.choose()
		t.req.shorten()
	}
	p := &t.req.plan
	if !p.may && p.cmd.verb.passes() && !t.careful && (p.cmd.verb != getVerb || !t.heeds(t.req.arg(1))) {
		t.req.forget()
		t.queue.plain()
		return marks
	}
	e := entry{}
	if p.may {
		if a := t.build(); a != nil {
			t.outdated(a)
			e.set(a)
		}
	}
	t.control(&e)
	if p.wanted && len(e.ops()) == 0 && t.could() {
		t.addOther(&e)
	}
	if t.opt.Witnessed {
		t.addCall(&e)
	}
	t.classify(&e)
	t.req.forget()
	marks = t.requestMarks(marks, &e)
	return t.enqueue(marks, e)
}

func (t *Tracker) requestMarks(marks []wire.Mark, e *entry) []wire.Mark {
	start, end := t.req.span()
	begun := t.pledged
	for _, op := range e.ops() {
		marks = append(marks, wire.Mark{Kind: wire.Request, Op: op, Begun: begun, Start: start, End: end})
		t.pledged = t.pledged || t.multi && (op.Kind == lock.Renew || op.Kind == lock.Release)
	}
	if c := e.call(); c != nil {
		marks = append(marks, wire.Mark{Kind: wire.Called, Call: c, Start: start, End: end})
	}
	return marks
}

// enqueue puts the request in its place, and goes blind where it leads to that.
func (t *Tracker) enqueue(marks []wire.Mark, e entry) []wire.Mark {
	switch {
	case e.act == blinds:
		what := "the replication stream is passed on unread"
		if t.req.plan.cmd.verb == replconfVerb {
			what = "whether it has a reply depends on the server"
		}
		return t.goBlind(marks, t.req.pos, fmt.Sprintf("request at byte %d: %s: %s", t.req.start, t.req.plan.cmd.name, what))
	case t.req.plan.cmd.verb == quitVerb:
		t.blindOut = true // the server drops what follows
	case t.waiting >= maxPending:
		return t.goBlind(marks, t.req.pos, fmt.Sprintf("request at byte %d: more than %d ops without a reply", t.req.start, maxPending))
	case t.careful && t.queue.len() >= maxCareful:
		return t.goBlind(marks, t.req.pos, fmt.Sprintf("request at byte %d: %d requests since an AUTH, and no telling whether it was answered", t.req.start, maxCareful))
	}
	if e.plain() && !t.careful {
		t.queue.plain()
		return marks
	}
	if !e.plain() {
		t.waiting += e.weight()
		t.due += e.marked()
	}
	if e.act == monitors {
		t.watching++
	}
	t.queue.push(e)
	return marks
}

// empty takes in a request without a word. It has no reply, and ends a CLIENT
// REPLY SKIP as any other does.
func (t *Tracker) empty() {
	if last := t.queue.latest(); last != nil && (last.act == replySkip || last.act == executes) {
		t.waiting++
		t.queue.push(entry{act: nothing})
	}
}

// settled notes that an entry does not wait any more.
func (t *Tracker) settled(e *entry) {
	t.waiting -= e.weight()
	t.due -= e.marked()
	if c := e.call(); c != nil {
		t.kept -= c.size
	}
	if e.act == monitors {
		t.watching--
	}
	if e.class >= authClass {
		t.shaky--
		t.careful = t.doubt || t.shaky > 0
	}
}
