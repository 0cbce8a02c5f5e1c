package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// releaseText removes the lock if it still has our token.
const releaseText = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`

// renewText moves the end of the lock if it still has our token.
const renewText = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
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

// A redisLock is a key with a lease.
type redisLock struct {
	load  Load
	redis *redis.Client
	known map[string]bool // scripts that were sent as text
}

// acquire tries once for the lock, and has a fence where the load wants one.
func (l *redisLock) acquire(ctx context.Context, token string) (g grant, err error) {
	if l.load.fenced() && l.load.Broken != BrokenSplitFence {
		return l.acquireFenced(ctx, token)
	}
	if l.load.Broken == BrokenSetNXExpire {
		return l.acquireInTwo(ctx, token)
	}
	if g.granted, err = l.set(ctx, token); err != nil || !g.granted || !l.load.fenced() {
		return g, err
	}
	if g.fence, err = l.redis.Incr(ctx, l.load.fenceKey()).Result(); err != nil {
		return grant{}, fmt.Errorf("take fence: %w", err)
	}
	return g, nil
}

func (l *redisLock) acquireFenced(ctx context.Context, token string) (grant, error) {
	text := acquireText
	if l.load.Broken == BrokenNoNX {
		text = acquireAnywayText
	}
	keys := []string{l.load.Key, l.load.fenceKey()}
	fence, err := l.script(ctx, text, keys, token, l.load.Lease.Milliseconds()).Int64()
	if errors.Is(err, redis.Nil) {
		return grant{}, nil
	}
	if err != nil {
		return grant{}, fmt.Errorf("take lock and fence: %w", err)
	}
	return grant{fence: fence, granted: true}, nil
}

// acquireInTwo leaves the lifetime to the grant's finish.
func (l *redisLock) acquireInTwo(ctx context.Context, token string) (grant, error) {
	granted, err := l.redis.SetNX(ctx, l.load.Key, token, 0).Result()
	if err != nil {
		return grant{}, fmt.Errorf("take lock: %w", err)
	}
	return grant{granted: granted, finish: func(ctx context.Context) error {
		return l.redis.Do(ctx, "PEXPIRE", l.load.Key, l.load.Lease.Milliseconds()).Err()
	}}, nil
}

func (l *redisLock) set(ctx context.Context, token string) (granted bool, err error) {
	command := []any{"SET", l.load.Key, token}
	if l.load.Broken != BrokenNoNX {
		command = append(command, "NX")
	}
	command = append(command, "PX", l.load.Lease.Milliseconds())
	err = l.redis.Do(ctx, command...).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take lock: %w", err)
	}
	return true, nil
}

// release gives the lock back; that it was not ours any more is no error.
func (l *redisLock) release(ctx context.Context, token string) error {
	var err error
	if l.load.Broken == BrokenBlindDel {
		err = l.redis.Del(ctx, l.load.Key).Err()
	} else {
		err = l.script(ctx, releaseText, []string{l.load.Key}, token).Err()
	}
	if err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

// renew moves the lock's end, and reports whether there still was one to move.
func (l *redisLock) renew(ctx context.Context, token string) (held bool, err error) {
	ms := l.load.Lease.Milliseconds()
	switch l.load.Broken {
	case BrokenBlindRenew:
		held, err = l.redis.PExpire(ctx, l.load.Key, l.load.Lease).Result()
	case BrokenUpsertRenew:
		held, err = true, l.redis.Do(ctx, "SET", l.load.Key, token, "PX", ms).Err()
	default:
		held, err = l.script(ctx, renewText, []string{l.load.Key}, token, ms).Bool()
	}
	if err != nil {
		return false, fmt.Errorf("renew lock: %w", err)
	}
	return held, nil
}

// keep renews the lock until the function that it returns is called, which
// reports whether it was held all the time.
func (l *redisLock) keep(ctx context.Context, token string) (stop func() bool) {
	done, kept := make(chan struct{}), make(chan bool, 1)
	go func() { kept <- l.renewing(ctx, token, done) }()
	return func() bool {
		close(done)
		return <-kept
	}
}

func (l *redisLock) renewing(ctx context.Context, token string, done <-chan struct{}) (kept bool) {
	tick := time.NewTicker(l.load.Renew)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return true
		case <-tick.C:
			if held, err := l.renew(ctx, token); err != nil || !held {
				return false
			}
		}
	}
}

// script runs a script by its text the first time and by its hash from then
// on. A hash alone, which Redis may know from an earlier process, would tell
// nothing to who reads along.
func (l *redisLock) script(ctx context.Context, text string, keys []string, args ...any) *redis.Cmd {
	if l.known[text] {
		return redis.NewScript(text).Run(ctx, l.redis, keys, args...)
	}
	l.known[text] = true
	return l.redis.Eval(ctx, text, keys, args...)
}
