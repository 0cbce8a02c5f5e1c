package pgwire

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// skipped is the Err of an op that upstream did not look at, since something
// before it had failed.
const skipped = "skipped"

// A reply is what has come of the reply to the op at the head of the queue.
type reply struct {
	start   int64 // of its first message that is withheld; none
	rows    int64
	row     []lock.Cell // the first one
	columns []column    // of a simple query's statement
	run     *portal     // whose it is, once looked for ahead of the Execute
}

// replies scans messages of upstream.
func (t *Tracker) replies(chunk []byte) []byte {
	s := &t.upstream
	var m message
	for t.phase == running {
		if len(chunk) > 0 && chunk[0] == 'D' {
			if chunk = t.passRows(chunk); len(chunk) == 0 {
				break
			}
		}
		rest, ok := s.whole(&m, chunk)
		if ok {
			m.keep(t.foresee(m.typ))
			t.answer(&m)
			chunk = rest
			continue
		}
		rest, ev := s.next(chunk)
		chunk = rest
		switch ev {
		case evMore:
			return chunk
		case evHead:
			s.keep(t.foresee(s.head[0]), chunk)
		case evMessage:
			s.message(&m)
			t.answer(&m)
			s.done()
		case evBad:
			t.blind(s.start, "upstream's message %q: length %d, expected 4 to %d", s.head[0], uint32(s.size+4), maxMessage)
		}
	}
	return chunk
}

// passRows moves over rows that are only counted.
func (t *Tracker) passRows(chunk []byte) []byte {
	a := t.asked.first()
	if a == nil || t.failing || t.surplus > 0 || a.typ != 'E' && a.typ != 'Q' {
		return chunk
	}
	d := t.replying()
	if d != nil && (t.reply.start == none || t.reply.rows == 0 || d.wantsAll()) {
		return chunk
	}
	chunk, n := t.upstream.like('D', chunk)
	if d != nil && n > 0 {
		t.reply.rows += n
		t.reply.row = nil
	}
	return chunk
}

// async reports whether a message answers nothing.
func async(typ byte) bool { return typ == 'N' || typ == 'S' || typ == 'A' }

// maxStatus is how much of a parameter's status is looked at.
const maxStatus = 512

// replying returns the execution whose reply is coming, nil if it is no op's.
func (t *Tracker) replying() *doing {
	a := t.asked.first()
	if a == nil || t.failing || a.more == nil && !a.has(leads) {
		return nil
	}
	if a.typ == 'Q' {
		if it := a.query().current(); it != nil && !it.none() {
			return &it.doing
		}
		return nil
	}
	run := a.run()
	if a.has(leads) {
		run = t.ledTo()
	}
	if run == nil || run.none() {
		return nil
	}
	return &run.doing
}

// ledTo returns the portal of the next Execute. It is looked for once, since
// many a Describe may lead up to it.
func (t *Tracker) ledTo() *portal {
	if t.reply.run == nil {
		a, _ := t.asked.next('E')
		t.reply.run = a.run()
	}
	return t.reply.run
}

// foresee looks at the header of a message: it says where a reply begins, and
// how much of the body is wanted.
//
// A message that answers nothing lets go of what there is of a reply, which
// begins anew behind it: the op may be waiting for what its client does about
// a notice.
func (t *Tracker) foresee(typ byte) int {
	if async(typ) {
		t.reply.start = none
		if typ == 'S' {
			return maxStatus
		}
		return 0
	}
	if typ != 'Z' && t.surplus > 0 {
		t.dropStale()
	}
	a := t.asked.first()
	if a != nil && a.typ == startupPacket && typ != 'Z' {
		return t.foreseeStartup(typ)
	}
	d := t.replying()
	if d != nil && t.reply.start == none && !copyOrReady(typ) {
		t.reply.start = t.upstream.start
	}
	switch typ {
	case 'Z':
		return 1
	case 'C':
		return 64
	case 'E':
		return 1024
	case 'T', 't':
		if a != nil && (d != nil || a.typ == 'D' && a.more != nil) {
			return maxValues
		}
	case 'D':
		if d.wantsRow() && t.reply.rows == 0 || d.wantsAll() {
			return maxValues
		}
	}
	return 0
}

// copyOrReady reports whether a message is one that no reply begins with: it
// must reach the client at once, or stands behind all replies.
func copyOrReady(typ byte) bool {
	return typ == 'G' || typ == 'H' || typ == 'W' || typ == 'd' || typ == 'c' || typ == 'Z'
}

// dropStale drops a Sync from the head of the queue that upstream has
// swallowed in a copy, now that the reply of a later request is there.
func (t *Tracker) dropStale() {
	if t.failing {
		return
	}
	for a := t.asked.first(); t.surplus > 0 && a != nil && a.typ == 'S'; a = t.asked.first() {
		t.surplus--
		t.asked.pop()
	}
	t.surplus = 0 // what comes now answers something known
}

// answer acts on a whole message of upstream.
func (t *Tracker) answer(m *message) {
	switch m.typ {
	case 'S':
		t.reports(m)
	case 'N', 'A':
	case 'Z':
		t.answerReady(m)
	case 'E':
		t.answerError(m)
	default:
		if a := t.asked.first(); a == nil || t.failing || !t.take(a, m) {
			t.lost(a, m)
		}
	}
}

// lost gives up: upstream answers what has not been asked.
func (t *Tracker) lost(a *asked, m *message) {
	switch {
	case a == nil:
		t.blind(m.start, "upstream's message %q: nothing was asked", m.typ)
	case t.failing:
		t.blind(m.start, "upstream's message %q: expected ReadyForQuery after an error", m.typ)
	default:
		t.blind(m.start, "upstream's message %q: expected the reply to %q", m.typ, a.typ)
	}
}

// take matches a message with the head of the queue.
func (t *Tracker) take(a *asked, m *message) bool {
	switch a.typ {
	case startupPacket:
		t.takeStartup(m)
		return true
	case 'Q':
		return t.takeQuery(a, m)
	case 'P':
		return m.typ == '1' && t.takeParse(a)
	case 'B':
		return t.takeOne(m.typ == '2')
	case 'C':
		if m.typ == '3' {
			t.confirm(a.change())
		}
		return t.takeOne(m.typ == '3')
	case 'D':
		return t.takeDescription(a, m)
	case 'E':
		return t.takeExecute(a, m)
	case 'F':
		return m.typ == 'V'
	}
	return false
}

// takeParse notes that upstream has a statement. Of the unnamed ones it is known
// which it has if no other was asked for since.
func (t *Tracker) takeParse(a *asked) bool {
	t.confirm(a.change())
	switch a.n {
	case 0:
	case t.unnamed:
		t.live = t.statements.unnamed
	default:
		t.live = nil
	}
	return t.takeOne(true)
}

func (t *Tracker) takeOne(ok bool) bool {
	if ok {
		t.asked.pop()
	}
	return ok
}

// takeQuery takes a message of a Query's reply.
func (t *Tracker) takeQuery(a *asked, m *message) bool {
	q := a.query()
	it := q.current()
	ours := it != nil && !it.none()
	switch m.typ {
	case 'T':
		if ours {
			t.reply.columns = describe(m.body)
		}
	case 'D':
		if ours {
			t.takeRow(m, &it.doing, it.tmpl, t.reply.columns, formats{})
		}
	case 'C':
		if it == nil {
			break
		}
		t.confirm(it.change)
		q.at++
		if ours {
			t.complete(&it.doing, it.tmpl, m)
		}
		t.carriedOut(it.tmpl)
	case 'G', 'H', 'W', 'd', 'c', 'I':
	default:
		return false
	}
	return true
}

// takeRow counts a row, keeps the first, and lets the locks see it.
func (t *Tracker) takeRow(m *message, d *doing, tm *template, columns []column, f formats) {
	r := &t.reply
	r.rows++
	d.sees(m.body, f)
	if r.rows > 1 || !d.wantsRow() {
		r.row = nil
		return
	}
	if !f.unknown {
		r.row = row(t.opt.Hash, m.body, columns, f)
		nameCells(r.row, tm.shape.Columns)
	}
}

// nameCells gives cells the names of the columns that were selected, not their
// aliases. An expression has none. Those between what stands before the first * and
// what stands behind the last keep the names that the server gave them, if they are
// all the table's.
func nameCells(cells []lock.Cell, columns []string) {
	first, last := slices.IndexFunc(columns, isSeveral), len(columns)
	if first < 0 {
		first = len(columns)
	}
	for last > first && !isSeveral(columns[last-1]) {
		last--
	}
	stars := first < last && !slices.ContainsFunc(columns[first:last], func(c string) bool { return c != "*" })
	behind := len(cells) - (len(columns) - last) // of what stands behind the last *
	if len(cells) == maxColumns && last < len(columns) && first < last {
		behind, stars = len(cells), false // there may have been more
	}
	for i := range cells {
		switch {
		case i < first:
			cells[i].Column = ownName(columns[i])
		case i >= behind:
			cells[i].Column = ownName(columns[i-behind+last])
		case !stars:
			cells[i].Column = ""
		}
	}
}

// ownName returns the name of a result column, "" for an expression.
func ownName(column string) string {
	if column == "?" {
		return ""
	}
	return column
}

// isSeveral reports whether a result column may be any number of them.
func isSeveral(column string) bool { return column == "*" || column == otherFields }

// complete fills in the outcome of an execution that upstream has carried out.
func (t *Tracker) complete(d *doing, tm *template, m *message) {
	t.settleLocks(d, t.affected(m))
	if op := d.op; op != nil {
		op.Outcome, op.Rows = lock.Done, t.reply.rows
		if t.reply.rows == 1 && d.returns() {
			op.Row = t.reply.row
		}
		if m.typ == 'C' {
			tagged(op, tm, m.body)
		}
	}
	t.finish(d, tm, m)
}

// affected returns how many rows a statement returned, or changed.
func (t *Tracker) affected(m *message) int64 {
	if m.typ == 'C' {
		if _, rows, counted := tag(m.body); counted {
			return rows
		}
	}
	return t.reply.rows
}

// tagged takes what a CommandComplete says.
func tagged(op *lock.Op, tm *template, body []byte) {
	word, rows, counted := tag(body)
	if counted {
		op.Rows = rows
	}
	if tm.indirect && op.Rows == 0 || tm.indirect && !counted {
		op.Outcome = lock.Unknown // what was written is not told
	}
	if op.Kind != lock.Commit {
		return
	}
	if string(word) == "ROLLBACK" {
		op.Outcome = lock.RolledBack
	} else if tm.twoPhase {
		op.Outcome = lock.Unknown // decided by COMMIT PREPARED, in any session
	}
}
