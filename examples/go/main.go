// Command go is a small payments service: deposits are booked on one account.
//
// The balance is one row in Postgres. Several of these processes book at once,
// so each deposit is made under a lease lock in Redis: read the balance, ask
// the fraud check, write the balance. Its environment configures it:
//
//	REDIS_URL      redis://127.0.0.1:6379/0
//	DATABASE_URL   postgres://postgres@127.0.0.1:5432/postgres
//	FENCE          none, write or claim (none): how a holder whose lease has
//	               lapsed is kept from writing; see account.go
//	LEASE          lifetime of the lock (500ms)
//	CHECK          what the fraud check takes (20ms)
//	DURATION       how long to book (10s)
//
// At its end it prints one JSON line: what it believes it booked, and the
// deposits that a fence turned away.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// amount is what each deposit adds, in cents.
const amount = 25

// A booking is what one process believes it did.
type booking struct {
	Service    string `json:"service"`
	Fence      string `json:"fence"`
	Deposits   int    `json:"deposits"`
	Cents      int64  `json:"cents"`
	TurnedAway int    `json:"turned_away"`
	Errors     int    `json:"errors"`
}

func main() {
	if err := serve(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "account:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context) error {
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	duration, err := time.ParseDuration(env("DURATION", "10s"))
	if err != nil {
		return fmt.Errorf("DURATION: %w", err)
	}
	believed := booking{Service: "account", Fence: s.fencing}
	for end := time.Now().Add(duration); time.Now().Before(end); {
		switch booked, err := s.deposit(ctx, amount); {
		case err != nil:
			believed.Errors++
			fmt.Fprintln(os.Stderr, "account:", err)
			time.Sleep(50 * time.Millisecond)
		case booked:
			believed.Deposits++
			believed.Cents += amount
		default:
			believed.TurnedAway++
		}
	}
	return json.NewEncoder(os.Stdout).Encode(believed)
}

// open reads the environment, connects and makes the account if there is none.
func open(ctx context.Context) (*service, error) {
	s := &service{fencing: env("FENCE", "none")}
	if s.fencing != "none" && s.fencing != "write" && s.fencing != "claim" {
		return nil, fmt.Errorf("FENCE=%s: expected none, write or claim", s.fencing)
	}
	var err error
	if s.lease, err = time.ParseDuration(env("LEASE", "500ms")); err != nil {
		return nil, fmt.Errorf("LEASE: %w", err)
	}
	if s.check, err = time.ParseDuration(env("CHECK", "20ms")); err != nil {
		return nil, fmt.Errorf("CHECK: %w", err)
	}
	options, err := redis.ParseURL(env("REDIS_URL", "redis://127.0.0.1:6379/0"))
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	options.ReadTimeout = 30 * time.Second
	options.MaxRetries = -1 // a SET NX that is sent twice refuses itself
	s.redis = redis.NewClient(options)
	s.pg, err = pgx.Connect(ctx, env("DATABASE_URL", "postgres://postgres@127.0.0.1:5432/postgres"))
	if err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %w", err)
	}
	return s, s.create(ctx)
}

func (s *service) close(ctx context.Context) {
	_ = s.redis.Close()
	_ = s.pg.Close(ctx)
}

func env(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}
