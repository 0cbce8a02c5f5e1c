package pgwire

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const locksSetup = `create table shed (name text primary key, locked_by text, lock_until timestamptz);
insert into shed values ('job', null, 'epoch');
create table counter (id int primary key, value int); insert into counter values (1, 7)`

// lockFlow is what each driver does, in the words of the log: an advisory lock of
// a parameter, one that is refused, its release twice; a row's lock in a
// transaction; a lease that is taken, refused, renewed and given back.
const lockFlow = `
	PG_TRY_ADVISORY_LOCK advisory:42 acquire granted session 1
	PG_TRY_ADVISORY_LOCK advisory:100 acquire refused session
	PG_ADVISORY_UNLOCK advisory:42 release done session
	PG_ADVISORY_UNLOCK advisory:42 release not-held session
	PG_ADVISORY_XACT_LOCK advisory:1:2 acquire granted tx
	FORUPDATE row:counter:ROW acquire granted tx
	UPDATE lease:shed:JOB acquire granted
	UPDATE lease:shed:JOB acquire refused
	UPDATE lease:shed:JOB renew done
	UPDATE lease:shed:JOB release done`

const (
	takeShed  = "UPDATE shed SET locked_by = $1, lock_until = $2 WHERE name = $3 AND lock_until < $4"
	renewShed = "UPDATE shed SET lock_until = $1 WHERE name = $2 AND locked_by = $3"
	dropShed  = "UPDATE shed SET locked_by = NULL, lock_until = now() WHERE name = $1 AND locked_by = $2"
)

// flowed is what of the flow does not hang on values.
func flowed(r *relay) string {
	out := locked(r.stop())
	for _, c := range [][2]string{{rowKey(hasher, []slot{{column: "id", value: value{literal: hasher.Of([]byte("1"))}}}, nil), "ROW"},
		{rowKey(hasher, []slot{{column: "name", value: value{literal: hasher.Of([]byte("job"))}}}, nil), "JOB"}} {
		out = strings.ReplaceAll(out, c[0], c[1])
	}
	return out
}

// locking is a server with the tables, and another session that has lock 100.
func locking(t *testing.T, version int) *relay {
	t.Helper()
	s := sharedServer(t, version)
	ctx := context.Background()
	direct, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { direct.Close(ctx) })
	if _, err := direct.Exec(ctx, "drop table if exists shed, counter; "+locksSetup+"; select pg_advisory_lock(100)"); err != nil {
		t.Fatal(err)
	}
	return newRelay(t, s.Addr(), 1<<15)
}

func TestLocksByPgx(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, version := range []int{15, 18} {
			t.Run(mode.String(), func(t *testing.T) {
				r := locking(t, version)
				ctx := context.Background()
				config, err := pgx.ParseConfig(r.url(t, sharedServer(t, version).URL()))
				if err != nil {
					t.Fatal(err)
				}
				config.DefaultQueryExecMode = mode
				c, err := pgx.ConnectConfig(ctx, config)
				if err != nil {
					t.Fatal(err)
				}
				do := func(sql string, args ...any) {
					t.Helper()
					if rows, err := c.Query(ctx, sql, args...); err != nil {
						t.Fatal(err)
					} else if rows.Close(); rows.Err() != nil {
						t.Fatal(rows.Err())
					}
				}
				do("SELECT pg_try_advisory_lock($1)", int64(42))
				do("SELECT pg_try_advisory_lock($1) AS got", int64(100))
				do("SELECT pg_advisory_unlock($1)", int64(42))
				do("SELECT pg_advisory_unlock($1)", int64(42))
				do("begin")
				do("SELECT pg_catalog.pg_advisory_xact_lock($1, $2)", int32(1), int32(2))
				do("SELECT value FROM counter WHERE id = $1 FOR UPDATE", 1)
				do("commit")
				now := time.Now()
				do(takeShed, "a", now.Add(time.Minute), "job", now)
				do(takeShed, "b", now.Add(time.Minute), "job", now)
				do(renewShed, now.Add(2*time.Minute), "job", "a")
				do(dropShed, "job", "a")
				c.Close(ctx)
				marks := r.stop()
				if got := flowed(r); got != lines(lockFlow) {
					t.Errorf("got\n%s\nwant\n%s", got, lines(lockFlow))
				}
				for _, m := range marks {
					if m.Op != nil && m.Op.Kind == "acquire" && strings.HasPrefix(m.Op.Key, "lease:") {
						if off := m.Op.Until - now.Add(time.Minute).UnixMilli(); off < -1 || off > 1 || !m.Op.Token.Known() || m.Op.TTL != 0 {
							t.Errorf("the lease ends at %d, %d ms off", m.Op.Until, off)
						}
						break
					}
				}
			})
		}
	}
}

const psycopg2Locks = `
import sys, datetime
import %s as pg
c = pg.connect(sys.argv[1]); c.autocommit = True
k = c.cursor()
k.execute("SELECT pg_try_advisory_lock(%%s)", (42,))
k.execute("SELECT pg_try_advisory_lock(%%s) AS got", (100,))
k.execute("SELECT pg_advisory_unlock(%%s)", (42,))
k.execute("SELECT pg_advisory_unlock(%%s)", (42,))
c.autocommit = False
k.execute("SELECT pg_catalog.pg_advisory_xact_lock(%%s::int, %%s::int)", (1, 2))
k.execute("SELECT value FROM counter WHERE id = %%s FOR UPDATE", (1,))
c.commit()
c.autocommit = True
now = datetime.datetime.now(datetime.timezone.utc)
later = now + datetime.timedelta(minutes=1)
for who in "a", "b":
    k.execute("UPDATE shed SET locked_by = %%s, lock_until = %%s WHERE name = %%s AND lock_until < %%s", (who, later, "job", now))
k.execute("UPDATE shed SET lock_until = %%s WHERE name = %%s AND locked_by = %%s", (later, "job", "a"))
k.execute("UPDATE shed SET locked_by = NULL, lock_until = now() WHERE name = %%s AND locked_by = %%s", ("job", "a"))
c.close()
`

func TestLocksByPsycopg(t *testing.T) {
	for _, module := range []string{"psycopg2", "psycopg"} {
		for _, version := range []int{15, 18} {
			t.Run(module, func(t *testing.T) {
				python := pythonWith(t, module)
				r := locking(t, version)
				script := strings.ReplaceAll(strings.Replace(psycopg2Locks, "%s", module, 1), "%%", "%")
				if out, err := exec.Command(python, "-c", script, r.url(t, sharedServer(t, version).URL())).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if got := flowed(r); got != lines(lockFlow) {
					t.Errorf("got\n%s\nwant\n%s", got, lines(lockFlow))
				}
			})
		}
	}
}

const psqlLocks = `SELECT pg_try_advisory_lock(42);
SELECT pg_try_advisory_lock(100) AS got;
SELECT pg_advisory_unlock(42);
SELECT pg_advisory_unlock(42);
BEGIN;
SELECT pg_catalog.pg_advisory_xact_lock(1, 2);
SELECT value FROM counter WHERE id = 1 FOR UPDATE;
COMMIT;
UPDATE shed SET locked_by = 'a', lock_until = now() + interval '1 minute' WHERE name = 'job' AND lock_until < now();
UPDATE shed SET locked_by = 'b', lock_until = now() + interval '1 minute' WHERE name = 'job' AND lock_until < now();
UPDATE shed SET lock_until = now() + interval '1 minute' WHERE name = 'job' AND locked_by = 'a';
UPDATE shed SET locked_by = NULL, lock_until = now() WHERE name = 'job' AND locked_by = 'a';
`

func TestLocksByPsql(t *testing.T) {
	psql, err := exec.LookPath("psql")
	if err != nil {
		lacks(t, "psql is not installed")
	}
	for _, version := range []int{15, 18} {
		r := locking(t, version)
		cmd := exec.Command(psql, "-X", "-v", "ON_ERROR_STOP=1", r.url(t, sharedServer(t, version).URL()))
		cmd.Stdin = strings.NewReader(psqlLocks)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := flowed(r); got != lines(lockFlow) {
			t.Errorf("%d: got\n%s\nwant\n%s", version, got, lines(lockFlow))
		}
	}
}
