// Command asynq has tasks done of which there may be only one at a time (asynq.Unique).
package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/lockfaultd/lockfaultd/matrix/clients/go/work"
)

func main() {
	connect, err := asynq.ParseRedisURI(os.Getenv("REDIS_URL"))
	work.Must(err)
	client, inspector := asynq.NewClient(connect), asynq.NewInspector(connect)
	server := asynq.NewServer(connect, asynq.Config{Concurrency: 1, LogLevel: asynq.ErrorLevel, TaskCheckInterval: 50 * time.Millisecond})

	s := work.Start()
	var handled atomic.Int64
	handle := func(ctx context.Context, _ *asynq.Task) error {
		if int(handled.Add(1)) == s.Sections {
			server.Stop() // that is its share
		}
		return s.Work(ctx, 1, nil)
	}
	serving := os.Getenv("INSERT") == "1"
	if serving {
		work.Must(server.Start(asynq.HandlerFunc(handle)))
	}
	for s.More() {
		task, err := client.Enqueue(asynq.NewTask("count", nil), asynq.Unique(s.Lease), asynq.MaxRetry(0))
		switch {
		case errors.Is(err, asynq.ErrDuplicateTask):
			s.Refuse(err)
			continue
		case err != nil:
			work.Must(err)
		}
		if s.Granted++; !serving {
			serving = true
			work.Must(server.Start(asynq.HandlerFunc(handle)))
		}
		for err == nil { // whoever does it
			time.Sleep(5 * time.Millisecond)
			_, err = inspector.GetTaskInfo(task.Queue, task.ID)
		}
	}
	for int(handled.Load()) < s.Granted { // the other one may have more to ask for
		time.Sleep(5 * time.Millisecond)
	}
	if serving {
		server.Shutdown()
	}
	s.Released = int(handled.Load()) // a task that is done gives up its claim
	s.Finish()
}
