package probe

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
)

// releaseText removes the lock if it still has our token.
const releaseText = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`

// acquireText takes the lock and issues its fence in one step, so that fences
// rise in the order of the grants. It answers the fence, or nil when refused.
const acquireText = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return nil`

// acquireAnywayText is the same without its NX.
const acquireAnywayText = `
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return redis.call('INCR', KEYS[2])`

// acquire tries once for the lock, and has a fence where the load wants one.
func (w *worker) acquire(ctx context.Context, token string) (fence int64, granted bool, err error) {
	if w.load.Fence != FenceNone && w.load.Broken != BrokenSplitFence {
		return w.acquireFenced(ctx, token)
	}
	if granted, err = w.set(ctx, token); err != nil || !granted {
		return 0, false, err
	}
	if w.load.Fence == FenceNone {
		return 0, true, nil
	}
	fence, err = w.redis.Incr(ctx, w.load.fenceKey()).Result()
	if err != nil {
		return 0, false, fmt.Errorf("take fence: %w", err)
	}
	return fence, true, nil
}

func (w *worker) acquireFenced(ctx context.Context, token string) (fence int64, granted bool, err error) {
	text := acquireText
	if w.load.Broken == BrokenNoNX {
		text = acquireAnywayText
	}
	keys := []string{w.load.Key, w.load.fenceKey()}
	fence, err = w.script(ctx, text, keys, token, w.load.Lease.Milliseconds()).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("take lock and fence: %w", err)
	}
	return fence, true, nil
}

func (w *worker) set(ctx context.Context, token string) (granted bool, err error) {
	command := []any{"SET", w.load.Key, token}
	if w.load.Broken != BrokenNoNX {
		command = append(command, "NX")
	}
	command = append(command, "PX", w.load.Lease.Milliseconds())
	err = w.redis.Do(ctx, command...).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take lock: %w", err)
	}
	return true, nil
}

// release gives the lock back; that it was not ours any more is no error.
func (w *worker) release(ctx context.Context, token string) error {
	var err error
	if w.load.Broken == BrokenBlindDel {
		err = w.redis.Del(ctx, w.load.Key).Err()
	} else {
		err = w.script(ctx, releaseText, []string{w.load.Key}, token).Err()
	}
	if err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

// read gives the counter's value. claimed is false when a newer fence stands.
func (w *worker) read(ctx context.Context, fence int64) (value int64, claimed bool, err error) {
	if w.load.Fence == FenceClaim {
		err = w.pg.QueryRow(ctx, w.load.sql("UPDATE %s SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING value"), fence).Scan(&value)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, false, nil
		}
	} else {
		err = w.pg.QueryRow(ctx, w.load.sql("SELECT value FROM %s WHERE id = 1")).Scan(&value)
	}
	if err != nil {
		return 0, false, fmt.Errorf("read counter: %w", err)
	}
	return value, true, nil
}

// write stores the value. written is false when the fence refused it. A write
// without an answer counts as unknown, not as failed: it may have happened.
func (w *worker) write(ctx context.Context, value, fence int64) (written bool, err error) {
	var tag pgconn.CommandTag
	switch w.load.Fence {
	case FenceNone:
		tag, err = w.pg.Exec(ctx, w.load.sql("UPDATE %s SET value = $1 WHERE id = 1"), value)
	case FenceWrite:
		tag, err = w.pg.Exec(ctx, w.load.sql("UPDATE %s SET value = $1, fence = $2 WHERE id = 1 AND fence < $2"), value, fence)
	case FenceClaim:
		tag, err = w.pg.Exec(ctx, w.load.sql("UPDATE %s SET value = $1 WHERE id = 1 AND fence = $2"), value, fence)
	}
	if err == nil {
		return tag.RowsAffected() == 1, nil
	}
	if answer := new(pgconn.PgError); !errors.As(err, &answer) && !pgconn.SafeToRetry(err) {
		w.report.Unknown++
	}
	return false, fmt.Errorf("write counter: %w", err)
}

// script runs a script by its text the first time and by its hash from then
// on. A hash alone, which Redis may know from an earlier process, would tell
// nothing to who reads along.
func (w *worker) script(ctx context.Context, text string, keys []string, args ...any) *redis.Cmd {
	if w.known[text] {
		return redis.NewScript(text).Run(ctx, w.redis, keys, args...)
	}
	w.known[text] = true
	return w.redis.Eval(ctx, text, keys, args...)
}
