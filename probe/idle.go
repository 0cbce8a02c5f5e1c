package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrStateHidden is returned by [WaitIdle] when the server does not say what a
// backend is doing: the role needs pg_read_all_stats, or track_activities is off.
var ErrStateHidden = errors.New("state of backends is hidden: the role needs pg_read_all_stats")

// idlePoll is how often WaitIdle asks.
const idlePoll = 20 * time.Millisecond

// A backend that is idle inside a transaction has still to end it.
const busySQL = `SELECT pid, coalesce(state, '') FROM pg_stat_activity
	WHERE pid = ANY($1) AND state IS DISTINCT FROM 'idle' ORDER BY pid`

// WaitIdle returns once each of the backends has gone or is idle, outside of a
// transaction, so that what it was last told has happened or never will. When
// ctx ends first, the error names the backends that are at work; it matches
// [ErrStateHidden] if the server would not tell.
func WaitIdle(ctx context.Context, databaseURL string, pids []int32) error {
	return Database{URL: databaseURL}.WaitIdle(ctx, pids)
}

// WaitIdle is the function of that name.
func (d Database) WaitIdle(ctx context.Context, pids []int32) error {
	if len(pids) == 0 {
		return nil
	}
	conn, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	poll := time.NewTicker(idlePoll)
	defer poll.Stop()
	var busy []backend
	for {
		now, err := busyBackends(ctx, conn, pids)
		switch {
		case err != nil && ctx.Err() != nil:
			return stillBusy(ctx.Err(), busy)
		case err != nil:
			return fmt.Errorf("ask for idle backends: %w", err)
		case len(now) == 0:
			return nil
		}
		busy = now
		select {
		case <-poll.C:
		case <-ctx.Done():
			return stillBusy(ctx.Err(), busy)
		}
	}
}

// A backend is a row of pg_stat_activity.
type backend struct {
	PID   int32
	State string // "" or "disabled" when it is hidden
}

func busyBackends(ctx context.Context, conn *pgx.Conn, pids []int32) ([]backend, error) {
	rows, err := conn.Query(ctx, busySQL, pids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[backend])
}

func stillBusy(cause error, busy []backend) error {
	for _, b := range busy {
		if b.State == "" || b.State == "disabled" {
			return fmt.Errorf("wait for backend %d: %w (%w)", b.PID, ErrStateHidden, cause)
		}
	}
	return fmt.Errorf("wait for idle backends: %w; still at work: %v", cause, busy)
}
