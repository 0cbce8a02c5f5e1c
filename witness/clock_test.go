package witness

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// A look at the clock lies between two readings of our own, and tells who
// answered.
func TestClockIsLookedAtWhileLocksAreSeen(t *testing.T) {
	server := testbed.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	ctx := t.Context()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Do(ctx, "ACL", "SETUSER", "witness", "on", ">secret", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	record, log := newRecorded(), &logged{}
	var locks atomic.Uint64
	h := New(Options{
		Redis: []Redis{{Name: "r", Address: server.Addr(), Dial: dialTo(server.Addr()), User: "witness", Password: "secret"}},
		Now:   clockFrom(start), Locks: locks.Load, Record: record, Log: log.log(),
	})
	if h.Watch(proxy.Watched{Route: proxy.Route{Protocol: "pg", Upstream: server.Addr()}}) != nil || len(record.clocks) > 0 {
		t.Error("a session of Postgres is watched by a Redis")
	}
	h.Watch(proxy.Watched{Session: 1, Route: proxy.Route{Protocol: "redis", Upstream: server.Addr()}})
	for range 2 {
		locks.Add(1)
		c := await(t, record.clocks)
		if c.Upstream != "r" || c.Role != "master" || len(c.Data) != 40 || !strings.Contains(info, "run_id:"+c.Run) || c.Slept != 0 {
			t.Errorf("%+v", c)
		}
		off := c.Wall.Sub(start.Add(time.Duration(c.At)))
		if c.Trip <= 0 || off.Abs() > c.Trip+time.Millisecond {
			t.Errorf("our own machine's clock is off by %v, trip %v", off, c.Trip)
		}
	}
	h.Close()
	last := len(record.clocks)
	if last == 0 {
		t.Error("no look at the end")
	}
	if log.String() != "" {
		t.Errorf("log: %s", log)
	}
}

// A server that refuses is said once, and the password is told to nobody.
func TestRefusedClockIsSaidOnce(t *testing.T) {
	server := testbed.Redis(t)
	log := &logged{}
	tries := make(chan struct{}, 100)
	dial := dialTo(server.Addr())
	r := Redis{Address: server.Addr(), User: "nobody", Password: "secret"}
	r.Dial = func(ctx context.Context) (net.Conn, error) {
		tries <- struct{}{}
		return dial(ctx)
	}
	h := New(Options{Redis: []Redis{r}, Now: clockFrom(time.Now()), Locks: func() uint64 { return 0 }, Record: newRecorded(), Log: log.log()})
	h.Begin(0)
	await(t, tries)
	for !strings.Contains(log.String(), "refused") {
		time.Sleep(time.Millisecond)
	}
	counts := h.Close()
	if strings.Count(log.String(), "refused by the server") != 1 || strings.Contains(log.String(), "secret") || counts[Lapses] != 1 {
		t.Errorf("log %s, counts %v", log, counts)
	}
}
