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
	a := asked{typ: 'P', stmt: st}
	if len(name) <= maxName {
		a.undo = t.parse(name, st)
	}
	t.ask(a, m)
	t.group = group{start: m.start, length: 1, stmt: st, matters: st != nil && t.matters(st.tmpl)}
}

// prepared returns the statement of a text, nil if it is not one statement.
func (t *Tracker) prepared(text []byte, cut bool) *statement {
	list := t.opt.Statements.read(text, cut)
	if len(list) != 1 {
		return nil
	}
	tm := &list[0]
	if tm.plain() {
		return tm.bare.stmt
	}
	return &statement{tmpl: tm}
}

// askBind takes Bind: portal, statement, parameters and formats.
func (t *Tracker) askBind(m *message) {
	c := cursor{b: m.body}
	name, of := c.text(), c.text()
	var st *statement
	var p *portal
	matters := false
	if !c.bad && len(name) <= maxName {
		if st = t.statements.get(of); st != nil {
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
	if st.bare() || !matters && st.tmpl.kind == lock.Read {
		return st.tmpl.bare
	}
	p := &portal{stmt: st, binding: c.parameters(t.opt.Hash, st.oids, st.tmpl.params())}
	p.formats = c.formats().keep()
	if c.bad {
		p.formats.unknown = true
	}
	p.sql = st.tmpl.fill(t.opt.Hash, p.binding)
	return p
}

// askDescribe takes Describe of a statement or of a portal: what upstream
// tells of it belongs to the statement.
func (t *Tracker) askDescribe(m *message) {
	a := asked{typ: 'D'}
	kind, name := kindAndName(m.body)
	switch kind {
	case 'S':
		a.stmt = t.statements.get(name)
	case 'P':
		if p := t.portals.get(name); p != nil {
			a.stmt = p.stmt
		}
	}
	if a.stmt.bare() {
		a.stmt = nil
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
	a := asked{typ: 'E', portal: p}
	g := t.group
	t.ungroup()
	t.piped = true
	if p == nil || c.bad || p.ran || p.shared() && p.stmt.tmpl.kind != "" {
		t.ask(a, m)
		return
	}
	if !p.shared() {
		p.ran = true
	}
	t.execute(p, &a)
	t.ask(a, m)
	if a.op == nil || t.phase == opaque {
		return
	}
	start := m.start
	if g.start != none && g.portal == p && m.end-g.start <= wire.MaxHeld {
		start = g.start
		t.claim(g.length, a)
	}
	t.mark(a.op, start, m.end)
}

// execute makes the op of a portal and does what it does to the session.
func (t *Tracker) execute(p *portal, a *asked) {
	tm := p.stmt.tmpl
	a.undo = t.affect(tm)
	sql := p.sql
	inner, args := t.resolve(tm, p.binding)
	if inner == nil || !t.matters(inner) {
		return
	}
	if inner != tm {
		sql = inner.fill(t.opt.Hash, args)
		a.portal = &portal{stmt: &statement{tmpl: inner}, formats: p.formats}
	}
	a.op = t.op(inner, sql)
}

// claim says of the n messages before the Execute that their replies belong to
// its op.
func (t *Tracker) claim(n int, a asked) {
	for i := 1; i <= n; i++ {
		if b := t.asked.last(i); b != nil {
			b.op, b.portal = a.op, a.portal
		}
	}
}

// askClose takes Close of a statement or of a portal.
func (t *Tracker) askClose(m *message) {
	a := asked{typ: 'C'}
	kind, name := kindAndName(m.body)
	switch kind {
	case 'S':
		a.undo = t.register(name, nil)
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
