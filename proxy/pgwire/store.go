package pgwire

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
func sessionStore[V any](weigh func(*V) int) store[*V] {
	return store[*V]{entries: maxStatements, bytes: maxNamed, weigh: weigh}
}
