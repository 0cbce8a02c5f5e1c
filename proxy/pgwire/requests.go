package pgwire

import (
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

const (
	keepNames  = 520      // of a message that holds names only, or of a Bind to tell its statement: two of maxName
	keepPrefix = 64 << 10 // of a message too large to be withheld
	maxKept    = wire.MaxHeld - headSize
)

// A group is a run of messages that leads up to an Execute without a gap:
// Parse, Bind, Describe.
type group struct {
	start   int64 // of its first message; none
	length  int   // messages
	stmt    *statement
	portal  *portal // once bound
	matters bool    // its Execute will be an op
}

// leadsTo reports whether a message that has begun may belong to the group, so
// that what is there of it is worth withholding.
func (g *group) leadsTo(typ byte) bool {
	return g.start != none && g.matters && (typ == 'B' && g.portal == nil || typ == 'D' || typ == 'E')
}

// requests scans messages of the client up to the end of the chunk, or of what
// can be read.
func (t *Tracker) requests(chunk []byte) []byte {
	s := &t.client
	var m message
	for t.phase == running {
		rest, ok := s.whole(&m, chunk)
		if ok {
			m.keep(wanted(m.typ, len(m.body)))
			t.request(&m)
			chunk = rest
			continue
		}
		rest, ev := s.next(chunk)
		chunk = rest
		switch ev {
		case evMore:
			return chunk
		case evHead:
			t.expect(chunk)
		case evKept:
			t.decide()
		case evMessage:
			s.message(&m)
			t.request(&m)
			s.done()
		case evBad:
			t.blind(s.start, "client's message %q: length %d, expected 4 to %d", s.head[0], uint32(s.size+4), maxMessage)
		}
	}
	return chunk
}

// expect says what to keep of the client's message whose header is there.
func (t *Tracker) expect(rest []byte) {
	s := &t.client
	n := wanted(s.head[0], int(s.size))
	if s.head[0] == 'B' {
		s.stage(keepNames, n, rest)
	} else {
		s.keep(n, rest)
	}
}

// wanted returns how much of the body of a client's message matters.
func wanted(typ byte, size int) int {
	switch typ {
	case 'Q', 'P', 'B':
		if size > maxKept {
			return keepPrefix
		}
		return maxKept
	case 'D', 'E', 'C':
		return keepNames
	}
	return 0
}

// decide says whether the rest of a Bind is worth keeping.
func (t *Tracker) decide() {
	s := &t.client
	s.staged = false
	c := cursor{b: s.buf}
	c.text()
	st := t.statement(c.text())
	switch {
	case c.bad || st.bare() || st.tmpl.move == nil && st.tmpl.kind == lock.Read && !t.matters(st.tmpl):
		s.limit = 0
	case s.size > maxKept:
		s.limit = keepPrefix
	default:
		s.limit = int(s.size)
	}
}

// request acts on a whole message of the client.
func (t *Tracker) request(m *message) {
	switch m.typ {
	case 'Q':
		t.ungroup()
		t.askQuery(m)
	case 'P':
		t.askParse(m)
	case 'B':
		t.askBind(m)
	case 'D':
		t.askDescribe(m)
	case 'E':
		t.askExecute(m)
	case 'C':
		t.ungroup()
		t.askClose(m)
	case 'S', 'F':
		t.ungroup()
		t.ask(asked{typ: m.typ}, m)
		t.tx.synced()
		if m.typ == 'S' {
			t.piped = false
			t.segment++
		}
	case 'd', 'c', 'f':
		t.ungroup()
		t.copyData()
	default:
		t.ungroup()
	}
}

func (t *Tracker) ungroup() { t.group = group{start: none} }

// ask puts a request into the queue.
func (t *Tracker) ask(a asked, m *message) {
	if t.asked.full(&a) {
		t.blind(m.start, "client's message %q: %d requests are unanswered, with %d KiB of ops and names, expected fewer", m.typ, t.asked.len(), t.asked.weight)
		return
	}
	t.asked.push(a)
}

// copyData marks the Syncs that were sent between an Execute and copy data:
// upstream swallows them if it reads them as part of the copy.
//
// They are one run: those before that copy data came behind share its fate.
func (t *Tracker) copyData() {
	s := t.asked.last(0)
	if s == nil || s.typ != 'S' || s.has(seen) {
		return
	}
	s.is = seen
	if a := t.asked.last(1); a != nil && (a.typ == 'E' || a.has(optional)) {
		s.is |= optional
	}
}

// askQuery takes a simple query: each of its statements may be an op.
func (t *Tracker) askQuery(m *message) {
	c := cursor{b: m.body}
	text := c.text()
	if c.bad {
		text = m.body
	}
	a := asked{typ: 'Q'}
	begun := t.begun()
	t.rename(nil)
	t.live = nil
	if !t.unread(text, m.cut) {
		a.more = t.askItems(t.opt.Statements.read(t.opt.Hash, text, m.cut), text)
	}
	t.ask(a, m)
	t.segment++
	t.tx.synced()
	if a.more == nil || t.phase == opaque {
		return
	}
	for _, it := range a.more.query.items {
		t.markAll(&it.doing, begun, m.start, m.end)
	}
}

// askItems makes the ops of a Query's statements. It returns nil if none of
// them matters.
func (t *Tracker) askItems(list []template, text []byte) *detail {
	if !t.mattersAny(list) {
		return nil
	}
	trace := traceOf(text)
	q := &query{items: make([]item, len(list))}
	q.query = q
	for i := range list {
		it := t.askItem(&list[i], trace)
		q.items[i] = it
		q.weight += it.weight()
	}
	return &q.detail
}

func (t *Tracker) askItem(tm *template, trace string) item {
	it := item{tmpl: tm, change: t.affect(tm, nil)}
	inner, args := t.resolve(tm, nil)
	t.runs(tm, inner, args)
	if inner != nil && t.matters(inner) {
		sql := inner.fill(args)
		sql.Trace = trace
		it.tmpl, it.doing = inner, t.do(inner, args, sql)
	}
	return it
}

// weight is that of the item and of what was read of its text.
func (it *item) weight() int32 {
	if it.none() {
		return 2
	}
	return 1 + it.burden()
}

func (t *Tracker) mattersAny(list []template) bool {
	for i := range list {
		if list[i].effect != noEffect || list[i].move != nil || list[i].unread || t.matters(&list[i]) {
			return true
		}
	}
	return false
}

// matters reports whether a statement makes an op.
func (t *Tracker) matters(tm *template) bool { return len(tm.holds) > 0 || t.mattersItself(tm) }

// mattersItself reports whether it makes one beside what it does to locks.
func (t *Tracker) mattersItself(tm *template) bool {
	switch tm.kind {
	case "":
		return !tm.system && t.opt.Wants != nil && t.opt.Wants(tm.verb)
	case lock.Read:
		return t.opt.Reads == nil || t.opt.Reads(tm.table)
	}
	return true
}

// op makes an op of a statement, and gives it its transaction.
func (t *Tracker) op(tm *template, sql *lock.Statement) *lock.Op {
	op := &lock.Op{Session: t.opt.Session, Upstream: t.opt.Upstream, Proto: lock.Postgres, Kind: tm.kind, Verb: tm.verb}
	op.Path = t.pathOf(sql.Table, sql.Also)
	switch op.Kind {
	case "":
		op.Kind, op.SQL = lock.Other, sql
	case lock.Read, lock.Write:
		op.SQL = sql
	}
	t.tx.assign(op, tm)
	return op
}

// mark says that an op's request is whole. What is too large to be withheld
// cannot be held any more.
func (t *Tracker) mark(op *lock.Op, begun bool, start, end int64) {
	if end-start > wire.MaxHeld {
		start = end
	}
	t.marks = append(t.marks, wire.Mark{Kind: wire.Request, Op: op, Begun: begun, Start: start, End: end})
}
