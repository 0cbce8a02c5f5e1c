package resp

import (
	"strconv"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// build makes ops of a request that may be one; nil if it is none.
func (t *Tracker) build() *ask {
	switch t.req.plan.cmd.verb {
	case setVerb:
		return t.buildSet()
	case setNXVerb:
		return t.single(readCount, lock.Op{Kind: lock.Acquire, NX: true, Token: t.hash(t.req.arg(2)), Until: deadline(t.req.arg(2))})
	case getSetVerb:
		return t.buildGetSet()
	case manyVerb:
		return t.buildMany()
	case getExVerb:
		return t.buildGetEx()
	case getDelVerb:
		return t.single(readPresent, lock.Op{Kind: lock.Release})
	case joinVerb:
		return t.buildJoin()
	case leaveVerb:
		return t.buildLeave()
	case setEXVerb:
		return t.buildSetEx()
	case delVerb:
		return t.buildDel()
	case expireVerb:
		return t.buildExpire()
	case delexVerb:
		return t.buildDelex()
	case delIfEqVerb:
		return t.single(readCount, lock.Op{Kind: lock.Release, Guarded: true, Token: t.hash(t.req.arg(2))})
	case incrVerb:
		return t.buildIncr()
	case evalVerb, evalSHAVerb, fcallVerb:
		return t.buildScript()
	}
	return nil
}

// op completes what each op of this request has in common.
func (t *Tracker) op(o lock.Op, key []byte) *lock.Op {
	o.Session, o.Upstream, o.Proto = t.opt.Session, t.opt.Upstream, lock.Redis
	o.Verb, o.DB, o.Key = t.req.plan.cmd.name, t.asked, string(key)
	return &o
}

// single makes one op on the first argument.
func (t *Tracker) single(read reading, o lock.Op) *ask {
	key := t.req.arg(1)
	if key == nil {
		return nil
	}
	return oneOp(read, t.op(o, key))
}

// oneOp spares the list an allocation of its own.
func oneOp(read reading, op *lock.Op) *ask {
	d := &ask{read: read, keys: 1, one: [1]*lock.Op{op}}
	d.ops = d.one[:]
	return d
}

// addOther makes an op that only a rule cares about.
func (t *Tracker) addOther(e *entry) {
	e.set(oneOp(readDone, t.op(lock.Op{Kind: lock.Other}, t.key())))
}

func (t *Tracker) hash(b []byte) lock.Value {
	if b == nil || t.opt.Hash == nil {
		return lock.Value{}
	}
	return t.opt.Hash.Of(b)
}

// ttl reads a lifetime; 0 for what the server will not take.
func (t *Tracker) ttl(b []byte, seconds bool) time.Duration {
	return readLease(b, seconds, false).ttl
}

func (t *Tracker) buildSet() *ask {
	o := readOptions(&t.req, 3)
	op := lock.Op{TTL: o.ttl, Until: o.until}
	token, read, old := t.req.arg(2), readOK, readUnclear // what is read of a SET with GET
	switch {
	case o.nx:
		op.Kind, op.NX, old = lock.Acquire, true, readAbsent
		if !o.expires {
			op.Until = deadline(token)
		}
	case o.ne:
		op.Kind = lock.Acquire // of a lock that another may hold
	case o.eq:
		op.Kind, op.Guarded = lock.Renew, true
		if !o.digest {
			token = o.operand
		}
	case o.xx && o.expires:
		op.Kind, old = lock.Renew, readPresent
	case o.expires:
		op.Kind, old = lock.Store, readDone
	default:
		return nil
	}
	if o.get {
		read = old
	}
	op.Token = t.hash(token)
	return t.heeding(t.single(read, op))
}

func (t *Tracker) buildSetEx() *ask {
	r := &t.req
	op := lock.Op{Kind: lock.Store, Token: t.hash(r.arg(3)), TTL: t.ttl(r.arg(2), r.plan.cmd.name == "SETEX")}
	return t.heeding(t.single(readOK, op))
}

// buildGetSet takes in a deadline that is stored in place of another, which was
// over if the client has the lock now.
func (t *Tracker) buildGetSet() *ask {
	until := deadline(t.req.arg(2))
	if until == 0 || t.req.argc != 3 {
		return nil
	}
	return t.single(readDeadline, lock.Op{Kind: lock.Acquire, Token: t.hash(t.req.arg(2)), Until: until})
}

// buildMany takes in MSETNX key value ... and MSETEX count key value ... options.
// All keys are set or none.
func (t *Tracker) buildMany() *ask {
	r := &t.req
	at, end, o := 1, int(r.argc), options{nx: true}
	if r.plan.cmd.name == "MSETEX" {
		n, ok := parseInt(r.arg(1))
		if !ok || n <= 0 || n > (r.argc-2)/2 || int64(len(r.args)) < r.argc {
			return nil
		}
		at, end = 2, 2+2*int(n)
		o = readOptions(r, end)
	}
	op := lock.Op{NX: o.nx, TTL: o.ttl, Until: o.until}
	switch {
	case o.nx:
		op.Kind = lock.Acquire
	case !o.expires:
		return nil
	case o.xx:
		op.Kind = lock.Renew
	default:
		op.Kind = lock.Store
	}
	d := &ask{read: readCount, keys: 1}
	d.ops = d.one[:0]
	for ; at+1 < end; at += 2 {
		if key := r.arg(at); key != nil {
			op.Token = t.hash(r.arg(at + 1))
			d.ops = append(d.ops, t.op(op, key))
		}
	}
	return d
}

func (t *Tracker) buildGetEx() *ask {
	o := readOptions(&t.req, 2)
	if !o.expires {
		return nil
	}
	return t.single(readPresent, lock.Op{Kind: lock.Renew, TTL: o.ttl, Until: o.until})
}

// buildJoin takes in one member that is added to a key if it is not there: it may
// be the holder of a lock.
func (t *Tracker) buildJoin() *ask {
	at := int(t.req.argc) - 1
	switch t.req.plan.cmd.name {
	case "HSETNX":
		at = 2
	case "ZADD":
		if t.req.argc != 5 || !is(t.req.arg(2), "NX") {
			return nil
		}
	}
	return t.single(readCount, lock.Op{Kind: lock.Store, NX: true, Member: true, Token: t.hash(t.req.arg(at))})
}

// buildLeave takes in one member that is removed from such a key.
func (t *Tracker) buildLeave() *ask {
	if t.req.argc != 3 || !t.opt.Scripts.keys.has(t.asked, t.req.arg(1)) {
		return nil
	}
	return t.single(readCount, lock.Op{Kind: lock.Release, Guarded: true, Member: true, Token: t.hash(t.req.arg(2))})
}

func (t *Tracker) buildDel() *ask {
	d := &ask{read: readCount, keys: t.req.argc - 1}
	d.ops = d.one[:0]
	for i := 1; i < len(t.req.args); i++ {
		if key := t.req.arg(i); key != nil {
			d.ops = append(d.ops, t.op(lock.Op{Kind: lock.Release}, key))
		}
	}
	return t.heeding(d)
}

func (t *Tracker) buildExpire() *ask {
	e, ok := readExpire(t.req.plan.cmd.name, &t.req)
	op, read := lock.Op{Kind: lock.Renew, TTL: e.ttl, Until: e.until}, readCount
	switch {
	case ok && e.past():
		op = lock.Op{Kind: lock.Release}
	case t.req.argc > 3:
		read = readChanged
	}
	return t.heeding(t.single(read, op))
}

func (t *Tracker) buildDelex() *ask {
	op := lock.Op{Kind: lock.Release}
	switch o := readOptions(&t.req, 2); {
	case t.req.argc == 2:
		return t.heeding(t.single(readCount, op))
	case t.req.argc != 4 || !o.eq && !o.ne:
		return nil
	case o.eq && !o.digest:
		op.Guarded, op.Token = true, t.hash(o.operand)
	}
	return t.single(readCount, op)
}

// buildIncr takes INCR, and INCRBY that does not count down, as a counter of fences.
func (t *Tracker) buildIncr() *ask {
	r := &t.req
	if n, ok := parseInt(r.arg(2)); r.plan.cmd.name == "INCRBY" && (!ok || n <= 0) {
		return nil
	}
	return t.single(readFence, lock.Op{Kind: lock.Fence, FenceKey: string(r.arg(1))})
}

// buildScript makes one op for each key that the script acts upon.
func (t *Tracker) buildScript() *ask {
	p := t.script
	if p == nil {
		p = t.program()
	}
	switch {
	case p == nil:
		if a := t.byRole(); a != nil {
			return a
		}
		return t.guess()
	case p.effect == noEffect && !p.tells():
		return t.byRole()
	case p.effect == noEffect:
		return nil
	}
	keys, args, ok := t.scriptArguments()
	if !ok {
		return nil
	}
	d := &ask{read: readScript, script: p, keys: 1}
	d.ops = d.one[:0]
	if p.key.each() {
		d.keys = int64(len(keys))
	}
	for at := 1; at <= int(d.keys); at++ {
		if op, ok := t.scriptOp(p, keys, args, at); ok {
			d.ops = append(d.ops, op)
		}
	}
	return d
}

// program returns what the script does; nil if its text is not known.
func (t *Tracker) program() *program {
	switch script := t.req.arg(1); {
	case script == nil, t.opt.EffectsOnly:
		return nil
	case t.req.plan.cmd.verb == evalVerb:
		return t.opt.Scripts.learn(script)
	case t.req.plan.cmd.verb == fcallVerb:
		return t.opt.Scripts.function(script)
	default:
		return t.opt.Scripts.lookup(script)
	}
}

// scriptArguments returns KEYS and ARGV.
func (t *Tracker) scriptArguments() (keys, args [][]byte, ok bool) {
	r := &t.req
	n, ok := parseInt(r.arg(2))
	if !ok || n < 0 || n > int64(len(r.args)-3) {
		return nil, nil, false
	}
	all := make([][]byte, len(r.args)-3)
	for i := range all {
		all[i] = r.arg(i + 3)
	}
	return all[:n], all[n:], true
}

func (t *Tracker) scriptOp(p *program, keys, args [][]byte, at int) (*lock.Op, bool) {
	key, ok := p.key.resolve(nil, keys, args, at)
	if !ok {
		return nil, false
	}
	o := lock.Op{Guarded: p.effect != acquires, NX: p.effect == acquires, Evidence: lock.FromText}
	o.Kind = p.effect.kind()
	if token, ok := p.token.resolve(nil, keys, args, at); ok {
		o.Token = t.hash(token)
	}
	if ends, ok := p.ends.resolve(nil, keys, args, at); ok {
		l := readLease(ends, p.ends.seconds, p.ends.absolute)
		o.TTL, o.Until = l.ttl, l.until
	}
	if fence, ok := p.fence.resolve(nil, keys, args, at); ok {
		o.FenceKey = string(fence)
	}
	return t.op(o, key), true
}
