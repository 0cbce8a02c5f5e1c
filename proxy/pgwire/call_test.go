package pgwire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// A witnessed session asks its server, when a call has been answered, what the
// backend holds, by another connection.
func witnessed(w, other *tap, sql string, told bool) string {
	w.Helper()
	w.send(q(sql))
	var out []string
	seen := w.seen
	w.until('Z')
	for _, m := range w.pl.marks[seen:] {
		c, _ := m.Call.(*Call)
		if m.Kind != wire.Answered {
			continue
		}
		if told {
			c.Told(other.held(c.PID()))
		}
		for _, op := range c.Resolve(true) {
			out = append(out, "more "+op.Key)
		}
	}
	out = append([]string{locked(w.pl.marks[seen:])}, out...)
	w.seen = len(w.pl.marks)
	return strings.Join(out, "\n")
}

// held asks which advisory locks a backend holds.
func (w *tap) held(pid int32) (out []Advisory) {
	w.Helper()
	w.send(p("", "select classid::bigint, objid::bigint, objsubid = 2, mode = 'ShareLock' from pg_locks where locktype = 'advisory' and granted and pid = $1"),
		b("", "", fmt.Sprint(pid)), e(""), syn)
	n := len(w.turns)
	w.until('Z')
	for _, u := range w.turns[n:] {
		if u.client || u.bytes[0] != 'D' {
			continue
		}
		c := cursor{b: u.bytes[headSize:]}
		c.count()
		var f [4]string
		for i := range f {
			v, _ := c.field()
			f[i] = string(v)
		}
		out = append(out, Advisory{ClassID: number(f[0]), ObjID: number(f[1]), TwoInts: f[2] == "t", Shared: f[3] == "t"})
	}
	return out
}

// Keys that a statement computes are those that the backend has afterwards.
func TestCallsAreResolved(t *testing.T) {
	for _, version := range []int{15, 18} {
		w, other := dial(t, version), dial(t, version)
		for _, s := range []*tap{w, other} {
			s.startup(196608, "user", "postgres", "database", "postgres")
			s.until('Z')
		}
		for _, tt := range []struct {
			sql  string
			told bool
			want string
		}{
			{"select pg_try_advisory_lock(40 + 2)", true, "PG_TRY_ADVISORY_LOCK advisory:42 acquire granted session 1"},
			{"select pg_try_advisory_lock(40 + 2)", true, "PG_TRY_ADVISORY_LOCK advisory:? acquire granted session"},
			{"select pg_try_advisory_lock(-1 - 1)", true, "PG_TRY_ADVISORY_LOCK advisory:-2 acquire granted session 1"},
			{"select pg_try_advisory_lock_shared(2 - 3, 2 + 2)", true, "PG_TRY_ADVISORY_LOCK_SHARED advisory:-1:4 acquire granted shared session 1"},
			{"select pg_try_advisory_lock(40 + 3)", false, "PG_TRY_ADVISORY_LOCK advisory:? acquire granted session"},
			{"select pg_try_advisory_lock(40 + 4)", true, "PG_TRY_ADVISORY_LOCK advisory:? acquire granted session"},
			{"select pg_try_advisory_lock(40 + 5)", true, "PG_TRY_ADVISORY_LOCK advisory:45 acquire granted session 1"},
			{"select not pg_try_advisory_lock(7)", true, "PG_TRY_ADVISORY_LOCK advisory:7 acquire granted session 1"},
			{"select n from generate_series(60, 62) n where pg_try_advisory_lock(n)", true,
				"PG_TRY_ADVISORY_LOCK advisory:60 acquire granted session 1\nmore advisory:61\nmore advisory:62"},
			{"select pg_advisory_unlock(-1 - 1)", true, "PG_ADVISORY_UNLOCK advisory:-2 release done session"},
			{"select pg_advisory_unlock(40 + 4)", true, "PG_ADVISORY_UNLOCK advisory:44 release done session"},
			{"select pg_advisory_unlock(1000 + 4)", true, "PG_ADVISORY_UNLOCK advisory:? release not-held session"},
			{"select pg_advisory_unlock_all()", true, "PG_ADVISORY_UNLOCK_ALL  release done session"},
			{"select pg_try_advisory_lock(40 + 2)", true, "PG_TRY_ADVISORY_LOCK advisory:42 acquire granted session 1"},
		} {
			if got := witnessed(w, other, tt.sql, tt.told); got != tt.want {
				w.Errorf("%s: got\n%s\nwant\n%s", tt.sql, got, tt.want)
			}
		}
	}
}

// Of a statement with another behind it nobody can tell what is whose.
func TestCallsOfAPipelineAreNot(t *testing.T) {
	tr := newTracker()
	pl := newPlayer(t, tr).play(encode(t, append(started[:2:2],
		fe{q("select pg_try_advisory_lock(1 + 1)"), q("select pg_try_advisory_lock(2 + 2)")},
		be{rowd("a", oidBool), data("t"), c("SELECT 1"), z('I'), rowd("a", oidBool), data("t"), c("SELECT 1"), z('I')})), 0)
	held := []Advisory{{ObjID: 2}, {ObjID: 4}}
	for _, m := range pl.marks {
		if m.Kind == wire.Answered {
			m.Call.(*Call).Told(held)
			m.Call.Resolve(true)
		}
	}
	want := "PG_TRY_ADVISORY_LOCK advisory:? acquire granted session\nPG_TRY_ADVISORY_LOCK advisory:? acquire granted session"
	if got := locked(pl.marks); got != want {
		t.Errorf("got\n%s", got)
	}
	kinds := []wire.Kind{wire.Request, wire.Called, wire.Request, wire.Called, wire.Answered, wire.Reply, wire.Settle, wire.Answered, wire.Reply, wire.Settle}
	if got := kindsOf(pl.marks); !slices.Equal(got, kinds) {
		t.Errorf("marks %v, want %v", got, kinds)
	}
}

func kindsOf(marks []wire.Mark) (out []wire.Kind) {
	for _, m := range marks {
		out = append(out, m.Kind)
	}
	return out
}

func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}
