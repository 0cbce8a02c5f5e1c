package service

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// None is a query that must return no row.
type None struct {
	Is    About
	Query string
	At    *Database
	Lock  string
	Table string

	mem struct{}
}

// About says what it is.
func (n *None) About() About { return n.Is }

// Memory is empty: each look stands for itself.
func (n *None) Memory() any { return &n.mem }

// Look counts the rows, which never leave the server.
func (n *None) Look(ctx context.Context) (func() Opinion, error) {
	var rows int64
	err := n.At.snapshot(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT count(*) FROM ("+n.Query+"\n) AS broken").Scan(&rows)
	})
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", n.Query, err)
	}
	at := time.Now()
	return func() Opinion { return n.judge(rows, at) }, nil
}

func (n *None) judge(rows int64, at time.Time) Opinion {
	shown := fmt.Sprintf("%d rows", rows)
	if rows == 1 {
		shown = "1 row"
	}
	if rows == 0 {
		return Opinion{State: Holds, Value: shown}
	}
	proof := fmt.Sprintf("Let Q be %q, which must return no row. However as of one moment, by %s, it returned %s.", n.Query, stamp(at), shown)
	return Opinion{State: Broken, Value: shown, Text: "expected none", Breaches: []Breach{{Code: "LF405", Name: "invariant-broken", Class: check.Harm,
		Level: check.Proven, Harm: true, Lock: n.Lock, Table: n.Table, Count: int(rows), Proof: proof}}}
}
