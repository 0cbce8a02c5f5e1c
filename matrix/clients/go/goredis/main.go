// Command goredis guards its work by a lock that is made by hand: SET NX PX, and two scripts.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/matrix/clients/go/work"
)

const key = "lock:counter"

var (
	renew = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)
	free  = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
)

func main() {
	ctx := context.Background()
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	work.Must(err)
	client := redis.NewClient(options)
	defer client.Close()

	s := work.Start()
	defer s.Finish()
	for s.More() {
		token := rand.Text()
		ok, err := client.SetNX(ctx, key, token, s.Lease).Result()
		if err != nil || !ok {
			s.Refuse(err)
			continue
		}
		_ = s.Section(ctx, func() error {
			return one(renew.Run(ctx, client, []string{key}, token, s.Lease.Milliseconds()).Int())
		})
		s.Release(one(free.Run(ctx, client, []string{key}, token).Int()))
	}
}

func one(n int, err error) error {
	if err == nil && n != 1 {
		err = errors.New("not ours")
	}
	return err
}
