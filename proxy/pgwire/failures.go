package pgwire

import "github.com/lockfaultd/lockfaultd/lock"

// answerError takes an ErrorResponse. Without a request it is upstream's last
// word and changes nothing.
func (t *Tracker) answerError(m *message) {
	a := t.asked.first()
	if a == nil || t.failing {
		return
	}
	if a.typ == startupPacket {
		if t.opt.Refused != nil {
			t.opt.Refused(sqlState(m.body), errorField(m.body, 'M'))
		}
		return
	}
	t.tx.failed = true
	t.doubtPath()
	state := sqlState(m.body)
	switch a.typ {
	case 'Q':
		t.failQuery(a, m, state)
	case 'S', 'F':
	default:
		d := t.replying()
		t.failing = true
		if a.typ == 'P' && a.n != 0 {
			t.live = nil // Postgres drops it before it reads the text
		}
		if a.has(copying) {
			t.surplus += 2
		}
		if a.has(mayCommit) {
			t.runsCode()
		}
		if d != nil {
			t.fail(d, m, state)
		}
	}
}

// failQuery ends a Query: the statement that upstream was at has failed, and
// those behind it do not run.
func (t *Tracker) failQuery(a *asked, m *message, state string) {
	q := a.query()
	if q == nil {
		return
	}
	t.revertItems(q)
	left := q.items[q.at:]
	q.at = len(q.items)
	for i := range left {
		t.fail(&left[i].doing, m, state)
		state = skipped
	}
}

// fail says of an execution that it failed.
func (t *Tracker) fail(d *doing, m *message, state string) {
	if t.phase != running || d.none() {
		return
	}
	d.failLocks(state)
	if op := d.op; op != nil {
		op.Outcome, op.Err = lock.Failed, state
		if hidden(op.Verb) && state != skipped && !t.tx.open {
			op.Outcome = lock.Unknown // what it committed before it failed stays
		}
	}
	t.finish(d, nil, m)
}

// answerReady takes a ReadyForQuery: it ends a Query, a FunctionCall, a Sync,
// or the startup, and what an error made upstream skip.
func (t *Tracker) answerReady(m *message) {
	a := t.asked.first()
	switch {
	case t.failing:
		t.skip(m)
	case a == nil:
		t.lost(nil, m)
	case a.typ == startupPacket:
		t.upstream.buf = nil // it may hold the key for cancelling
		t.asked.pop()
	case a.typ == 'Q' || a.typ == 'S' || a.typ == 'F':
		t.unask(a)
		t.asked.pop()
	default:
		t.lost(a, m)
	}
	if t.phase != running {
		return
	}
	t.reply = reply{start: none}
	if len(m.body) > 0 {
		t.ready(m, m.body[0])
	}
}

// skip ends a segment in which something failed: what stood behind it did not
// happen.
func (t *Tracker) skip(m *message) {
	sync, n := t.asked.next('S')
	if sync == nil {
		t.blind(m.start, "upstream's message %q: no Sync was sent after an error, expected none", m.typ)
		return
	}
	t.failing = false
	for a := range t.asked.ahead(n) {
		t.unask(a)
	}
	for range n {
		if t.skipOps(t.asked.first(), m); t.phase != running {
			return
		}
		t.asked.pop()
	}
	t.asked.pop()
}

// unask takes back what a request did to the prepared statements.
func (t *Tracker) unask(a *asked) {
	t.revert(a.change())
	if a.typ == 'P' && a.n != 0 && a.n == t.unnamed {
		t.statements.unnamed = t.live
	}
	if q := a.query(); q != nil {
		t.revertItems(q)
	}
}

// revertItems takes back what the statements of a Query did, from the one that
// upstream is at on.
func (t *Tracker) revertItems(q *query) {
	for i := len(q.items) - 1; i >= q.at; i-- {
		t.revert(q.items[i].change)
	}
}

// skipOps fails the ops of a request that upstream passed over.
func (t *Tracker) skipOps(a *asked, m *message) {
	if run := a.run(); run != nil {
		if run.pending() {
			t.fail(&run.doing, m, skipped)
		}
		run.doing = doing{}
	}
	q := a.query()
	if q == nil {
		return
	}
	for i := range q.items {
		t.fail(&q.items[i].doing, m, skipped)
	}
}
