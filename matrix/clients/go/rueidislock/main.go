// Command rueidislock guards its work by a lock of rueidis, which renews it by itself. With LOOP=1 it hears of
// its own changes of the key, too, as is the default.
package main

import (
	"context"
	"os"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/lockfaultd/lockfaultd/matrix/clients/go/work"
)

func main() {
	option, err := rueidis.ParseURL(os.Getenv("REDIS_URL"))
	work.Must(err)

	s := work.Start()
	defer s.Finish()
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: option, KeyValidity: s.Lease, NoLoopTracking: os.Getenv("LOOP") == ""})
	work.Must(err)
	defer locker.Close()
	for s.More() {
		ctx, cancel, err := locker.TryWithContext(context.Background(), "counter")
		if err != nil {
			s.Refuse(err)
			continue
		}
		err = s.Section(ctx, nil)
		cancel()
		s.Release(err)
	}
}
