// Command redsync guards its work by a mutex of redsync.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/matrix/clients/go/work"
)

func main() {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	work.Must(err)
	client := redis.NewClient(options)
	defer client.Close()
	locks := redsync.New(goredis.NewPool(client))

	s := work.Start()
	defer s.Finish()
	for s.More() {
		m := locks.NewMutex("lock:counter", redsync.WithExpiry(s.Lease))
		if err := m.TryLock(); err != nil {
			s.Refuse(err)
			continue
		}
		_ = s.Section(context.Background(), func() error { return said(m.Extend()) })
		s.Release(said(m.Unlock()))
	}
}

func said(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("no")
	}
	return err
}
