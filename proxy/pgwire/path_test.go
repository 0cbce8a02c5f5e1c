package pgwire

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// marksOf plays a script, a statement a Query, and returns the marks of its writes of t.
// What ends in "!" fails; "Q:" has several, "S:" is a status; "E:" goes by Bind and Execute, with
// what is behind "<-" as its parameter.
func marksOf(t *testing.T, session uint64, startup map[string]string, script ...string) (out []string) {
	t.Helper()
	tr := NewTracker(Options{Session: session, Hash: hasher})
	pl := newPlayer(t, tr)
	params := map[string]string{"user": "u"}
	for k, v := range startup {
		params[k] = v
	}
	pl.play(encode(t, []any{fe{&pgproto3.StartupMessage{ProtocolVersion: 196608, Parameters: params}}, be{&pgproto3.AuthenticationOk{}, z('I')}}), 0)
	state := byte('I')
	for _, sql := range script {
		if path, ok := strings.CutPrefix(sql, "S:"); ok {
			pl.play(encode(t, []any{fe{q("select f()")}, be{c("SELECT 1"), &pgproto3.ParameterStatus{Name: "search_path", Value: path}, z(state)}}), 0)
			continue
		}
		sql, fails := strings.CutSuffix(sql, "!")
		state = stateAfter(sql, state, fails)
		if text, ok := strings.CutPrefix(sql, "E:"); ok {
			text, arg, _ := strings.Cut(text, "<-")
			pl.play(encode(t, []any{fe{p("", text), b("", "", arg), e(""), syn}, be{parsed, boundOK, c("SELECT 1"), z(state)}}), 0)
			continue
		}
		var reply be
		for range strings.Count(sql, ";") + 1 {
			reply = append(reply, c(strings.ToUpper(strings.Fields(sql)[0])))
		}
		if fails {
			reply[len(reply)-1] = bad("23505")
		}
		if sql == "commit" && fails {
			reply[0] = c("ROLLBACK")
		}
		pl.play(encode(t, []any{fe{q(sql)}, append(reply, z(state))}), 0)
	}
	for _, m := range pl.marks {
		if m.Kind == wire.Request && m.Op.Kind == lock.Write && strings.HasSuffix(m.Op.SQL.Table, "t") {
			out = append(out, m.Op.Path)
		}
	}
	return out
}

func stateAfter(sql string, state byte, fails bool) byte {
	switch word := strings.Fields(sql)[0]; {
	case word == "begin":
		return 'T'
	case strings.Contains(sql, "rollback to"):
		return 'T'
	case word == "commit" || word == "rollback":
		return 'I'
	case fails && state == 'T':
		return 'E'
	}
	return state
}

const writes = "update t set a = 1 where id = 1"

// Two scripts that end in a write of t find it by one path, or by paths that may differ.
func TestPaths(t *testing.T) {
	x := marksOf(t, 1, nil, "set search_path = x", writes)[0]
	if x == "" || x != marksOf(t, 2, nil, `SET SESSION search_path TO 'x'`, writes)[0] {
		t.Fatal("one path has two marks, or none", x)
	}
	for _, tt := range []struct {
		script, want string // x: as after SET search_path = x; d: the default; ?: one of its own
		startup      []string
	}{
		{"", "d", nil},
		{"set search_path = public", "d", nil},
		{`set search_path = "$user", public`, "d", nil},
		{"set search_path = y|set search_path to default", "d", nil},
		{"set search_path = x|reset search_path", "d", nil},
		{"set search_path = x|reset all", "d", nil},
		{"set search_path = x|discard all", "d", nil},
		{"set schema 'x'", "x", nil},
		{"", "x", []string{"search_path", "x"}},
		{"", "x", []string{"options", "-c geqo=off -c search_path=x"}},
		{"", "x", []string{"options", `--search-path=x -c geqo=off`}},
		{"set search_path = y|reset search_path", "x", []string{"search_path", "x"}},
		{"select pg_catalog.set_config('search_path', 'x', false)", "x", nil},
		{"select set_config('Search_Path', 'public', false)", "d", nil},
		{"E:select set_config('search_path', $1, false)<-x", "?", nil}, // "$user" may be in it
		{"E:select set_config('search_path', $1, false)<-public", "d", nil},
		{"select set_config('search_path', a, false) from y", "?", nil},
		{"select set_config('search_path', 'x', true)", "d", nil},
		{"select set_config('geqo', 'x', false)", "d", nil},
		{"prepare p as select set_config('search_path', 'x', false)", "d", nil},
		{"prepare p as select set_config('search_path', 'x', false)|execute p", "x", nil},
		{"begin|set local search_path = x", "x", nil},
		{"begin|set local search_path = x|commit", "d", nil},
		{"begin|set local search_path = x|rollback", "d", nil},
		{"begin|set search_path = x|commit", "x", nil},
		{"begin|set search_path = x|rollback", "d", nil},
		{"begin|set search_path = x|insert into z values (1)!|commit!", "?", nil},
		{"begin|insert into z values (1)!|set search_path = x!|rollback", "d", nil},
		{"begin|set local search_path = x|savepoint a|rollback to a", "x", nil},
		{"begin|savepoint a|set local search_path = x|rollback to a", "?", nil},
		{"set search_path = x; insert into z values (1)!", "?", nil},
		{"set search_path = x|insert into z values (1)!", "x", nil},
		{"S:x", "x", nil},
		{`set search_path = x|S:"$user", public`, "d", nil},
		{"create temp table t (a int)", "?", nil},
		{"create temp table t (a int)|discard all", "d", nil},
		{"create local temporary table if not exists t as select 1", "?", nil},
		{"select 1 into temp table t", "?", nil},
		{"create table pg_temp.t (a int)", "?", nil},
		{"create temp table y (a int)", "d", nil},
		{"create table temp (t int)", "d", nil},
	} {
		startup := map[string]string{}
		for i := 0; i < len(tt.startup); i += 2 {
			startup[tt.startup[i]] = tt.startup[i+1]
		}
		script := slices.DeleteFunc(append(strings.Split(tt.script, "|"), writes), func(s string) bool { return s == "" })
		all := marksOf(t, 1, startup, script...)
		got := all[len(all)-1]
		switch tt.want {
		case "d":
			if got != "" {
				t.Errorf("%s: %q, want the default", tt.script, got)
			}
		case "x":
			if got != x {
				t.Errorf("%s: %q, want %q", tt.script, got, x)
			}
		default:
			if got == "" || got == x {
				t.Errorf("%s: %q, want one of its own", tt.script, got)
			}
		}
	}
}

// What is not known of one session is not what is not known of another, and a name with its
// schema is found by no path.
func TestPathsOfTheirOwn(t *testing.T) {
	for _, script := range []string{"select set_config('search_path', a, false) from y", "create temp table t (a int)"} {
		if a, b := marksOf(t, 1, nil, script, writes), marksOf(t, 2, nil, script, writes); a[len(a)-1] == b[len(b)-1] {
			t.Errorf("%s: two sessions have one mark", script)
		}
	}
	if got := marksOf(t, 1, nil, "set search_path = x", "update y.t set a = 1")[0]; got != "" {
		t.Errorf("a table of a schema has the mark %q", got)
	}
	if a, b := marksOf(t, 1, nil, "update pg_temp.t set a = 1"), marksOf(t, 2, nil, "update pg_temp.t set a = 1"); a[0] == b[0] {
		t.Error("temporary tables of two sessions have one mark")
	}
	users := func(user string) string {
		return marksOf(t, 1, map[string]string{"user": user}, `set search_path = "$user", x`, writes)[0]
	}
	if users("a") == users("b") {
		t.Error(`"$user" is one schema for two users`)
	}
}

// The path that is followed is the one that the server goes by.
func TestPathsAsTheServerHasThem(t *testing.T) {
	for _, version := range []int{15, 18} {
		t.Run(strconv.Itoa(version), func(t *testing.T) { followsPaths(t, version) })
	}
}

func followsPaths(t *testing.T, version int) {
	const ask = "select current_setting('search_path')"
	for _, script := range []string{
		"", "set search_path = x, y", `set search_path to 'x', "Y", "$user"`, "set schema 'x'", "set search_path = x|set search_path to default",
		"set search_path = x|reset search_path", "set search_path = x|reset all", "set search_path = x|discard all",
		"select set_config('search_path', 'x, \"Y\",z', false)", "select set_config('search_path', 'x', true)", "set search_path = ''",
		"begin|set local search_path = x", "begin|set local search_path = x|commit", "begin|set search_path = x|commit", "begin|set search_path = x|rollback",
		"begin|set search_path = x|rollback and chain", "begin|set local search_path = y|set search_path = x", "begin|set local search_path = y|set search_path = x|commit",
		"begin|set search_path = y|set local search_path = x", "begin|set search_path = y|set local search_path = x|commit",
		"begin|set local search_path = x|savepoint a|select 1/0|rollback to a", "begin|set search_path = x|select 1/0|rollback", "set local search_path = x",
		"begin|select 1/0|set search_path = x|rollback", "set search_path = x|select 1/0", "set search_path = x; begin|rollback", "set search_path = x; begin; set search_path = y|rollback",
	} {
		for _, options := range [][]string{nil, {"search_path", "o, p"}, {"options", `-c search_path=o,\ "P"`}} {
			w := dial(t, version)
			w.startup(196608, append([]string{"user", "postgres", "database", "postgres"}, options...)...)
			w.until('Z')
			for i, sql := range strings.Split(script, "|") {
				if sql != "" && i%2 == 0 {
					w.send(q(sql))
					w.until('Z')
				} else if sql != "" {
					w.send(p("", sql), b("", ""), e(""), syn)
					w.until('Z')
				}
			}
			n := len(w.turns)
			tr := w.pl.tracker
			got := tr.pathOf("t", nil)
			w.send(q(ask))
			w.until('Z')
			w.conn.Close()
			if want := tr.markOf(firstCell(w.turns[n:])); got != want {
				t.Errorf("%s with %v on %d: %q, want %q for %q", script, options, version, got, want, firstCell(w.turns[n:]))
			}
		}
	}
}

// firstCell returns the first value that the server sent.
func firstCell(turns []turn) string {
	for _, u := range turns {
		if !u.client && u.bytes[0] == 'D' {
			c := cursor{b: u.bytes[headSize:]}
			c.count()
			v, _ := c.field()
			return string(v)
		}
	}
	return ""
}

// What a statement locks is found by the path as well.
func TestPathOfALock(t *testing.T) {
	pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2],
		fe{q("set search_path = x; begin; select a from t where id = 1 for update; select pg_advisory_lock(1)")})), 0)
	paths := map[string]string{}
	for _, m := range pl.marks {
		if m.Kind == wire.Request && m.Op.Kind == lock.Acquire {
			class, _, _ := strings.Cut(m.Op.Key, ":")
			paths[class] = m.Op.Path
		}
	}
	if paths["row"] == "" || paths["advisory"] != "" || len(paths) != 2 {
		t.Errorf("the paths are %q", paths)
	}
}
