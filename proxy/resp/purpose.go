package resp

import (
	"bytes"

	"github.com/lockfaultd/lockfaultd/lock"
)

// purpose says what the text of a script suggests that it is for; false if it was
// not seen, or suggests nothing.
func (s *Scripts) purpose(script string) (lock.Kind, bool) {
	p := s.lookup([]byte(script))
	switch {
	case p == nil:
	case p.effect != noEffect:
		return p.effect.kind(), true
	case p.purpose != noEffect:
		return p.purpose.kind(), true
	}
	return lock.Other, false
}

// purposeOf tells it from the commands that the text names.
func purposeOf(text []byte) effect {
	names := func(words ...string) bool {
		for _, w := range words {
			for _, quote := range []string{"'", `"`} {
				if bytes.Contains(text, []byte(quote+w+quote)) {
					return true
				}
			}
		}
		return false
	}
	text = bytes.ToLower(text)
	switch {
	case names("del", "unlink", "hdel", "srem", "zrem", "getdel"):
		return releases
	case names("set", "setnx", "psetex", "setex", "hset", "hsetnx", "hincrby", "sadd", "zadd"):
		return acquires
	case names("expire", "pexpire", "expireat", "pexpireat"):
		return renews
	}
	return noEffect
}
