package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A stint is one section of a worker, from its grant to its release.
type stint struct {
	*worker
	token    string
	fence    int64
	value    int64 // that was read
	known    bool  // value is
	released bool  // or never held
	lost     bool  // a renewal was refused
	stop     func() bool
}

// keep begins to renew the lock, if the load wants that.
func (s *stint) keep(ctx context.Context) {
	if l, ok := s.lock.(*redisLock); ok && s.load.renews() && !s.released {
		s.stop = l.keep(ctx, s.token)
	}
}

// work is what takes the time between the read and the write. It reports
// whether the section may go on: a lock that was seen to be lost ends it.
func (s *stint) work() bool {
	time.Sleep(s.load.Work)
	s.stopRenewing()
	return !s.lost
}

func (s *stint) stopRenewing() {
	if s.stop != nil {
		s.lost = !s.stop() && s.load.Broken == ""
		s.stop = nil
	}
}

// release gives the lock back, once.
func (s *stint) release(ctx context.Context) error {
	s.stopRenewing()
	if s.released {
		return nil
	}
	s.released = true
	return s.lock.release(ctx, s.token)
}

// read gives the counter's value. known is left false when a newer fence stands.
func (s *stint) read(ctx context.Context) error {
	if s.known {
		return nil
	}
	sql, args := "SELECT value FROM %s WHERE id = 1", []any(nil)
	if s.load.Fence == FenceClaim {
		sql, args = "UPDATE %s SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING value", []any{s.fence}
	}
	err := s.pg.QueryRow(ctx, s.load.sql(sql), args...).Scan(&s.value)
	if errors.Is(err, pgx.ErrNoRows) && s.load.Fence == FenceClaim {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read counter: %w", err)
	}
	s.known = true
	return nil
}

// exec runs a write. done is false when a guard refused it. A write without an
// answer counts as unknown, not as failed: it may have happened.
func (s *stint) exec(ctx context.Context, sql string, args ...any) (done bool, err error) {
	tag, err := s.pg.Exec(ctx, s.load.sql(sql), args...)
	if err != nil {
		return false, s.failed(err)
	}
	return tag.RowsAffected() == 1, nil
}

// failed words the error of a write, and counts one whose outcome is not known.
func (s *stint) failed(err error) error {
	if answer := new(pgconn.PgError); !errors.As(err, &answer) && !pgconn.SafeToRetry(err) {
		s.report.Unknown++
	}
	return fmt.Errorf("write: %w", err)
}

// refused reports whether an error is a guard of the database at work.
func refused(err error) bool {
	answer := new(pgconn.PgError)
	return errors.As(err, &answer) && (answer.Code == "23505" || answer.Code == "40001")
}
