package probe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

const (
	// answerLimit is how long a worker waits for an answer. It is far above
	// any fault that a run injects: a client that gives up hides the hazard.
	answerLimit = 30 * time.Second
	sectionMax  = 2 * answerLimit
	retryPause  = 5 * time.Millisecond  // between two tries for the lock
	errorPause  = 50 * time.Millisecond // after a section that failed
)

// A WorkerReport is what one worker believes it did.
type WorkerReport struct {
	Name     string       `json:"name"`
	PID      int          `json:"pid"`
	Writes   int64        `json:"writes"`   // acknowledged
	Rejected int64        `json:"rejected"` // refused by the fence, at the claim or at the write
	Unknown  int64        `json:"unknown"`  // writes whose answer never came
	Errors   int64        `json:"errors"`   // sections that ended in an error
	Sections [][2]float64 `json:"sections"` // start and end, in ms of Redis' clock
}

// A worker does sections, one after the other, on one connection to each
// server. It is not safe for concurrent use.
type worker struct {
	load   Load
	redis  *redis.Client
	pg     *pgx.Conn       // nil when it must be opened again
	known  map[string]bool // scripts that were sent as text
	stderr io.Writer
	report WorkerReport
}

// serve does what one worker of the load does until its time is over or ctx is
// done, and says what it believes it did. The section in hand is finished
// first. It is an error if the servers cannot be reached at the start, or if
// every section failed; errors of single sections are counted, and told to
// stderr.
func (l Load) serve(ctx context.Context, name string, pid int, stderr io.Writer) (WorkerReport, error) {
	options, err := redisOptions(l.Redis)
	if err != nil {
		return WorkerReport{}, fmt.Errorf("read Redis URL: %w", err)
	}
	w := &worker{load: l, redis: redis.NewClient(options), known: map[string]bool{}, stderr: stderr}
	w.report = WorkerReport{Name: name, PID: pid, Sections: [][2]float64{}}
	defer w.close()
	if err := w.redis.Ping(ctx).Err(); err != nil {
		return w.report, fmt.Errorf("reach Redis: %w", err)
	}
	if err := w.reconnect(ctx); err != nil {
		return w.report, err
	}
	err = w.loop(ctx)
	return w.report, err
}

func redisOptions(url string) (*redis.Options, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.PoolSize = 1
	options.MaxRetries = -1 // a repeated SET NX would be refused by itself
	options.ReadTimeout, options.WriteTimeout = answerLimit, answerLimit
	return options, nil
}

func (w *worker) close() {
	_ = w.redis.Close() // the process ends
	if w.pg != nil {
		closeConn(w.pg)
	}
}

func (w *worker) reconnect(ctx context.Context) error {
	if w.pg != nil && !w.pg.IsClosed() {
		return nil
	}
	config, err := parse(w.load.Database)
	if err != nil {
		return fmt.Errorf("read database URL: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("reach Postgres: %w", err)
	}
	w.pg = conn
	return nil
}

func (w *worker) loop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.load.Duration)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		if err := w.section(ctx); err != nil {
			last = err
			w.report.Errors++
			fmt.Fprintf(w.stderr, "%s: %v\n", w.report.Name, err)
			sleep(ctx, errorPause)
		}
	}
	if last != nil && w.report.Writes+w.report.Rejected == 0 {
		return fmt.Errorf("every section failed, the last: %w", last)
	}
	return nil
}

// section takes the lock, and does its work under it. Once ctx is done it
// waits for no lock, but a section that has begun goes on to its end.
func (w *worker) section(ctx context.Context) (err error) {
	inside, cancel := context.WithTimeout(context.WithoutCancel(ctx), sectionMax)
	defer cancel()
	if err := w.reconnect(inside); err != nil {
		return err
	}
	token := newToken()
	fence, granted, err := w.acquire(inside, token)
	for err == nil && !granted && ctx.Err() == nil {
		sleep(ctx, retryPause)
		fence, granted, err = w.acquire(inside, token)
	}
	if err != nil || !granted {
		return err
	}
	defer func() { err = errors.Join(err, w.release(inside, token)) }()
	return w.critical(inside, fence)
}

// critical is what the lock is for. An answer counts as soon as it is there:
// what fails later does not undo it.
func (w *worker) critical(ctx context.Context, fence int64) error {
	start, err := w.now(ctx)
	if err != nil {
		return err
	}
	value, claimed, err := w.read(ctx, fence)
	if err != nil {
		return err
	}
	if !claimed {
		w.report.Rejected++
		return nil
	}
	time.Sleep(w.load.Work)
	written, err := w.write(ctx, value+1, fence)
	if err != nil {
		return err
	}
	if written {
		w.report.Writes++
	} else {
		w.report.Rejected++
	}
	end, err := w.now(ctx)
	if err != nil {
		return err
	}
	w.report.Sections = append(w.report.Sections, [2]float64{start, end})
	return nil
}

// now is the time by Redis' clock, in milliseconds.
func (w *worker) now(ctx context.Context) (float64, error) {
	t, err := w.redis.Time(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("ask time: %w", err)
	}
	return float64(t.UnixMicro()) / 1000, nil
}

func newToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: the runtime crashes instead
	return hex.EncodeToString(b[:])
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
