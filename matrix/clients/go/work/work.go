// Package work is the business of these services: a row in Postgres is read, something is done
// that takes time, and the row is written. What guards it is each service's own affair.
//
// The environment says how much: SECTIONS (10) times, with LEASE_MS (5000) as the lock's lifetime,
// THINK_MS (2) between read and write, and longer, until the file WAIT_FILE is there. With RENEW=1
// the lock is renewed meanwhile. A lock that is taken is tried for again, ATTEMPTS times
// (0: for ever), every RETRY_MS (5), once the file START_FILE is there. READY_FILE is
// made before that.
package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Counts is what a service believes that happened.
type Counts struct {
	Granted    int `json:"granted"`
	Refused    int `json:"refused"`
	Renewed    int `json:"renewed"`
	Unrenewed  int `json:"unrenewed"`
	Released   int `json:"released"`
	Unreleased int `json:"unreleased"`
	Lost       int `json:"lost"` // sections that were told that the lock is gone
	Wrote      int `json:"wrote"`
}

// A Shift is one run of a service.
type Shift struct {
	Counts
	Lease    time.Duration
	Renews   bool
	Sections int

	attempts int
	think    time.Duration
	retry    time.Duration
	waitFile string
	db       *pgx.Conn
}

// Start connects to the database and waits until it is time.
func Start() *Shift {
	s := &Shift{
		Lease: ms("LEASE_MS", 5000), think: ms("THINK_MS", 2), retry: ms("RETRY_MS", 5), Sections: number("SECTIONS", 10),
		attempts: number("ATTEMPTS", 0), Renews: os.Getenv("RENEW") == "1", waitFile: os.Getenv("WAIT_FILE"),
	}
	var err error
	s.db, err = pgx.Connect(context.Background(), os.Getenv("DATABASE_URL"))
	Must(err)
	Tell(os.Getenv("READY_FILE"))
	Await(os.Getenv("START_FILE"))
	return s
}

// Finish prints the counts.
func (s *Shift) Finish() {
	_ = s.db.Close(context.Background())
	out, _ := json.Marshal(s.Counts)
	fmt.Println(string(out))
}

// More reports whether there is more to do.
func (s *Shift) More() bool {
	return s.Granted < s.Sections && (s.attempts == 0 || s.Granted+s.Refused < s.attempts)
}

// Refuse notes that the lock was not given, and waits a moment.
func (s *Shift) Refuse(err error) {
	if s.Refused == 0 {
		fmt.Fprintln(os.Stderr, "not granted:", err)
	}
	s.Refused++
	time.Sleep(s.retry)
}

// Release notes what became of a release.
func (s *Shift) Release(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "not released:", err)
		s.Unreleased++
		return
	}
	s.Released++
	time.Sleep(2 * time.Millisecond)
}

// ErrLost is the end of a section whose lock is gone.
var ErrLost = errors.New("lock lost")

// Section is what is done once the lock is there.
func (s *Shift) Section(ctx context.Context, renew func() error) error {
	s.Granted++
	return s.Work(ctx, 1, renew)
}

// Work reads the number of that id and writes it, one higher. renew may be nil. It
// gives up where the context ends.
func (s *Shift) Work(ctx context.Context, id int, renew func() error) error {
	err := s.Count(ctx, s.db, id, renew)
	if errors.Is(err, ErrLost) {
		fmt.Fprintln(os.Stderr, "gave up:", err)
		return err
	}
	Must(err)
	return nil
}

// A Querier is a connection or a transaction of pgx.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Count is Work on a connection or in a transaction of the service's own. An error
// that is no ErrLost is the database's.
func (s *Shift) Count(ctx context.Context, db Querier, id int, renew func() error) error {
	var value int
	if err := db.QueryRow(ctx, "SELECT value FROM counter WHERE id = $1", id).Scan(&value); err != nil {
		return s.lost(ctx, err)
	}
	if err := s.Think(ctx, renew); err != nil {
		return err
	}
	if err := db.QueryRow(ctx, "UPDATE counter SET value = $1 WHERE id = $2 RETURNING value", value+1, id).Scan(&value); err != nil {
		return s.lost(ctx, err)
	}
	s.Wrote++
	return nil
}

// Think takes its time, and may renew the lock.
func (s *Shift) Think(ctx context.Context, renew func() error) error {
	time.Sleep(s.think)
	if s.Renews && renew != nil {
		if err := renew(); err != nil {
			s.Unrenewed++
			return fmt.Errorf("%w: not renewed: %w", ErrLost, err)
		}
		s.Renewed++
	}
	Await(s.waitFile)
	if ctx.Err() != nil {
		return s.lost(ctx, ctx.Err())
	}
	return nil
}

// lost tells an error that comes of a context's end from others.
func (s *Shift) lost(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	s.Lost++
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// Tell makes a file.
func Tell(file string) {
	if file != "" {
		Must(os.WriteFile(file, nil, 0o644))
	}
}

// Await waits for a file, twenty seconds at most.
func Await(file string) {
	if file == "" {
		return
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
	}
}

// Must ends the service where it cannot go on.
func Must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

func ms(name string, otherwise int) time.Duration {
	return time.Duration(number(name, otherwise)) * time.Millisecond
}
