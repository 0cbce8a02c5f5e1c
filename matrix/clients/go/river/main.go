// Command river works on jobs of River. A job is claimed by one client, and has a row of
// its own.
package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/lockfaultd/lockfaultd/matrix/clients/go/work"
)

// A Count is a job.
type Count struct {
	Row int `json:"row"`
}

// Kind names the job.
func (Count) Kind() string { return "count" }

type worker struct {
	river.WorkerDefaults[Count]
	shift *work.Shift
}

func (w *worker) Work(ctx context.Context, job *river.Job[Count]) error {
	w.shift.Granted++
	return w.shift.Work(ctx, job.Args.Row, nil)
}

func main() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	work.Must(err)
	defer pool.Close()
	s := work.Start()
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{shift: s})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}}, Workers: workers,
		FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	work.Must(err)
	if os.Getenv("INSERT") == "1" {
		insert(ctx, pool, client, s.Sections)
	}
	completed, stop := client.Subscribe(river.EventKindJobCompleted)
	defer stop()
	work.Must(client.Start(ctx))
	for s.Wrote < s.Sections && pending(ctx, pool) > 0 {
		time.Sleep(20 * time.Millisecond)
	}
	work.Must(client.Stop(ctx))
	s.Released = len(completed)
	s.Finish()
}

// insert makes the tables, and n jobs in one transaction.
func insert(ctx context.Context, pool *pgxpool.Pool, client *river.Client[pgx.Tx], n int) {
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	work.Must(err)
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	work.Must(err)
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = Count{Row: i + 1}
	}
	_, err = client.InsertMany(ctx, jobs)
	work.Must(err)
}

// pending counts the jobs that are not done.
func pending(ctx context.Context, pool *pgxpool.Pool) (n int) {
	work.Must(pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE finalized_at IS NULL").Scan(&n))
	return n
}
