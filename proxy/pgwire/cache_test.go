package pgwire

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
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

// What was read from a text is weighed too.
func TestCacheWeighsStatements(t *testing.T) {
	cache := NewCache()
	for i := range 2000 {
		cache.read(fmt.Appendf(nil, "%sselect %d", strings.Repeat("a;", cacheList-1), i), false)
		cache.read(fmt.Appendf(nil, "update t set a = %d%s", i, strings.Repeat(",a=1", maxSlots-1)), false)
		if n := heavy(cache); n > cacheBytes+cacheBytes/8 {
			t.Fatalf("%d bytes after %d texts", n, i)
		}
	}
	before := len(cache.texts.young)
	cache.read([]byte(strings.Repeat("a;", cacheList+1)), false)
	if len(cache.texts.young) != before {
		t.Error("a text of many statements is kept")
	}
}

func heavy(c *Cache) int {
	n := 0
	for _, g := range []map[string][]template{c.texts.young, c.texts.old} {
		for k, v := range g {
			n += len(k) + 512*len(v)
			for _, tm := range v {
				n += 96 * len(tm.set)
			}
		}
	}
	return n
}

// The statements behind the limit are no ops, and do not disturb what comes
// after them.
func TestQueryOfManyStatements(t *testing.T) {
	const more = 10
	sql := strings.Repeat("delete from t;", maxList+more)
	reply := be{}
	for range maxList + more {
		reply = append(reply, c("DELETE 1"))
	}
	pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2],
		fe{q(sql)}, append(reply, z('I')), fe{q("update t set a = 1")}, be{c("UPDATE 3"), z('I')})), 0)
	counts := map[wire.Kind]int{}
	for _, m := range pl.marks {
		counts[m.Kind]++
	}
	last := pl.marks[len(pl.marks)-1].Op
	if counts[wire.Request] != maxList+1 || counts[wire.Reply] != maxList+1 || counts[wire.Settle] != maxList+1 || last.Verb != "UPDATE" || last.Rows != 3 || last.Outcome != lock.Done {
		t.Errorf("marks %v, the last of %+v", counts, last)
	}
}
