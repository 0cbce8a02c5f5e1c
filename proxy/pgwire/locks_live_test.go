package pgwire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// locked writes down what the ops of locks were, since mark n.
func locked(marks []wire.Mark) string {
	var out []string
	for _, m := range marks {
		op := m.Op
		if m.Kind != wire.Reply || op == nil || op.Kind != lock.Acquire && op.Kind != lock.Renew && op.Kind != lock.Release {
			continue
		}
		s := strings.TrimPrefix(fmt.Sprintf("%s %s %s %s", op.Verb, op.Key, op.Kind, op.Outcome), " ")
		if op.Shared {
			s += " shared"
		}
		if op.Span != "" {
			s += " " + string(op.Span)
		}
		if op.Depth > 0 {
			s += fmt.Sprint(" ", op.Depth)
		}
		if op.Err != "" {
			s += " " + op.Err
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

// ways are those in which a statement without parameters can be sent.
var ways = map[string]func(sql string) fe{
	"simple":   func(sql string) fe { return fe{q(sql)} },
	"extended": func(sql string) fe { return fe{p("", sql), b("", ""), dp(""), e(""), syn} },
	"binary":   func(sql string) fe { return fe{p("", sql), bin(b("", "")), e(""), syn} },
	"described": func(sql string) fe {
		return fe{p("s", sql), ds("s"), bin(b("", "s")), e(""), cs("s"), syn}
	},
}

// Each form of an advisory lock, with another session that has the keys from 100
// on, and the shared ones from 200 on.
func TestAdvisoryForms(t *testing.T) {
	others := map[int]*tap{}
	for _, tt := range []struct{ sql, want string }{
		{"SELECT pg_try_advisory_lock(1)", "PG_TRY_ADVISORY_LOCK advisory:1 acquire granted session 1"},
		{"SELECT pg_try_advisory_lock(100)", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"SELECT pg_try_advisory_lock(1) AS got", "PG_TRY_ADVISORY_LOCK advisory:1 acquire granted session 1"},
		{"SELECT pg_try_advisory_lock(100) got", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"select 1 as a, Pg_Try_Advisory_Lock ( 100 )::int AS got", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"select pg_try_advisory_lock(1)::text, pg_try_advisory_lock(100)::text", "PG_TRY_ADVISORY_LOCK advisory:1 acquire granted session 1\nPG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{`select "pg_catalog"."pg_try_advisory_lock"(-5, 7)`, "PG_TRY_ADVISORY_LOCK advisory:-5:7 acquire granted session 1"},
		{"select pg_catalog.pg_try_advisory_lock(100::bigint)", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"select cast(pg_try_advisory_lock('100') as text)", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"select (select pg_try_advisory_lock(100))", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"select ((pg_try_advisory_lock(1)))", "PG_TRY_ADVISORY_LOCK advisory:1 acquire granted session 1"},
		{"with x as (select pg_try_advisory_lock(100) as got) select got from x", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"with x as (select pg_try_advisory_lock(100)) select 5, x.pg_try_advisory_lock from x", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"with x as (select 5 as n, pg_try_advisory_lock(1)) select * from x", "PG_TRY_ADVISORY_LOCK advisory:1 acquire granted session 1"},
		{"select * from pg_try_advisory_lock(100)", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"select got from pg_try_advisory_lock(1) as got", "PG_TRY_ADVISORY_LOCK advisory:1 acquire granted session 1"},
		{"select 1 where pg_try_advisory_lock(100)", "PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session"},
		{"select 1 where pg_try_advisory_lock(1)", "PG_TRY_ADVISORY_LOCK advisory:1 acquire granted session 1"},
		{"select n from (values (100), (101)) v(n) where pg_try_advisory_lock(n) limit 1", "PG_TRY_ADVISORY_LOCK advisory:? acquire done session"},
		{"select n from (values (1), (100)) v(n) where pg_try_advisory_lock(n) limit 1", "PG_TRY_ADVISORY_LOCK advisory:? acquire granted session"},
		{"select n from (values (1), (100)) v(n) where n > 5 and pg_try_advisory_lock(100)", "PG_TRY_ADVISORY_LOCK advisory:100 acquire unknown session"},
		{"select not pg_try_advisory_lock(1)", "PG_TRY_ADVISORY_LOCK advisory:1 acquire unknown session"},
		{"select pg_try_advisory_lock(n) from generate_series(100, 101) n", "PG_TRY_ADVISORY_LOCK advisory:? acquire refused session"},
		{"select pg_try_advisory_lock(n) from generate_series(99, 101) n", "PG_TRY_ADVISORY_LOCK advisory:? acquire granted session"},
		{"select pg_try_advisory_lock(n) from generate_series(1, 0) n", "PG_TRY_ADVISORY_LOCK advisory:? acquire done session"},
		{"select pg_try_advisory_lock(hashtext('a')::bigint)", "PG_TRY_ADVISORY_LOCK advisory:? acquire granted session"},
		{"select pg_try_advisory_lock(('x' || substr(md5('a'), 1, 16))::bit(64)::bigint)", "PG_TRY_ADVISORY_LOCK advisory:? acquire granted session"},
		{"select pg_try_advisory_lock(null)", "PG_TRY_ADVISORY_LOCK advisory:? acquire done session"},
		{"select pg_try_advisory_lock_shared(200)", "PG_TRY_ADVISORY_LOCK_SHARED advisory:200 acquire granted shared session 1"},
		{"select pg_try_advisory_lock(200)", "PG_TRY_ADVISORY_LOCK advisory:200 acquire refused session"},
		{"select pg_try_advisory_xact_lock(1)", "PG_TRY_ADVISORY_XACT_LOCK advisory:1 acquire granted tx"},
		{"select pg_try_advisory_xact_lock(100)", "PG_TRY_ADVISORY_XACT_LOCK advisory:100 acquire refused tx"},
		{"select pg_try_advisory_xact_lock_shared(200, 1)", "PG_TRY_ADVISORY_XACT_LOCK_SHARED advisory:200:1 acquire granted shared tx"},
		{"select pg_advisory_lock(1)", "PG_ADVISORY_LOCK advisory:1 acquire granted session 1"},
		{"select pg_advisory_lock_shared(1, 2)", "PG_ADVISORY_LOCK_SHARED advisory:1:2 acquire granted shared session 1"},
		{"select pg_advisory_xact_lock(1)", "PG_ADVISORY_XACT_LOCK advisory:1 acquire granted tx"},
		{"select pg_advisory_xact_lock_shared(1)", "PG_ADVISORY_XACT_LOCK_SHARED advisory:1 acquire granted shared tx"},
		{"select n, pg_advisory_lock(7) from generate_series(1, 0) n", "PG_ADVISORY_LOCK advisory:7 acquire done session"},
		{"select n, pg_advisory_lock(7) from generate_series(1, 1) n", "PG_ADVISORY_LOCK advisory:7 acquire granted session 1"},
		{"with l as (select pg_advisory_xact_lock(9)) select 1", ""},
		{"with l as materialized (select pg_advisory_xact_lock(9)) select 1 from l", "PG_ADVISORY_XACT_LOCK advisory:9 acquire granted tx"},
		{"select pg_advisory_lock(100)", "PG_ADVISORY_LOCK advisory:100 acquire refused session 55P03"},
		{"select pg_advisory_unlock(1)", "PG_ADVISORY_UNLOCK advisory:1 release not-held session"},
		{"select pg_advisory_unlock_shared(1, 1)", "PG_ADVISORY_UNLOCK_SHARED advisory:1:1 release not-held shared session"},
		{"with l(n) as (select pg_advisory_xact_lock(9)) select 1", ""},
		{"with l(n) as (select pg_advisory_xact_lock(9)) select n from l", "PG_ADVISORY_XACT_LOCK advisory:9 acquire granted tx"},
		{"explain select pg_advisory_lock(1)", ""},
		{"select 'pg_advisory_lock(1)', pg_backend_pid() /* pg_advisory_lock(1) */", ""},
	} {
		for _, version := range []int{15, 18} {
			others[version] = beside(t, others[version], version)
			for name, way := range ways {
				t.Run(fmt.Sprint(tt.sql, "/", name, version), func(t *testing.T) {
					w := contender(t, version)
					w.send(way(tt.sql)...)
					w.until('Z')
					if got := locked(w.pl.marks[w.seen:]); got != tt.want {
						t.Errorf("got\n%s\nwant\n%s", got, tt.want)
					}
					w.again()
				})
			}
		}
	}
}

// beside is a session that holds locks, and may be there already.
func beside(t *testing.T, other *tap, version int) *tap {
	t.Helper()
	if other == nil {
		other = dial(t, version)
		other.startup(196608, "user", "postgres", "database", "postgres")
		other.until('Z')
		other.send(q("select pg_advisory_lock(100), pg_advisory_lock(101), pg_advisory_lock_shared(200)"))
		other.until('Z')
	}
	return other
}

// contender is a session that does not wait for locks, and gives them back.
func contender(t *testing.T, version int) *tap {
	t.Helper()
	w := dial(t, version)
	w.startup(196608, "user", "postgres", "database", "postgres", "lock_timeout", "50")
	w.until('Z')
	t.Cleanup(func() {
		if _, err := w.conn.Write(encode(t, []any{fe{q("rollback; select pg_advisory_unlock_all()")}})[0].bytes); err != nil {
			t.Error(err)
		}
		w.until('Z')
		w.conn.Close()
	})
	return w
}

// Keys that are parameters, in the two formats and of all types that fit.
func TestAdvisoryParameters(t *testing.T) {
	both(t, "", func(w *tap) {
		text := func(sql string, params ...string) {
			w.send(p("", sql), b("", "", params...), e(""), syn)
			w.until('Z')
		}
		binary := func(sql string, oids []uint32, params ...string) {
			w.send(p("", sql, oids...), bin(b("", "", params...)), e(""), syn)
			w.until('Z')
		}
		text("select pg_try_advisory_lock($1)", "-42")
		text("select pg_try_advisory_lock($1::int, $2::int) as got", "1", "2")
		binary("select pg_try_advisory_lock($1)", nil, "\xff\xff\xff\xff\xff\xff\xff\xd6")
		binary("select pg_try_advisory_lock($1, $2)", []uint32{oidInt4, oidInt4}, "\x00\x00\x00\x01", "\x00\x00\x00\x02")
		binary("select pg_advisory_unlock($1)", []uint32{oidInt8}, "\xff\xff\xff\xff\xff\xff\xff\xd6")
		text("select pg_advisory_unlock($1)", "-42")
		text("select pg_advisory_unlock($1)", "-42")
		text("select pg_try_advisory_lock(hashtext($1))", "a")
		w.send(q("prepare l as select pg_try_advisory_lock($1); execute l(77)"))
		w.until('Z')
		w.send(q("select pg_advisory_unlock_all()"))
		w.until('Z')
		w.send(q("discard all"), q("select pg_advisory_lock(5)"), q("discard all"))
		w.until('Z')
		w.until('Z')
		w.until('Z')
		want := `
			PG_TRY_ADVISORY_LOCK advisory:-42 acquire granted session 1
			PG_TRY_ADVISORY_LOCK advisory:1:2 acquire granted session 1
			PG_TRY_ADVISORY_LOCK advisory:-42 acquire granted session 2
			PG_TRY_ADVISORY_LOCK advisory:1:2 acquire granted session 2
			PG_ADVISORY_UNLOCK advisory:-42 release done session 1
			PG_ADVISORY_UNLOCK advisory:-42 release done session
			PG_ADVISORY_UNLOCK advisory:-42 release not-held session
			PG_TRY_ADVISORY_LOCK advisory:? acquire granted session
			PG_TRY_ADVISORY_LOCK advisory:77 acquire granted session 1
			PG_ADVISORY_UNLOCK_ALL  release done session
			PG_ADVISORY_LOCK advisory:5 acquire granted session 1
			DISCARD  release done session`
		if got := locked(w.pl.marks); got != lines(want) {
			w.Errorf("got\n%s\nwant\n%s", got, lines(want))
		}
	})
}

// Locks of rows and tables, in a transaction, beside one that has row 1 and table
// b.
func TestRowAndTableLocks(t *testing.T) {
	const setup = "execute 'drop table if exists a, b; create table a (id int primary key, v int); create table b (id int); insert into a values (1, 1), (2, 2)'"
	row := func(column, value string) string {
		return cellsKey(hasher, []lock.Cell{{Column: column, Value: hasher.Of([]byte(value))}})
	}
	const busy, idle = "begin; lock b; select from a where id = 1 for update", "begin"
	others := map[int]*tap{}
	for _, tt := range []struct{ beside, sql, want string }{
		{busy, "select * from a where id = 2 for update", "FORUPDATE row:a:" + row("id", "2") + " acquire granted tx"},
		{busy, "select * from public.a where id = 2 for no key update of a", "FORNOKEYUPDATE row:a:" + row("id", "2") + " acquire granted tx"},
		{busy, "select * from a where id = 1 for share", "FORSHARE row:a:" + row("id", "1") + " acquire refused shared tx 55P03"},
		{busy, "select * from a where id = 2 for key share", "FORKEYSHARE row:a:" + row("id", "2") + " acquire granted shared tx"},
		{busy, "select * from a where id = 1 for update nowait", "FORUPDATE row:a:" + row("id", "1") + " acquire refused tx 55P03"},
		{busy, "select * from a where id = 1 for update skip locked", "FORUPDATE row:a:? acquire refused tx"},
		{busy, "select v from a order by id limit 1 for update skip locked", "FORUPDATE row:a:? acquire granted tx"},
		{busy, "select * from a where id = 9 for update", "FORUPDATE row:a:" + row("id", "9") + " acquire done tx"},
		{busy, "with x as (select id from a order by id limit 1 for update skip locked) select * from x", "FORUPDATE row:a:? acquire granted tx"},
		{idle, "lock a", "LOCK table:a acquire granted tx"},
		{idle, "lock table a in share mode nowait", "LOCK table:a acquire granted shared tx"},
		{idle, "lock table only public.a in row exclusive mode", "LOCK table:a acquire granted shared tx"},
		{busy, "lock table a, b in share row exclusive mode nowait", "LOCK table:a acquire refused tx 55P03\nLOCK table:b acquire refused tx 55P03"},
		{busy, "lock table a in access exclusive mode nowait", "LOCK table:a acquire refused tx 55P03"},
	} {
		for _, version := range []int{15, 18} {
			other := others[version]
			if other == nil {
				other = dial(t, version)
				others[version] = other
				other.startup(196608, "user", "postgres", "database", "postgres")
				other.until('Z')
				other.quiet(setup)
			}
			other.send(q(tt.beside))
			other.until('Z')
			for name, way := range ways {
				t.Run(fmt.Sprint(tt.sql, "/", name, version), func(t *testing.T) {
					w := contender(t, version)
					w.send(q("begin"))
					w.until('Z')
					w.send(way(tt.sql)...)
					w.until('Z')
					want := tt.want
					if strings.HasPrefix(tt.sql, "with x") && name != "binary" {
						want = strings.Replace(want, "?", row("id", "2"), 1) // the only row says which
					}
					if got := locked(w.pl.marks); got != want {
						t.Errorf("got\n%s\nwant\n%s", got, want)
					}
					w.again()
				})
			}
			other.send(q("rollback"))
			other.until('Z')
		}
	}
}

// Outside of a transaction a row's lock ends with its statement, and is none.
func TestRowLockOutside(t *testing.T) {
	tr := newTracker()
	pl := newPlayer(t, tr).play(encode(t, append(started[:2:2],
		fe{q("select * from a where id = 1 for update")}, be{rowd("id", 23), data("1"), c("SELECT 1"), z('I')})), 0)
	if got := locked(pl.marks); got != "" {
		t.Errorf("got %s", got)
	}
}

// The verdict of a call is not read where it may be another's.
func TestAdvisoryCells(t *testing.T) {
	for sql, want := range map[string]lock.Outcome{
		"select pg_try_advisory_lock(1) union all select pg_try_advisory_lock(2)":                                                    lock.Unknown,
		"select t.*, pg_try_advisory_lock(1) from t":                                                                                 lock.Unknown,
		"select coalesce(pg_try_advisory_lock(1), false)":                                                                            lock.Unknown,
		"select case when pg_try_advisory_lock(1) then 1 end":                                                                        lock.Unknown,
		"select 1 where true or pg_try_advisory_lock(1)":                                                                             lock.Unknown,
		"with x as (select pg_try_advisory_lock(1) as a) select b from x":                                                            lock.Unknown,
		"insert into t select pg_try_advisory_lock(1) returning a":                                                                   lock.Unknown,
		"select exists (select 1 where pg_try_advisory_lock(1))":                                                                     lock.Unknown,
		"values (pg_try_advisory_lock(1))":                                                                                           lock.Unknown,
		"select (select 1 where pg_try_advisory_lock(1))":                                                                            lock.Unknown,
		"select bool_or(pg_try_advisory_lock(1))":                                                                                    lock.Unknown,
		"select coalesce((pg_try_advisory_lock(1)), false)":                                                                          lock.Unknown,
		"insert into t values (pg_try_advisory_lock(1))":                                                                             lock.Unknown,
		"insert into t values (1) on conflict (a) do update set a = 2 where pg_try_advisory_lock(1)":                                 lock.Unknown,
		"select count(*) from t where pg_try_advisory_lock(1)":                                                                       lock.Unknown,
		"select count(*) filter (where pg_try_advisory_lock(1)) from t":                                                              lock.Unknown,
		"select n from (select count(*) as n from t where pg_try_advisory_lock(1)) x":                                                lock.Unknown,
		"select 1 where pg_try_advisory_lock(1) union all select 2":                                                                  lock.Unknown,
		"select 2 except select 2 where pg_try_advisory_lock(1)":                                                                     lock.Unknown,
		"select t.a from t left join (select 1 where pg_try_advisory_lock(1)) q on true":                                             lock.Unknown,
		"select a from (select 1 where pg_try_advisory_lock(1)) q right join t on true":                                              lock.Unknown,
		"select 1 where false = (pg_try_advisory_lock(1))":                                                                           lock.Unknown,
		"select 1 where f((pg_try_advisory_lock(1)))":                                                                                lock.Unknown,
		"select 1 where (pg_try_advisory_lock(1), true) = (false, true)":                                                             lock.Unknown,
		"select 1 where false = exists (select 1 where pg_try_advisory_lock(1))":                                                     lock.Unknown,
		"select a from t order by (pg_try_advisory_lock(1))":                                                                         lock.Unknown,
		"select distinct on (pg_try_advisory_lock(1)) a from t":                                                                      lock.Unknown,
		"update t set a = (select 1 where pg_try_advisory_lock(1)) where b = 1":                                                      lock.Unknown,
		"with x as (update t set a = 1 where pg_try_advisory_lock(1) returning a) select 1":                                          lock.Unknown,
		"with x as (select pg_try_advisory_lock(1) as a), y as (select true as a) select y.a from x, y":                              lock.Unknown,
		"with x as (select pg_try_advisory_lock(1) as a), y as (select true as a) select a from y, (select b from x) z":              lock.Unknown,
		"select t.a from t, (select pg_try_advisory_lock(1) as a) x":                                                                 lock.Unknown,
		"select a from t where exists (select pg_try_advisory_lock(1) as a)":                                                         lock.Unknown,
		"select (select pg_advisory_lock(1) from t where a = 1) from u":                                                              lock.Unknown,
		"select case when a = 1 then pg_advisory_lock(1)::text end from t":                                                           lock.Unknown,
		"select a from t where a = 1 and (pg_try_advisory_lock(1)) and b = 2 order by a limit 1":                                     lock.Granted,
		"select a from t where a = 1 and exists (select 1 where pg_try_advisory_lock(1))":                                            lock.Granted,
		"select a from t where a in (with r as (select a from t) select a from r where (b = 1 and pg_try_advisory_lock(1)) limit 1)": lock.Granted,
		"update t set a = 1 where b = (select b from t where pg_try_advisory_lock(1) limit 1)":                                       lock.Granted,
		"select a from (select count(b) from (select 1 as a) y where y.a = 1) z, t where pg_try_advisory_lock(1)":                    lock.Granted,
		"select a from (select a from t where pg_try_advisory_lock(1)) x":                                                            lock.Granted,
		"select t.a from t left join u on true where pg_try_advisory_lock(1)":                                                        lock.Granted,
		"insert into t select 1 where pg_try_advisory_lock(1) on conflict do nothing":                                                lock.Granted,
		"update t set a = 1 where pg_try_advisory_lock(1)":                                                                           lock.Granted,
		"update t set a = 1 where pg_try_advisory_lock(1) returning a":                                                               lock.Granted,
	} {
		pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2],
			fe{q(sql)}, be{rowd("a", 23), data("f"), c("SELECT 1"), z('I')})), 0)
		found := false
		for _, m := range pl.marks {
			if m.Kind == wire.Reply && m.Op.Kind == lock.Acquire {
				if found = true; m.Op.Outcome != want {
					t.Errorf("%s: %s, want %s", sql, m.Op.Outcome, want)
				}
			}
		}
		if !found {
			t.Errorf("%s: no lock", sql)
		}
	}
}

var _ pgproto3.FrontendMessage = syn
