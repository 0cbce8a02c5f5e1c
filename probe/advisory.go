package probe

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/jackc/pgx/v5"
)

// An advisoryLock is one of the worker's Postgres session.
type advisoryLock struct {
	load   Load
	worker *worker
	second *pgx.Conn // where the unlock goes, if lock and unlock are split
}

// number is the lock's key.
func (l *advisoryLock) number() int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(l.load.Key)) // never fails
	return int64(h.Sum32())
}

func (l *advisoryLock) acquire(ctx context.Context, _ string) (g grant, err error) {
	if err = l.worker.pg.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", l.number()).Scan(&g.granted); err != nil {
		return grant{}, fmt.Errorf("take advisory lock: %w", err)
	}
	return g, nil
}

// release gives the lock back; that it was not held is no error, though Postgres
// warns of it.
func (l *advisoryLock) release(ctx context.Context, _ string) error {
	conn, err := l.releaser(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", l.number()); err != nil {
		return fmt.Errorf("release advisory lock: %w", err)
	}
	return nil
}

func (l *advisoryLock) releaser(ctx context.Context) (*pgx.Conn, error) {
	if l.load.Broken != BrokenSplitSession {
		return l.worker.pg, nil
	}
	if l.second == nil || l.second.IsClosed() {
		conn, err := Database{URL: l.load.Database}.Connect(ctx)
		if err != nil {
			return nil, err
		}
		l.second = conn
	}
	return l.second, nil
}
