package resp

import (
	"bytes"
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
	// that verb is then an op. It is asked once a command. nil: none.
	Wants func(verb string) bool
}

// A Tracker follows one Redis connection; see [wire.Tracker] for how it is
// used. But for ClientName it is not safe for concurrent use.
type Tracker struct {
	opt   Options
	req   requests
	rep   replies
	queue queue
	tx    transaction

	script *program // of the EVAL or EVALSHA at hand, once that argument was read

	blindOut bool // client to upstream is not read any more
	blindIn  bool // upstream to client is not read any more
	told     bool // a Blind mark has been given

	db      int // selected, by the replies read so far
	asked   int // selected, if every SELECT that is not answered succeeds
	asking  int // SELECT and RESET that are not answered
	waiting int // entries that wait, in the queue and the transaction

	name  atomic.Pointer[string] // read by others while the tracker is at work
	verbs map[string]string      // names of plain commands, so that Wants costs no allocation
}

var _ wire.Tracker = (*Tracker)(nil)

// NewTracker returns a tracker for a connection at its beginning.
func NewTracker(opt Options) *Tracker {
	if opt.Scripts == nil {
		opt.Scripts = NewScripts()
	}
	return &Tracker{opt: opt}
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
		n, ev := t.req.next(chunk)
		chunk = chunk[n:]
		switch ev {
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
		if t.rep.idle() && t.lost() {
			t.blindIn = true
			break
		}
		n, ev := t.rep.next(chunk)
		for ev == element {
			t.element()
			ev = t.rep.resume()
		}
		switch ev {
		case opened:
			marks = t.opened(marks)
		case framed:
			marks = t.reply(marks)
		case malformed:
			t.blindIn = true
			marks = t.goBlind(marks, t.rep.pos, t.rep.fault)
		}
		chunk = chunk[n:]
	}
	if t.blindIn {
		t.rep.pos += int64(len(chunk))
		return marks, t.rep.pos
	}
	return marks, t.rep.clear()
}

// lost reports whether what comes next answers a request behind which nothing
// can be counted.
func (t *Tracker) lost() bool {
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

// choose decides what the command whose name has been read may become.
func (t *Tracker) choose() {
	name := upper(t.req.arg(0))
	p := lookup(name).prepare(t.req.argc)
	if t.opt.Wants != nil && len(name) > 0 {
		if p.cmd.name == "" {
			p.cmd.name = t.intern(name)
		}
		if p.wanted = t.opt.Wants(p.cmd.name); p.wanted {
			p.may = true
			p.keep = max(p.keep, keyAt(p.cmd.name))
		}
	}
	t.req.plan, t.req.chosen, t.script = p, true, nil
}

func (t *Tracker) intern(name []byte) string {
	if s, ok := t.verbs[string(name)]; ok {
		return s
	}
	s := string(name)
	if t.verbs == nil {
		t.verbs = make(map[string]string)
	}
	if len(t.verbs) < 512 {
		t.verbs[s] = s
	}
	return s
}

// reconsider looks at the newest argument of a watched request.
func (t *Tracker) reconsider() {
	r, i := &t.req, len(t.req.args)-1
	switch r.plan.cmd.verb {
	case helloVerb:
		if bytes.EqualFold(r.arg(i), []byte("AUTH")) {
			r.mute = 2
		}
	case scriptVerb:
		r.stop(i == 1 && !bytes.EqualFold(r.arg(1), []byte("LOAD")))
	case clientVerb:
		r.stop(i == 1 && !bytes.EqualFold(r.arg(1), []byte("SETNAME")) && !bytes.EqualFold(r.arg(1), []byte("REPLY")))
	case evalVerb, evalSHAVerb:
		t.reconsiderScript(i)
	}
	r.plan.watch = r.plan.watch && (r.plan.guess || r.plan.cmd.verb == helloVerb)
}

// reconsiderScript looks at argument i: the script, or one by which a script
// that is not known is guessed.
func (t *Tracker) reconsiderScript(i int) {
	r := &t.req
	if i > digestAt {
		r.stop(r.plan.guess && !r.suits(i))
		return
	}
	t.script = t.program()
	r.plan.guess = t.script == nil && r.beginGuess()
	r.stop(!r.plan.guess && (t.script == nil || t.script.effect == noEffect))
}

// stop makes the request a plain one, if so; one that a rule wants stays.
func (r *requests) stop(so bool) {
	if !so {
		return
	}
	r.plan.watch, r.plan.guess = false, false
	if r.plan.wanted {
		return
	}
	r.plan.may, r.plan.keep = false, min(r.plan.keep, 1)
}

// request takes in a whole request.
func (t *Tracker) request(marks []wire.Mark) []wire.Mark {
	if !t.req.chosen {
		t.choose()
	}
	p := &t.req.plan
	if !p.may && p.cmd.verb == plainVerb {
		t.req.forget()
		t.queue.plain()
		return marks
	}
	e := entry{}
	if p.may {
		e = t.build()
	}
	t.control(&e)
	if p.wanted && len(e.ops) == 0 {
		t.addOther(&e)
	}
	t.req.forget()
	marks = t.requestMarks(marks, e.ops)
	return t.enqueue(marks, e)
}

func (t *Tracker) requestMarks(marks []wire.Mark, ops []*lock.Op) []wire.Mark {
	start, end := t.req.span()
	for _, op := range ops {
		marks = append(marks, wire.Mark{Kind: wire.Request, Op: op, Start: start, End: end})
	}
	return marks
}

// enqueue puts the request in its place, and goes blind where it leads to that.
func (t *Tracker) enqueue(marks []wire.Mark, e entry) []wire.Mark {
	name := t.req.plan.cmd.name
	switch {
	case e.act == blinds:
		return t.goBlind(marks, t.req.pos, fmt.Sprintf("request at byte %d: %s: its replies cannot be counted", t.req.start, t.blinding()))
	case t.req.plan.cmd.verb == authVerb && !t.queue.empty():
		return t.goBlind(marks, t.req.pos, fmt.Sprintf("request at byte %d: %s behind requests without a reply: some servers leave its own out", t.req.start, name))
	case t.req.plan.cmd.verb == quitVerb:
		t.blindOut = true // the server drops what follows
	case t.waiting >= maxPending:
		return t.goBlind(marks, t.req.pos, fmt.Sprintf("request at byte %d: more than %d ops without a reply", t.req.start, maxPending))
	}
	if e.act == noAction && len(e.ops) == 0 {
		t.queue.plain()
		return marks
	}
	t.waiting += 1 + len(e.ops)
	t.queue.push(e)
	return marks
}

// blinding names the command that made the connection blind.
func (t *Tracker) blinding() string {
	if t.req.plan.cmd.verb == clientVerb {
		return "CLIENT REPLY"
	}
	return t.req.plan.cmd.name
}

// upper turns a command's name into capitals, in place.
func upper(name []byte) []byte {
	for i, c := range name {
		if c >= 'a' && c <= 'z' {
			name[i] = c - 'a' + 'A'
		}
	}
	return name
}
