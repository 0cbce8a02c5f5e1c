package witness

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockfaultd/lockfaultd/lock"
)

// gone is how long a backend that was told to end may take for it.
const gone = 2 * time.Second

// Forget implements [proxy.Hand], on a link of its own.
func (h *House) Forget(ctx context.Context, upstream string, db int, key string) (lock.Outcome, error) {
	s := h.named(upstream)
	if s == nil {
		return lock.Failed, errNobody
	}
	ctx, cancel := context.WithTimeout(ctx, 2*asking)
	defer cancel()
	l, err := s.clock.redis.connect(ctx)
	if err != nil {
		return lock.Failed, fmt.Errorf("side connection to Redis: %w", err)
	}
	defer l.close()
	if s.monitor != nil {
		s.monitor.own(l.conn.LocalAddr().String())
	}
	return l.forget(db, key)
}

// named returns the Redis that ops name so.
func (h *House) named(upstream string) *server {
	for _, s := range h.redis {
		if s.clock.redis.Name == upstream {
			return s
		}
	}
	return nil
}

func (l *link) forget(db int, key string) (lock.Outcome, error) {
	if db != 0 {
		if err := l.must(words("SELECT", fmt.Sprint(db))...); err != nil {
			return lock.Failed, fmt.Errorf("SELECT %d: %w", db, err)
		}
	}
	got, err := l.ask(words("DEL", key))
	if err != nil {
		return lock.Unknown, fmt.Errorf("DEL: %w", err)
	}
	n, ok := got[0].integer()
	switch {
	case got[0].kind != ':' || !ok:
		return lock.Failed, fmt.Errorf("DEL: %w", refusal(got[0].text))
	case n == 0:
		return lock.NotHeld, nil
	}
	return lock.Done, nil
}

// own notes that a client's address is ours, and so nobody past the proxy.
func (m *monitor) own(addr string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.past.own(addr)
}

var errElsewhere = errors.New("no backend of that number has a connection from the address of the proxied one (something in between changes it, or the login may not see it)")

// Kill implements [proxy.Hand], on a connection of its own. A backend that does not have the connection is
// left alone: behind a pooler its number may be somebody else's.
func (h *House) Kill(ctx context.Context, upstream string, backend int32, from netip.AddrPort) (lock.Outcome, error) {
	s := h.postgres[upstream]
	if s == nil {
		return lock.Failed, errNobody
	}
	telling, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	c, err := s.registrar.postgres.Connect(telling)
	if err != nil {
		return lock.Failed, fmt.Errorf("side connection to Postgres: %w", worded(err))
	}
	defer c.Close(context.WithoutCancel(ctx))
	if o, err := terminate(telling, c, backend, from); o != lock.Done {
		return o, err
	}
	return ended(ctx, c, backend)
}

// terminate tells a backend to end. What the server refuses it has certainly not done.
func terminate(ctx context.Context, c *pgx.Conn, backend int32, from netip.AddrPort) (lock.Outcome, error) {
	var told bool
	err := c.QueryRow(ctx, `SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
		WHERE pid = $1 AND client_port = $2 AND pid <> pg_catalog.pg_backend_pid()`, backend, int32(from.Port())).Scan(&told)
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lock.Failed, errElsewhere
	case errors.As(err, &refused):
		return lock.Failed, fmt.Errorf("pg_terminate_backend: %w", worded(err))
	case err != nil:
		return lock.Unknown, fmt.Errorf("pg_terminate_backend: %w", err)
	case !told:
		return lock.NotHeld, nil
	}
	return lock.Done, nil
}

// ended returns when a backend that was told to end is gone, and its locks with it, or may be still there.
func ended(ctx context.Context, c *pgx.Conn, backend int32) (lock.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, gone)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		var there bool
		err := c.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE pid = $1)
			OR EXISTS (SELECT FROM pg_catalog.pg_stat_activity WHERE pid = $1)`, backend).Scan(&there)
		if o, err := fate(ctx, there, err); o != lock.Pending {
			return o, err
		}
		sleep(ctx, pause)
	}
}

// fate says what has become of a backend that was told to end, by the answer to whether it is there: Pending if that
// may be asked again. One that is not there has ended, however late that is heard.
func fate(ctx context.Context, there bool, err error) (lock.Outcome, error) {
	switch {
	case err == nil && !there:
		return lock.Done, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return lock.Unknown, fmt.Errorf("the backend was told to end, and had not within %s", gone)
	case err != nil:
		return lock.Unknown, fmt.Errorf("the backend was told to end: see it end: %w", worded(err))
	}
	return lock.Pending, nil
}
