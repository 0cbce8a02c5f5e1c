package pgwire

import (
	"fmt"
	"slices"
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

func TestCacheIsBounded(t *testing.T) {
	cache := NewCache()
	for i := range 5000 {
		twice(cache, fmt.Sprintf("select a from t where b = %d", i))
	}
	for i := range 500 {
		twice(cache, fmt.Sprintf("select a from t where b = '%s%d'", strings.Repeat("x", 60_000), i))
	}
	n, size := 0, 0
	for _, g := range []map[string][]template{cache.texts.young, cache.texts.old} {
		for k := range g {
			n++
			size += len(k)
		}
	}
	if n > cacheEntries || size > cacheBytes {
		t.Errorf("%d texts of %d bytes", n, size)
	}
	before := len(cache.texts.young)
	twice(cache, "select '"+strings.Repeat("x", cacheText)+"'")
	if len(cache.texts.young) != before {
		t.Error("a long text is kept")
	}
}

// twice reads a text until it would be kept.
func twice(c *Cache, text string) {
	c.read(hasher, []byte(text), false)
	c.read(hasher, []byte(text), false)
}

// kept reports whether a text is in the cache.
func kept(c *Cache, text string) bool {
	_, ok := c.texts.get([]byte(text))
	return ok
}

// A text is kept once it has come twice, and only then.
func TestCacheKeepsWhatComesAgain(t *testing.T) {
	cache := NewCache()
	for i := range 3 {
		cache.read(hasher, []byte("select a from t where b = $1"), false)
		if kept(cache, "select a from t where b = $1") != (i > 0) {
			t.Errorf("after %d times: kept %v", i+1, i == 0)
		}
	}
	cache.read(hasher, []byte("select a from t where b = 1; select 'cut"), true)
	cache.read(hasher, []byte("select a from t where b = 1; select 'cut"), true)
	if kept(cache, "select a from t where b = 1; select 'cut") {
		t.Error("a text that was cut is kept")
	}
}

// The sum of a long text is of its ends, and a text that only looks like one
// that was seen is read for what it is.
func TestCacheTellsTextsApart(t *testing.T) {
	cache := NewCache()
	for _, table := range []string{"t", "u", "t"} {
		text := "select a from " + table + " where b in (" + strings.Repeat("$1, ", 500) + "$1)"
		if list := cache.read(hasher, []byte(text), false); list[0].shape.Table != table {
			t.Errorf("read a text about %s as one about %s", table, list[0].shape.Table)
		}
	}
}

// Nothing of a text is kept in a template: its bytes are the connection's.
func TestTemplatesKeepNothingOfTheText(t *testing.T) {
	listed(t, func(_, sql string) {
		text := []byte(sql)
		list := readSQL(view(text), false)
		want := fmt.Sprintf("%+v", plainly(list))
		clear(text)
		if got := fmt.Sprintf("%+v", plainly(list)); got != want {
			t.Errorf("%s: read as %s, and with the text gone %s", sql, want, got)
		}
	})
}

// plainly copies templates without what points back at them.
func plainly(list []template) []string {
	var out []string
	for _, tm := range list {
		for t := &tm; t != nil; t = t.inner {
			c := *t
			c.bare, c.inner = nil, nil
			out = append(out, fmt.Sprintf("%+v", c))
		}
	}
	return out
}

// What was read from a text is weighed too.
func TestCacheWeighsStatements(t *testing.T) {
	cache := NewCache()
	for i := range 2000 {
		twice(cache, fmt.Sprintf("%sselect %d", strings.Repeat("a;", cacheList-1), i))
		twice(cache, fmt.Sprintf("update t set a = %d%s", i, strings.Repeat(",a=1", maxSlots-1)))
		if n := heavy(cache); n > cacheBytes+cacheBytes/8 {
			t.Fatalf("%d bytes after %d texts", n, i)
		}
	}
	before := len(cache.texts.young)
	twice(cache, strings.Repeat("a;", cacheList+1))
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

// What upstream carried out and could not be read is counted; what it refused is
// not, nor what was read.
func TestUnreadIsCounted(t *testing.T) {
	deep := "select " + strings.Repeat("(", maxNested+2) + "select 1 from t" + strings.Repeat(")", maxNested+2)
	many := strings.Repeat("select 1;", maxList+1)
	for _, tt := range []struct {
		name   string
		script []any
		want   int64
	}{
		{"read", []any{fe{q("select 1 from t")}, be{c("SELECT 0"), z('I')}}, 0},
		{"deep", []any{fe{q(deep)}, be{c("SELECT 0"), z('I')}}, 1},
		{"deep and refused", []any{fe{q(deep)}, be{bad("42601"), z('I')}}, 0},
		{"deep, as an Execute", []any{fe{p("", deep), b("", ""), e(""), syn}, be{parsed, boundOK, c("SELECT 0"), z('I')}}, 1},
		{"no word", []any{fe{q("?")}, be{c("X"), z('I')}}, 1},
		{"many", []any{fe{q(many)}, append(slices.Repeat(be{c("SELECT 0")}, maxList+1), z('I'))}, 1},
	} {
		tr := newTracker()
		newPlayer(t, tr).play(encode(t, append(started[:2:2], tt.script...)), 0)
		if got := tr.opt.Statements.Unread(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
