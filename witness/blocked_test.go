package witness

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// Who waits for a row is told, and who waits for an advisory lock is not: that one waits for the lock itself.
func TestWhoWaitsForARow(t *testing.T) {
	server := testbed.Postgres(t)
	h, log := pgHouse(t, server)
	ctx := t.Context()
	connect := func() *pgx.Conn {
		c, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	run := func(c *pgx.Conn, sql string) {
		if _, err := c.Exec(ctx, sql); err != nil {
			t.Error(err)
		}
	}
	holder, waiter, patient := connect(), connect(), connect()
	for _, sql := range []string{"CREATE TABLE counter (id int, value int)", "INSERT INTO counter VALUES (1, 0)", "BEGIN",
		"UPDATE counter SET value = 1 WHERE id = 1", "SELECT pg_advisory_xact_lock(7)"} {
		run(holder, sql)
	}
	done := make(chan struct{}, 2)
	for c, sql := range map[*pgx.Conn]string{waiter: "UPDATE counter SET value = 2 WHERE id = 1", patient: "SELECT pg_advisory_lock(7)"} {
		go func() { run(c, sql); done <- struct{}{} }()
	}
	waits := connect()
	for until := time.Now().Add(time.Minute); ; {
		var n int
		if err := waits.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&n); err != nil || time.Now().After(until) {
			t.Fatal(n, err)
		}
		if n == 2 {
			break
		}
	}
	by, err := h.Blocked(ctx, server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if got := by[int32(waiter.PgConn().PID())]; len(by) != 1 || !slices.Equal(got, []int32{int32(holder.PgConn().PID())}) {
		t.Errorf("%v, want %d to wait for %d alone", by, waiter.PgConn().PID(), holder.PgConn().PID())
	}
	run(holder, "COMMIT")
	<-done
	<-done
	if by, err := h.Blocked(ctx, server.Addr()); err != nil || len(by) != 0 {
		t.Errorf("nobody waits: %v, %v", by, err)
	}
	if _, err := h.Blocked(ctx, "elsewhere:5432"); err == nil {
		t.Error("another server was asked")
	}
	if log.String() != "" {
		t.Errorf("log: %s", log)
	}
}
