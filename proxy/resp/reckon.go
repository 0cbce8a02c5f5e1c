package resp

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// maxParts is how many ops a call comes to at most.
const maxParts = 64

// A reckoning works out what one call did to locks, command by command.
type reckoning struct {
	s        *Shadow
	call     *Call
	ms       int64
	evidence lock.Evidence
	args     []lock.Value // of ARGV, once they were asked for
	traces   []*trace
	parts    []*part
	counters []counter
	asked    Asked
}

// A trace is what a call did to one key.
type trace struct {
	key      Ref
	looked   bool         // it asked something of the key
	compared bool         // what it asked was the value, or a member
	sized    bool         // it asked how many members there are
	wrote    bool         // it changed the key, or tried to
	counted  bool         // it added to the number there
	asked    []lock.Value // the members that it asked about
	cutoff   float64      // members of a lower score were thrown out
	lease    lease        // the last that it gave the key
	now      State        // as the last command left it
}

// A part is what is to become an op.
type part struct {
	op   lock.Op
	k    *trace
	made bool // it made the key or the member
	weak bool // it is one only if the rest of the call looks like a lock's
	void bool

	scored bool // its lease is that of its score
}

// A counter is one that a call has moved, and that may have issued a fence.
type counter struct {
	k     *trace
	value lock.Value // after that
}

// Script takes in what a script or function has run, in the order in which it
// did, and says what that did to locks. at is when the call began, in Unix
// microseconds.
func (s *Shadow) Script(c *Call, at int64, inner []Command) Effect {
	x := &reckoning{s: s, call: c, ms: at / 1000, evidence: lock.FromMonitor}
	a := applying{s: s, ms: x.ms, tell: x.take, trusts: func(k Ref) bool { return x.trace(k).compared }}
	for i := range inner {
		a.db = inner[i].DB
		a.apply(inner[i].Args)
	}
	return x.effect()
}

func (x *reckoning) trace(key Ref) *trace {
	for _, k := range x.traces {
		if k.key == key {
			return k
		}
	}
	k := &trace{key: key}
	x.traces = append(x.traces, k)
	return k
}

// take takes in a touch.
func (x *reckoning) take(t *touch) {
	k := x.trace(t.key)
	k.now = t.now
	k.wrote = k.wrote || t.act > compares
	switch t.act {
	case looks:
		k.looked = true
	case sizes:
		k.looked, k.sized, k.cutoff = true, true, max(k.cutoff, t.score)
	case compares:
		k.looked, k.compared = true, true
		if t.member && len(k.asked) < MaxMembers {
			k.asked = append(k.asked, t.token)
		}
	case stores:
		x.stored(k, t)
	case removes:
		x.removed(k, t)
	case lasts:
		x.lasted(k, t)
	case adds:
		k.counted = true
		if t.by > 0 && t.did != no {
			x.counters = append(x.counters, counter{k, t.value})
		}
	case joins:
		x.joined(k, t)
	case leaves:
		x.left(k, t)
	}
}

// add begins a part.
func (x *reckoning) add(k *trace, op lock.Op) *part {
	op.DB, op.Key = k.key.DB, k.key.Key
	p := &part{op: op, k: k}
	x.parts = append(x.parts, p)
	return p
}

// find returns the part of a key, and of a member unless that is not known.
func (x *reckoning) find(k *trace, token lock.Value) *part {
	for _, p := range slices.Backward(x.parts) {
		if p.k == k && !p.void && (!token.Known() || p.op.Token.Same(token)) {
			return p
		}
	}
	return nil
}

func (x *reckoning) isLock(k *trace) bool { return x.s.IsLock(k.key) }

// holder words whose a key or a member is that the call has read and then acted
// upon: it compares if that is among its arguments.
func (x *reckoning) holder(k *trace, op lock.Op, token lock.Value) lock.Op {
	if op.Guarded = k.compared && (!token.Known() || x.given(token)); op.Guarded {
		op.Token = token
	}
	return op
}

// took words an outcome.
func took(did tri, yes, no lock.Outcome) lock.Outcome {
	switch did {
	case 1:
		return yes
	case -1:
		return no
	}
	return lock.Unknown
}

// stored takes in a value that was given to the key.
func (x *reckoning) stored(k *trace, t *touch) {
	op := lock.Op{Token: t.value}
	again := t.was.Type == String && t.was.Value.Same(t.value)
	made := false
	switch {
	case t.nx:
		op.Kind, op.NX, op.Outcome = lock.Acquire, true, took(t.did, lock.Granted, lock.Refused)
		made = t.did != no
	case t.equal:
		op.Kind, op.Guarded, op.Token, op.Outcome = lock.Renew, true, t.token, took(t.did, lock.Done, lock.NotHeld)
	case t.did == no:
		op.Kind, op.Outcome = lock.Renew, lock.NotHeld
	case again && k.looked:
		op.Kind, op.Guarded, op.Outcome = lock.Renew, k.compared, lock.Done
	case x.takes(k, t):
		op.Kind, op.NX, op.Outcome = lock.Acquire, true, lock.Granted
		made = true
	default:
		op.Kind, op.Outcome = lock.Store, lock.Done
		made = true
	}
	if t.did != no {
		x.overrule(k)
	}
	p := x.add(k, op)
	p.made, p.weak = made, !t.nx && !t.equal
	p.give(t.lease)
}

// overrule drops what the key has refused the call, which then went on to change
// it all the same.
func (x *reckoning) overrule(k *trace) {
	for _, p := range x.parts {
		if p.k == k && !p.took() {
			p.void = true
		}
	}
}

// takes reports whether a value is given to a key because the call has found
// none there. A call that gives up a lock only leaves word of it.
func (x *reckoning) takes(k *trace, t *touch) bool {
	free := t.was.present() == no || t.was.Type == Unseen && !k.compared
	return free && k.looked && !slices.ContainsFunc(x.parts, func(p *part) bool { return p.op.Kind == lock.Release })
}

// give gives the part its lease: with one, a key that was made is a lock's.
func (p *part) give(l lease) {
	p.k.lease = l
	if !l.expires || p.scored {
		return
	}
	p.op.TTL, p.op.Until = l.ttl, l.until
	if !p.op.Member {
		p.weak = false
	}
}

// took reports whether the part changed something, as far as is known.
func (p *part) took() bool { return p.op.Outcome != lock.Refused && p.op.Outcome != lock.NotHeld }

// lasted takes in an end that was moved.
func (x *reckoning) lasted(k *trace, t *touch) {
	k.lease = t.lease
	mine := false
	for _, p := range x.parts {
		if p.k == k && !p.void && t.did != no && p.took() {
			mine = true
			p.give(t.lease)
		}
	}
	if mine || k.counted {
		return
	}
	op := lock.Op{Kind: lock.Renew, TTL: t.ttl, Until: t.until, Outcome: took(t.did, lock.Done, lock.NotHeld)}
	x.held(k, t, op)
}

// held takes in that a key was removed, or its end moved, for its holders: the
// members that the call has asked about, or the key as a whole.
func (x *reckoning) held(k *trace, t *touch, op lock.Op) {
	if t.was.Type != String {
		op.Member = true
		for _, token := range k.asked {
			if _, there := t.was.member(token); there != no {
				op.Token, op.Guarded = token, true
				x.add(k, op)
			}
		}
		if len(k.asked) > 0 {
			return
		}
		op.Member = false
	}
	if op = x.holder(k, op, t.was.Value); op.Guarded || x.isLock(k) {
		x.add(k, op)
	}
}

// removed takes in a key that was removed.
func (x *reckoning) removed(k *trace, t *touch) {
	op := lock.Op{Kind: lock.Release, Outcome: took(t.did, lock.Done, lock.NotHeld)}
	if t.equal {
		op.Guarded, op.Token = true, t.token
		x.add(k, op)
		return
	}
	mine := false
	for _, p := range x.parts {
		if p.k != k || p.void {
			continue
		}
		mine = true
		if p.op.Kind == lock.Renew && p.took() {
			p.op.Kind = lock.Release
		}
		p.op.Depth, p.void = 0, p.made
	}
	if !mine {
		x.held(k, t, op)
	}
}

// joined takes in a member that was set.
func (x *reckoning) joined(k *trace, t *touch) {
	m, there := t.was.member(t.token)
	op := lock.Op{Kind: lock.Acquire, Outcome: lock.Granted, Member: true, Token: t.token, NX: t.nx}
	p := &part{weak: true, made: there != yes}
	switch {
	case t.by < 0:
		op.Kind, op.Outcome, op.Guarded = lock.Release, took(t.did, lock.Done, lock.Failed), true
		op.Depth, p.weak, p.made = depth(t.value, 1), !slices.ContainsFunc(k.asked, t.token.Same) && !x.isLock(k), false
	case t.by > 0:
		op.Depth = depth(t.value, 0)
		op.NX = there == no
	case t.nx && t.did == no:
		op.Outcome, p.made = lock.Refused, false
	case t.did == no && t.xx && x.isLock(k):
		op.Kind, op.Outcome, op.Guarded = lock.Renew, lock.NotHeld, true
		p.weak, p.made = false, false
	case t.did == no:
		return
	case there == yes || t.xx:
		op.Kind, op.Outcome, op.Guarded = lock.Renew, lock.Done, true
	case there == maybe && !t.nx:
		op.Outcome = lock.Unknown // it may as well be held for longer now
	default:
		op.NX, op.Outcome = true, took(-there, lock.Granted, lock.Refused)
	}
	if there == yes && t.by == 0 && m.Score == t.score && m.Value.Same(t.value) {
		return
	}
	q := x.add(k, op)
	q.weak, q.made = p.weak, p.made
	q.lastsFor(t.score, x.ms)
}

// depth reads how often the holder has the lock; other is for what is not known.
func depth(v lock.Value, other int) int {
	if !v.IsInt {
		return other
	}
	return int(min(max(v.Int, 0), 1<<20))
}

// lastsFor reads the lease off a score, which is when it ends, or when it began
// if the call throws out what began before some other time.
func (p *part) lastsFor(score float64, ms int64) {
	unit := 1.0
	switch {
	case score > 1e9 && score < 1e11:
		unit = 1000
	case score < 1e12 || score > 1e14:
		return
	}
	if at := int64(score * unit); at > ms+nearlyEnds {
		p.op.Until, p.scored = at, true
		return
	}
	if cut := p.k.cutoff; cut > 1e9 && score > cut {
		p.op.TTL, p.scored = lifetime(int64((score-cut)*unit), false), true
	}
}

// left takes in a member that was removed.
func (x *reckoning) left(k *trace, t *touch) {
	if p := x.find(k, t.token); p != nil {
		p.void = p.made
		p.op.Depth = 0
		return
	}
	if !x.isLock(k) && (t.did == no || !k.looked) {
		return
	}
	x.add(k, lock.Op{Kind: lock.Release, Outcome: took(t.did, lock.Done, lock.NotHeld), Member: true, Guarded: true, Token: t.token})
}
