package witness

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A logged is a log that can be read while it is written.
type logged struct{ testbed.Log }

func (l *logged) log() *slog.Logger { return slog.New(slog.NewTextHandler(&l.Log, nil)) }

// dialTo dials an address of this machine.
func dialTo(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
}

func clockFrom(start time.Time) func() lock.Instant {
	return func() lock.Instant { return lock.Instant(time.Since(start)) + 1 }
}

// recorded keeps what witnesses record.
type recorded struct {
	clocks   chan history.Clock
	bypasses chan history.Bypass
}

func newRecorded() *recorded {
	return &recorded{make(chan history.Clock, 1000), make(chan history.Bypass, 1000)}
}

func (r *recorded) Clock(c history.Clock) { r.clocks <- c }

// await returns the next of a channel; a test that waits for too long fails.
func await[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
func (r *recorded) Bypass(b history.Bypass) { r.bypasses <- b }
