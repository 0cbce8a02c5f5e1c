package witness

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
)

// sideName is the application_name of side connections.
const sideName = "lockfaultd-probe"

// A Postgres says how a server is reached from beside its proxied connections.
// Connections call themselves lockfaultd-probe.
type Postgres struct {
	Name    string // of the upstream, as ops have it before the database's
	Address string // as routes have it
	Connect func(ctx context.Context) (*pgx.Conn, error)
}

// keep has serve use one connection after another until ctx ends. failed is told
// why one could not be had, or was lost.
func (p *Postgres) keep(ctx context.Context, serve func(c *pgx.Conn) error, failed func(error)) {
	rest := firstRest
	for ctx.Err() == nil {
		c, err := p.Connect(ctx)
		if err == nil {
			rest = firstRest
			err = serve(c)
			_ = c.Close(context.Background()) // one that is broken is as closed
		}
		if ctx.Err() != nil {
			return
		}
		failed(worded(err))
		if errors.As(err, new(*pgconn.PgError)) {
			rest = lastRest
		}
		sleep(ctx, rest)
		rest = min(2*rest, lastRest)
	}
}

// worded leaves nothing of an error that may tell more than the server's reason,
// such as the address with its user.
func worded(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refusal(refused.Message)
	}
	return err
}

// A registrar asks a Postgres which advisory locks a backend holds, and who waits for whom.
type registrar struct {
	postgres Postgres
	say      *notes
	queue    chan inquiry
	up       atomic.Bool
}

// An inquiry is a question to the server. Its functions are called from the registrar's goroutine.
type inquiry interface {
	ask(ctx context.Context, c *pgx.Conn) error // an error of the connection, which is then given up
	drop()                                      // there is nobody to ask
}

// holdings asks which advisory locks one backend holds.
type holdings struct {
	pid  int32
	then func(held []pgwire.Advisory, ok bool)
}

func (q *holdings) ask(ctx context.Context, c *pgx.Conn) error {
	held, err := locksOf(ctx, c, q.pid)
	q.then(held, err == nil)
	return err
}

func (q *holdings) drop() { q.then(nil, false) }

func newRegistrar(p Postgres, say *notes) *registrar {
	return &registrar{postgres: p, say: say, queue: make(chan inquiry, waiting)}
}

// run answers until ctx ends.
func (r *registrar) run(ctx context.Context) {
	r.postgres.keep(ctx, func(c *pgx.Conn) error {
		r.up.Store(true)
		defer r.down()
		return r.serve(ctx, c)
	}, func(err error) { r.say.lost("pg_locks", r.postgres.Name, err) })
}

// down gives up the inquiries that have no answer.
func (r *registrar) down() {
	r.up.Store(false)
	for {
		select {
		case q := <-r.queue:
			q.drop()
		default:
			return
		}
	}
}

func (r *registrar) serve(ctx context.Context, c *pgx.Conn) error {
	for {
		select {
		case q := <-r.queue:
			if err := q.ask(ctx, c); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// locksOf asks for the advisory locks of a backend.
func locksOf(ctx context.Context, c *pgx.Conn, pid int32) ([]pgwire.Advisory, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	rows, err := c.Query(ctx, `SELECT classid::bigint, objid::bigint, objsubid, mode FROM pg_catalog.pg_locks
		WHERE locktype = 'advisory' AND granted AND pid = $1`, pid)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a pgwire.Advisory, err error) {
		var class, object int64
		var sub int16
		var mode string
		err = row.Scan(&class, &object, &sub, &mode)
		return pgwire.Advisory{ClassID: uint32(class), ObjID: uint32(object), TwoInts: sub == 2, Shared: mode == "ShareLock"}, err
	})
}

// A clerk is a session as a registrar sees it. It implements [proxy.Watcher].
type clerk struct {
	r     *registrar
	begin func()
}

// Before implements proxy.Watcher: what the backend held before is known.
func (k *clerk) Before(wire.Call) *proxy.Look {
	k.begin()
	return nil
}

// After implements proxy.Watcher.
func (k *clerk) After(c wire.Call) *proxy.Look {
	call, ok := c.(*pgwire.Call)
	if !ok || !k.r.up.Load() {
		return nil
	}
	l := proxy.NewLook()
	q := &holdings{pid: call.PID(), then: func(held []pgwire.Advisory, ok bool) {
		if !ok {
			k.r.say.count(Unseen)
			l.Give(nil)
			return
		}
		l.Give(func() {
			k.r.say.count(Told)
			call.Told(held)
		})
	}}
	select {
	case k.r.queue <- q:
		return l
	default:
		return nil
	}
}

// Missed implements proxy.Watcher.
func (k *clerk) Missed(wire.Call) { k.r.say.count(Late) }

// Passed implements proxy.Watcher.
func (k *clerk) Passed(*lock.Op) {}

// Replied implements proxy.Watcher.
func (k *clerk) Replied(*lock.Op) {}

// Closed implements proxy.Watcher.
func (k *clerk) Closed() {}
