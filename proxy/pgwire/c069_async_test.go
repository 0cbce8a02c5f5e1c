package pgwire

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestC069AsynchronousMessages(t *testing.T) {
	both(t, tables, func(w *tap) {
		channel := fmt.Sprint("c069_", w.version)
		w.send(q("listen " + channel))
		w.want("C:LISTEN Z:I")
		// In a pipeline and at a COMMIT, from the session itself.
		w.send(segments(ext("notify "+channel), ext(sqlWrite, "8", "1"), fe{syn})...)
		w.want("1 2 C:NOTIFY 1 2 C:UPDATE_1 A Z:I")
		w.send(q("begin; notify " + channel + "; " + sqlUpdate + "; commit"))
		w.want("C:BEGIN C:NOTIFY C:UPDATE_1 C:COMMIT A Z:I")
		// Parameters and a flood of notices in the middle of replies.
		w.send(q("set application_name = 'other'; " + sqlUpdate))
		w.want("C:SET C:UPDATE_1 S Z:I")
		w.send(q(sqlUpdate + "; do 'begin for i in 1..500 loop raise notice ''%'', i; end loop; end'; " + sqlUpdate))
		w.want("C:UPDATE_1 " + strings.Repeat("N:00000 ", 500) + "C:DO C:UPDATE_1 Z:I")
		// Idle, from another session.
		ctx := context.Background()
		other, err := pgx.Connect(ctx, sharedServer(t, w.version).URL())
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close(ctx)
		if _, err := other.Exec(ctx, "notify "+channel); err != nil {
			t.Fatal(err)
		}
		w.want("A")
		w.send(q(sqlUpdate))
		w.want("C:UPDATE_1 Z:I")
		if got := trimmed(outcomes(w.pl.marks)); got != lines(`UPDATE done 1 value:8+0
			BEGIN done 0
			UPDATE done 1 value:8+0
			COMMIT done 0
			UPDATE done 1 value:8+0
			UPDATE done 1 value:8+0
			UPDATE done 1 value:8+0
			UPDATE done 1 value:8+0`) {
			t.Error(got)
		}
		checkSettled(t, w.pl.marks)
	})
}

func TestC070FatalErrorsWhileIdle(t *testing.T) {
	for _, tt := range []struct{ name, sql, code string }{
		{"terminated", "", "57P01"},
		{"idle in a transaction", "set idle_in_transaction_session_timeout = 1; begin", "25P03"},
		{"idle", "set idle_session_timeout = 1", "57P05"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, tables, func(w *tap) {
				if tt.sql != "" {
					w.send(q(tt.sql))
					w.until('Z')
				} else {
					ctx := context.Background()
					other, err := pgx.Connect(ctx, sharedServer(t, w.version).URL())
					if err != nil {
						t.Fatal(err)
					}
					defer other.Close(ctx)
					if _, err := other.Exec(ctx, "select pg_terminate_backend($1)", w.pl.tracker.BackendPID()); err != nil {
						t.Fatal(err)
					}
				}
				w.want("E:" + tt.code + " EOF")
				if got := outcomes(w.pl.marks); len(got) > 0 && trimmed(got) != "BEGIN done 0" || w.pl.tracker.phase != running {
					t.Error(got)
				}
			})
		})
	}
}

// Another session waits for a lock as it does without a proxy.
func TestC073LocksBlockOthers(t *testing.T) {
	for _, version := range []int{15, 18} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			server := sharedServer(t, version)
			ctx := context.Background()
			r := newRelay(t, server.Addr(), 1<<12)
			connect := func(url string) *pgx.Conn {
				c, err := pgx.Connect(ctx, url)
				if err != nil {
					t.Fatal(err)
				}
				return c
			}
			one, two, direct := connect(r.url(t, server.URL())), connect(r.url(t, server.URL())), connect(server.URL())
			run := func(c *pgx.Conn, sql string) {
				t.Helper()
				if _, err := c.Exec(ctx, sql); err != nil {
					t.Fatal(err)
				}
			}
			run(direct, "create table c073 (id int, value int); insert into c073 values (1, 1)")
			defer run(direct, "drop table c073")
			for _, lock := range []string{"select pg_advisory_xact_lock(73)", "select value from c073 where id = 1 for update", "lock table c073"} {
				run(one, "begin")
				run(one, lock)
				waited := make(chan error, 1)
				go func() {
					_, err := two.Exec(ctx, "begin; "+lock+"; commit")
					waited <- err
				}()
				for blocked := false; !blocked; {
					if err := direct.QueryRow(ctx, "select $1 = any (pg_blocking_pids($2))", one.PgConn().PID(), two.PgConn().PID()).Scan(&blocked); err != nil {
						t.Fatal(err)
					}
					select {
					case err := <-waited:
						t.Fatalf("%s: did not wait: %v", lock, err)
					default:
					}
				}
				run(one, "commit")
				if err := <-waited; err != nil {
					t.Fatal(err)
				}
			}
			one.Close(ctx)
			two.Close(ctx)
			r.stop()
			direct.Exec(ctx, "select 1")
			t.Cleanup(func() { direct.Close(ctx) })
		})
	}
}

// A timeout fails the request that ran into it, and no other.
func TestC074Timeouts(t *testing.T) {
	both(t, tables, func(w *tap) {
		w.send(q("set statement_timeout = 1000"))
		w.want("C:SET Z:I")
		w.send(segments(ext(sqlWrite, "8", "1"), fe{syn}, ext("UPDATE counter SET value = 9 FROM pg_sleep($1) WHERE id = 1", "60"), ext(sqlWrite, "5", "1"), fe{syn}, ext(sqlWrite, "6", "1"), fe{syn})...)
		w.want("1 2 C:UPDATE_1 Z:I 1 2 E:57014 Z:I 1 2 C:UPDATE_1 Z:I")
		if got := trimmed(outcomes(w.pl.marks)); got != lines(`UPDATE done 1 value:8+0
			UPDATE failed 0 value:9+0 57014
			UPDATE failed 0 value:5+0 skipped
			UPDATE done 1 value:6+0`) {
			t.Error(got)
		}
	})
	for _, version := range []int{15, 18} {
		ctx := context.Background()
		holder, err := pgx.Connect(ctx, sharedServer(t, version).URL())
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Close(ctx)
		for _, sql := range []string{"create table c074 (id int)", "begin", "lock table c074"} {
			if _, err := holder.Exec(ctx, sql); err != nil {
				t.Fatal(err)
			}
		}
		w := dial(t, version)
		w.startup(196608, "user", "postgres", "database", "postgres")
		w.until('Z')
		w.send(q("set lock_timeout = 1"))
		w.want("C:SET Z:I")
		w.send(q("delete from c074"), q("select 1"))
		w.want("E:55P03 Z:I T D C:SELECT_1 Z:I")
		w.marks(`ask DELETE c074 write tx1i [Q]
			got DELETE failed rows=0 err=55P03 [E]
			end DELETE failed [Z]`)
		if _, err := holder.Exec(ctx, "drop table c074; commit"); err != nil {
			t.Fatal(err)
		}
	}
}
