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

// How the workload is broken on purpose.
const (
	BrokenNoNX       = "no-nx"       // the lock is taken without NX: it excludes nobody
	BrokenBlindDel   = "blind-del"   // the lock is released by a plain DEL, whoever holds it
	BrokenSplitFence = "split-fence" // the fence is issued by a command of its own, after the grant
)

// A Load is the built-in service under test: Workers processes that take a
// lease lock in Redis around a read-modify-write of one Postgres row. It has
// the form of its JSON, since that is how a worker is told.
type Load struct {
	Workers  int
	Lease    time.Duration // lifetime of the lock; whole milliseconds
	Work     time.Duration // from the read's answer to the write
	Duration time.Duration // after this no section is begun
	Fence    string        // FenceNone, FenceWrite or FenceClaim
	Broken   string        // "" or one of the Broken constants
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
	case !oneOf(l.Fence, FenceNone, FenceWrite, FenceClaim):
		return fmt.Errorf("--fence %q: expected none, write or claim", l.Fence)
	case !oneOf(l.Broken, "", BrokenNoNX, BrokenBlindDel, BrokenSplitFence):
		return fmt.Errorf("--broken %q: expected no-nx, blind-del or split-fence", l.Broken)
	case l.Broken == BrokenSplitFence && l.Fence == FenceNone:
		return errors.New("--broken split-fence: expected --fence write or --fence claim with it, there is no fence to split")
	case l.Key == "":
		return errors.New("--key: expected a name")
	case !plainName.MatchString(l.Table):
		return fmt.Errorf("--table %q: expected a name in lower case, such as counter or public.counter", l.Table)
	}
	return l.validateURLs()
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
	conn, err := Database{URL: l.Database}.connect(ctx)
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
	for _, sql := range []string{
		"CREATE TABLE IF NOT EXISTS %s (id int PRIMARY KEY, value bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0)",
		"DELETE FROM %s WHERE id = 1",
		"INSERT INTO %s (id, value, fence) VALUES (1, 0, 0)",
	} {
		if _, err := conn.Exec(ctx, l.sql(sql)); err != nil {
			return fmt.Errorf("create table %s: %w", l.Table, err)
		}
	}
	return nil
}

func (l Load) counter(ctx context.Context, conn *pgx.Conn) (value int64, err error) {
	if err := conn.QueryRow(ctx, l.sql("SELECT value FROM %s WHERE id = 1")).Scan(&value); err != nil {
		return 0, fmt.Errorf("read counter in table %s: %w", l.Table, err)
	}
	return value, nil
}

// end reads the counter once the workers are done.
func (l Load) end(ctx context.Context) (int64, error) {
	conn, err := Database{URL: l.Database}.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer closeConn(conn)
	return l.counter(ctx, conn)
}

// sql puts the table, which needs no quotes, into a statement.
func (l Load) sql(format string) string { return strings.ReplaceAll(format, "%s", l.Table) }
