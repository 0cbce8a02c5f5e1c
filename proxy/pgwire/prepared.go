package pgwire

import "github.com/lockfaultd/lockfaultd/lock"

// A statement is a prepared statement of the session. What Describe tells of
// it is remembered.
type statement struct {
	tmpl    *template
	oids    []uint32 // of parameters
	trace   string   // that its text names
	columns []column
}

// bare reports whether st stands for all statements of a text that is no op.
func (st *statement) bare() bool { return st == nil || st.tmpl.bare.stmt == st }

// weighs returns about how many bytes the statement takes, its text's sharers
// left aside.
func (st *statement) weighs() int { return templateBytes + st.tmpl.weight() }

// A portal is a statement with its parameters, fixed when it was bound.
type portal struct {
	detail
	doing   // once executed, until it is answered
	sql     *lock.Statement
	binding bound
	timed   *timed // the same, if it may matter what the parameters say of time
	formats formats
	ran     bool // later Executes only fetch more of it
}

// shared reports whether p stands for all portals of a text.
func (p *portal) shared() bool { return p == p.stmt.tmpl.bare }

// weighs returns about how many bytes the portal takes that others do not share.
func (p *portal) weighs() int {
	return templateBytes + slotBytes*(len(p.binding)+len(p.sql.Set)+len(p.sql.Where)+len(p.stmt.tmpl.holds))
}

// names are the prepared statements or the portals of a session.
type names[V any] struct {
	unnamed *V
	named   store[*V]
}

// get returns what has a name, nil if nothing has.
func (n *names[V]) get(name []byte) *V {
	if len(name) == 0 {
		return n.unnamed
	}
	v, _ := n.named.get(name)
	return v
}

func (n *names[V]) set(name []byte, v *V) {
	if len(name) == 0 {
		n.unnamed = v
		return
	}
	n.named.set(string(name), v)
}

func (n *names[V]) drop(name []byte) {
	if n.get(name) == nil {
		return
	}
	if len(name) == 0 {
		n.unnamed = nil
		return
	}
	n.named.drop(string(name))
}

func (n *names[V]) clear() {
	n.unnamed = nil
	n.named.clear()
}

// A change is what a request does to the prepared statements that have names,
// until upstream has carried it out or has not. The names themselves follow
// what upstream has carried out.
type change struct {
	more           detail
	name           string
	now            *statement // nil: the name is given up, or its text is not known
	names          bool       // gives a name, which upstream refuses if it is taken
	all            bool       // gives up all names
	segment        uint64     // which one of the client it is in
	earlier, later *change    // of the same name
}

// detail returns what a request has that makes a change.
func (c *change) detail() *detail {
	if c == nil {
		return nil
	}
	c.more.change, c.more.weight = c, 1
	return &c.more
}

// statement returns what a request that is made now will find under a name.
//
// Within its segment a Parse has been carried out: what follows a refused one
// is skipped. Behind that one is believed if nothing has the name, and so it is
// if the name is given up before. If the name is to be given by two, only
// upstream knows by which.
func (t *Tracker) statement(name []byte) *statement {
	if len(name) == 0 {
		return t.statements.unnamed
	}
	c := t.changes[string(name)]
	if c == nil || c.names && c.segment != t.segment && c.earlier == nil {
		if st := t.confirmed(name); st != nil || c == nil {
			return st
		}
	}
	if c.names && c.segment != t.segment && c.earlier != nil && c.earlier.names {
		return nil
	}
	return c.now
}

// confirmed returns what upstream has under a name, once it has given up what
// it was told to.
func (t *Tracker) confirmed(name []byte) *statement {
	if t.forgets > 0 {
		return nil
	}
	return t.statements.get(name)
}

// change notes what a request does to a name, nil if it does nothing.
func (t *Tracker) change(name []byte, st *statement, names bool) *change {
	earlier := t.changes[string(name)]
	if st == nil && earlier == nil && t.confirmed(name) == nil {
		return nil
	}
	c := &change{name: string(name), now: st, names: names, segment: t.segment, earlier: earlier}
	if earlier != nil {
		earlier.later = c
	}
	if t.changes == nil {
		t.changes = make(map[string]*change)
	}
	t.changes[c.name] = c
	return c
}

// parse notes that the client gives a name to a statement. Nothing is taken
// back for the unnamed one but by [Tracker.unask].
func (t *Tracker) parse(name []byte, st *statement) *change {
	if len(name) > 0 {
		return t.change(name, st, true)
	}
	t.rename(st)
	return nil
}

// rename replaces the unnamed statement.
func (t *Tracker) rename(st *statement) {
	t.unnamed = max(1, t.unnamed+1)
	t.statements.unnamed = st
}

// closes notes that the client gives up a name.
func (t *Tracker) closes(name []byte) *change {
	if len(name) > 0 {
		return t.change(name, nil, false)
	}
	t.rename(nil)
	t.live = nil
	return nil
}

// forget gives up all names.
func (t *Tracker) forget() *change {
	t.changes = nil
	t.forgets++
	return &change{all: true}
}

// confirm follows a change that upstream has carried out.
func (t *Tracker) confirm(c *change) {
	switch {
	case c == nil:
		return
	case c.all:
		t.statements.named.clear()
	case c.now == nil:
		t.statements.drop([]byte(c.name))
	default:
		t.statements.set([]byte(c.name), c.now)
	}
	t.revert(c)
}

// revert strikes a change out.
func (t *Tracker) revert(c *change) {
	switch {
	case c == nil:
		return
	case c.all:
		t.forgets--
		return
	case t.changes[c.name] == c && c.earlier == nil:
		delete(t.changes, c.name)
	case t.changes[c.name] == c:
		t.changes[c.name] = c.earlier
	}
	if c.earlier != nil {
		c.earlier.later = c.later
	}
	if c.later != nil {
		c.later.earlier = c.earlier
	}
	c.earlier, c.later = nil, nil
}

// affect notes what a statement will do to the prepared statements, and to the search path.
func (t *Tracker) affect(tm *template, from binding) *change {
	t.moves(tm, from)
	switch {
	case tm.effect == isolate:
		t.tx.isolate(tm.iso)
	case tm.effect == clearAll:
		if tm.verb == "DISCARD" {
			t.tx.isolate(isolation{of: ofStart})
		}
		return t.forget()
	case tm.name == "":
	case tm.effect == deallocate:
		return t.closes([]byte(tm.name))
	case tm.effect == prepare:
		return t.change([]byte(tm.name), &statement{tmpl: tm.inner}, true)
	}
	return nil
}

// runs follows what an EXECUTE does to the search path.
func (t *Tracker) runs(tm, inner *template, args binding) {
	if inner != nil && inner != tm {
		t.moves(inner, args)
	}
}

// resolve returns what is run: for EXECUTE the statement that it names, and
// its arguments. nil if that is not known.
func (t *Tracker) resolve(tm *template, from binding) (*template, binding) {
	if tm.effect != run {
		return tm, from
	}
	st := t.statement([]byte(tm.name))
	if st == nil || tm.name == "" {
		return nil, nil
	}
	args := timed{make(bound, len(tm.args)), make([]moment, len(tm.args))}
	for i, a := range tm.args {
		args.bound[i], args.moments[i] = a.of(from), a.moment(from)
	}
	return st.tmpl, args
}
