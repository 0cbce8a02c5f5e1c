package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// The kinds of invariant, which are also the names of their flags.
const (
	CounterKind  = "counter"
	FenceKind    = "fence"
	MonotoneKind = "monotone"
)

// undefinedTable is the SQLSTATE of a query whose table does not exist.
const undefinedTable = "42P01"

// Kinds lists the kinds of invariant.
func Kinds() []string { return []string{CounterKind, FenceKind, MonotoneKind} }

// ParseInvariant reads an invariant of the given kind, one of [Kinds],
// from its query. `SELECT col FROM t WHERE ...` also gives Table and Column,
// spelled as ops spell them: without quotes, in lower case unless quoted. Any
// other query is kept as it is, with both empty. An error names the flag
// (--counter, --fence or --monotone) and what was expected.
func ParseInvariant(kind, sql string) (check.Invariant, error) {
	if !slices.Contains(Kinds(), kind) {
		return check.Invariant{}, fmt.Errorf("invariant kind %q: expected one of %s", kind, strings.Join(Kinds(), ", "))
	}
	inv, err := NewInvariant(kind, sql)
	if err != nil {
		return check.Invariant{}, fmt.Errorf("--%s %q: %w", kind, sql, err)
	}
	return inv, nil
}

// NewInvariant is [ParseInvariant] for a query that was typed at no flag: its error
// names none. The kind is one of [Kinds].
func NewInvariant(kind, sql string) (check.Invariant, error) {
	q, err := parseQuery(sql)
	if err != nil {
		return check.Invariant{}, fmt.Errorf("%w; expected a query for one integer, such as 'SELECT value FROM counter WHERE id = 1'", err)
	}
	return check.Invariant{Name: kind, Kind: kind, Query: q.text, Table: q.table, Column: q.column}, nil
}

// ReadInvariant asks the database for the invariant's value. exists is false
// when the table is not there yet, or holds no such row, or the value is NULL.
// It is an error if the query gives several rows or columns, or anything but
// an integer.
func ReadInvariant(ctx context.Context, databaseURL string, inv check.Invariant) (value int64, exists bool, err error) {
	return Database{URL: databaseURL}.ReadInvariant(ctx, inv)
}

// ReadInvariant is the function of that name.
func (d Database) ReadInvariant(ctx context.Context, inv check.Invariant) (value int64, exists bool, err error) {
	value, exists, err = d.read(ctx, inv)
	if tableMissing(err) {
		return 0, false, nil
	}
	return value, exists, err
}

// Lacks says in words what is not there of an invariant that does not exist.
func (d Database) Lacks(ctx context.Context, inv check.Invariant) string {
	_, _, err := d.read(ctx, inv)
	if !tableMissing(err) {
		return "there is no such row"
	}
	return "there is no such table"
}

func tableMissing(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == undefinedTable
}

func (d Database) read(ctx context.Context, inv check.Invariant) (value int64, exists bool, err error) {
	conn, err := d.Connect(ctx)
	if err != nil {
		return 0, false, err
	}
	defer closeConn(conn)
	// Text format, since the query may give any type that spells an integer:
	// sum() of a bigint is a numeric.
	result := conn.PgConn().ExecParams(ctx, inv.Query, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return 0, false, fmt.Errorf("read %s %q: %w", inv.Kind, inv.Query, result.Err)
	}
	value, exists, err = single(result)
	if err != nil {
		return 0, false, fmt.Errorf("read %s %q: %w", inv.Kind, inv.Query, err)
	}
	return value, exists, nil
}

// An unfitError says that a query, or a URL, cannot give an invariant.
type unfitError string

func (e unfitError) Error() string { return string(e) }

// Refused reports whether an error of [ReadInvariant] is the query's or the
// URL's, which no waiting mends: the URL cannot be read, the server does not
// understand the query, or it does not give one integer.
func Refused(err error) bool {
	var unfit unfitError
	var url *pgconn.ParseConfigError
	var pg *pgconn.PgError
	return errors.As(err, &unfit) || errors.As(err, &url) || errors.As(err, &pg) && strings.HasPrefix(pg.Code, "42")
}

// single returns the only value of a result.
func single(r *pgconn.Result) (value int64, exists bool, err error) {
	switch {
	case len(r.Rows) == 0:
		return 0, false, nil
	case len(r.Rows) > 1:
		return 0, false, unfitError(fmt.Sprintf("expected one row, got %d", len(r.Rows)))
	case len(r.Rows[0]) != 1:
		return 0, false, unfitError(fmt.Sprintf("expected one column, got %d", len(r.Rows[0])))
	case r.Rows[0][0] == nil:
		return 0, false, nil
	}
	text := string(r.Rows[0][0])
	value, err = strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, false, unfitError(fmt.Sprintf("expected an integer, got %q", text))
	}
	return value, true, nil
}

// A Database says where to connect, and whom to trust there.
type Database struct {
	URL    string      // as Postgres's libraries take it, or a connection string of libpq
	TLS    *tls.Config // used instead of what URL and environment say of TLS; nil: what they say
	Direct bool        // with TLS: at once, without an SSLRequest
}

// Connect opens a connection that names itself, so that nobody takes it for
// one of the service's.
func (d Database) Connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := parse(d.URL)
	if err != nil {
		return nil, fmt.Errorf("read database URL: %w", err)
	}
	d.secure(&config.Config)
	config.RuntimeParams["application_name"] = "lockfaultd-probe"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to database: %w", err)
	}
	return conn, nil
}

// secure leaves no way around TLS: a fallback of the driver's may be plaintext.
func (d Database) secure(config *pgconn.Config) {
	if d.TLS == nil {
		return
	}
	config.TLSConfig, config.Fallbacks, config.SSLNegotiation = d.TLS.Clone(), nil, ""
	if d.Direct {
		config.SSLNegotiation, config.TLSConfig.NextProtos = "direct", []string{"postgresql"}
	}
}

// closeConn says goodbye; a server that does not listen any more is as closed.
func closeConn(conn *pgx.Conn) { _ = conn.Close(context.Background()) }
