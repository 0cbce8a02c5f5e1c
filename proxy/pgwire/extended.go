package pgwire

import (
	"bytes"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// askParse takes Parse: name, text and parameter types.
func (t *Tracker) askParse(m *message) {
	c := cursor{b: m.body}
	name := c.text()
	prefix := c.b
	text := c.text()
	cut := c.bad && m.cut
	if cut {
		text = prefix
	}
	var st *statement
	if (!c.bad || cut) && len(name) <= maxName {
		st = t.prepared(text, cut)
	}
	if st != nil && !st.bare() {
		st.oids = c.oids()
	}
	a := asked{typ: 'P'}
	if len(name) <= maxName {
		a.more = t.parse(name, st).detail()
	}
	if len(name) == 0 {
		a.n = t.unnamed
	}
	t.ask(a, m)
	t.group = group{start: m.start, length: 1, stmt: st, matters: st != nil && t.matters(st.tmpl)}
}

// prepared returns the statement of a text, nil if it is not one statement.
func (t *Tracker) prepared(text []byte, cut bool) *statement {
	list := t.opt.Statements.read(t.opt.Hash, text, cut)
	if len(list) != 1 {
		return nil
	}
	tm := &list[0]
	if tm.plain() {
		return tm.bare.stmt
	}
	return &statement{tmpl: tm, trace: traceOf(text)}
}

// askBind takes Bind: portal, statement, parameters and formats.
func (t *Tracker) askBind(m *message) {
	c := cursor{b: m.body}
	name := c.text()
	named := !c.bad && len(name) <= maxName
	of := c.text()
	var st *statement
	var p *portal
	matters := false
	if named {
		if !c.bad {
			st = t.statement(of)
		}
		if st != nil {
			matters = t.matters(st.tmpl)
			p = t.bind(st, &c, matters && !(m.cut && len(m.body) <= keepNames))
		}
		if p == nil {
			t.portals.drop(name)
		} else {
			t.portals.set(name, p)
		}
	}
	t.ask(asked{typ: 'B'}, m)
	if g := &t.group; g.start != none && g.portal == nil && g.stmt != nil && g.stmt == st {
		g.length++
	} else {
		t.group = group{start: m.start, length: 1, stmt: st, matters: matters}
	}
	t.group.portal = p
}

// bind makes a portal. A statement that is no op has one for all, and so has a
// SELECT while it does not matter.
func (t *Tracker) bind(st *statement, c *cursor, matters bool) *portal {
	if st.bare() || !matters && st.tmpl.kind == lock.Read && st.tmpl.move == nil {
		return st.tmpl.bare
	}
	p := &portal{detail: detail{stmt: st}}
	again := *c
	p.binding = c.parameters(t.opt.Hash, st.oids, int(st.tmpl.params))
	if t.timely(st.tmpl) {
		p.timed = &timed{p.binding, again.moments(st.oids, int(st.tmpl.params))}
	}
	p.formats = c.formats().keep()
	if c.bad {
		p.formats.unknown = true
	}
	p.sql = st.tmpl.fill(p.binding)
	p.sql.Trace = st.trace
	p.weight = weighs(p.sql, p.binding) + int32(len(st.tmpl.holds))
	return p
}

// timely reports whether it matters what the parameters of a statement say of
// time.
func (t *Tracker) timely(tm *template) bool {
	return tm.lease != nil || tm.kind == lock.Write && t.opt.Statements.leases.of(tm.table) != nil
}

// askDescribe takes Describe of a statement or of a portal: what upstream
// tells of it belongs to the statement.
func (t *Tracker) askDescribe(m *message) {
	a := asked{typ: 'D'}
	kind, name := kindAndName(m.body)
	switch kind {
	case 'S':
		if st := t.statement(name); !st.bare() {
			a.more = &detail{stmt: st, weight: 1}
		}
	case 'P':
		if p := t.portals.get(name); p != nil && !p.stmt.bare() {
			a.more = &p.detail
		}
	}
	if t.group.start != none {
		t.group.length++
	}
	t.ask(a, m)
}

// askExecute takes Execute: this is where an op is made.
func (t *Tracker) askExecute(m *message) {
	c := cursor{b: m.body}
	p := t.portals.get(c.text())
	a := asked{typ: 'E'}
	g := t.group
	t.ungroup()
	begun := t.begun()
	t.piped = true
	switch {
	case p == nil:
	case c.bad || p.ran || p.shared() && p.stmt.tmpl.kind != "":
		a.fetch(p)
	default:
		t.execute(p, &a)
	}
	t.ask(a, m)
	run := a.run()
	if run == nil || t.phase == opaque {
		return
	}
	start := m.start
	if g.start != none && g.portal == p && m.end-g.start <= wire.MaxHeld {
		start = g.start
		t.claim(g.length)
	}
	t.markAll(&run.doing, begun, start, m.end)
}

// fetch notes what an Execute does that makes no op of its portal.
func (a *asked) fetch(p *portal) {
	tm := p.stmt.tmpl
	if hidden(tm.verb) {
		a.is |= mayCommit
	}
	if tm.effect.points() || tm.unread {
		a.more = &detail{stmt: p.stmt, weight: 1}
	}
}

// execute makes the op of a portal and does what it does to the session.
func (t *Tracker) execute(p *portal, a *asked) {
	if !p.shared() {
		p.ran = true
	}
	tm := p.stmt.tmpl
	from := binding(p.binding)
	if p.timed != nil {
		from = p.timed
	}
	change := t.affect(tm, from)
	inner, args := t.resolve(tm, from)
	t.runs(tm, inner, args)
	var d doing
	if inner == tm {
		d = t.do(tm, from, p.sql)
	} else if inner != nil {
		d = t.do(inner, args, inner.fill(args))
	}
	if d.none() {
		if a.fetch(p); change != nil {
			a.more = change.detail()
		}
		return
	}
	run := p
	if inner != tm || p.shared() {
		run = &portal{detail: detail{stmt: &statement{tmpl: inner}, weight: d.burden()}, formats: p.formats}
	}
	run.run, run.change, run.doing = run, change, d
	a.more = &run.detail
	if hidden(inner.verb) {
		a.is |= mayCommit
	}
}

// claim says of the n messages before the Execute that their replies belong to
// its op.
func (t *Tracker) claim(n int) {
	for a := range t.asked.recent(n + 1) {
		if a.typ != 'E' {
			a.is |= leads
		}
	}
}

// askClose takes Close of a statement or of a portal.
func (t *Tracker) askClose(m *message) {
	a := asked{typ: 'C'}
	kind, name := kindAndName(m.body)
	switch kind {
	case 'S':
		a.more = t.closes(name).detail()
	case 'P':
		t.portals.drop(name)
	}
	t.ask(a, m)
}

func kindAndName(body []byte) (byte, []byte) {
	if len(body) < 2 {
		return 0, nil
	}
	name, _, whole := bytes.Cut(body[1:], []byte{0})
	if !whole {
		return 0, nil
	}
	return body[0], name
}

// takeDescription remembers what Describe tells of a statement.
func (t *Tracker) takeDescription(a *asked, m *message) bool {
	switch m.typ {
	case 't':
		if st := a.statement(); st != nil {
			c := cursor{b: m.body}
			st.oids = c.oids()
		}
		return true
	case 'T':
		if st := a.statement(); st != nil {
			st.columns = describe(m.body)
		}
		return t.takeOne(true)
	}
	return t.takeOne(m.typ == 'n')
}

// takeExecute takes a message of an Execute's reply.
func (t *Tracker) takeExecute(a *asked, m *message) bool {
	switch m.typ {
	case 'D':
		if d := t.replying(); d != nil {
			p := a.run()
			t.takeRow(m, d, p.stmt.tmpl, p.stmt.columns, p.formats)
		}
	case 'G', 'H':
		a.is &^= copying
		if m.typ == 'G' {
			a.is |= copying
		}
		t.reply.start = none // the client must act next
	case 'd', 'c':
	case 'C', 's', 'I':
		t.executed(*a, m)
	default:
		return false
	}
	return true
}

// executed takes the end of an Execute's reply.
func (t *Tracker) executed(a asked, m *message) {
	t.asked.pop()
	if a.has(copying) {
		t.dropSwallowed()
	}
	if run := a.run(); run != nil {
		t.complete(&run.doing, run.stmt.tmpl, m)
		run.doing = doing{}
	}
	t.confirm(a.change())
	if m.typ != 'C' {
		return
	}
	if st := a.statement(); st != nil {
		t.carriedOut(st.tmpl)
	}
	if a.has(mayCommit) {
		t.runsCode()
	}
}

// dropSwallowed drops the Syncs that upstream has read as part of a copy.
func (t *Tracker) dropSwallowed() {
	for a := t.asked.first(); a != nil && a.typ == 'S' && a.has(optional); a = t.asked.first() {
		t.asked.pop()
	}
}
