package pgwire

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// A connection that is idle after some use costs less than 2 KB, what it
// refers to included.
func TestIdleTrackersAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(Tracker{}); size > 1024 {
		t.Errorf("a tracker has %d bytes", size)
	}
	many := fe{}
	replies := be{}
	for range 300 {
		many = append(many, p("", sqlWrite), b("", "", "8", "1"), e(""))
		replies = append(replies, parsed, boundOK, c("UPDATE 1"))
	}
	turns := encode(t, append(started[:2:2],
		fe{q("select '" + strings.Repeat("x", 100_000) + "'")}, be{rowd("x", 25), data(strings.Repeat("x", 100_000)), c("SELECT 1"), z('I')},
		append(many, syn), append(replies, z('I')),
		fe{q("select '" + strings.Repeat("x", 30_000) + "'")}, be{rowd("x", 25), c("SELECT 1"), z('I')},
		fe{q("begin; savepoint a; savepoint b"), q("commit")}, be{c("BEGIN"), c("SAVEPOINT"), c("SAVEPOINT"), z('T'), c("COMMIT"), z('I')},
		fe{p("", sqlRead), b("x", "", "1"), e("x"), syn}, be{parsed, boundOK, data("7"), c("SELECT 1"), z('I')},
		fe{q("select 1")}, be{rowd("x", 25), data("1"), c("SELECT 1"), z('I')}))
	cache := NewCache()
	const count = 500
	trackers := make([]*Tracker, count)
	var before, after runtime.MemStats
	use := func(i int) {
		tr := NewTracker(Options{Session: uint64(i), Upstream: "main", Hash: hasher, Statements: cache})
		var marks []wire.Mark
		for _, u := range turns {
			for rest := u.bytes; len(rest) > 0; {
				n := min(len(rest), 4000)
				if u.client {
					marks, _ = tr.Client(rest[:n], marks[:0])
				} else {
					marks, _ = tr.Upstream(rest[:n], marks[:0])
				}
				rest = rest[n:]
			}
		}
		trackers[i] = tr
	}
	use(0) // fills the cache
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range trackers {
		use(i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / count; each > 2048 {
		t.Errorf("an idle tracker costs %d bytes", each)
	}
	runtime.KeepAlive(trackers)
}
