package service

import (
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// What docs/probe.md says of how much of a core judging takes.
func TestPace(t *testing.T) {
	s, store := open(t, t.TempDir(), nil)
	defer store.Close()
	s.took = time.Second
	for _, tt := range []struct {
		wait int
		want time.Duration
	}{{0, 4 * time.Second}, {8191, 4 * time.Second}, {8192, time.Second}, {32767, time.Second}, {32768, 0}} {
		s.queued.Store(int64(tt.wait))
		if got := s.pause(); got != tt.want {
			t.Errorf("%d lines wait: %v, want %v", tt.wait, got, tt.want)
		}
	}
	s.queued.Store(0)

	if err := s.take(newTape(t, "00000000000000aa").messages(0)[0]); err != nil {
		t.Fatal(err)
	}
	messages := make(chan Message)
	for n := uint64(1); n <= 32768; n++ {
		if s.unless(messages) == nil {
			t.Fatalf("no more are taken with %d", n-1)
		}
		s.judge.Entry(n, history.Entry{Op: &lock.Op{Seq: n, A: lock.Instant(n)}})
	}
	if s.unless(messages) != nil {
		t.Error("more are taken with 32768")
	}
}
