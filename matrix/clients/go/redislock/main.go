// Command redislock guards its work by bsm/redislock.
package main

import (
	"context"
	"os"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/matrix/clients/go/work"
)

func main() {
	ctx := context.Background()
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	work.Must(err)
	client := redis.NewClient(options)
	defer client.Close()
	locker := redislock.New(client)

	s := work.Start()
	defer s.Finish()
	for s.More() {
		lock, err := locker.Obtain(ctx, "lock:counter", s.Lease, nil)
		if err != nil {
			s.Refuse(err)
			continue
		}
		_ = s.Section(ctx, func() error { return lock.Refresh(ctx, s.Lease, nil) })
		s.Release(lock.Release(ctx))
	}
}
