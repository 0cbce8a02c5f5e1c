package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
)

const (
	lockKey  = "lock:account:1"
	fenceKey = "fence:account:1"
)

// What Postgres says when two processes make one table; see appendix A of its
// manual.
const (
	duplicateTable  = "42P07"
	duplicateObject = "42710"
	uniqueViolation = "23505"
)

// acquireFenced takes lock and fence in one step, or a late fence could
// overtake an early one.
const acquireFenced = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return nil`

const release = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`

// A service books deposits, one at a time.
type service struct {
	fencing string // none, write or claim
	lease   time.Duration
	check   time.Duration
	redis   *redis.Client
	pg      *pgx.Conn
}

// deposit adds cents to the balance. It is false, and nothing was booked, when
// a fence turned the deposit away: it must be taken again from the start.
func (s *service) deposit(ctx context.Context, cents int64) (booked bool, err error) {
	token := rand.Text()
	fence, err := s.lock(ctx, token)
	if err != nil {
		return false, err
	}
	defer func() {
		if unlockErr := s.redis.Eval(ctx, release, []string{lockKey}, token).Err(); unlockErr != nil {
			err = errors.Join(err, fmt.Errorf("release lock: %w", unlockErr))
		}
	}()
	balance, claimed, err := s.balance(ctx, fence)
	if err != nil || !claimed {
		return false, err
	}
	time.Sleep(s.check)
	return s.store(ctx, balance+cents, fence)
}

// lock waits for the lock. The fence is 0 where none is used.
func (s *service) lock(ctx context.Context, token string) (fence int64, err error) {
	for {
		fence, granted, err := s.tryLock(ctx, token)
		if err != nil {
			return 0, fmt.Errorf("take lock: %w", err)
		}
		if granted {
			return fence, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *service) tryLock(ctx context.Context, token string) (fence int64, granted bool, err error) {
	if s.fencing == "none" {
		granted, err = s.redis.SetNX(ctx, lockKey, token, s.lease).Result()
		return 0, granted, err
	}
	fence, err = s.redis.Eval(ctx, acquireFenced, []string{lockKey, fenceKey}, token, s.lease.Milliseconds()).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	return fence, err == nil, err
}

// balance reads the row. With FENCE=claim it is marked as ours in the same
// step, and claimed is false when a newer fence has done so before.
func (s *service) balance(ctx context.Context, fence int64) (cents int64, claimed bool, err error) {
	if s.fencing == "claim" {
		err = s.pg.QueryRow(ctx,
			"UPDATE account SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING balance", fence).Scan(&cents)
	} else {
		err = s.pg.QueryRow(ctx, "SELECT balance FROM account WHERE id = 1").Scan(&cents)
	}
	if s.fencing == "claim" && errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read balance: %w", err)
	}
	return cents, true, nil
}

// store writes the balance. It is false when a fence turned the write away.
func (s *service) store(ctx context.Context, cents, fence int64) (stored bool, err error) {
	var tag pgconn.CommandTag
	switch s.fencing {
	case "claim":
		tag, err = s.pg.Exec(ctx, "UPDATE account SET balance = $1 WHERE id = 1 AND fence = $2", cents, fence)
	case "write":
		tag, err = s.pg.Exec(ctx, "UPDATE account SET balance = $1, fence = $2 WHERE id = 1 AND fence < $2", cents, fence)
	default:
		tag, err = s.pg.Exec(ctx, "UPDATE account SET balance = $1 WHERE id = 1", cents)
	}
	if err != nil {
		return false, fmt.Errorf("write balance: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// create makes the account. Several processes may try at once; one is enough.
func (s *service) create(ctx context.Context) error {
	_, err := s.pg.Exec(ctx, `CREATE TABLE IF NOT EXISTS account (id int PRIMARY KEY,
		balance bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0)`)
	if err != nil && !raced(err) {
		return fmt.Errorf("create account: %w", err)
	}
	_, err = s.pg.Exec(ctx, "INSERT INTO account (id, balance, fence) VALUES (1, 0, 0) ON CONFLICT (id) DO NOTHING")
	if err != nil {
		return fmt.Errorf("create account: %w", err)
	}
	return nil
}

// raced reports whether another process made the same table a moment earlier:
// IF NOT EXISTS does not lock what is not there, and the loser hears of the
// table, of its row type or of a catalogue's unique index.
func raced(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case duplicateTable, duplicateObject, uniqueViolation:
		return true
	}
	return false
}
