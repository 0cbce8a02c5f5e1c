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
	state := sqlState(m.body)
	switch a.typ {
	case 'Q':
		t.failQuery(a, m, state)
	case 'S', 'F':
	default:
		t.failing = true
		if a.copying {
			t.surplus += 2
		}
		if a.typ == 'E' && a.portal != nil {
			t.runsCode(a.portal.stmt.tmpl)
		}
		if a.op != nil {
			t.fail(a.op, m, state)
		}
	}
}

// failQuery ends a Query: the statement that upstream was at has failed, and
// those behind it do not run.
func (t *Tracker) failQuery(a *asked, m *message, state string) {
	if a.query == nil {
		return
	}
	left := a.query.items[a.query.at:]
	a.query.at = len(a.query.items)
	for i := len(left) - 1; i >= 0; i-- {
		t.revert(left[i].undo)
	}
	for _, it := range left {
		if it.op != nil {
			t.fail(it.op, m, state)
		}
		state = skipped
	}
}

func (t *Tracker) fail(op *lock.Op, m *message, state string) {
	if t.phase != running {
		return
	}
	op.Outcome, op.Err = lock.Failed, state
	if hidden(op.Verb) && state != skipped && !t.tx.open {
		op.Outcome = lock.Unknown // what it committed before it failed stays
	}
	t.finish(op, nil, m)
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
	list := t.asked.segment()
	if list == nil {
		t.blind(m.start, "upstream's message %q: no Sync was sent after an error, expected none", m.typ)
		return
	}
	t.failing = false
	for i := len(list) - 1; i >= 0; i-- {
		t.unask(&list[i])
	}
	for i := range list {
		t.skipOps(&list[i], m)
	}
	if t.phase != running {
		return
	}
	t.asked.drop(len(list))
}

// unask takes back what a request did to the prepared statements.
func (t *Tracker) unask(a *asked) {
	t.revert(a.undo)
	if a.typ == 'P' && a.stmt != nil && t.statements.unnamed == a.stmt {
		t.statements.unnamed = nil
	}
	if a.query != nil {
		for i := len(a.query.items) - 1; i >= 0; i-- {
			t.revert(a.query.items[i].undo)
		}
	}
}

// skipOps fails the ops of a request that upstream passed over.
func (t *Tracker) skipOps(a *asked, m *message) {
	if a.op != nil && a.op.Outcome == lock.Pending {
		t.fail(a.op, m, skipped)
	}
	if a.query == nil {
		return
	}
	for _, it := range a.query.items {
		if it.op != nil {
			t.fail(it.op, m, skipped)
		}
	}
}
