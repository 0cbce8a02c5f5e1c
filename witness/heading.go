package witness

import "bytes"

// A heading is what is told of a line of MONITOR without parsing it.
type heading struct {
	inner bool // a script has run it
	calls bool // it calls one
	mark  bool // it may be a mark of a looker
	reads bool // it changes no key
}

// glance reads the heading of a line. What it does not know may change anything.
func glance(line []byte) heading {
	at := bytes.Index(line, []byte(`] "`))
	if at < 0 {
		return heading{}
	}
	h := heading{inner: bytes.HasSuffix(line[:at], []byte(" lua"))}
	name := line[at+3:]
	end := bytes.IndexByte(name, '"')
	var lower [16]byte
	if end < 0 || end > len(lower) {
		return h
	}
	for i, c := range name[:end] {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	switch word := string(lower[:end]); word {
	case "eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro":
		h.calls = true
	case "echo":
		h.mark = true
	default:
		h.reads = reads(word)
	}
	return h
}

// reads reports whether a command is known to change no key. Those that are sent
// often are among them.
func reads(word string) bool {
	switch word {
	case "get", "mget", "exists", "ttl", "pttl", "type", "strlen", "getrange", "getbit", "object", "keys", "scan", "dbsize",
		"expiretime", "pexpiretime", "dump", "randomkey",
		"hget", "hmget", "hgetall", "hexists", "hlen", "hkeys", "hvals", "hscan", "hstrlen",
		"smembers", "sismember", "smismember", "scard", "sscan", "srandmember",
		"zrange", "zrevrange", "zrangebyscore", "zrevrangebyscore", "zscore", "zmscore", "zcard", "zcount", "zrank", "zscan",
		"lrange", "llen", "lindex", "xlen", "xrange", "xrevrange", "xread", "xinfo", "xpending", "pfcount", "bitcount",
		"ping", "auth", "hello", "client", "info", "config", "command", "select", "time", "wait", "waitaof", "role", "memory",
		"multi", "exec", "discard", "watch", "unwatch", "script", "function", "cluster", "readonly", "readwrite", "asking", "reset", "quit",
		"subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe", "publish", "spublish", "pubsub", "monitor":
		return true
	}
	return false
}
