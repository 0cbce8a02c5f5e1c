package service

import (
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/live"
	"github.com/lockfaultd/lockfaultd/lock"
)

// While the source is not seen, nobody is said to hold a lock, let alone past its lease: its release may have gone unseen.
func TestLocksOfASourceThatIsDown(t *testing.T) {
	p := newTape(t, "00000000000000aa")
	p.now = lock.Instant(time.Hour - 31*time.Second) // its lease of 30 s has just ended
	p.take("A", 1, hash("token"))
	s, store := open(t, t.TempDir(), nil)
	defer store.Close()
	for _, m := range p.messages(0) {
		if err := s.take(m); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.heldNow(); len(got.Locks) != 1 || !got.Locks[0].Overrun || !got.Blind.IsZero() {
		t.Fatalf("while it is seen: %+v", got)
	}
	at := time.Now()
	if err := s.take(Message{At: at, Down: "connection refused"}); err != nil {
		t.Fatal(err)
	}
	if got := s.heldNow(); len(got.Locks) != 0 || !got.Blind.Equal(at) {
		t.Errorf("/v1/locks: %+v", got)
	}
	snap := s.State().(live.Snapshot)
	if len(snap.Locks) != 0 || !snap.Blind.Equal(at) || snap.Sources[0].Up || !snap.Sources[0].Since.Equal(at) {
		t.Errorf("/v1/state: %+v", snap)
	}
	for _, m := range []Message{{At: at, Up: true}, {At: at.Add(time.Second), Idle: true}} {
		if err := s.take(m); err != nil {
			t.Fatal(err)
		}
	}
	if snap := s.State().(live.Snapshot); len(snap.Locks) != 1 || !snap.Sources[0].Up || !snap.Blind.IsZero() {
		t.Errorf("seen again, with nothing to tell: %+v", snap)
	}
}
