package witness

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// Where the server refuses MONITOR, the keys of unknown scripts are looked at.
func TestLooksWhereMonitorIsRefused(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Monitor, o.Probe = true, ProbeUnknown
		client := redis.NewClient(&redis.Options{Addr: o.Redis[0].Address})
		defer client.Close()
		if err := client.Do(t.Context(), "ACL", "SETUSER", "witness", "on", ">secret", "~*", "+@all", "-monitor").Err(); err != nil {
			t.Fatal(err)
		}
		o.Redis[0].User, o.Redis[0].Password = "witness", "secret"
	})
	life(t, b, lock.FromProbe, "k0")
	if said := b.log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "refused") || !strings.Contains(said, "witness=monitor") {
		t.Errorf("log: %s", said)
	}
}

// A server that takes connections and says nothing holds nobody up, at the start,
// meanwhile or at the end.
func TestSilentServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	})
	log := &logged{}
	address := ln.Addr().String()
	h := New(Options{
		Redis: []Redis{{Address: address, Dial: dialTo(address)}}, Monitor: true, Probe: ProbeAll,
		Now: clockFrom(time.Now()), Locks: func() uint64 { return 0 }, Record: newRecorded(), Log: log.log(),
	})
	h.Begin(10 * time.Millisecond)
	w := h.Watch(proxy.Watched{Session: 1, Route: proxy.Route{Protocol: lock.Redis, Upstream: address}})
	c := called(t, "EVALSHA", strings.Repeat("0", 40), "1", "lock:a", "token-of-a")
	if l := w.Before(c); l != nil {
		t.Error("a call waits for a server that says nothing")
	}
	if l := w.After(c); l != nil {
		t.Error("its reply does")
	}
	w.Closed()
	h.Close()
	ln.Close()
	accepting.Wait()
}

// A connection to the witnesses' server that breaks ends what waits for it.
func TestNobodyIsLeftWaiting(t *testing.T) {
	var mu sync.Mutex
	var conns []net.Conn
	b := newBench(t, func(o *Options) {
		o.Monitor = true
		dial := o.Redis[0].Dial
		o.Redis[0].Dial = func(ctx context.Context) (net.Conn, error) {
			c, err := dial(ctx)
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, c)
			return c, err
		}
	})
	p := b.party()
	c := called(t, "EVALSHA", strings.Repeat("0", 40), "1", "lock:a", "token-of-a")
	if l := p.watch.Before(c); l != nil && !b.given(l) {
		t.Fatal("the look before is never given")
	}
	// The call is never sent, so it is not shown.
	mu.Lock()
	for _, c := range conns {
		c.Close()
	}
	mu.Unlock()
	for b.house.say.all()[Lapses] == 0 {
		time.Sleep(time.Millisecond)
	}
	if l := p.watch.After(c); l != nil && !b.given(l) {
		t.Error("the look after is never given")
	}
}
