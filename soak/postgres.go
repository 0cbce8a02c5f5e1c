package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func createTable(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE TABLE soak (id int PRIMARY KEY, n bigint NOT NULL)"); err != nil {
		return fmt.Errorf("create table: %w", err)
	}
	return nil
}

// A row is a client's own one, over all its connections.
type row struct {
	id     int
	n      int64
	unsure bool // the last step was not answered
}

// A customer is a client's one connection to Postgres.
type customer struct {
	conn *pgx.Conn
	row  *row
}

// postgres returns how the client of that number connects.
func (c *crowd) postgres(number int) func(context.Context) (visitor, error) {
	r := &row{id: number}
	return func(ctx context.Context) (visitor, error) {
		config, err := pgx.ParseConfig(c.Database)
		if err != nil {
			return nil, err
		}
		config.DialFunc = c.dialer.DialContext
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		b := &customer{conn, r}
		if err := b.resume(ctx); err != nil {
			b.leave()
			return nil, err
		}
		return b, nil
	}
}

// resume reads how far the row has got: a step without an answer may have been
// taken, or not.
func (b *customer) resume(ctx context.Context) error {
	if _, err := b.conn.Exec(ctx, "INSERT INTO soak VALUES ($1, 0) ON CONFLICT DO NOTHING", b.row.id); err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	var n int64
	if err := b.conn.QueryRow(ctx, "SELECT n FROM soak WHERE id = $1", b.row.id).Scan(&n); err != nil {
		return fmt.Errorf("select: %w", err)
	}
	if n != b.row.n && !(b.row.unsure && n == b.row.n+1) {
		return wrongf("row %d has %d, want %d (unsure of the last step: %v)", b.row.id, n, b.row.n, b.row.unsure)
	}
	b.row.n, b.row.unsure = n, false
	return nil
}

func (b *customer) act(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	switch n := rand.IntN(100); {
	case n < 40:
		return b.echo(ctx)
	case n < 65:
		return b.step(ctx, b.conn)
	case n < 75:
		return b.transaction(ctx)
	case n < 85:
		return b.batch(ctx)
	case n < 95:
		return b.mistake(ctx)
	default:
		return b.copy(ctx)
	}
}

func (b *customer) echo(ctx context.Context) error {
	want := fmt.Sprintf("%d at %d", b.row.id, rand.Int64())
	var got string
	if err := b.conn.QueryRow(ctx, "SELECT $1::text", want).Scan(&got); err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	if got != want {
		return wrongf("row %d: %q came back as %q", b.row.id, want, got)
	}
	return nil
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// step adds one to the row.
func (b *customer) step(ctx context.Context, q querier) error {
	b.row.unsure = true
	var n int64
	if err := q.QueryRow(ctx, "UPDATE soak SET n = n + 1 WHERE id = $1 RETURNING n", b.row.id).Scan(&n); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if n != b.row.n+1 {
		return wrongf("row %d is %d after a step from %d", b.row.id, n, b.row.n)
	}
	if q == querier(b.conn) {
		b.row.n, b.row.unsure = n, false
	}
	return nil
}

// transaction takes a step under an advisory lock.
func (b *customer) transaction(ctx context.Context) error {
	tx, err := b.conn.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", b.row.id); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := b.step(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	b.row.n, b.row.unsure = b.row.n+1, false
	return nil
}

func (b *customer) batch(ctx context.Context) error {
	batch := &pgx.Batch{}
	for i := range 10 {
		batch.Queue("SELECT $1::bigint * 2", b.row.n+int64(i))
	}
	results := b.conn.SendBatch(ctx, batch)
	defer results.Close()
	for i := range 10 {
		var got int64
		if err := results.QueryRow().Scan(&got); err != nil {
			return fmt.Errorf("batch: %w", err)
		}
		if want := 2 * (b.row.n + int64(i)); got != want {
			return wrongf("row %d: %d of a batch is %d, want %d", b.row.id, i, got, want)
		}
	}
	return nil
}

// mistake is answered with its own error, and the connection goes on.
func (b *customer) mistake(ctx context.Context) error {
	_, err := b.conn.Exec(ctx, "SELECT 1 / ($1::int - $1::int)", b.row.id)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == "22012":
		return b.echo(ctx)
	case errors.As(err, &pg) && pg.Severity != "FATAL", err == nil:
		return wrongf("row %d: a division by zero gives %v", b.row.id, err)
	}
	return fmt.Errorf("mistake: %w", err)
}

func (b *customer) copy(ctx context.Context) error {
	var got, want bytes.Buffer
	if _, err := b.conn.PgConn().CopyTo(ctx, &got, fmt.Sprintf("COPY (SELECT %d + g FROM generate_series(1, 5000) g) TO STDOUT", b.row.id)); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	for g := range 5000 {
		fmt.Fprintln(&want, b.row.id+g+1)
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		return wrongf("row %d: a COPY of %d bytes differs from the %d bytes that it should be", b.row.id, got.Len(), want.Len())
	}
	return nil
}

func (b *customer) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if rand.IntN(2) == 0 {
		_ = b.conn.PgConn().Conn().Close() // without a word
	}
	_ = b.conn.Close(ctx)
}
