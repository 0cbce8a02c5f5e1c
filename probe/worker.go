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
	Rejected int64        `json:"rejected"` // refused by a guard of the data, at the claim or at the write
	Unknown  int64        `json:"unknown"`  // writes whose answer never came
	Lapsed   int64        `json:"lapsed"`   // sections given up, since a renewal said that the lock was lost
	Errors   int64        `json:"errors"`   // sections that ended in an error
	Sections [][2]float64 `json:"sections"` // start and end, in ms of Redis' clock
}

// A worker does sections, one after the other, on one connection to each
// server, and one more for renewals. It is not safe for concurrent use.
type worker struct {
	load     Load
	form     form
	lock     locker
	redis    *redis.Client
	pg       *pgx.Conn // nil when it must be opened again
	other    *partner  // the process that a token is handed to
	stderr   io.Writer
	report   WorkerReport
	grants   int
	refusals int
}

// A locker is what guards the sections.
type locker interface {
	acquire(ctx context.Context, token string) (grant, error)
	release(ctx context.Context, token string) error
}

// A grant is what came of one try for the lock.
type grant struct {
	granted bool
	fence   int64
	finish  func(ctx context.Context) error // what is left to do to have it; nil: nothing
}

// serve does what one worker of the load does until its time is over or ctx is
// done, and says what it believes it did. The section in hand is finished
// first. It is an error if the servers cannot be reached at the start, or if
// every section failed; errors of single sections are counted, and told to
// stderr. self is how to start another process like this one.
func (l Load) serve(ctx context.Context, name string, pid int, self Program, stderr io.Writer) (WorkerReport, error) {
	options, err := redisOptions(l.Redis)
	if err != nil {
		return WorkerReport{}, fmt.Errorf("read Redis URL: %w", err)
	}
	w := newWorker(l, redis.NewClient(options), stderr)
	w.report = WorkerReport{Name: name, PID: pid, Sections: [][2]float64{}}
	defer w.close()
	if err := w.reach(ctx); ctx.Err() != nil {
		return w.report, nil // it was to stop before it had begun
	} else if err != nil {
		return w.report, err
	}
	if l.Write == writeHandOver {
		if w.other, err = l.startPartner(self, stderr); err != nil {
			return w.report, err
		}
	}
	err = w.loop(ctx)
	return w.report, err
}

// reach connects to both servers.
func (w *worker) reach(ctx context.Context) error {
	if err := w.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("reach Redis: %w", err)
	}
	return w.reconnect(ctx)
}

func newWorker(l Load, client *redis.Client, stderr io.Writer) *worker {
	w := &worker{load: l, redis: client, stderr: stderr}
	w.form, _ = formOf(l.Write)
	if l.Lock == LockAdvisory {
		w.lock = &advisoryLock{load: l, worker: w}
	} else {
		w.lock = &redisLock{load: l, redis: client, known: map[string]bool{}}
	}
	return w
}

func redisOptions(url string) (*redis.Options, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.PoolSize = 2    // one for renewals, if there are any
	options.MaxRetries = -1 // a repeated SET NX would be refused by itself
	options.ReadTimeout, options.WriteTimeout = answerLimit, answerLimit
	return options, nil
}

func (w *worker) close() {
	_ = w.redis.Close() // the process ends
	if w.pg != nil {
		closeConn(w.pg)
	}
	if a, ok := w.lock.(*advisoryLock); ok && a.second != nil {
		closeConn(a.second)
	}
	if w.other != nil {
		_ = w.other.close() // it has said what it had to
	}
}

// crash closes the connections as the end of a process does.
func (w *worker) crash() {
	_ = w.redis.Close()
	_ = w.pg.PgConn().Conn().Close()
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
		err := w.section(ctx)
		if errors.Is(err, errCrash) {
			w.crash()
			return nil
		}
		if err != nil {
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
	s := &stint{worker: w, token: newToken()}
	if w.load.Broken == BrokenEarlyRead {
		if err := s.read(inside); err != nil {
			return err
		}
	}
	granted, err := w.take(ctx, inside, s)
	if err != nil || !granted {
		return err
	}
	defer func() { err = errors.Join(err, s.release(inside)) }()
	return w.critical(inside, s)
}

// errCrash is a worker's end without a word.
var errCrash = errors.New("crashed on purpose")

// take tries for the lock until it is granted, or ctx is done.
func (w *worker) take(ctx, inside context.Context, s *stint) (granted bool, err error) {
	for {
		g, err := w.lock.acquire(inside, s.token)
		if err != nil {
			return w.load.Broken == BrokenSwallowErrors, w.swallowed(err)
		}
		if g.granted {
			return true, w.granted(inside, s, g)
		}
		if w.refusals++; w.load.Broken == BrokenIgnoreRefusal && w.refusals%10 == 0 {
			s.released = true // there is nothing to release
			return true, nil
		}
		if sleep(ctx, retryPause); ctx.Err() != nil {
			return false, nil
		}
	}
}

// swallowed is what is left of an error of the acquire.
func (w *worker) swallowed(err error) error {
	if w.load.Broken == BrokenSwallowErrors {
		return nil
	}
	return err
}

func (w *worker) granted(ctx context.Context, s *stint, g grant) error {
	if w.grants++; w.grants == w.load.Crash {
		s.released = true
		return errCrash
	}
	s.fence = g.fence
	if g.finish != nil {
		return g.finish(ctx)
	}
	return nil
}

// critical is what the lock is for. An answer counts as soon as it is there:
// what fails later does not undo it.
func (w *worker) critical(ctx context.Context, s *stint) error {
	start, err := w.now(ctx)
	if err != nil {
		return err
	}
	s.keep(ctx)
	done, err := w.form.do(ctx, s)
	if err != nil {
		return err
	}
	switch {
	case done:
		w.report.Writes++
	case s.lost:
		w.report.Lapsed++
	default:
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
