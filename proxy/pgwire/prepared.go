package pgwire

import "github.com/lockfaultd/lockfaultd/lock"

// A statement is a prepared statement of the session. What Describe tells of
// it is remembered.
type statement struct {
	name    string
	tmpl    *template
	oids    []uint32 // of parameters
	columns []column
}

// bare reports whether st stands for all statements of a text that is no op.
func (st *statement) bare() bool { return st == nil || st.tmpl.bare.stmt == st }

// A portal is a statement with its parameters, fixed when it was bound.
type portal struct {
	stmt    *statement
	sql     *lock.Statement
	binding bound
	formats formats
	ran     bool // later Executes only fetch more of it
}

// An undo takes back what a request did to the prepared statements, if
// upstream did not carry it out.
type undo struct {
	name     string
	was, now *statement
	all      *store[*statement]
}

// register names a statement, or forgets the name if st is nil, and returns
// how to undo that. Nothing is undone for the unnamed statement: Postgres
// drops it first.
func (t *Tracker) register(name []byte, st *statement) *undo {
	was, had := t.statements.get(name)
	if st == nil && !had {
		return nil
	}
	key := string(name)
	if st == nil {
		t.statements.drop(key)
	} else {
		t.statements.set(key, st)
	}
	if key == "" {
		return nil
	}
	return &undo{name: key, was: was, now: st}
}

// forget drops all prepared statements.
func (t *Tracker) forget() *undo {
	all := t.statements
	t.statements = store[*statement]{entries: maxStatements, bytes: maxNames}
	return &undo{all: &all}
}

// revert undoes u, unless something later has taken the name.
func (t *Tracker) revert(u *undo) {
	switch {
	case u == nil:
	case u.all != nil:
		u.all.merge(&t.statements)
		t.statements = *u.all
	default:
		if now, _ := t.statements.get([]byte(u.name)); now != u.now {
			return
		}
		if u.was == nil {
			t.statements.drop(u.name)
		} else {
			t.statements.set(u.name, u.was)
		}
	}
}

// affect does at once what a statement will do to the prepared statements.
func (t *Tracker) affect(tm *template) *undo {
	switch tm.effect {
	case clearAll:
		return t.forget()
	case deallocate:
		return t.register([]byte(tm.name), nil)
	case prepare:
		return t.register([]byte(tm.name), &statement{name: tm.name, tmpl: tm.inner})
	}
	return nil
}

// resolve returns what is run: for EXECUTE the statement that it names, and
// its arguments. nil if that is not known.
func (t *Tracker) resolve(tm *template, from binding) (*template, binding) {
	if tm.effect != run {
		return tm, from
	}
	st, ok := t.statements.get([]byte(tm.name))
	if !ok {
		return nil, nil
	}
	args := make(bound, len(tm.args))
	for i, a := range tm.args {
		args[i] = a.of(t.opt.Hash, from)
	}
	return st.tmpl, args
}
