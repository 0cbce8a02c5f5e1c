package probe

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// testWorker returns a worker of l on real servers, its table made.
func testWorker(t *testing.T, fence string) *worker {
	t.Helper()
	red, pg := testbed.Redis(t), testbed.Postgres(t)
	l := testLoad(red.URL(), pg.URL())
	l.Fence = fence
	if _, err := l.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	options, err := redisOptions(l.Redis)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(l, redis.NewClient(options), io.Discard)
	t.Cleanup(w.close)
	if err := w.reconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// What was acknowledged stays so, whatever fails after it.
func TestWriteCountsThoughReleaseFails(t *testing.T) {
	w := testWorker(t, FenceNone)
	w.redis.AddHook(failing{"eval", "evalsha"})
	if err := w.section(t.Context()); !errors.Is(err, errHook) {
		t.Fatalf("got %v, want the release's error", err)
	}
	if w.report.Writes != 1 || len(w.report.Sections) != 1 {
		t.Errorf("got %+v, want the write counted", w.report)
	}
}

var errHook = errors.New("no answer")

// failing makes the named commands fail without sending them.
type failing []string

func (f failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(f, cmd.Name()) {
			cmd.SetErr(errHook)
			return errHook
		}
		return next(ctx, cmd)
	}
}

// A write that was sent and not answered may have happened.
func TestUnansweredWriteIsUnknown(t *testing.T) {
	w := testWorker(t, FenceNone)
	other, err := pgx.Connect(t.Context(), w.load.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(other)
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context())
	if _, err := tx.Exec(t.Context(), "SELECT 1 FROM counter FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	pid := w.pg.PgConn().PID()
	go func() {
		defer giveUp()
		for waiting := false; !waiting && ctx.Err() == nil; {
			_ = tx.QueryRow(ctx, "SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1", pid).Scan(&waiting)
			_, _ = tx.Exec(ctx, "SELECT pg_stat_clear_snapshot()") // or the answer stays that of the transaction's first look
		}
	}()
	if _, err := (&stint{worker: w}).write(ctx, 1); err == nil {
		t.Fatal("a write that nobody answered gave no error")
	}
	if w.report.Unknown != 1 || w.report.Writes != 0 {
		t.Errorf("got %+v, want one unknown write", w.report)
	}
	// A connection that is closed already sends nothing: that one is known.
	if _, err := (&stint{worker: w}).write(t.Context(), 1); err == nil || w.report.Unknown != 1 {
		t.Errorf("got %v and %+v, want an error and no further unknown write", err, w.report)
	}
}

// The two forms of fence, step by step, with a holder that comes back late.
func TestFencesAgainstLateHolder(t *testing.T) {
	w := testWorker(t, FenceWrite)
	for _, test := range []struct {
		name, fence string
		claims      []int64 // fences, in the order of the reads
		writes      []int64 // and of the writes
		accepted    []bool
	}{
		{"the late write is refused", FenceWrite, []int64{1, 2}, []int64{2, 1}, []bool{true, false}},
		// The hole of a fence that is only compared when writing.
		{"the late write comes first", FenceWrite, []int64{1, 2}, []int64{1, 2}, []bool{true, true}},
		{"a claim closes that hole", FenceClaim, []int64{1, 2}, []int64{1, 2}, []bool{false, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.load.Fence = test.fence
			if _, err := w.load.prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, f := range test.claims {
				s := &stint{worker: w, fence: f}
				if err := s.read(t.Context()); err != nil || !s.known || s.value != 0 {
					t.Fatalf("read with fence %d: %d, %v, %v", f, s.value, s.known, err)
				}
			}
			for i, f := range test.writes {
				if got, err := (&stint{worker: w, fence: f}).write(t.Context(), 1); err != nil || got != test.accepted[i] {
					t.Errorf("write with fence %d: accepted %v, %v; want %v", f, got, err, test.accepted[i])
				}
			}
			if test.fence == FenceClaim {
				s := &stint{worker: w, fence: 1}
				if err := s.read(t.Context()); err != nil || s.known {
					t.Errorf("a late claim: %v, %v; want it refused", s.known, err)
				}
			}
		})
	}
}
