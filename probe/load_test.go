package probe

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

func selfAsWorker() Program {
	return Program{Path: "/proc/self/exe", Args: []string{"worker", workerArg}}
}

// testLoad is a load that passes Validate.
func testLoad(redisURL, databaseURL string) Load {
	return Load{
		Workers: 3, Lock: LockRedis, Write: WriteSet, Lease: 5 * time.Second, Work: 5 * time.Millisecond, Duration: time.Second,
		Fence: FenceNone, Redis: redisURL, Database: databaseURL,
		Key: "lock:counter", Table: "counter", Create: true,
	}
}

func TestLoadOverRealServers(t *testing.T) {
	red, pg := testbed.Redis(t), testbed.Postgres(t)
	for _, test := range []struct {
		name, fence, broken string
		loses               bool // whether it must lose something, or must not
	}{
		{"no fence", FenceNone, "", false},
		{"fence at the write", FenceWrite, "", false},
		{"fence claimed at the read", FenceClaim, "", false},
		{"fence of its own command", FenceWrite, BrokenSplitFence, false},
		{"claimed fence of its own command", FenceClaim, BrokenSplitFence, false},
		{"blind release", FenceNone, BrokenBlindDel, false},
		{"no NX", FenceNone, BrokenNoNX, true},
		// Claims make even this one safe: the lock is not what protects the row.
		{"no NX, but a claim", FenceClaim, BrokenNoNX, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := testLoad(red.URL(), pg.URL())
			l.Fence, l.Broken = test.fence, test.broken
			if err := l.Validate(); err != nil {
				t.Fatal(err)
			}
			got, err := l.Run(t.Context(), selfAsWorker(), os.Stderr)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("writes %d, rejected %d, overlaps %d, lost %d", got.Writes, got.Rejected, got.Overlaps, got.Lost)
			if got.Writes == 0 || got.Errors != 0 || got.Start != 0 || got.Lost != got.Writes-got.Counter {
				t.Errorf("got %+v", figures(got))
			}
			if (got.Lost > 0) != test.loses {
				t.Errorf("lost %d of %d, want a loss: %v", got.Lost, got.Writes, test.loses)
			}
			if test.broken != BrokenNoNX && (got.Overlaps != 0 || got.Rejected != 0) {
				t.Errorf("got %+v, want neither overlaps nor refusals without a fault", figures(got))
			}
			if test.broken == BrokenNoNX && got.Overlaps == 0 {
				t.Error("sections without a lock did not overlap")
			}
		})
	}
}

// figures is the summary without its lists, for a readable failure.
func figures(s Summary) Summary {
	s.Workers = nil
	return s
}

// The stale release of a blind DEL removes the next holder's lock, and a
// checked one does not.
func TestReleaseOfLapsedLock(t *testing.T) {
	red := testbed.Redis(t)
	options, err := redis.ParseURL(red.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	for broken, left := range map[string]int64{"": 1, BrokenBlindDel: 0} {
		l := testLoad(red.URL(), "")
		l.Broken = broken
		w := &redisLock{load: l, redis: client, known: map[string]bool{}}
		if err := client.Set(t.Context(), l.Key, "of another", 0).Err(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // once by text, once by hash
			if err := w.release(t.Context(), "ours"); err != nil {
				t.Fatal(err)
			}
		}
		if n := client.Exists(t.Context(), l.Key).Val(); n != left {
			t.Errorf("broken %q: %d keys left, want %d", broken, n, left)
		}
	}
}

func TestFencesOfOneScriptRiseWithTheGrants(t *testing.T) {
	red := testbed.Redis(t)
	options, err := redis.ParseURL(red.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	l := testLoad(red.URL(), "")
	l.Fence = FenceWrite
	w := &redisLock{load: l, redis: client, known: map[string]bool{}}
	for want := int64(1); want <= 3; want++ {
		g, err := w.acquire(t.Context(), "a")
		if err != nil || !g.granted || g.fence != want {
			t.Fatalf("got %+v, %v; want fence %d, granted", g, err, want)
		}
		if g, err := w.acquire(t.Context(), "b"); err != nil || g.granted {
			t.Fatalf("a second holder got in: %+v, %v", g, err)
		}
		if ttl := client.PTTL(t.Context(), l.Key).Val(); ttl <= 0 || ttl > l.Lease {
			t.Errorf("lease of %v, want up to %v", ttl, l.Lease)
		}
		if err := w.release(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
}

// A worker that is to stop before it has reached its servers has done nothing
// wrong, and nothing at all.
func TestWorkerThatIsStoppedBeforeItBegins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := testLoad("redis://127.0.0.1:1/0", "postgres://postgres@127.0.0.1:1/postgres")
	got, err := l.serve(ctx, "worker-1", 1, selfAsWorker(), os.Stderr)
	if err != nil || got.Writes != 0 || got.Name != "worker-1" {
		t.Errorf("got %+v, %v; want an empty report", got, err)
	}
}

func TestCreateResetsAndWithoutItTheCounterGoesOn(t *testing.T) {
	pg := testbed.Postgres(t)
	l := testLoad("redis://127.0.0.1:1/0", pg.URL())
	if _, err := l.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	for _, create := range []bool{false, true} {
		if _, err := conn.Exec(t.Context(), "UPDATE counter SET value = 7, fence = 9"); err != nil {
			t.Fatal(err)
		}
		l.Create = create
		start, err := l.prepare(t.Context())
		want := int64(7)
		if create {
			want = 0
		}
		if err != nil || start != want {
			t.Errorf("create %v: start %d, %v; want %d", create, start, err, want)
		}
	}
}

func TestWorkerThatFailsIsAnErrorBesideTheSummary(t *testing.T) {
	pg := testbed.Postgres(t)
	l := testLoad("redis://127.0.0.1:1/0", pg.URL()) // nobody listens on port 1
	l.Workers = 2
	_, err := l.Run(t.Context(), selfAsWorker(), discard(t))
	if err == nil || !strings.Contains(err.Error(), "worker-1") || !strings.Contains(err.Error(), "worker-2") {
		t.Errorf("got %v, want both workers named", err)
	}
}

func discard(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// An interrupted load ends long before its time, with what was done so far.
func TestInterruptedLoadStillSums(t *testing.T) {
	red, pg := testbed.Redis(t), testbed.Postgres(t)
	l := testLoad(red.URL(), pg.URL())
	l.Duration = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer cancel()
		_, err := waitForCounter(ctx, pg.URL(), 5)
		done <- err
	}()
	got, err := l.Run(ctx, selfAsWorker(), os.Stderr)
	cancel() // or a load that failed at once would be waited for
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if got.Writes < 5 || got.Lost != 0 {
		t.Errorf("got %+v, want at least the 5 writes that were waited for, and none lost", figures(got))
	}
}

// Workers are processes: one that is stopped keeps neither its rivals from
// working, once its lease is over, nor the parent from summing up in the end.
// With a claim even that loses nothing.
func TestStoppedWorkerDoesNotStopItsRivals(t *testing.T) {
	red, pg := testbed.Redis(t), testbed.Postgres(t)
	l := testLoad(red.URL(), pg.URL())
	l.Workers, l.Fence, l.Lease, l.Duration = 2, FenceClaim, 100*time.Millisecond, time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- stopOneForAWhile(ctx, pg.URL())
	}()
	got, err := l.Run(ctx, selfAsWorker(), os.Stderr)
	cancel() // or a load that failed at once would be waited for
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if got.Lost != 0 || got.Errors != 0 || len(got.Workers) != 2 {
		t.Errorf("got %+v, want nothing lost and no error", figures(got))
	}
}

// stopOneForAWhile stops a worker until others have written ten times.
func stopOneForAWhile(ctx context.Context, url string) error {
	first, err := waitForCounter(ctx, url, 5)
	if err != nil {
		return err
	}
	pid, err := someWorker()
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	_, err = waitForCounter(ctx, url, first+10)
	return err
}

// someWorker finds a child of ours that is a worker.
func someWorker() (pid int, err error) {
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		children, _ := os.ReadFile(f) // a thread may have ended
		for _, child := range strings.Fields(string(children)) {
			command, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if strings.Contains(string(command), workerArg) {
				return strconv.Atoi(child)
			}
		}
	}
	return 0, errors.New("no worker among our children")
}

// waitForCounter polls until the counter is at least n.
func waitForCounter(ctx context.Context, url string, n int64) (int64, error) {
	inv, err := ParseInvariant(CounterKind, "SELECT value FROM counter WHERE id = 1")
	for err == nil {
		var value int64
		if value, _, err = ReadInvariant(ctx, url, inv); value >= n {
			return value, err
		}
	}
	return 0, err
}

func TestValidateNamesFlagAndWhatIsExpected(t *testing.T) {
	good := testLoad("redis://127.0.0.1:6379/0", "postgres://postgres@127.0.0.1:5432/postgres")
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Load){
		"--workers 0":            func(l *Load) { l.Workers = 0 },
		"--workers 1000":         func(l *Load) { l.Workers = 1000 },
		"--lease 0s":             func(l *Load) { l.Lease = 0 },
		"whole milliseconds":     func(l *Load) { l.Lease = 1500 * time.Microsecond },
		"--work -1ns":            func(l *Load) { l.Work = -1 },
		"--duration 0s":          func(l *Load) { l.Duration = 0 },
		"none, write or claim":   func(l *Load) { l.Fence = "read" },
		"no-nx, blind-del":       func(l *Load) { l.Broken = "nx" },
		"expected --fence write": func(l *Load) { l.Broken = BrokenSplitFence },
		"--key":                  func(l *Load) { l.Key = "" },
		`--table "Counter"`:      func(l *Load) { l.Table = "Counter" },
		`--table "a; DROP b"`:    func(l *Load) { l.Table = "a; DROP b" },
		"redis://127.0.0.1:637":  func(l *Load) { l.Redis = "127.0.0.1:6379" },
		"postgres://user@":       func(l *Load) { l.Database = "postgres://%zz" },
	} {
		l := good
		spoil(&l)
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

func TestOverlapsCountsEverySectionThatSharesTime(t *testing.T) {
	for _, test := range []struct {
		sections [][2]float64
		want     int
	}{
		{nil, 0},
		{[][2]float64{{0, 10}, {10, 20}, {20, 30}}, 0},
		{[][2]float64{{0, 10}, {5, 20}, {20, 30}}, 2},
		{[][2]float64{{15, 16}, {0, 30}, {5, 6}, {40, 50}}, 3}, // unsorted, one around two
	} {
		if got := overlaps(test.sections); got != test.want {
			t.Errorf("overlaps of %v: got %d, want %d", test.sections, got, test.want)
		}
	}
}

// Without a fault every form does its work, and loses nothing.
func TestEveryFormWorks(t *testing.T) {
	red, pg := testbed.Redis(t), testbed.Postgres(t)
	for _, f := range Writes() {
		for _, lock := range []string{LockRedis, LockAdvisory} {
			t.Run(f.Name+" under "+lock, func(t *testing.T) {
				l := testLoad(red.URL(), pg.URL())
				l.Write, l.Lock, l.Duration = f.Name, lock, 300*time.Millisecond
				if err := l.Validate(); f.Name == writeHandOver && lock == LockAdvisory {
					if err == nil {
						t.Error("valid, though nobody could release the lock")
					}
					return
				} else if err != nil {
					t.Fatal(err)
				}
				got, err := l.Run(t.Context(), selfAsWorker(), os.Stderr)
				if err != nil {
					t.Fatal(err)
				}
				if f.Name == writeHandOver {
					got.Overlaps = 0 // the partner releases before the worker looks at the time
				}
				if got.Writes == 0 || got.Errors != 0 || got.Overlaps != 0 || got.Rejected != 0 || got.Lost != 0 {
					t.Errorf("got %+v", figures(got))
				}
			})
		}
	}
}

// So does every form that is broken, as far as that lets it: some lock
// everybody out, and some lose something.
func TestEveryBreakageRuns(t *testing.T) {
	red, pg := testbed.Redis(t), testbed.Postgres(t)
	needs := map[string]func(l *Load){
		BrokenSplitFence:     func(l *Load) { l.Fence = FenceClaim },
		BrokenFenceUnchecked: func(l *Load) { l.Fence = FenceWrite },
		BrokenFenceElsewhere: func(l *Load) { l.Fence = FenceWrite },
		BrokenResend:         func(l *Load) { l.Fence = FenceWrite },
		BrokenBlindRenew:     func(l *Load) { l.Renew = 20 * time.Millisecond },
		BrokenUpsertRenew:    func(l *Load) { l.Renew = 20 * time.Millisecond },
		BrokenSetNXExpire:    func(l *Load) { l.Crash = 3 },
		BrokenSplitSession:   func(l *Load) { l.Lock = LockAdvisory },
		BrokenEarlyRelease:   func(l *Load) { l.Write = writeTx },
	}
	for _, b := range Breaks() {
		t.Run(b.Name, func(t *testing.T) {
			l := testLoad(red.URL(), pg.URL())
			l.Broken, l.Duration, l.Key = b.Name, 300*time.Millisecond, "lock:"+b.Name
			if set := needs[b.Name]; set != nil {
				if err := l.Validate(); err == nil && b.Name != BrokenSetNXExpire {
					t.Error("valid without what it needs")
				}
				set(&l)
			}
			if err := l.Validate(); err != nil {
				t.Fatal(err)
			}
			got, err := l.Run(t.Context(), selfAsWorker(), os.Stderr)
			if err != nil {
				t.Fatal(err)
			}
			if got.Writes == 0 || got.Errors != 0 {
				t.Errorf("got %+v", figures(got))
			}
		})
	}
}
