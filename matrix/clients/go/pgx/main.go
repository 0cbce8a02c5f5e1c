// Command pgx guards its work by a lock in Postgres that is made by hand: LOCK is advisory (of the
// session), xact (advisory, of the transaction), row (SELECT FOR UPDATE) or lease (a row with an
// owner and a time).
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/matrix/clients/go/work"
)

var errHeld = errors.New("held by another")

func main() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	work.Must(err)
	defer conn.Close(ctx)
	s := work.Start()
	defer s.Finish()
	turn := map[string]func(context.Context, *pgx.Conn, *work.Shift){"advisory": advisory, "xact": xact, "row": row, "lease": lease}[os.Getenv("LOCK")]
	for s.More() {
		turn(ctx, conn, s)
	}
}

const number = 4711

func advisory(ctx context.Context, conn *pgx.Conn, s *work.Shift) {
	var yes bool
	work.Must(conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", number).Scan(&yes))
	if !yes {
		s.Refuse(errHeld)
		return
	}
	_ = s.Section(ctx, nil)
	work.Must(conn.QueryRow(ctx, "SELECT pg_advisory_unlock($1)", number).Scan(&yes))
	s.Release(when(yes))
}

func xact(ctx context.Context, conn *pgx.Conn, s *work.Shift) {
	within(ctx, conn, s, func(tx pgx.Tx) (yes bool) {
		work.Must(tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock(47, hashtext('counter'))").Scan(&yes))
		return yes
	})
}

func row(ctx context.Context, conn *pgx.Conn, s *work.Shift) {
	within(ctx, conn, s, func(tx pgx.Tx) bool {
		var id int
		return tx.QueryRow(ctx, "SELECT id FROM counter WHERE id = 1 FOR UPDATE NOWAIT").Scan(&id) == nil
	})
}

// within holds a lock for one transaction, and works in it.
func within(ctx context.Context, conn *pgx.Conn, s *work.Shift, lock func(pgx.Tx) bool) {
	tx, err := conn.Begin(ctx)
	work.Must(err)
	if !lock(tx) {
		work.Must(tx.Rollback(ctx))
		s.Refuse(errHeld)
		return
	}
	s.Granted++
	work.Must(s.Count(ctx, tx, 1, nil))
	s.Release(tx.Commit(ctx))
}

func lease(ctx context.Context, conn *pgx.Conn, s *work.Shift) {
	owner := rand.Text()
	tag, err := conn.Exec(ctx, `INSERT INTO lease (name, owner, expires_at) VALUES ($1, $2, now() + $3 * interval '1 ms')
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at
		WHERE lease.expires_at < now()`, "counter", owner, s.Lease.Milliseconds())
	work.Must(err)
	if tag.RowsAffected() == 0 {
		s.Refuse(errHeld)
		return
	}
	_ = s.Section(ctx, func() error {
		tag, err := conn.Exec(ctx, `UPDATE lease SET expires_at = now() + $3 * interval '1 ms'
			WHERE name = $1 AND owner = $2 AND expires_at > now()`, "counter", owner, s.Lease.Milliseconds())
		return errors.Join(err, when(tag.RowsAffected() == 1))
	})
	tag, err = conn.Exec(ctx, "DELETE FROM lease WHERE name = $1 AND owner = $2", "counter", owner)
	s.Release(errors.Join(err, when(tag.RowsAffected() == 1)))
}

func when(yes bool) error {
	if !yes {
		return errors.New("not ours")
	}
	return nil
}
