package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockfaultd/lockfaultd/probe"
)

// A Database is one connection to Postgres, made when it is needed and made anew after an error. It is for one watch, and
// not safe for concurrent use.
type Database struct {
	From probe.Database
	conn *pgx.Conn
}

// use runs do on the connection.
func (d *Database) use(ctx context.Context, do func(*pgx.Conn) error) (err error) {
	if d.conn == nil || d.conn.IsClosed() {
		if d.conn, err = d.From.Connect(ctx); err != nil {
			d.conn = nil
			return err
		}
	}
	if err = do(d.conn); err != nil {
		d.Close()
	}
	return err
}

// Close ends the connection.
func (d *Database) Close() {
	if d.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lookLimit/10)
		defer cancel()
		_ = d.conn.Close(ctx) // whoever does not hear the goodbye has gone
		d.conn = nil
	}
}

// snapshot runs do in a transaction that reads as of one moment and can write nothing.
func (d *Database) snapshot(ctx context.Context, do func(pgx.Tx) error) error {
	return d.use(ctx, func(c *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, c, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
	})
}

// A value is the only one of a query: text, as the server spells it.
type value struct {
	text        string
	row, isNull bool
	moved       bool // it was another one a moment before
}

// rows is what asks: a connection or a transaction.
type asker interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// one asks for the only value of a query.
func one(ctx context.Context, q asker, sql string) (v value, err error) {
	rows, err := q.Query(ctx, sql, pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return v, err
	}
	defer rows.Close()
	for rows.Next() {
		raw := rows.RawValues()
		switch {
		case len(raw) != 1:
			return v, fmt.Errorf("expected one column, got %d", len(raw))
		case v.row:
			return v, errors.New("expected one row, got several")
		}
		v = value{text: string(raw[0]), row: true, isNull: raw[0] == nil}
	}
	return v, rows.Err()
}

// Number reads a query's only value, an integer, by one statement.
func (d *Database) Number(sql string) func(ctx context.Context) (Reading, error) {
	return func(ctx context.Context) (r Reading, err error) {
		err = d.use(ctx, func(c *pgx.Conn) error {
			v, err := one(ctx, c, sql)
			switch {
			case undefined(err), err == nil && (!v.row || v.isNull):
				return nil
			case err != nil:
				return err
			}
			r.Exists = true
			if r.Value, err = strconv.ParseInt(v.text, 10, 64); err != nil {
				return fmt.Errorf("expected an integer, got %.40q", v.text)
			}
			return nil
		})
		if err != nil {
			return r, fmt.Errorf("read %q: %w", sql, err)
		}
		return r, nil
	}
}

// undefined reports whether an error says that there is no such table yet.
func undefined(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42P01"
}
