package resp

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An applying is a command that is being worked out, at the instant ms.
type applying struct {
	s    *Shadow
	db   int
	ms   int64
	tell func(*touch)
	// trusts reports whether the key has to be there, since a script went on after
	// it had read it; nil: none need be.
	trusts func(Ref) bool

	name  string
	words [][]byte
	args  [][]byte // those behind the name
}

// apply works out what the command did, tells it touch by touch, and has the
// shadow know it.
func (a *applying) apply(words [][]byte) {
	if len(words) == 0 || len(words[0]) > maxName {
		return
	}
	a.name, a.words, a.args = string(upper(slices.Clone(words[0]))), words, words[1:]
	known := a.reading() || a.string() || a.keys() || a.hash() || a.set() || a.sorted() || a.other()
	if !known {
		a.unknown()
	}
}

func (a *applying) arg(i int) []byte {
	if i < len(a.args) {
		return a.args[i]
	}
	return nil
}

// first returns the first argument alone, behind returns the others.
func (a *applying) first() [][]byte  { return a.args[:min(1, len(a.args))] }
func (a *applying) behind() [][]byte { return a.args[min(1, len(a.args)):] }

func (a *applying) ref(key []byte) Ref { return Ref{a.db, string(key)} }

func (a *applying) hashOf(b []byte) lock.Value {
	if b == nil || a.s.hash == nil {
		return lock.Value{}
	}
	return a.s.hash.Of(b)
}

// touch begins a touch of the key.
func (a *applying) touch(what act, key []byte) *touch {
	k := a.ref(key)
	was := a.s.Look(k, a.ms)
	return &touch{act: what, key: k, was: was, now: was}
}

// done ends one.
func (a *applying) done(t *touch) {
	a.s.set(t)
	a.tell(t)
}

// each tells of each key that the command does the same to.
func (a *applying) each(what act, keys [][]byte) {
	for _, key := range keys {
		t := a.touch(what, key)
		t.did = t.was.present()
		a.done(t)
	}
}

// members tells of the members that a command reads; of the key as a whole
// without any.
func (a *applying) members(list [][]byte) {
	for _, m := range list {
		t := a.touch(compares, a.arg(0))
		t.member, t.token = true, a.hashOf(m)
		_, t.did = t.was.member(t.token)
		a.done(t)
	}
	if len(list) == 0 {
		a.each(compares, a.first())
	}
}

// reading takes in what changes nothing.
func (a *applying) reading() bool {
	if len(a.args) == 0 {
		return false
	}
	switch a.name {
	case "GET", "GETRANGE", "SUBSTR", "HGETALL", "HKEYS", "HVALS", "HSCAN", "HRANDFIELD", "SMEMBERS", "SSCAN", "SRANDMEMBER",
		"ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZRANGEBYLEX", "ZREVRANGEBYLEX", "ZSCAN", "ZRANDMEMBER":
		a.each(compares, a.first())
	case "MGET":
		a.each(compares, a.args)
	case "EXISTS", "TOUCH":
		a.each(looks, a.args)
	case "TTL", "PTTL", "TYPE", "EXPIRETIME", "PEXPIRETIME", "STRLEN", "DUMP", "GETBIT", "BITCOUNT", "BITPOS",
		"LLEN", "LINDEX", "LRANGE", "LPOS", "XLEN", "XRANGE", "XREVRANGE", "DIGEST":
		a.each(looks, a.first())
	case "HLEN", "SCARD", "ZCARD", "ZCOUNT", "ZLEXCOUNT":
		a.each(sizes, a.first())
	case "HGET", "HEXISTS", "HSTRLEN", "SISMEMBER", "ZSCORE", "ZRANK", "ZREVRANK":
		a.members(a.args[1:min(2, len(a.args))])
	case "HMGET", "SMISMEMBER", "ZMSCORE":
		a.members(a.behind())
	default:
		return false
	}
	return true
}

// keys takes in what is done to keys of any type.
func (a *applying) keys() bool {
	switch a.name {
	case "DEL", "UNLINK":
		for _, key := range a.args {
			a.remove(a.touch(removes, key))
		}
	case "EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT":
		a.expire()
	case "PERSIST":
		t := a.touch(alters, a.arg(0))
		t.did = t.was.present()
		t.now.Ends = 0
		a.done(t)
	case "FLUSHDB", "FLUSHALL":
		for k, sh := range a.s.keys {
			if k.DB == a.db || a.name == "FLUSHALL" {
				sh.state = State{Type: Absent}
			}
		}
	case "SWAPDB":
		a.s.Forget()
	default:
		return false
	}
	return true
}

// there reports whether the key of a touch is there.
func (a *applying) there(t *touch) tri {
	if p := t.was.present(); p != maybe || a.trusts == nil || !a.trusts(t.key) {
		return p
	}
	return yes
}

// remove ends a touch that removes the key, if it is there.
func (a *applying) remove(t *touch) {
	t.did, t.now = a.there(t), State{Type: Absent}
	a.done(t)
}

func (a *applying) expire() {
	e, ok := readExpire(a.name, list(a.words))
	if !ok {
		return
	}
	if e.n <= 0 || e.absolute && e.ends(a.ms) <= a.ms {
		a.remove(a.touch(removes, a.arg(0)))
		return
	}
	t := a.touch(lasts, a.arg(0))
	t.lease, t.did = e.lease, min(a.there(t), e.allowed(t.was, a.ms))
	a.lasting(t)
}

// lasting ends a touch that moves the key's end, as far as that took effect.
func (a *applying) lasting(t *touch) {
	switch {
	case t.did == no, t.was.Type == Unseen:
	case t.did == yes:
		t.now.Ends = t.ends(a.ms)
	default:
		t.now.Ends = UnknownEnd
	}
	a.done(t)
}

// other takes in what concerns no key that matters.
func (a *applying) other() bool {
	p := placeOf(a.name)
	return p == place{} && a.name != "MIGRATE" && a.name != "RESTORE"
}

// unknown forgets what was known of the keys that the command may have changed.
func (a *applying) unknown() {
	p := placeOf(a.name)
	for i, arg := range a.args {
		k := a.ref(arg)
		if a.s.keys[k] == nil && (!a.s.whole || i+1 != p.at && !twoKeys(a.name, i)) {
			continue
		}
		t := a.touch(alters, arg)
		t.now = State{}
		a.done(t)
	}
}

// twoKeys reports whether the second word of a command is a key as well.
func twoKeys(name string, i int) bool {
	switch name {
	case "RENAME", "RENAMENX", "COPY", "LMOVE", "RPOPLPUSH", "BLMOVE", "BRPOPLPUSH", "SMOVE", "GEOSEARCHSTORE", "ZRANGESTORE":
		return i == 1
	}
	return false
}
