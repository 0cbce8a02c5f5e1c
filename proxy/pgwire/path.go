package pgwire

import (
	"fmt"
	"slices"
	"strings"
)

// maxTemporary bounds the temporary tables of a session that are known by name.
const maxTemporary = 256

// A paths follows the search path of a session as the client asks for it: by marks,
// of which "" is the default path, and one that no other session has is what is not known.
type paths struct {
	user    string // of whom "$user" speaks
	start   string // as the session began
	session string // outside of a SET LOCAL
	local   string
	before  string // session, before the transaction

	set     bool // local is
	touched bool // the transaction has set session
	deep    bool // it has set either behind a SAVEPOINT
	points  bool // it has a SAVEPOINT
	fresh   bool // session was set, and something is not answered
	ending  bool // a COMMIT that is not answered is of a transaction that has set session

	unsure int // how often it was not known any more
	temps  map[string]bool
	crowd  bool // there are more of those
}

func (x *paths) now() string {
	if x.set {
		return x.local
	}
	return x.session
}

func (x *paths) put(mark string) {
	if !x.touched {
		x.before, x.touched = x.session, true
	}
	x.session, x.set, x.fresh = mark, false, true
	x.deep = x.deep || x.points
}

func (x *paths) putLocal(mark string) {
	x.local, x.set = mark, true
	x.deep = x.deep || x.points
}

// ends follows the end of a transaction.
func (x *paths) ends(undone bool) {
	if undone && x.touched {
		x.session = x.before
	}
	x.set, x.touched, x.deep, x.points = false, false, false, false
}

// startPath takes the path of a session from its startup message.
func (t *Tracker) startPath(parameters []byte) {
	x := t.tx.paths
	x.user = parameter(parameters, "user")
	path, told := parameter(parameters, searchPath), false
	if told = path != ""; !told {
		path, told = option(parameter(parameters, "options"), searchPath)
	}
	if told {
		x.start = t.markOf(path)
	}
	x.session = x.start
}

// option returns a setting among the options of a command line, the last of its name.
func option(options, name string) (value string, told bool) {
	options = strings.ReplaceAll(options, "-", "_")
	for {
		_, rest, found := strings.Cut(options, name+"=")
		if !found {
			return value, told
		}
		end := 0
		for end < len(rest) && rest[end] != ' ' {
			if rest[end] == '\\' && end+1 < len(rest) {
				end++
			}
			end++
		}
		value, told, options = strings.ReplaceAll(rest[:end], `\`, ""), true, rest[end:]
	}
}

// markOf returns the mark of a path.
func (t *Tracker) markOf(text string) string {
	m := moveTo(moveSession, schemasOf(text))
	m.path.literal = t.opt.Hash.Of([]byte(m.path.text))
	return t.markTo(m, nil)
}

// markTo returns the mark of the path that a move sets.
func (t *Tracker) markTo(m *move, from binding) string {
	v := m.path.of(from)
	switch {
	case m.plain:
		return ""
	case !v.Known():
		return t.unknownPath()
	case m.user: // or perhaps, in a parameter
		for _, plain := range []string{"public", `"$user", public`, `"$user",public`} {
			if m.path.param > 0 && v.Hash == t.opt.Hash.Of([]byte(plain)).Hash {
				return ""
			}
		}
		return t.opt.Hash.Of([]byte("the path " + v.Hash + " of " + t.tx.paths.user)).Hash
	}
	return v.Hash
}

// unknownPath is the mark of a path that is not known.
func (t *Tracker) unknownPath() string {
	t.tx.paths.unsure++
	return t.opt.Hash.Of(fmt.Appendf(nil, "path %d of postgres session %d", t.tx.paths.unsure, t.opt.Session)).Hash
}

// moves follows a statement that says how tables are found.
func (t *Tracker) moves(tm *template, from binding) {
	x := t.tx.paths
	if tm.verb == "SAVEPOINT" {
		x.points = true
	}
	if tm.savepoint {
		t.backTo()
	}
	m := tm.move
	if tm.verb == "DISCARD" && tm.effect == clearAll {
		x.temps, x.crowd, m = nil, false, &move{of: moveStart}
	}
	if tm.unread {
		m = &move{of: moveUnsure}
	}
	if m == nil {
		return
	}
	for _, name := range m.temps {
		x.hides(name)
	}
	switch m.of {
	case moveTx:
		x.putLocal(t.markTo(m, from))
	case moveSession:
		x.put(t.markTo(m, from))
	case moveStart:
		x.put(x.start)
	case moveUnsure:
		x.put(t.unknownPath())
	}
}

// hides notes a temporary table.
func (x *paths) hides(name string) {
	if len(x.temps) >= maxTemporary {
		x.crowd = true
		return
	}
	if x.temps == nil {
		x.temps = map[string]bool{}
	}
	x.temps[name] = true
}

// pathOf returns the mark of an op that names some tables.
func (t *Tracker) pathOf(table string, also []string) string {
	x := t.tx.paths
	if x.temporary(table) || slices.ContainsFunc(also, x.temporary) {
		return t.opt.Hash.Of(fmt.Appendf(nil, "temporary tables of postgres session %d", t.opt.Session)).Hash
	}
	if bare(table) || slices.ContainsFunc(also, bare) {
		return x.now()
	}
	return ""
}

// bare reports whether a table is named without its schema.
func bare(table string) bool { return !strings.Contains(table, ".") }

// temporary reports whether a name may stand for a table of the session alone.
func (x *paths) temporary(table string) bool {
	return strings.HasPrefix(table, "pg_temp.") || x.temps[table] || x.crowd && bare(table)
}

// pathOfKey returns the mark of a lock's op.
func (t *Tracker) pathOfKey(key string) string {
	class, rest, _ := strings.Cut(key, ":")
	if class != "row" && class != "table" && class != "lease" {
		return ""
	}
	table, _, _ := strings.Cut(rest, ":")
	return t.pathOf(table, nil)
}

// doubtPath is for an error: what was set and not answered may be undone.
func (t *Tracker) doubtPath() {
	x := t.tx.paths
	if x.ending || x.fresh && t.asked.len() > 1 {
		t.losePath()
	} else if x.fresh {
		x.session, x.set = t.unknownPath(), false
	}
}

// losePath is for what the client's view may have been wrong about, the path before the
// transaction included.
func (t *Tracker) losePath() {
	x := t.tx.paths
	x.session, x.set = t.unknownPath(), false
	x.before, x.ending = x.session, false
}

// committed follows the answer to a COMMIT.
func (t *Tracker) committed(undone bool) {
	x := t.tx.paths
	if x.ending && undone {
		t.losePath()
	}
	x.ending = x.ending && t.asked.len() > 1
}

// backTo is for a ROLLBACK TO: it undoes what was set behind the savepoint.
func (t *Tracker) backTo() {
	if x := t.tx.paths; x.deep {
		x.put(t.unknownPath())
	}
}

// reports takes a ParameterStatus. Since 18, Postgres tells of the path.
func (t *Tracker) reports(m *message) {
	c := cursor{b: m.body}
	name, text := c.text(), c.text()
	if string(name) != searchPath {
		return
	}
	x := t.tx.paths
	mark := t.unknownPath
	if !c.bad {
		mark = func() string { return t.markOf(string(text)) }
	}
	switch a := t.asked.first(); {
	case a != nil && a.typ == startupPacket:
		x.start = mark()
		x.session = x.start
	case x.now() == mark() && !c.bad, x.fresh && t.asked.len() > 1:
	case t.asked.len() > 1:
		t.losePath()
	case t.tx.explicit:
		x.put(t.unknownPath())
		x.putLocal(mark())
	default:
		x.put(mark())
		x.fresh = false
	}
}
