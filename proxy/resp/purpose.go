package resp

import (
	"bytes"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// purpose says what the text of a script suggests that it is for; false if it was
// not seen, or suggests nothing.
func (s *Scripts) purpose(script string) (lock.Kind, bool) {
	p := s.lookup([]byte(script))
	if name, ok := strings.CutPrefix(script, "/"); ok {
		p = s.function([]byte(name))
	}
	switch {
	case p == nil:
	case p.effect != noEffect:
		return p.effect.kind(), true
	case p.purpose != noEffect:
		return p.purpose.kind(), true
	}
	return lock.Other, false
}

// tells reports whether the text is enough to go by: it was understood, or has
// nothing of a lock's.
func (p *program) tells() bool {
	return p != nil && (p.effect != noEffect || p.purpose == noEffect)
}

// purposeOf tells it from the commands that the text names.
func purposeOf(text []byte) effect {
	text = bytes.ToLower(text)
	return purposeBy(func(w string) bool {
		return bytes.Contains(text, []byte("'"+w+"'")) || bytes.Contains(text, []byte(`"`+w+`"`))
	})
}

func purposeOfTokens(toks []token) effect {
	return purposeBy(func(w string) bool {
		return slices.ContainsFunc(toks, func(t token) bool { return t.kind == literal && strings.EqualFold(t.text, w) })
	})
}

func purposeBy(has func(command string) bool) effect {
	names := func(words ...string) bool { return slices.ContainsFunc(words, has) }
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
