package resp

// A place says where the first key of a command stands among its arguments.
type place struct {
	at      int  // 0: nowhere that is known ahead
	count   int  // the argument that says how many keys there are; 0: none does
	streams bool // it stands behind STREAMS
}

// maxOptions is among how many arguments STREAMS is looked for: more than there
// are options before it.
const maxOptions = 16

// reach returns how many arguments have to be kept to know the key.
func (p place) reach() int {
	if p.streams {
		return maxOptions
	}
	return p.at
}

// fixed reports whether the key, if there is one, stands at p.at.
func (p place) fixed() bool { return p.at > 0 && p.count == 0 }

// placeOf is zero for a command without a key, or with a secret there.
func placeOf(name string) place {
	switch name {
	case "AUTH", "HELLO", "ACL", "CONFIG", "CLIENT", "SCRIPT", "FUNCTION", "COMMAND", "DEBUG", "INFO",
		"PING", "ECHO", "SELECT", "SWAPDB", "WAIT", "WAITAOF", "KEYS", "SCAN", "DBSIZE", "RANDOMKEY",
		"FLUSHALL", "FLUSHDB", "LATENCY", "SLOWLOG", "MODULE", "CLUSTER", "SENTINEL", "FAILOVER", "REPLICAOF",
		"SLAVEOF", "SHUTDOWN", "SAVE", "BGSAVE", "ROLE", "TIME", "LOLWUT", "PUBSUB", "PUBLISH", "SPUBLISH",
		"MULTI", "EXEC", "DISCARD", "UNWATCH", "RESET", "QUIT", "MONITOR", "SYNC", "PSYNC", "REPLCONF",
		"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "READONLY",
		"READWRITE", "ASKING", "MIGRATE":
		return place{}
	case "OBJECT", "MEMORY", "XINFO", "XGROUP", "BITOP", "PFDEBUG":
		return place{at: 2}
	case "LMPOP", "ZMPOP", "SINTERCARD", "ZINTERCARD", "ZINTER", "ZUNION", "ZDIFF", "MSETEX":
		return place{at: 2, count: 1}
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO", "BLMPOP", "BZMPOP":
		return place{at: 3, count: 2}
	case "XREAD", "XREADGROUP":
		return place{streams: true}
	}
	return place{at: 1}
}

// key returns the first key of the request that is whole; nil if it names none,
// or one that is too long to be kept.
func (t *Tracker) key() []byte {
	r := &t.req
	p := placeOf(r.plan.cmd.name)
	switch {
	case p.streams:
		return r.arg(r.behindStreams())
	case p.at == 0:
		return nil
	case p.count > 0:
		if n, ok := parseInt(r.arg(p.count)); !ok || n <= 0 {
			return nil
		}
	}
	return r.arg(p.at)
}

// behindStreams returns which argument follows STREAMS, a word that may also be
// the value of an option before it.
func (r *requests) behindStreams() int {
	for i := 1; i < len(r.args); i++ {
		switch opt := r.arg(i); {
		case is(opt, "STREAMS"):
			return i + 1
		case is(opt, "GROUP"):
			i += 2
		case is(opt, "COUNT"), is(opt, "BLOCK"), is(opt, "CLAIM"):
			i++
		}
	}
	return len(r.args)
}

// A memo is the name of a command, and whether a rule that names it may match a
// key, once that was asked.
type memo struct {
	name  string
	could func(key []byte) bool
}

// maxMemos is how many a connection remembers; servers have fewer commands.
const maxMemos = 256

func (t *Tracker) intern(name []byte) string {
	if w, ok := t.memos[string(name)]; ok {
		return w.name
	}
	s := string(name)
	t.remember(memo{name: s})
	return s
}

func (t *Tracker) remember(w memo) {
	if _, known := t.memos[w.name]; !known && len(t.memos) >= maxMemos {
		return
	}
	if t.memos == nil {
		t.memos = make(map[string]memo)
	}
	t.memos[w.name] = w
}

// ruling returns what tells whether a rule may match a key of the command;
// Options.Could is not nil.
func (t *Tracker) ruling(name string) func(key []byte) bool {
	if w := t.memos[name]; w.could != nil {
		return w.could
	}
	w := memo{name, t.opt.Could(name)}
	t.remember(w)
	return w.could
}

// could reports whether a rule may match the request that is whole. One that
// hopRequests passes over is one of which this says no.
func (t *Tracker) could() bool {
	if t.opt.Could == nil {
		return true
	}
	key := t.key()
	return key == nil || t.ruling(t.req.plan.cmd.name)(key)
}
