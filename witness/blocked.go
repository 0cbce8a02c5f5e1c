package witness

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// queues asks which backends wait for a row's lock, and for whom.
type queues struct {
	then chan<- blocked // has room for one
}

type blocked struct {
	by  map[int32][]int32
	err error
}

func (q *queues) ask(ctx context.Context, c *pgx.Conn) error {
	by, err := blockedBy(ctx, c)
	q.then <- blocked{by, err}
	return err
}

var errNobody = errors.New("no side connection")

func (q *queues) drop() { q.then <- blocked{nil, errNobody} }

// blockedBy lists the backends that wait for the end of another's transaction, as one does for a row's
// lock, by their number: the backends that each of them waits for.
func blockedBy(ctx context.Context, c *pgx.Conn) (map[int32][]int32, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	rows, err := c.Query(ctx, `SELECT pid, pg_catalog.pg_blocking_pids(pid) FROM pg_catalog.pg_locks
		WHERE NOT granted AND locktype IN ('transactionid', 'tuple')`)
	if err != nil {
		return nil, err
	}
	out := map[int32][]int32{}
	var pid int32
	var by []int32
	_, err = pgx.ForEachRow(rows, []any{&pid, &by}, func() error {
		out[pid] = append([]int32(nil), by...)
		return nil
	})
	return out, err
}

// Blocked implements [proxy.Blocked]. It opens the side connection if there is none yet.
func (h *House) Blocked(ctx context.Context, upstream string) (map[int32][]int32, error) {
	s := h.postgres[upstream]
	if s == nil {
		return nil, errNobody
	}
	h.register(s)
	answer := make(chan blocked, 1)
	select {
	case s.registrar.queue <- &queues{answer}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a := <-answer:
		return a.by, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-h.ctx.Done():
		return nil, errNobody
	}
}
