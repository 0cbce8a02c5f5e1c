package pgwire

import (
	"context"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

const asyncpgScript = `
import asyncio, sys, asyncpg
async def main():
    pg = await asyncpg.connect(sys.argv[1])
    for n in range(3):
        value = await pg.fetchval("SELECT value FROM counter WHERE id = 1")
        await pg.execute("UPDATE counter SET value = $1, fence = $2 WHERE id = 1 AND fence < $2", value + 1, n + 1)
    print(await pg.fetchval("UPDATE counter SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING value", 2))
    async with pg.transaction():
        await pg.execute("INSERT INTO counter (id, value, note) VALUES ($1, $2, $3)", 2, 5, "x")
    try:
        await pg.execute("INSERT INTO counter (id) VALUES ($1)", 2)
    except asyncpg.UniqueViolationError:
        pass
    await pg.executemany("UPDATE counter SET value = value + $1 WHERE id = $2", [(1, 2), (10, 2)])
    await pg.copy_records_to_table("counter", records=[(3, 1, 0, "y")])
    await pg.close()
asyncio.run(main())
`

const psycopgScript = `
import sys, psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as pg:
    for n in range(7):
        value, = pg.execute("SELECT value FROM counter WHERE id = %s", (1,)).fetchone()
        pg.execute("UPDATE counter SET value = %s WHERE id = %s", (value + 1, 1))
    with pg.transaction():
        pg.execute("INSERT INTO counter (id, value, note) VALUES (%s, %s, %s)", (2, 5, "x"))
    with pg.pipeline():
        with pg.transaction():
            pg.execute("UPDATE counter SET value = value - %s WHERE id = 2", (1,))
    try:
        with pg.pipeline():
            pg.execute("UPDATE counter SET value = value + %s WHERE id = 2", (1,))
            pg.execute("INSERT INTO counter (id) VALUES (%s)", (2,))
    except psycopg.errors.UniqueViolation:
        pass
    with pg.cursor() as c, c.copy("COPY counter (id, value) FROM STDIN") as copy:
        copy.write_row((3, 1))
`

// Python's drivers show the ops of what the scripts do.
func TestPythonAgainstPostgres(t *testing.T) {
	for _, tt := range []struct{ module, script, want string }{
		{"asyncpg", asyncpgScript, `
			SELECT done 1 value=7
			UPDATE done 1 value:8+0 fence:1+0
			SELECT done 1 value=8
			UPDATE done 1 value:9+0 fence:2+0
			SELECT done 1 value=9
			UPDATE done 1 value:10+0 fence:3+0
			UPDATE done 0 fence:2+0
			BEGIN done 0
			INSERT done 1 id:2+0 value:5+0 note:` + show(hasher.Of([]byte("x"))) + `+0
			COMMIT done 0
			INSERT failed 0 id:2+0 23505
			UPDATE done 1 value:?+1
			UPDATE done 1 value:?+10
			COPY done 1`},
		{"psycopg", psycopgScript, `
			SELECT done 1 value=7
			UPDATE done 1 value:8+0
			SELECT done 1 value=8
			UPDATE done 1 value:9+0
			SELECT done 1 value=9
			UPDATE done 1 value:10+0
			SELECT done 1 value=10
			UPDATE done 1 value:11+0
			SELECT done 1 value=11
			UPDATE done 1 value:12+0
			SELECT done 1 value=12
			UPDATE done 1 value:13+0
			SELECT done 1 value=13
			UPDATE done 1 value:14+0
			BEGIN done 0
			INSERT done 1 id:2+0 value:5+0 note:` + show(hasher.Of([]byte("x"))) + `+0
			COMMIT done 0
			BEGIN done 0
			UPDATE done 1 value:?-1
			COMMIT done 0
			UPDATE rolled-back 1 value:?+1
			INSERT failed 0 id:2+0 23505
			COPY done 1`},
	} {
		t.Run(tt.module, func(t *testing.T) {
			python := pythonWith(t, tt.module)
			pg := testbed.Postgres(t)
			ctx := context.Background()
			direct, err := pgx.Connect(ctx, pg.URL())
			if err != nil {
				t.Fatal(err)
			}
			defer direct.Close(ctx)
			if _, err := direct.Exec(ctx, "create table counter (id bigint primary key, value bigint, fence int default 0, note text); insert into counter values (1, 7)"); err != nil {
				t.Fatal(err)
			}
			r := newRelay(t, pg.Addr(), 1<<12)
			out, err := exec.Command(python, "-c", tt.script, r.url(t, pg.URL())).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			marks := r.stop()
			if got := trimmed(outcomes(marks)); got != lines(tt.want) {
				t.Errorf("got\n%s\nwant\n%s", got, lines(tt.want))
			}
			checkSettled(t, marks)
		})
	}
}

// checkSettled holds the marks to this: each op of an implicit transaction is
// settled once, behind its reply, and no other is.
func checkSettled(t *testing.T, marks []wire.Mark) {
	t.Helper()
	replied, settled := map[*lock.Op]bool{}, map[*lock.Op]bool{}
	for _, m := range marks {
		switch m.Kind {
		case wire.Reply:
			replied[m.Op] = true
		case wire.Settle:
			if !replied[m.Op] || settled[m.Op] || !m.Op.Implicit {
				t.Errorf("settled: %+v", m.Op)
			}
			settled[m.Op] = true
		}
	}
	for op := range replied {
		if op.Implicit && !settled[op] {
			t.Errorf("not settled: %+v", op)
		}
	}
}

func pythonWith(t *testing.T, module string) string {
	t.Helper()
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	lacks(t, "no python3 with %s is installed", module)
	return ""
}
