package proxy_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/tidwall/redcon"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// A store is a Redis that knows SET NX PX, GET and the release script, with a
// clock that is the bubble's.
type store struct {
	mu   sync.Mutex
	keys map[string]held
}

type held struct {
	value string
	until time.Time
}

func (s *store) get(key string) (string, bool) {
	h, ok := s.keys[key]
	return h.value, ok && time.Now().Before(h.until)
}

func (s *store) serve(c redcon.Conn, cmd redcon.Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	arg := func(i int) string { return string(cmd.Args[i]) }
	switch strings.ToUpper(arg(0)) {
	case "SET":
		if _, taken := s.get(arg(1)); taken {
			c.WriteNull()
			return
		}
		ms, _ := strconv.Atoi(arg(4))
		s.keys[arg(1)] = held{arg(2), time.Now().Add(time.Duration(ms) * time.Millisecond)}
		c.WriteString("OK")
	case "GET":
		if v, ok := s.get(arg(1)); ok {
			c.WriteBulkString(v)
			return
		}
		c.WriteNull()
	case "EVAL":
		if v, ok := s.get(arg(3)); ok && v == arg(4) {
			delete(s.keys, arg(3))
			c.WriteInt(1)
			return
		}
		c.WriteInt(0)
	default:
		c.WriteError("ERR unknown command '" + arg(0) + "'")
	}
}

func redisStore(t *testing.T, n *testbed.Network) {
	ln, err := n.Listen("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	s := &store{keys: map[string]held{}}
	go func() { _ = redcon.Serve(ln, s.serve, nil, nil) }()
	t.Cleanup(func() { ln.Close() })
}

const releaseScript = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

// A real client library takes a lease lock of 500 ms; its grant comes 800 ms
// late, to the tick; by then the lock is somebody else's.
func TestLibraryHearsOfItsGrantTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &stage{t: t, ctx: ctx, start: time.Now(), ends: map[string]*end{}, owners: map[string]int{}, rules: proxy.RulesOf(t, "stall-after", "SETNX#1=800ms")}
		redisStore(t, &s.net)
		if err := s.open(); err != nil {
			t.Fatal(err)
		}
		a, b := s.redisClient(), s.redisClient()

		granted, err := a.SetNX(ctx, "job", "tokA", 500*time.Millisecond).Result()
		if waited := time.Since(s.start); err != nil || !granted || waited != 800*time.Millisecond {
			t.Errorf("granted %v, %v after %v; want true after 800ms", granted, err, waited)
		}
		if second, err := b.SetNX(ctx, "job", "tokB", 500*time.Millisecond).Result(); err != nil || !second {
			t.Errorf("the second holder: %v, %v", second, err)
		}
		if released, err := a.Eval(ctx, releaseScript, []string{"job"}, "tokA").Int(); err != nil || released != 0 {
			t.Errorf("the first releases %v, %v; want 0: it holds nothing", released, err)
		}
		a.Close()
		b.Close()
		synctest.Wait()
		cancel()
		s.wait.Wait()
		if err := s.record.Close(); err != nil {
			t.Error(err)
		}
		for _, want := range []string{`"outcome":"landed"`, `"outcome":"not-held"`} {
			if !strings.Contains(s.file.String(), want) {
				t.Errorf("the history lacks %s:\n%s", want, s.file.String())
			}
		}
	})
}

// redisClient returns a client whose connections lead through the proxy, with no
// deadlines, which the network does not have. Its address is a number: a name
// would be looked up outside of the bubble.
func (s *stage) redisClient() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", PoolSize: 1, MaxRetries: -1, ReadTimeout: -2, WriteTimeout: -2, DisableIdentity: true, Protocol: 2,
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.net.Dial(ctx, "redis") },
	})
}
