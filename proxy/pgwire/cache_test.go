package pgwire

import (
	"sync"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Sessions of one daemon share what is no op, its portal as well.
func TestSharedCache(t *testing.T) {
	cache := NewCache()
	var wg sync.WaitGroup
	for id := range uint64(2) {
		steps := append(started[:2:2], fe{p("s", "set a = 1"), syn}, be{parsed, z('I')})
		for range 100 {
			steps = append(steps, fe{b("", "s"), e(""), e(""), syn}, be{boundOK, c("SET"), c("SET"), z('I')})
		}
		turns := encode(t, steps)
		tr := NewTracker(Options{Session: id, Hash: lock.NewHasher(nil), Statements: cache})
		wg.Go(func() {
			for _, u := range turns {
				if u.client {
					tr.Client(u.bytes, nil)
				} else {
					tr.Upstream(u.bytes, nil)
				}
			}
		})
	}
	wg.Wait()
}
