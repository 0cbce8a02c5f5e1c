package resp

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The library that this project uses itself, against a real server.
func TestC102GoRedisLive(t *testing.T) {
	server := dialServer(t).RemoteAddr().String()
	for _, version := range []int{2, 3} {
		socket := t.TempDir() + "/relay"
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		r := &relay{opt: testOptions(), server: server}
		r.wg.Add(1)
		go r.serve(l)
		talk(t, &redis.Options{Network: "unix", Addr: socket, Protocol: version, ClientName: "svc", DB: 2, DialTimeout: time.Minute, ReadTimeout: time.Minute})
		l.Close()
		r.wg.Wait()
		want := []string{
			`SET acquire db2 "k" nx T ttl=1m0s granted`, `SET acquire db2 "k" nx T ttl=1m0s refused`, `EVALSHA release db2 "k" guarded guessed T failed err=NOSCRIPT`, `EVAL release db2 "k" guarded T done`,
			`SET acquire db2 "q" nx T granted`, `SET acquire db2 "q" nx T refused`, `DEL release db2 "q" done`,
		}
		if got := strings.ReplaceAll(strings.Join(r.ops, "\n"), tok("token-0001"), "T"); got != strings.Join(want, "\n") || len(r.bad) > 0 {
			t.Errorf("RESP%d: blind %q, ops\n%s\nwant\n%s", version, r.bad, got, strings.Join(want, "\n"))
		}
	}
}

func talk(t *testing.T, opt *redis.Options) {
	t.Helper()
	ctx, c := t.Context(), redis.NewClient(opt)
	defer c.Close()
	check := func(err error) {
		t.Helper()
		if err != nil && err != redis.Nil {
			t.Fatal(err)
		}
	}
	check(c.ScriptFlush(ctx).Err())
	for range 2 {
		_, err := c.SetNX(ctx, "k", "token-0001", time.Minute).Result()
		check(err)
	}
	check(redis.NewScript(compareAndDelete).Run(ctx, c, []string{"k"}, "token-0001").Err())
	sub := c.Subscribe(ctx, "a", "b")
	defer sub.Close()
	for range 2 {
		_, err := sub.Receive(ctx)
		check(err)
	}
	check(c.Publish(ctx, "a", "x").Err())
	message, err := sub.ReceiveMessage(ctx)
	check(err)
	check(sub.Ping(ctx))
	check(sub.Unsubscribe(ctx))
	_, err = c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Get(ctx, "x")
		p.SetNX(ctx, "q", "token-0001", 0)
		p.SetNX(ctx, "q", "token-0001", 0)
		return nil
	})
	check(err)
	n, err := c.Del(ctx, "q").Result()
	if check(err); n != 1 || message.Payload != "x" {
		t.Errorf("%d deleted, message %v", n, message)
	}
}
