// Command goose applies migrations with goose, one by one, under its session lock or, with
// LOCK=table, under its lock in a table.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/lockfaultd/lockfaultd/matrix/clients/go/work"
)

func main() {
	ctx := context.Background()
	s := work.Start()
	defer s.Finish()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	work.Must(err)
	defer db.Close()
	option, err := guard(s)
	work.Must(err)
	p, err := goose.NewProvider(goose.DialectPostgres, db, nil, option, goose.WithGoMigrations(migrations(s)...))
	work.Must(err)
	for {
		_, err := p.UpByOne(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			break
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			break
		}
	}
}

// guard returns goose's lock, with every call of it counted.
func guard(s *work.Shift) (goose.ProviderOption, error) {
	if os.Getenv("LOCK") == "table" {
		l, err := lock.NewPostgresTableLocker(lock.WithTableLeaseDuration(s.Lease), lock.WithTableHeartbeatInterval(s.Lease/3),
			lock.WithTableLockTimeout(20*time.Millisecond, 1000), lock.WithTableUnlockTimeout(100*time.Millisecond, 3))
		return goose.WithLocker(table{l, s}), err
	}
	l, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
	return goose.WithSessionLocker(session{l, s}), err
}

type session struct {
	lock.SessionLocker
	*work.Shift
}

func (c session) SessionLock(ctx context.Context, conn *sql.Conn) error {
	err := c.SessionLocker.SessionLock(ctx, conn)
	took(c.Shift, err)
	return err
}

func (c session) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	err := c.SessionLocker.SessionUnlock(ctx, conn)
	gave(c.Shift, err)
	return err
}

type table struct {
	lock.Locker
	*work.Shift
}

func (c table) Lock(ctx context.Context, db *sql.DB) error {
	err := c.Locker.Lock(ctx, db)
	took(c.Shift, err)
	return err
}

func (c table) Unlock(ctx context.Context, db *sql.DB) error {
	err := c.Locker.Unlock(ctx, db)
	gave(c.Shift, err)
	return err
}

func took(s *work.Shift, err error) {
	if err != nil {
		s.Refused++
		return
	}
	s.Granted++
}

func gave(s *work.Shift, err error) {
	if err != nil {
		s.Unreleased++
		return
	}
	s.Released++
}

// migrations are as many as there is to do.
func migrations(s *work.Shift) []*goose.Migration {
	var all []*goose.Migration
	for n := range s.Sections {
		up := func(ctx context.Context, tx *sql.Tx) error {
			var value int
			if err := tx.QueryRowContext(ctx, "SELECT value FROM counter WHERE id = 1").Scan(&value); err != nil {
				return err
			}
			if err := s.Think(ctx, nil); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, "UPDATE counter SET value = $1 WHERE id = 1", value+1)
			if err == nil {
				s.Wrote++
			}
			return err
		}
		all = append(all, goose.NewGoMigration(int64(n+1), &goose.GoFunc{RunTx: up}, nil))
	}
	return all
}
