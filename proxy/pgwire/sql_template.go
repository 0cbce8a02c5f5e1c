package pgwire

import (
	"iter"

	"github.com/lockfaultd/lockfaultd/lock"
)

// effect is what a statement does to the session's prepared statements and
// savepoints.
type effect uint8

const (
	noEffect     effect = iota
	clearAll            // DEALLOCATE ALL, DISCARD ALL
	deallocate          // DEALLOCATE name
	prepare             // PREPARE name AS inner
	run                 // EXECUTE name(args)
	setPoint            // SAVEPOINT name
	releasePoint        // RELEASE name
	isolate             // SET TRANSACTION and kin
)

// maxSlots bounds what is kept of one statement's assignments, conditions or
// columns.
const maxSlots = 256

// A template is one statement of a SQL text, read. It is shared by sessions
// and not changed once it is in the cache.
type template struct {
	kind  lock.Kind // "" if only a rule can make an op of it
	verb  string
	shape lock.Statement // without Set and Where
	set   []slot
	where []slot
	holds []hold  // what it does to locks
	rows  rowLock // what it asks for behind FOR
	lease *lease  // what it does to a lease, whatever table it is of; nil: nothing

	skips     bool // it takes rows that nobody has locked
	deeps     bool // which rows it changes, a subquery says
	unread    bool // parts of it were not looked at, and may do anything
	maybe     bool // runs code that cannot be seen, which may write
	indirect  bool // what the reply counts is not what was written
	system    bool // reads a system catalog: never an op
	chain     bool // COMMIT AND CHAIN
	savepoint bool // ROLLBACK TO name
	twoPhase  bool // PREPARE TRANSACTION
	iso       isolation
	effect    effect
	inserted  int32 // how many of set an INSERT gives the new row
	guarded   int32 // place behind the WHERE of what it changes, 0 if there is none
	params    int32 // the highest that a value needs

	target []string // columns of ON CONFLICT
	guards []guard  // all that the WHERE asks for, whatever joins it, if that matters

	also []another // the other tables, each once as read and once as written

	table string // as the ledger compares it

	move  *move     // what it does to the search path; nil: nothing
	name  string    // of a prepared statement or a savepoint
	inner *template // of a PREPARE
	args  []slot    // of an EXECUTE

	bare *portal // stands for every portal of it, if it is no op
}

// Another is a table of a statement beside its own.
type another struct {
	name    string
	written bool
}

// A slot is a place for a value: a parameter or a literal.
type slot struct {
	column string
	op     string // comparison; "" in an assignment
	value
	step int64 // +1 or -1: column = column + or - value
}

// A value is a parameter, a literal, or neither.
type value struct {
	param   int // from 1
	known   bool
	null    bool
	says    byte       // t, f or e: of a literal that is a boolean or empty; +: it counts up, by what is not told
	now     *reckoning // it is worked out from the server's clock
	when    moment     // what a literal says of time
	text    string     // of a literal, while its statement is being read
	literal lock.Value // which then takes its place
}

// A binding gives the values of parameters, counted from 1, and what they say of
// time.
type binding interface {
	at(param int) lock.Value
	when(param int) moment
}

// needs returns the parameter that a value is made of, 0 if it is of none.
func (v value) needs() int {
	if v.now != nil {
		return v.now.param
	}
	return v.param
}

// moment returns what a value says of time.
func (v value) moment(from binding) moment {
	if v.param > 0 && from != nil {
		return from.when(v.param)
	}
	return v.when
}

func (v value) of(from binding) lock.Value {
	if v.param > 0 && from != nil {
		return from.at(v.param)
	}
	return v.literal
}

// seal hashes the literals of a template. Their texts are not kept.
func (t *template) seal(h *lock.Hasher) {
	for i := range t.guards {
		if v := &t.guards[i].value; v.known && v.literal.Hash == "" {
			v.literal, v.when, v.text = h.Of([]byte(v.text)), textMoment(v.text, 0), ""
		}
	}
	for list := range t.slots() {
		for i := range list {
			if v := &list[i].value; v.known && v.literal.Hash == "" {
				v.literal = h.Of([]byte(v.text))
				if t.kind == lock.Write || t.effect == run {
					v.when = textMoment(v.text, 0)
				}
				v.text = ""
			}
		}
	}
	t.supposes()
	if m := t.move; m != nil && m.path.known && m.path.literal.Hash == "" {
		m.path.literal, m.path.text = h.Of([]byte(m.path.text)), ""
	}
	if t.inner != nil {
		t.inner.seal(h)
	}
}

// slots ranges over the lists of values of a template.
func (t *template) slots() iter.Seq[[]slot] {
	return func(yield func([]slot) bool) {
		if !yield(t.set) || !yield(t.where) || !yield(t.args) {
			return
		}
		for i := range t.holds {
			if !yield(t.holds[i].args) {
				return
			}
		}
	}
}

// fill makes the statement of one execution. from may be nil, if there are no
// parameters.
func (t *template) fill(from binding) *lock.Statement {
	s := t.shape
	if len(t.set) > 0 {
		s.Set = make([]lock.Assign, len(t.set))
	}
	for i, a := range t.set {
		s.Set[i] = a.assign(from)
	}
	if len(t.where) > 0 {
		s.Where = make([]lock.Cond, len(t.where))
	}
	for i, c := range t.where {
		s.Where[i] = lock.Cond{Column: c.column, Op: c.op, Value: c.of(from)}
	}
	return &s
}

func (a slot) assign(from binding) lock.Assign {
	v := a.of(from)
	if a.step == 0 {
		return lock.Assign{Column: a.column, Value: v}
	}
	if !v.IsInt {
		return lock.Assign{Column: a.column}
	}
	return lock.Assign{Column: a.column, Delta: a.step * v.Int, HasDelta: true}
}

// highest returns the highest parameter that a value of the template needs.
func (t *template) highest() int {
	n := 0
	for list := range t.slots() {
		for _, s := range list {
			n = max(n, s.needs())
		}
	}
	for _, g := range t.guards {
		n = max(n, g.needs())
	}
	if t.move != nil {
		n = max(n, t.move.path.needs())
	}
	return min(n, maxParams)
}

// plain reports whether only a rule can make an op of t, and nothing else
// about it matters.
func (t *template) plain() bool {
	return t.kind == "" && t.effect == noEffect && t.move == nil && len(t.holds) == 0
}
