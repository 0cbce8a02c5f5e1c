package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Orders are what a process of clients is to do.
type orders struct {
	Addresses [3]string // through lockfaultd, by server
	Database  string    // URL of the third
	Source    string    // address to connect from
	First     int       // number of the first client
	Clients   int
	Postgres  int // of the clients
	Pause     time.Duration
	Stay      time.Duration
	Ramp      time.Duration // all come within this time
}

// A tally is what came of it.
type tally struct {
	Actions     int
	Connections int
	Peak        int // at a time
	Wrong       []string
	Losses      []loss
}

// A loss is a connection that ended and was not ended by its client.
type loss struct {
	Server int
	Since  time.Time // when the connection was last known to work, or was asked for
	At     time.Time
	Why    string
}

func (t *tally) add(u tally) {
	t.Actions += u.Actions
	t.Connections += u.Connections
	t.Peak += u.Peak
	t.Wrong = append(t.Wrong, u.Wrong...)
	t.Losses = append(t.Losses, u.Losses...)
}

// A crowd is the clients of one process.
type crowd struct {
	orders
	dialer net.Dialer

	mu    sync.Mutex
	tally tally
	there int
}

// clients does what is ordered until in ends, and writes the tally to out.
func clients(text string, in io.Reader, out io.Writer) error {
	c := &crowd{}
	if err := json.Unmarshal([]byte(text), &c.orders); err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	c.dialer = net.Dialer{Timeout: 30 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.Source)}}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for n := range c.Clients {
		all.Go(func() { c.client(ctx, n) })
	}
	_, err := io.Copy(io.Discard, in)
	stop()
	all.Wait()
	return errors.Join(err, json.NewEncoder(out).Encode(c.tally))
}

// wrong is a reply that is not the right one.
type wrong struct{ text string }

func (w wrong) Error() string { return w.text }

func wrongf(format string, args ...any) error { return wrong{fmt.Sprintf(format, args...)} }

// A visitor is what a client does on one connection.
type visitor interface {
	act(ctx context.Context) error // one action, with a check of every reply
	leave()
}

func (c *crowd) client(ctx context.Context, n int) {
	connect, server := c.redis(c.First+n), n%2
	if n < c.Postgres {
		connect, server = c.postgres(c.First+n), 2
	}
	c.rest(ctx, c.Ramp)
	for ctx.Err() == nil {
		if heard, err := c.visit(ctx, connect); err != nil && ctx.Err() == nil {
			c.note(server, heard, err)
			c.rest(ctx, 10*time.Second)
		}
	}
}

// rest waits for a time between nothing and at most.
func (c *crowd) rest(ctx context.Context, most time.Duration) {
	select {
	case <-time.After(rand.N(max(most, 1))):
	case <-ctx.Done():
	}
}

// visit is one connection. It returns when that was last heard from.
func (c *crowd) visit(ctx context.Context, connect func(context.Context) (visitor, error)) (heard time.Time, err error) {
	heard = time.Now()
	v, err := connect(ctx)
	if err != nil {
		return heard, err
	}
	c.come(1)
	defer c.come(-1)
	defer v.leave()
	until := time.Now().Add(rand.N(2 * c.Stay))
	for ctx.Err() == nil && time.Now().Before(until) {
		if err := v.act(ctx); err != nil {
			return heard, err
		}
		heard = time.Now()
		c.acted()
		c.rest(ctx, 2*c.Pause)
	}
	return heard, nil
}

func (c *crowd) come(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there += n
	c.tally.Peak = max(c.tally.Peak, c.there)
	if n > 0 {
		c.tally.Connections++
	}
}

func (c *crowd) acted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.Actions++
}

func (c *crowd) note(server int, heard time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := (wrong{}); errors.As(err, &w) {
		c.tally.Wrong = append(c.tally.Wrong, w.text)
		return
	}
	c.tally.Losses = append(c.tally.Losses, loss{server, heard, time.Now(), err.Error()})
}
