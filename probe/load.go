package probe

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// How the workload fences its writes.
const (
	FenceNone  = "none"  // not at all
	FenceWrite = "write" // the fence is compared when writing
	FenceClaim = "claim" // the fence is claimed when reading and must still stand when writing
)

// What the lock of the workload is.
const (
	LockRedis    = "redis"    // a key with a lease
	LockAdvisory = "advisory" // an advisory lock of the Postgres session
)

// A Load is the built-in service under test: Workers processes that take a
// lock around a piece of work on one Postgres row. It has the form of its JSON,
// since that is how a worker is told.
type Load struct {
	Workers  int
	Lock     string        // LockRedis or LockAdvisory
	Lease    time.Duration // lifetime of a lock in Redis; whole milliseconds
	Renew    time.Duration // how often a holder renews it; 0: never
	Work     time.Duration // from the read's answer to the write
	Duration time.Duration // after this no section is begun
	Write    string        // what is done under the lock: one of Writes
	Fence    string        // FenceNone, FenceWrite or FenceClaim
	Broken   string        // "" or one of Breaks
	Crash    int           // each worker dies at its n-th grant; 0: none does
	Redis    string        // URL
	Database string        // URL
	Key      string        // of the lock
	Table    string        // of the row
	Create   bool          // make the table, if it is missing, and the row anew, both columns 0, before the work
}

// maxWorkers is where one machine's ports and a default Postgres end.
const maxWorkers = 90

// plainName is a table that needs no quotes, with or without its schema.
var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?$`)

// Validate returns an error that names the flag of what is wrong, and what was
// expected.
func (l Load) Validate() error {
	switch {
	case l.Workers < 1 || l.Workers > maxWorkers:
		return fmt.Errorf("--workers %d: expected 1 to %d", l.Workers, maxWorkers)
	case l.Lease < time.Millisecond || l.Lease%time.Millisecond != 0:
		return fmt.Errorf("--lease %v: expected whole milliseconds, at least 1ms", l.Lease)
	case l.Work < 0:
		return fmt.Errorf("--work %v: expected 0 or more", l.Work)
	case l.Duration <= 0:
		return fmt.Errorf("--duration %v: expected more than 0", l.Duration)
	case l.Renew < 0 || l.Renew > 0 && (l.Renew >= l.Lease || l.Lock != LockRedis):
		return fmt.Errorf("--renew %v: expected less than --lease %v, and --lock redis", l.Renew, l.Lease)
	case l.Crash < 0:
		return fmt.Errorf("--crash %d: expected 0 or more", l.Crash)
	case !oneOf(l.Lock, LockRedis, LockAdvisory):
		return fmt.Errorf("--lock %q: expected redis or advisory", l.Lock)
	case !oneOf(l.Fence, FenceNone, FenceWrite, FenceClaim):
		return fmt.Errorf("--fence %q: expected none, write or claim", l.Fence)
	case l.Fence != FenceNone && (l.Lock != LockRedis || l.Write != WriteSet):
		return fmt.Errorf("--fence %s: expected --lock redis and --write set with it", l.Fence)
	case l.Key == "":
		return errors.New("--key: expected a name")
	case !plainName.MatchString(l.Table):
		return fmt.Errorf("--table %q: expected a name in lower case, such as counter or public.counter", l.Table)
	}
	if err := l.validateForms(); err != nil {
		return err
	}
	return l.validateURLs()
}

// validateForms looks at what is done under the lock, and at how it is broken.
func (l Load) validateForms() error {
	if _, ok := formOf(l.Write); !ok {
		return fmt.Errorf("--write %q: expected %s", l.Write, alternatives(Writes()))
	}
	if l.Write == writeHandOver && l.Lock != LockRedis {
		return fmt.Errorf("--write %s: expected --lock redis with it, no other process can release a session's lock", l.Write)
	}
	if l.Broken == "" {
		return nil
	}
	b, ok := breakOf(l.Broken)
	if !ok {
		return fmt.Errorf("--broken %q: expected %s", l.Broken, alternatives(Breaks()))
	}
	if !b.fits(l) {
		return fmt.Errorf("--broken %s: expected %s with it", l.Broken, b.needs)
	}
	return nil
}

// alternatives lists names as a sentence does.
func alternatives(list []Form) string {
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.Name
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func (l Load) validateURLs() error {
	if _, err := redisOptions(l.Redis); err != nil {
		return fmt.Errorf("--redis: %w; expected a URL such as redis://127.0.0.1:6379/0", err)
	}
	if _, err := parse(l.Database); err != nil {
		return fmt.Errorf("--database: %w; expected a URL such as postgres://user@127.0.0.1:5432/name", err)
	}
	return nil
}

func oneOf(s string, allowed ...string) bool {
	for _, a := range allowed {
		if s == a {
			return true
		}
	}
	return false
}

// fenceKey is where the fences of the table are issued.
func (l Load) fenceKey() string { return "fence:" + l.Table }

// prepare makes the row, if so wished, and returns the counter's value.
func (l Load) prepare(ctx context.Context) (start int64, err error) {
	conn, err := Database{URL: l.Database}.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer closeConn(conn)
	if l.Create {
		if err := l.create(ctx, conn); err != nil {
			return 0, err
		}
	}
	return l.counter(ctx, conn)
}

// create makes the row anew rather than setting it to 0, which might be taken
// for a step of the counter.
func (l Load) create(ctx context.Context, conn *pgx.Conn) error {
	f, _ := formOf(l.Write)
	b, _ := breakOf(l.Broken)
	for _, sql := range append(append(counterTable(), f.tables...), b.tables...) {
		if _, err := conn.Exec(ctx, l.sql(sql)); err != nil {
			return fmt.Errorf("create table %s: %w", l.Table, err)
		}
	}
	return nil
}

func counterTable() []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS %s (id int PRIMARY KEY, value bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0)",
		"DELETE FROM %s WHERE id = 1",
		"INSERT INTO %s (id, value, fence) VALUES (1, 0, 0)",
	}
}

func (l Load) counter(ctx context.Context, conn *pgx.Conn) (value int64, err error) {
	if err := conn.QueryRow(ctx, l.sql("SELECT value FROM %s WHERE id = 1")).Scan(&value); err != nil {
		return 0, fmt.Errorf("read counter in table %s: %w", l.Table, err)
	}
	return value, nil
}

// end reads the counter once the workers are done.
func (l Load) end(ctx context.Context) (int64, error) {
	conn, err := Database{URL: l.Database}.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer closeConn(conn)
	return l.counter(ctx, conn)
}

// sql puts the table, which needs no quotes, into a statement.
func (l Load) sql(format string) string { return strings.ReplaceAll(format, "%s", l.Table) }
