package resp

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// maxCalls is how many bytes of words the calls of a connection that wait for
// their replies keep together; those of others are not kept.
const maxCalls = 1 << 20

// A Call is a request whose effect only a witness can tell for sure: EVAL,
// EVALSHA, FCALL or one of their kin. Its exported fields must not be changed.
// It is used under its session's lock.
type Call struct {
	Session uint64
	DB      int      // selected, if every SELECT before it succeeds; the script may select another
	Verb    string   // as Op.Verb
	Script  string   // its sha1 in hexadecimal and lower case, "" if it was too long to be kept; of a function its name, behind a slash
	Keys    [][]byte // KEYS and ARGV: nil stands for one that was too long to be kept
	Args    [][]byte
	Partial bool // there are more of them
	Known   bool // the script's text was seen, and tells what it does to locks

	queued   bool
	upstream string
	scripts  *Scripts
	size     int        // bytes of the words
	ops      []*lock.Op // that requests were marked for
	reply    answer
	ran      bool
	effect   *Effect
	nameless []*lock.Op // refused, and not known for what
}

var _ wire.Call = (*Call)(nil)

// Tell takes in what a witness has seen the call do. It is called at most once.
func (c *Call) Tell(e Effect) { c.effect = &e }

// Queued reports, once the reply is whole, whether the call was one of a
// transaction: then it was carried out with that, and not when it was sent.
func (c *Call) Queued() bool { return c.queued }

// Ran reports, once the reply is whole, whether the script may have run: it has
// not if the server did not know it, or if the transaction that it was queued in
// was not carried out.
func (c *Call) Ran() bool { return c.ran }

// answered takes in the reply.
func (c *Call) answered(db int, a *answer) {
	c.DB, c.reply = db, *a
	c.ran = !a.isError() || a.word() != "NOSCRIPT"
}

// addCall makes a call of the request at hand, if it is one.
func (t *Tracker) addCall(e *entry) {
	r := &t.req
	n, ok := parseInt(r.arg(2))
	if !r.plan.cmd.verb.calls() || !ok || n < 0 || n > r.argc-3 {
		return
	}
	if e.more == nil || e.more.ask == nil {
		e.set(&ask{})
	}
	c := &Call{Session: t.opt.Session, DB: t.asked, Verb: r.plan.cmd.name, Script: t.scriptName(), Known: t.script.tells(), upstream: t.opt.Upstream, scripts: t.opt.Scripts, ops: e.ops()}
	t.keepWords(c, int(n))
	e.more.ask.call = c
}

// keepWords keeps KEYS and ARGV for the call.
func (t *Tracker) keepWords(c *Call, keys int) {
	r := &t.req
	size := len(r.args) * 24
	for i := 3; i < len(r.args); i++ {
		size += len(r.arg(i))
	}
	c.Partial = int64(len(r.args)) < r.argc
	if t.kept+size > maxCalls {
		c.Partial = true
		return
	}
	c.size = size
	t.kept += size
	for i := 3; i < len(r.args); i++ {
		word := slices.Clone(r.arg(i))
		if i < 3+keys {
			c.Keys = append(c.Keys, word)
		} else {
			c.Args = append(c.Args, word)
		}
	}
}

// scriptName returns the name by which roles are remembered.
func (t *Tracker) scriptName() string {
	switch script := t.req.arg(1); {
	case script == nil && t.req.summed:
		return hex.EncodeToString(t.req.sum.Sum(nil))
	case script == nil:
		return ""
	case t.req.plan.cmd.verb == evalVerb:
		sum := sha1.Sum(script)
		return hex.EncodeToString(sum[:])
	case t.req.plan.cmd.verb == evalSHAVerb:
		return strings.ToLower(string(script))
	default:
		return "/" + string(script)
	}
}

// byRole makes an op of a call whose script is known by what its calls did
// before, if these all did the same to a key that they were given.
func (t *Tracker) byRole() *ask {
	if !t.opt.Witnessed {
		return nil
	}
	r, _ := t.opt.Scripts.roles.of(t.scriptName())
	kind, ok := r.only()
	keys, args, whole := t.scriptArguments()
	if !ok || !whole || r.key == 0 || r.key > len(keys) || keys[r.key-1] == nil {
		return nil
	}
	op := lock.Op{Kind: kind, Member: r.member, NX: kind == lock.Acquire, Guarded: kind != lock.Acquire, Evidence: lock.FromArguments}
	if r.token > 0 && r.token <= len(args) {
		op.Token = t.hash(args[r.token-1])
	}
	return oneOp(readUnclear, t.op(op, keys[r.key-1]))
}

// Resolve makes ops of what the witness has told, completes those that requests
// were marked for, and returns the others; see [wire.Call].
func (c *Call) Resolve(bool) []*lock.Op {
	out := c.resolve(c.ops)
	if c.effect != nil {
		c.nameless = namelessOf(slices.Concat(c.ops, out))
	}
	return out
}

// resolve completes own, which stand for the ops that requests were marked for.
func (c *Call) resolve(own []*lock.Op) []*lock.Op {
	if c.effect == nil {
		return nil
	}
	var out []*lock.Op
	met := make([]bool, len(own))
	for i := range c.effect.Ops {
		told := &c.effect.Ops[i]
		if !c.issued(told) {
			continue
		}
		if told.Outcome == lock.Granted {
			c.scripts.keys.add(told.DB, told.Key)
		}
		if at := suits(own, told, met); at >= 0 {
			met[at] = true
			become(own[at], told)
			continue
		}
		op := *told
		op.Session, op.Upstream, op.Proto, op.Verb = c.Session, c.upstream, lock.Redis, c.Verb
		out = append(out, &op)
	}
	for i, op := range own {
		if !met[i] && c.ran {
			c.belie(op)
		}
	}
	return out
}

// suits returns which of the ops that requests were marked for is the one told.
func suits(own []*lock.Op, told *lock.Op, met []bool) int {
	for i, op := range own {
		like := op.Kind == told.Kind || op.Guessed && op.Err == "" && isNameless(told)
		same := like && op.Key == told.Key && op.DB == told.DB
		if same && !met[i] && (op.Token.Same(told.Token) || !op.Token.Known() || !told.Token.Known()) {
			return i
		}
	}
	return -1
}

// become has an op that was taken for something by its request be what was told.
// Where that is no more than a refusal, what was refused is still a guess.
func become(op, told *lock.Op) {
	if op.Guessed && isNameless(told) {
		op.Outcome, op.Evidence = told.Outcome, told.Evidence
		return
	}
	if told.Token.Known() {
		op.Token = told.Token
	}
	if told.Outcome != lock.Unknown || op.Guessed || op.Outcome == lock.Failed { // else the reply may say more, by the script's text
		op.Outcome = told.Outcome
	}
	op.Evidence, op.Guessed = told.Evidence, false
	op.NX, op.Guarded, op.Member, op.Shared, op.Depth = told.NX, told.Guarded, told.Member, told.Shared, told.Depth
	if told.TTL != 0 || told.Until != 0 {
		op.TTL, op.Until = told.TTL, told.Until
	}
	op.FenceKey, op.Fence, op.HasFence = told.FenceKey, told.Fence, told.HasFence
}

// belie corrects an op that the call was taken for and that it has not done: it
// was refused, or has done something else to the key.
func (c *Call) belie(op *lock.Op) {
	inKeys := slices.ContainsFunc(c.Keys, func(k []byte) bool { return string(k) == op.Key })
	if c.effect.Evidence == lock.FromProbe && !inKeys {
		return // nobody has looked there
	}
	other := slices.ContainsFunc(c.effect.Ops, func(o lock.Op) bool { return o.Key == op.Key })
	switch {
	case op.Kind == lock.Other, op.Err != "":
		return
	case op.Kind == lock.Store, op.Kind == lock.Acquire && other, op.Kind == lock.Release && op.Guessed && other:
		op.Kind, op.Outcome = lock.Other, lock.Done
	case op.Kind == lock.Acquire:
		op.Outcome = lock.Refused
	case other:
		op.Outcome = lock.Failed
	default:
		op.Outcome = lock.NotHeld
	}
	op.FenceKey, op.Fence, op.HasFence = "", 0, false
	op.Guessed, op.Evidence = false, c.effect.Evidence
}

// affirmed reports whether the reply looks like that of a success.
func (c *Call) affirmed() bool {
	n, whole := c.reply.integer()
	return whole && n > 0 || c.reply.is("OK")
}

// issued reports whether an op that was told is one: a number that was counted up
// is a fence only if the client was given it.
func (c *Call) issued(op *lock.Op) bool {
	if op.FenceKey == "" {
		return true
	}
	n, given := c.given(op)
	op.Fence, op.HasFence = n, given
	if !given {
		op.FenceKey = ""
	}
	return given || op.Kind != lock.Fence
}

// given returns the fence that the reply gives to the client.
func (c *Call) given(op *lock.Op) (int64, bool) {
	a := &c.reply
	n, whole := a.integer()
	switch {
	case op.HasFence && (whole && n == op.Fence || a.isArray() && a.ints > 0 && (a.first == op.Fence && a.lead || a.last == op.Fence)):
		return op.Fence, true
	case op.HasFence:
		return 0, false
	case whole && n > 0 && a.kind != '#':
		return n, true
	case a.isArray() && a.ints > 0 && a.last > 0 && !(a.lead && a.first > 0 && a.ints > 1):
		return a.last, true
	case a.isArray() && a.lead && a.first > 0 && a.last <= 0:
		return a.first, true
	}
	return 0, false
}
