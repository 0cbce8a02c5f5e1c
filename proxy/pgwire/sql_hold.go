package pgwire

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A hold is what a statement does to one lock.
type hold struct {
	kind   lock.Kind
	verb   string
	span   lock.Span
	shared bool
	all    bool // gives back everything that the session holds
	tells  telling
	cell   int // place in a row of what the function returned; none: it is not there

	lease *lease // of one that is a row

	class string // what the key begins with: advisory, row:TABLE, table:NAME
	named bool   // the key has nothing behind that
	args  []slot // what is behind it; none: it cannot be told
}

// A telling says how the reply tells whether the lock was taken, or given back.
type telling uint8

const (
	byEnd    telling = iota // it was if the statement came to its end
	byTruth                 // by the value in the cell
	byRows                  // it was if there was a row: nothing was there to lock otherwise
	bySkip                  // likewise, but it is taken by others if there was none
	byFilter                // it was for the rows that came; of others it is not told
	byOnly                  // it was if there was a row, and not if there was none
	byNone                  // not at all
)

// unresolved stands in a key for what cannot be told.
const unresolved = "?"

// Unresolved is the key of an advisory lock whose number the statement computes.
const Unresolved = "advisory:" + unresolved

// key returns the lock's key, and whether it is known.
func (h *hold) key(hash *lock.Hasher, from binding) string {
	switch {
	case h.all:
		return ""
	case h.named:
		return h.class
	case len(h.args) == 0:
		return h.class + ":" + unresolved
	case h.args[0].column != "":
		return h.class + ":" + rowKey(hash, h.args, from)
	}
	key := h.class
	for _, a := range h.args {
		v := a.of(from)
		if !v.IsInt {
			return h.class + ":" + unresolved
		}
		key += ":" + strconv.FormatInt(v.Int, 10)
	}
	return key
}

// rowKey stands for the row of which the columns have the values: one text
// whatever the order in which a statement names them.
func rowKey(hash *lock.Hasher, columns []slot, from binding) string {
	cells := make([]lock.Cell, len(columns))
	for i, c := range columns {
		cells[i] = lock.Cell{Column: c.column, Value: c.of(from)}
	}
	return cellsKey(hash, cells)
}

func cellsKey(hash *lock.Hasher, cells []lock.Cell) string {
	slices.SortFunc(cells, func(a, b lock.Cell) int {
		return cmp.Or(cmp.Compare(a.Column, b.Column), cmp.Compare(a.Value.Hash, b.Value.Hash))
	})
	var text []byte
	for _, c := range slices.Compact(cells) {
		if c.Value.Hash == "" {
			return unresolved
		}
		text = append(append(append(append(text, c.Column...), '='), c.Value.Hash...), ';')
	}
	return hash.Of(text).Hash
}

// rowLock is what FOR UPDATE and kin ask for.
type rowLock struct {
	verb   string // "" if there is none
	shared bool
	skip   bool // SKIP LOCKED
	few    bool // with a LIMIT, an OFFSET, or by way of a WITH list: the conditions do not tell which rows
}

// rowLocks reads what follows FOR at the end of a SELECT. Of several the first
// that excludes others counts.
func (p *parser) rowLocks(t *template) {
	verb, shared := "", false
	switch {
	case p.word("UPDATE"):
		verb = "FORUPDATE"
	case p.words("NO", "KEY", "UPDATE"):
		verb = "FORNOKEYUPDATE"
	case p.word("SHARE"):
		verb, shared = "FORSHARE", true
	case p.words("KEY", "SHARE"):
		verb, shared = "FORKEYSHARE", true
	default:
		return
	}
	t.shape.ForUpdate = t.shape.ForUpdate || !shared
	if t.rows.verb == "" || t.rows.shared && !shared {
		t.rows.verb, t.rows.shared = verb, shared
	}
}

// locks reads what follows LOCK.
func (p *parser) locks(t *template) {
	p.word("TABLE")
	var tables []string
	for !p.end() && len(tables) < maxTables {
		p.word("ONLY")
		name := p.table()
		if name == "" {
			return
		}
		tables = append(tables, lock.TableName(name))
		if p.op("*"); !p.op(",") {
			break
		}
	}
	shared := p.word("IN") && p.sharedMode()
	for _, name := range tables {
		t.holds = append(t.holds, hold{kind: lock.Acquire, verb: "LOCK", span: lock.TxSpan, shared: shared, cell: none, class: "table:" + name, named: true})
	}
}

// sharedMode reports whether the mode that follows does not exclude itself.
func (p *parser) sharedMode() bool {
	switch {
	case p.words("ACCESS", "SHARE"), p.words("ROW", "EXCLUSIVE"):
		return true
	case p.words("ROW", "SHARE"), p.words("SHARE", "MODE"):
		return true
	}
	return false
}

// takesLocks makes what the statement does to locks, if it runs its query.
func (t *template) takesLocks(o *outline, src string) {
	runs := t.kind != "" || t.system || t.verb == "SELECT" || t.verb == "VALUES" || t.verb == "COPY"
	if o.explains || !runs {
		return
	}
	if o.advised {
		t.advises(src)
	}
	t.takesRows()
	t.takesLeases(o, src)
}

// takesRows makes the lock of a SELECT ... FOR UPDATE.
func (t *template) takesRows() {
	r := t.rows
	if r.verb == "" || t.kind != lock.Read || t.shape.Table == "" {
		return
	}
	h := hold{kind: lock.Acquire, verb: r.verb, span: lock.TxSpan, shared: r.shared, tells: byRows, cell: none, class: "row:" + lock.TableName(t.shape.Table)}
	if r.skip {
		h.tells = bySkip
	}
	if !r.skip && !r.few && !t.shape.Opaque && len(t.where) > 0 && !slices.ContainsFunc(t.where, func(c slot) bool { return c.op != "=" }) {
		h.args = t.where
	}
	t.holds = append(t.holds, h)
}
