// Command counter adds one to a row of Postgres, again and again, under a mutex of redsync. It is configured
// by its environment:
//
//	REDIS_URL, DATABASE_URL
//	LEASE_MS    lifetime of the lock (500)
//	FENCED      0: no fence; 1: compared when writing; claim: claimed when reading (0)
//	HEARTBEAT   1: the lock is extended meanwhile, three times in its lifetime (0)
//	WORK_MS     what is done between read and write (20)
//	DURATION_S  how long to go on (10)
//
// At its end it prints one JSON line: the writes that were acknowledged, those that its fence turned away,
// the sections that gave up their lock, and other errors.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

var (
	errStale = errors.New("a newer holder has been here")
	errLost  = errors.New("lock lost")
)

type service struct {
	redis     *redis.Client
	locks     *redsync.Redsync
	db        *pgxpool.Pool
	lease     time.Duration
	work      time.Duration
	fenced    string
	heartbeat bool
}

func main() {
	ctx := context.Background()
	s, err := open(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "counter:", err)
		os.Exit(1)
	}
	defer s.db.Close()
	defer s.redis.Close()
	var did struct {
		Writes   int `json:"writes"`
		Rejected int `json:"rejected"`
		Lost     int `json:"lost"`
		Errors   int `json:"errors"`
	}
	for end := time.Now().Add(time.Duration(number("DURATION_S", 10) * float64(time.Second))); time.Now().Before(end); {
		switch err := s.add(ctx); {
		case err == nil:
			did.Writes++
		case errors.Is(err, errStale):
			did.Rejected++
		case errors.Is(err, errLost):
			did.Lost++
		default:
			did.Errors++
			fmt.Fprintln(os.Stderr, "counter:", err)
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(did)
}

func open(ctx context.Context) (*service, error) {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return nil, err
	}
	db, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(options)
	return &service{
		redis: client, locks: redsync.New(goredis.NewPool(client)), db: db,
		lease: ms("LEASE_MS", 500), work: ms("WORK_MS", 20), fenced: os.Getenv("FENCED"), heartbeat: os.Getenv("HEARTBEAT") == "1",
	}, errors.Join(client.Ping(ctx).Err(), db.Ping(ctx)) // the time that connecting takes is no lock's
}

// add is one section.
func (s *service) add(ctx context.Context) error {
	mutex := s.locks.NewMutex("lock:counter", redsync.WithExpiry(s.lease), redsync.WithTries(1000), redsync.WithRetryDelay(5*time.Millisecond))
	if err := mutex.LockContext(ctx); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	defer func() { _, _ = mutex.UnlockContext(ctx) }() // what is lost by then is lost
	lost := make(chan struct{})
	if s.heartbeat {
		defer s.keep(ctx, mutex, lost)()
	}
	fence, err := s.fence(ctx)
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	value, err := s.read(ctx, fence)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	time.Sleep(s.work)
	select {
	case <-lost:
		return errLost
	default:
		return s.write(ctx, value+1, fence)
	}
}

// keep extends the lock until what it returns is called; lost is closed when that fails.
func (s *service) keep(ctx context.Context, mutex *redsync.Mutex, lost chan struct{}) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(s.lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if ok, _ := mutex.ExtendContext(context.WithoutCancel(ctx)); !ok {
				close(lost)
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (s *service) fence(ctx context.Context) (int64, error) {
	if s.fenced != "1" && s.fenced != "claim" {
		return 0, nil
	}
	return s.redis.Incr(ctx, "fence:counter").Result()
}

func (s *service) read(ctx context.Context, fence int64) (value int64, err error) {
	if s.fenced != "claim" {
		err = s.db.QueryRow(ctx, "SELECT value FROM counter WHERE id = 1").Scan(&value)
		return value, err
	}
	err = s.db.QueryRow(ctx, "UPDATE counter SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING value", fence).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errStale
	}
	return value, err
}

func (s *service) write(ctx context.Context, value, fence int64) error {
	statement, args := "UPDATE counter SET value = $1 WHERE id = 1", []any{value}
	switch s.fenced {
	case "1":
		statement, args = "UPDATE counter SET value = $1, fence = $2 WHERE id = 1 AND fence < $2", []any{value, fence}
	case "claim":
		statement, args = "UPDATE counter SET value = $1 WHERE id = 1 AND fence = $2", []any{value, fence}
	}
	tag, err := s.db.Exec(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return errStale
	}
	return nil
}

func number(name string, otherwise float64) float64 {
	if n, err := strconv.ParseFloat(os.Getenv(name), 64); err == nil {
		return n
	}
	return otherwise
}

func ms(name string, otherwise float64) time.Duration {
	return time.Duration(number(name, otherwise) * float64(time.Millisecond))
}
