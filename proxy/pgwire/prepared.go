package pgwire

import "github.com/lockfaultd/lockfaultd/lock"

// A statement is a prepared statement of the session. What Describe tells of
// it is remembered.
type statement struct {
	tmpl    *template
	oids    []uint32 // of parameters
	columns []column
}

// bare reports whether st stands for all statements of a text that is no op.
func (st *statement) bare() bool { return st == nil || st.tmpl.bare.stmt == st }

// A portal is a statement with its parameters, fixed when it was bound.
type portal struct {
	detail
	op      *lock.Op // once executed, until it is answered
	sql     *lock.Statement
	binding bound
	formats formats
	ran     bool // later Executes only fetch more of it
}

// shared reports whether p stands for all portals of a text.
func (p *portal) shared() bool { return p == p.stmt.tmpl.bare }

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

// An undo takes back what a request did to the prepared statements, if
// upstream did not carry it out.
type undo struct {
	more     detail
	name     string
	was, now *statement
	all      *store[*statement]
	taken    bool // the name was another's: nothing was done, since upstream will refuse it
}

// detail returns what a request has of which u takes back what it did.
func (u *undo) detail() *detail {
	if u == nil {
		return nil
	}
	u.more.undo, u.more.weight = u, 1
	return &u.more
}

// register names a statement, or forgets the name if st is nil, and returns
// how to undo that. Nothing is undone for the unnamed statement: Postgres
// drops it first.
func (t *Tracker) register(name []byte, st *statement) *undo {
	if len(name) == 0 {
		t.statements.unnamed = st
		return nil
	}
	was := t.statements.get(name)
	if st == nil && was == nil {
		return nil
	}
	if st == nil {
		t.statements.drop(name)
	} else {
		t.statements.set(name, st)
	}
	return &undo{name: string(name), was: was, now: st}
}

// parse names a statement that the client has asked for. A name that is taken
// stays what it is.
func (t *Tracker) parse(name []byte, st *statement) *undo {
	if was := t.statements.get(name); len(name) > 0 && was != nil {
		return &undo{name: string(name), was: was, now: st, taken: true}
	}
	return t.register(name, st)
}

// parsed notes that upstream has given a name to a statement, which it did not
// refuse after all.
func (t *Tracker) parsed(u *undo) {
	if u != nil && u.taken && u.now != nil && t.statements.get([]byte(u.name)) == u.was {
		t.statements.set([]byte(u.name), u.now)
	}
}

// forget drops all prepared statements that have a name.
func (t *Tracker) forget() *undo {
	all := t.statements.named
	t.statements.named = sessionStore[statement]()
	return &undo{all: &all}
}

// revert undoes u, unless something later has taken the name.
func (t *Tracker) revert(u *undo) {
	switch {
	case u == nil || u.taken:
	case u.all != nil:
		u.all.merge(&t.statements.named)
		t.statements.named = *u.all
	default:
		name := []byte(u.name)
		if t.statements.get(name) != u.now {
			return
		}
		if u.was == nil {
			t.statements.drop(name)
		} else {
			t.statements.set(name, u.was)
		}
	}
}

// affect does at once what a statement will do to the prepared statements.
func (t *Tracker) affect(tm *template) *undo {
	switch {
	case tm.effect == clearAll:
		return t.forget()
	case tm.name == "":
	case tm.effect == deallocate:
		return t.register([]byte(tm.name), nil)
	case tm.effect == prepare:
		return t.register([]byte(tm.name), &statement{tmpl: tm.inner})
	}
	return nil
}

// resolve returns what is run: for EXECUTE the statement that it names, and
// its arguments. nil if that is not known.
func (t *Tracker) resolve(tm *template, from binding) (*template, binding) {
	if tm.effect != run {
		return tm, from
	}
	st := t.statements.get([]byte(tm.name))
	if st == nil || tm.name == "" {
		return nil, nil
	}
	args := make(bound, len(tm.args))
	for i, a := range tm.args {
		args[i] = a.of(t.opt.Hash, from)
	}
	return st.tmpl, args
}
