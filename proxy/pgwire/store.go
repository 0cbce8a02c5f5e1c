package pgwire

import (
	"strings"
	"sync"
)

// A store keeps the entries used last, in two generations: when the younger
// one is half of what is allowed, the older one is dropped. Its zero value,
// given limits, is ready.
type store[V any] struct {
	entries, bytes int         // limits
	weigh          func(V) int // bytes of a value; nil: those of keys count alone
	young, old     map[string]V
	used           int // bytes of the younger
}

func (s *store[V]) size(key string, v V) int {
	if s.weigh == nil {
		return len(key)
	}
	return len(key) + s.weigh(v)
}

func (s *store[V]) get(key []byte) (v V, ok bool) {
	if v, ok = s.young[string(key)]; ok || s.old == nil {
		return v, ok
	}
	if v, ok = s.old[string(key)]; ok {
		s.set(string(key), v)
	}
	return v, ok
}

func (s *store[V]) set(key string, v V) {
	if s.young == nil {
		s.young = make(map[string]V)
	}
	if was, ok := s.young[key]; ok {
		s.used -= s.size(key, was)
	}
	s.used += s.size(key, v)
	s.young[key] = v
	if len(s.young) >= s.entries/2 || s.used >= s.bytes/2 {
		s.old, s.young, s.used = s.young, nil, 0
	}
}

func (s *store[V]) drop(key string) {
	if was, ok := s.young[key]; ok {
		s.used -= s.size(key, was)
		delete(s.young, key)
	}
	delete(s.old, key)
}

func (s *store[V]) clear() {
	if len(s.young) > 0 {
		clear(s.young)
	}
	s.old, s.used = nil, 0
}

// sessionStore returns a store of what a client gave names to.
func sessionStore[V any]() store[*V] {
	return store[*V]{entries: maxStatements, bytes: maxNames}
}

// merge puts o's entries over those of s.
func (s *store[V]) merge(o *store[V]) {
	for k, v := range o.old {
		s.set(k, v)
	}
	for k, v := range o.young {
		s.set(k, v)
	}
}

const (
	cacheEntries = 1024
	cacheBytes   = 4 << 20
	cacheText    = 64 << 10 // longer texts are read each time
	cacheList    = 64       // so are those of more statements
)

// A Cache keeps what was read from SQL texts, for all sessions. It holds at
// most 1024 texts, of 4 MiB together with what was read from them, and none that
// may hold a password. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	texts store[[]template]
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{texts: store[[]template]{entries: cacheEntries, bytes: cacheBytes, weigh: weigh}}
}

// read returns the statements of a text. A text that was cut is a prefix of
// what upstream gets, and is not kept.
func (c *Cache) read(text []byte, cut bool) []template {
	if cut || len(text) > cacheText {
		return readSQL(string(text), cut)
	}
	c.mu.Lock()
	ts, ok := c.texts.get(text)
	c.mu.Unlock()
	if ok {
		return ts
	}
	key := string(text)
	ts = readSQL(key, false)
	if len(ts) > cacheList || secret(key, ts) {
		return ts
	}
	c.mu.Lock()
	c.texts.set(key, ts)
	c.mu.Unlock()
	return ts
}

// secret reports whether a text may hold a password: those of statements that
// are no queries, wherever they mention one. Their texts are not kept.
func secret(text string, list []template) bool {
	for i := range list {
		switch list[i].verb {
		case "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "BEGIN", "COMMIT", "ROLLBACK":
		default:
			return mentions(text, "password")
		}
	}
	return false
}

// mentions reports whether a text has a word in it, in any case.
func mentions(text, word string) bool {
	for ; len(text) >= len(word); text = text[1:] {
		if strings.EqualFold(text[:len(word)], word) {
			return true
		}
	}
	return false
}

// weigh returns about how many bytes templates take.
func weigh(list []template) int {
	n := 0
	for i := range list {
		for t := &list[i]; t != nil; t = t.inner {
			n += 512 + 96*(len(t.set)+len(t.where)+len(t.args)) + 32*len(t.shape.Columns)
		}
	}
	return n
}
