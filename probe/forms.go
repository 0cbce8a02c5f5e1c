package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// setValue reads the value, works and sets it to one more.
func setValue(ctx context.Context, s *stint) (bool, error) {
	if err := s.read(ctx); err != nil || !s.known || !s.work() {
		return false, err
	}
	done, err := s.write(ctx, s.value+1)
	if err != nil || done || s.load.Broken != BrokenResend {
		return done, err
	}
	return s.resend(ctx)
}

func (s *stint) write(ctx context.Context, value int64) (bool, error) {
	switch {
	case s.load.Broken == BrokenFenceUnchecked:
		return s.exec(ctx, "UPDATE %s SET value = $1, fence = $2 WHERE id = 1", value, s.fence)
	case s.load.Broken == BrokenFenceElsewhere:
		return s.writeElsewhere(ctx, value)
	case s.load.Fence == FenceWrite:
		return s.exec(ctx, "UPDATE %s SET value = $1, fence = $2 WHERE id = 1 AND fence < $2", value, s.fence)
	case s.load.Fence == FenceClaim:
		return s.exec(ctx, "UPDATE %s SET value = $1 WHERE id = 1 AND fence = $2", value, s.fence)
	}
	return s.exec(ctx, "UPDATE %s SET value = $1 WHERE id = 1", value)
}

// writeElsewhere compares its fence with one in another table: whoever waits for
// the value's row looks at that table only once, before.
func (s *stint) writeElsewhere(ctx context.Context, value int64) (done bool, err error) {
	err = s.inTx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, s.load.sql("UPDATE %s SET value = $1 WHERE id = 1 AND (SELECT fence FROM %s_fence WHERE id = 1) < $2"), value, s.fence)
		if done = err == nil && tag.RowsAffected() == 1; !done {
			return err
		}
		time.Sleep(s.load.Work)
		_, err = tx.Exec(ctx, s.load.sql("UPDATE %s_fence SET fence = $1 WHERE id = 1"), s.fence)
		return err
	})
	return done, err
}

// resend takes the lock anew, and sends the value that was refused under the new
// fence.
func (s *stint) resend(ctx context.Context) (bool, error) {
	if err := s.release(ctx); err != nil {
		return false, err
	}
	s.token, s.released = newToken(), true
	granted, err := s.take(ctx, ctx, s)
	if err != nil || !granted {
		return false, err
	}
	s.released = false
	return s.write(ctx, s.value+1)
}

// inTx runs what do does in one transaction.
func (s *stint) inTx(ctx context.Context, o pgx.TxOptions, do func(tx pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, s.pg, o, do)
	if err == nil || refused(err) || errors.Is(err, errLost) {
		return err
	}
	return s.failed(err)
}

// errLost ends a transaction whose section's lock was seen to be lost.
var errLost = errors.New("the lock was lost")

// readThenWrite is a transaction that reads the value and sets it to one more.
func (s *stint) readThenWrite(ctx context.Context, o pgx.TxOptions, read string) (bool, error) {
	err := s.inTx(ctx, o, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, s.load.sql(read)).Scan(&s.value); err != nil {
			return err
		}
		if !s.work() {
			return errLost
		}
		if _, err := tx.Exec(ctx, s.load.sql("UPDATE %s SET value = $1 WHERE id = 1"), s.value+1); err != nil {
			return err
		}
		if s.load.Broken != BrokenEarlyRelease {
			return nil
		}
		err := s.release(ctx)
		time.Sleep(s.load.Work)
		return err
	})
	if errors.Is(err, errLost) {
		return false, nil
	}
	return err == nil, err
}

const readValue = "SELECT value FROM %s WHERE id = 1"

func inTransaction(ctx context.Context, s *stint) (bool, error) {
	return s.readThenWrite(ctx, pgx.TxOptions{}, readValue)
}

func underRowLock(ctx context.Context, s *stint) (bool, error) {
	return s.readThenWrite(ctx, pgx.TxOptions{}, readValue+" FOR UPDATE")
}

// serializable tries again what the database refuses, as its manual demands.
func serializable(ctx context.Context, s *stint) (bool, error) {
	for {
		done, err := s.readThenWrite(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable}, readValue)
		if !refused(err) {
			return done, err
		}
	}
}

func versioned(ctx context.Context, s *stint) (bool, error) {
	var version int64
	if err := s.pg.QueryRow(ctx, s.load.sql("SELECT value, version FROM %s WHERE id = 1")).Scan(&s.value, &version); err != nil {
		return false, fmt.Errorf("read counter: %w", err)
	}
	if !s.work() {
		return false, nil
	}
	return s.exec(ctx, "UPDATE %s SET value = $1, version = $2 WHERE id = 1 AND version = $3", s.value+1, version+1, version)
}

func add(ctx context.Context, s *stint) (bool, error) {
	if err := s.read(ctx); err != nil || !s.work() {
		return false, err
	}
	return s.exec(ctx, "UPDATE %s SET value = value + 1 WHERE id = 1")
}

// insertNext adds the number behind the highest, which only one can.
func insertNext(ctx context.Context, s *stint) (bool, error) {
	var n int64
	if err := s.pg.QueryRow(ctx, s.load.sql("SELECT coalesce(max(n), 0) FROM %s_log")).Scan(&n); err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	if !s.work() {
		return false, nil
	}
	_, err := s.pg.Exec(ctx, s.load.sql("INSERT INTO %s_log (n) VALUES ($1)"), n+1)
	if refused(err) {
		return false, nil
	}
	if err != nil {
		return false, s.failed(err)
	}
	return true, nil
}

// touch sets what the last writer may decide, whatever was read before.
func touch(ctx context.Context, s *stint) (bool, error) {
	if err := s.read(ctx); err != nil || !s.work() {
		return false, err
	}
	return s.exec(ctx, "UPDATE %s SET touched = $1 WHERE id = 1", time.Now().Format(time.RFC3339Nano))
}

func upsert(ctx context.Context, s *stint) (bool, error) {
	if err := s.read(ctx); err != nil || !s.work() {
		return false, err
	}
	return s.exec(ctx, "INSERT INTO %s_cache (id, body) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET body = excluded.body", "the same every time")
}
