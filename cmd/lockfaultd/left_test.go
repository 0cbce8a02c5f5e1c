package main

import (
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// A lock is not shown as free while the key of a holder that went away keeps others from it.
func TestWhatIsLeftBehindIsNotFree(t *testing.T) {
	d := &daemon{started: time.Now(), setup: &setup{config: &config.Config{}}}
	left := proxy.TermSeen{Actor: "A1", Since: 5, End: 9, EndBy: lock.Closed}
	look := proxy.Snapshot{Locks: []proxy.LockSeen{
		{Lock: lock.LockID{Key: "a"}},
		{Lock: lock.LockID{Key: "b"}, Left: &left, Waiters: []string{"A2"}},
		{Lock: lock.LockID{Key: "c"}, Terms: []proxy.TermSeen{{Actor: "A3", Since: 7}}},
		{Lock: lock.LockID{Key: "d"}, Waiters: []string{"A2"}, Stranger: true},
	}}
	shown := d.locksShown(look)
	if len(shown) != 4 || shown[0].Held || shown[0].Gone || shown[0].Stranger || !shown[3].Stranger || shown[3].Held {
		t.Fatalf("%+v", shown)
	}
	if b, c := shown[1], shown[2]; !b.Held || !b.Gone || b.Holder != "A1" || b.Waiters != 1 || !c.Held || c.Gone {
		t.Errorf("%+v and %+v", b, c)
	}
}
