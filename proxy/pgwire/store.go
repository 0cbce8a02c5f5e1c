package pgwire

import "sync"

// A store keeps the entries used last, in two generations: when the younger
// one is half of what is allowed, the older one is dropped. Its zero value,
// given limits, is ready.
type store[V any] struct {
	entries, bytes int // limits
	young, old     map[string]V
	used           int // bytes of the younger
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
	if _, ok := s.young[key]; !ok {
		s.used += len(key)
	}
	s.young[key] = v
	if len(s.young) >= s.entries/2 || s.used >= s.bytes/2 {
		s.old, s.young, s.used = s.young, nil, 0
	}
}

func (s *store[V]) drop(key string) {
	if _, ok := s.young[key]; ok {
		s.used -= len(key)
		delete(s.young, key)
	}
	delete(s.old, key)
}

func (s *store[V]) clear() {
	clear(s.young)
	s.old, s.used = nil, 0
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
)

// A Cache keeps what was read from SQL texts, for all sessions. It holds at
// most 1024 texts of 4 MiB together. It is safe for concurrent use.
type Cache struct {
	mu    sync.Mutex
	texts store[[]template]
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{texts: store[[]template]{entries: cacheEntries, bytes: cacheBytes}}
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
	c.mu.Lock()
	c.texts.set(key, ts)
	c.mu.Unlock()
	return ts
}
