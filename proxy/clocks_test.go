package proxy

import (
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A lease with an absolute end is placed by the clock of its server, or else by
// ours.
func TestAnEndThatIsOverGivesALeaseBack(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	for _, tt := range []struct {
		name string
		op   lock.Op
		want lock.Kind
	}{
		{"in the past", lock.Op{Kind: lock.Renew, Key: "lease:t:x", Until: 900_000}, lock.Release},
		{"now", lock.Op{Kind: lock.Renew, Key: "lease:t:x", Until: 1_002_000}, lock.Release},
		{"now, by a clock that goes before", lock.Op{Kind: lock.Renew, Key: "lease:t:x", Until: 1_002_005}, lock.Release},
		{"later", lock.Op{Kind: lock.Renew, Key: "lease:t:x", Until: 1_002_006}, lock.Renew},
		{"an acquire", lock.Op{Kind: lock.Acquire, Key: "lease:t:x", Until: 900_000}, lock.Acquire},
		{"of no row", lock.Op{Kind: lock.Renew, Key: "k", Until: 900_000}, lock.Renew},
	} {
		e := engine(t)
		e.Started(start)
		c := e.Open(1, owner("a"))
		op := tt.op
		op.Session, op.Proto, op.A = 1, lock.Postgres, lock.Instant(2*time.Second)
		e.Request(c, &op, false, op.A)
		if op.Kind != tt.want || op.Kind == lock.Release && (op.TTL != 0 || op.Until != 0) || op.Kind != lock.Release && op.TTL < 1 {
			t.Errorf("%s: a %s for %v until %d, want a %s", tt.name, op.Kind, op.TTL, op.Until, tt.want)
		}
	}
}

func TestLifetimeOfAnAbsoluteEnd(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	for _, tt := range []struct {
		name string
		tell func(*Engine)
		op   lock.Op
		ttl  time.Duration
	}{
		{"nobody knows", func(*Engine) {}, lock.Op{Until: 1_005_000}, 0},
		{"ours", func(e *Engine) { e.Started(start) }, lock.Op{Until: 1_005_000}, 3 * time.Second},
		{"the server's", func(e *Engine) {
			e.Started(start)
			e.Sampled(history.Clock{Upstream: "r", At: lock.Instant(time.Second), Wall: start.Add(2 * time.Second)})
		}, lock.Op{Upstream: "r", Until: 1_005_000}, 2 * time.Second},
		{"another server's", func(e *Engine) {
			e.Started(start)
			e.Sampled(history.Clock{Upstream: "r", At: 1, Wall: start.Add(time.Hour)})
		}, lock.Op{Upstream: "s", Until: 1_005_000}, 3 * time.Second},
		{"it has ended", func(e *Engine) { e.Started(start) }, lock.Op{Until: 1_001_000}, 1},
		{"it is told", func(e *Engine) { e.Started(start) }, lock.Op{Until: 1_005_000, TTL: time.Minute}, time.Minute},
		{"there is none", func(e *Engine) { e.Started(start) }, lock.Op{}, 0},
	} {
		e := engine(t)
		tt.tell(e)
		c := e.Open(1, owner("a"))
		op := tt.op
		op.Session, op.Proto, op.Kind, op.A = 1, lock.Redis, lock.Acquire, lock.Instant(2*time.Second)
		e.Request(c, &op, false, op.A)
		if op.TTL != tt.ttl || op.Until != tt.op.Until {
			t.Errorf("%s: ttl %v until %d, want %v", tt.name, op.TTL, op.Until, tt.ttl)
		}
	}
}
