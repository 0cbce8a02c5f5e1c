package resp

import (
	"bytes"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// effect ends the reckoning.
func (x *reckoning) effect() Effect {
	for _, k := range x.traces {
		x.weigh(k)
	}
	x.parts = slices.DeleteFunc(x.parts, func(p *part) bool { return p.void })
	x.settleReleases()
	x.leaveWaiting()
	x.refused()
	e := Effect{Evidence: x.evidence, Asked: x.asked}
	for _, p := range x.parts[:min(len(x.parts), maxParts)] {
		p.op.Evidence = x.evidence
		e.Ops = append(e.Ops, p.op)
		if p.op.Outcome == lock.Unknown || p.op.Compares() && !p.op.Token.Known() {
			e.Unsure = append(e.Unsure, p.k.key)
		}
		x.learn(&p.op)
	}
	x.fence(&e)
	return e
}

// weigh drops the weak parts of a key that is no lock's, as far as can be told.
func (x *reckoning) weigh(k *trace) {
	var members []*part
	for _, p := range x.parts {
		switch {
		case p.k != k || p.void || !p.weak:
		case p.op.Member && (k.looked || p.op.NX && !p.made || x.isLock(k)):
			members = append(members, p)
		default:
			p.void = true
		}
	}
	bound := k.lease.expires || k.sized || x.isLock(k)
	given := func(p *part) bool { return x.given(p.op.Token) }
	named := slices.ContainsFunc(members, given)
	for _, p := range members {
		asked := slices.ContainsFunc(k.asked, p.op.Token.Same)
		p.void = named && !given(p) || !bound && !(asked && k.now.Type == Hash) || p.op.Kind == lock.Renew && !asked && !x.isLock(k)
	}
	members = slices.DeleteFunc(members, func(p *part) bool { return p.void })
	for _, p := range members {
		p.void = len(members) > 1 && p.op.Depth == 0
		p.op.Shared = x.reads(k)
		if p.op.TTL == 0 && p.op.Until == 0 {
			p.op.TTL, p.op.Until = k.lease.ttl, k.lease.until
		}
		if p.op.TTL == 0 && p.op.Until == 0 && k.now.Ends > 0 && p.took() && p.op.Kind != lock.Release {
			p.op.Until = k.now.Ends
		}
	}
}

// settleReleases has a release that is none but a step keep its lease, and no other.
func (x *reckoning) settleReleases() {
	for _, p := range x.parts {
		if p.op.Kind == lock.Release && p.op.Depth == 0 {
			p.op.TTL, p.op.Until = 0, 0
		}
	}
}

// leaveWaiting drops releases that are none. Who acquires a lock no longer waits
// for it, and beside a token that was given others are marks.
func (x *reckoning) leaveWaiting() {
	for _, p := range x.parts {
		if p.op.Kind != lock.Release || !p.op.Member {
			continue
		}
		p.void = slices.ContainsFunc(x.parts, func(q *part) bool {
			waits := q.op.Kind == lock.Acquire && q.took() && q.k != p.k && q.op.Token.Same(p.op.Token) && !x.isLock(p.k)
			marks := q.op.Kind == lock.Release && q.k == p.k && x.given(q.op.Token) && !x.given(p.op.Token)
			return waits || marks
		})
	}
	x.parts = slices.DeleteFunc(x.parts, func(p *part) bool { return p.void })
}

// reads reports whether the lock says of itself that it is held for reading.
func (x *reckoning) reads(k *trace) bool {
	m, there := k.now.member(x.hash("mode"))
	return there == yes && m.Value.Same(x.hash("read"))
}

func (x *reckoning) hash(word string) lock.Value {
	if x.s.hash == nil {
		return lock.Value{}
	}
	return x.s.hash.Of([]byte(word))
}

// given reports whether a token is among the call's arguments, or within one.
func (x *reckoning) given(token lock.Value) bool {
	if x.s.hash == nil || !token.Known() {
		return false
	}
	if x.args == nil {
		for _, arg := range x.call.Args {
			if arg != nil {
				x.args = append(x.args, x.s.hash.Of(arg))
			}
		}
	}
	if slices.ContainsFunc(x.args, token.Same) {
		return true
	}
	return slices.ContainsFunc(x.call.Args, func(arg []byte) bool { return x.within(arg, token) })
}

// maxWithin is how many words of a packed argument are looked at.
const maxWithin = 64

// within reports whether a token is a word of an argument that packs several, as
// MessagePack and JSON do.
func (x *reckoning) within(arg []byte, token lock.Value) bool {
	left := maxWithin
	for i := 0; i < len(arg) && left > 0; i++ {
		word := packed(arg[i:])
		if len(word) < minToken {
			continue
		}
		left--
		if x.s.hash.Of(word).Same(token) {
			return true
		}
	}
	return false
}

// packed returns the word that begins there, behind its length or in quotes; nil
// if there is none.
func packed(b []byte) []byte {
	n, head := 0, 1
	switch c := b[0]; {
	case c == '"':
		n = bytes.IndexByte(b[1:], '"')
	case c >= 0xa0 && c <= 0xbf:
		n = int(c & 31)
	case c == 0xd9 || c == 0xc4:
		if len(b) > 1 {
			n, head = int(b[1]), 2
		}
	}
	if n <= 0 || head+n > len(b) {
		return nil
	}
	return b[head : head+n]
}

// fence says which counter has issued the fence of what was acquired.
func (x *reckoning) fence(e *Effect) {
	for _, c := range x.counters {
		if c.k.lease.expires || x.find(c.k, lock.Value{}) != nil || c.k.now.Ends > 0 {
			continue
		}
		took := false
		for i := range e.Ops {
			if op := &e.Ops[i]; op.Kind == lock.Acquire && op.Outcome != lock.Refused && op.FenceKey == "" {
				took = true
				op.FenceKey = c.k.key.Key
				op.Fence, op.HasFence = c.value.Int, c.value.IsInt
			}
		}
		if !took && len(e.Ops) == 0 && c.k.now.Type == String {
			op := lock.Op{Kind: lock.Fence, Outcome: lock.Done, DB: c.k.key.DB, Key: c.k.key.Key, FenceKey: c.k.key.Key, Evidence: x.evidence}
			op.Fence, op.HasFence = c.value.Int, c.value.IsInt
			e.Ops = append(e.Ops, op)
		}
		return
	}
}
