package resp

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Compare says what a call did from looks at some keys before it and after it,
// made at the two instants, in Unix microseconds; nothing else has come between
// them. A key that only the second look has found something at says nothing.
func (s *Shadow) Compare(c *Call, before, after []Sight, from, to int64) Effect {
	d := differing{x: &reckoning{s: s, call: c, ms: to / 1000, evidence: lock.FromProbe}, slack: (to-from)/1000 + nearlyEnds}
	for _, now := range after {
		i := slices.IndexFunc(before, func(b Sight) bool { return b.Ref == now.Ref })
		s.See(now.Ref, now.State)
		if i < 0 || before[i].Type == Unseen || now.Type == Unseen {
			continue
		}
		k := d.x.trace(now.Ref)
		k.looked, k.compared, k.now = true, true, now.State
		k.lease = d.lease(now.Ends)
		d.key(k, before[i].State, now.State)
	}
	d.leftWord()
	return d.x.effect()
}

// leftWord has no key be a lock that was made by a call that has given up one: it
// only leaves word of that.
func (d *differing) leftWord() {
	if !slices.ContainsFunc(d.x.parts, func(p *part) bool { return p.op.Kind == lock.Release }) {
		return
	}
	for _, p := range d.x.parts {
		if p.op.Kind == lock.Acquire && !p.op.Member {
			p.op.Kind, p.op.NX, p.op.Outcome = lock.Store, false, lock.Done
		}
	}
}

// A differing works out a call's effect from states.
type differing struct {
	x     *reckoning
	slack int64 // milliseconds that the call and the looks took, at most
}

// key takes in the two states of a key.
func (d *differing) key(k *trace, was, now State) {
	switch {
	case was.Type <= String && now.Type <= String:
		d.value(k, was, now)
	case was.Type > Absent && now.Type > Absent && was.Type != now.Type, was.Partial, now.Partial:
		k.wrote = true // too little is known
	default:
		d.members(k, was, now)
	}
}

// value takes in those of a string.
func (d *differing) value(k *trace, was, now State) {
	x := d.x
	switch {
	case was.Type == Absent && now.Type == Absent:
		return
	case now.Type == Absent:
		d.gone(k, was, x.holder(k, lock.Op{}, was.Value))
	case d.counts(was, now):
		k.wrote = true
		if now.Ends == 0 {
			x.counters = append(x.counters, counter{k, now.Value})
		}
	case was.Type == Absent && now.Ends == 0:
		k.wrote = true
	case was.Type == Absent:
		x.put(k, lock.Op{Kind: lock.Acquire, NX: true, Outcome: lock.Granted, Token: now.Value}, true)
	case was.Value.Same(now.Value) && d.moved(was, now):
		x.put(k, x.holder(k, lock.Op{Kind: lock.Renew, Outcome: lock.Done}, now.Value), false)
	case was.Value.Same(now.Value):
	case now.Ends > 0:
		x.put(k, lock.Op{Kind: lock.Store, Outcome: lock.Done, Token: now.Value}, true)
	default:
		k.wrote = true
	}
}

// counts reports whether the number at a key has risen, as a fence does, or that
// of what is limited.
func (d *differing) counts(was, now State) bool {
	rose := now.Value.IsInt && now.Value.Int > was.Value.Int && now.Value.Int < 1<<53
	return rose && (was.Type == Absent || was.Value.IsInt) && !d.x.given(now.Value)
}

// put begins a part with the lease that the key has now.
func (x *reckoning) put(k *trace, op lock.Op, made bool) *part {
	k.wrote = true
	op.TTL, op.Until = k.lease.ttl, k.lease.until
	p := x.add(k, op)
	p.made, p.weak = made, op.Member
	p.void = op.Kind == lock.Renew && !op.Guarded && !x.isLock(k)
	return p
}

// gone takes in a key, or a member, that is not there any more.
func (d *differing) gone(k *trace, was State, op lock.Op) {
	k.wrote = true
	op.Kind, op.Outcome = lock.Release, lock.Done
	if was.Ends > 0 && was.Ends <= d.x.ms+nearlyEnds {
		op.Outcome = lock.Unknown // it may have lapsed
	}
	if op.Guarded || d.x.isLock(k) {
		d.x.add(k, op)
	}
}

// moved reports whether the key ends at another instant than before.
func (d *differing) moved(was, now State) bool {
	return was.Ends != now.Ends && (was.Ends <= 0 || now.Ends <= 0 || max(was.Ends-now.Ends, now.Ends-was.Ends) > 2)
}

// lease words when a key ends as the call's arguments do, if one of them tells
// it; the end itself is told by a clock.
func (d *differing) lease(ends int64) lease {
	if ends <= 0 {
		return lease{}
	}
	left := ends - d.x.ms
	for _, arg := range d.x.call.Args {
		n, ok := parseInt(arg)
		switch {
		case !ok || n <= 0 || n > maxLeft:
		case n >= left && n <= left+d.slack:
			return lease{expires: true, ttl: lifetime(n, false)}
		case n*1000 >= left && n*1000 <= left+d.slack:
			return lease{expires: true, ttl: lifetime(n, true)}
		}
	}
	return lease{expires: true, until: ends}
}

// maxLeft is more than any lease of a lock, in milliseconds.
const maxLeft = 1 << 40

// members takes in those of a hash or a set.
func (d *differing) members(k *trace, was, now State) {
	for _, m := range now.Members {
		old, there := was.member(m.Token)
		d.member(k, old, m, there)
	}
	for _, m := range was.Members {
		if now.find(m.Token) < 0 && d.x.given(m.Token) {
			d.gone(k, was, lock.Op{Member: true, Guarded: true, Token: m.Token})
		}
	}
	if now.Type == Absent && !k.wrote {
		d.gone(k, was, lock.Op{})
	}
	if k.wrote || !d.moved(was, now) {
		return
	}
	for _, m := range now.Members {
		if d.x.given(m.Token) {
			d.x.put(k, lock.Op{Kind: lock.Renew, Outcome: lock.Done, Member: true, Guarded: true, Token: m.Token}, false)
			k.asked = append(k.asked, m.Token)
		}
	}
}

// member takes in one that is there now.
func (d *differing) member(k *trace, old, m Member, there tri) {
	op := lock.Op{Kind: lock.Acquire, Outcome: lock.Granted, Member: true, Token: m.Token}
	by := m.Value.Int - old.Value.Int
	counts := m.Value.IsInt && (old.Value.IsInt || there == no) && by >= -1 && by <= 1
	switch {
	case there == yes && counts && by == 0 && m.Score == old.Score:
		return
	case there == yes && m.Value.Same(old.Value) && m.Score == old.Score, there == yes && !m.Value.Known() && m.Score == old.Score:
		return
	case there == no:
		op.NX = true
	case counts && by < 0:
		op.Kind, op.Outcome, op.Guarded = lock.Release, lock.Done, true
	case !counts || by == 0:
		op.Kind, op.Outcome, op.Guarded = lock.Renew, lock.Done, true
	}
	if counts && by != 0 {
		op.Depth = depth(m.Value, 0)
	}
	d.x.put(k, op, there == no).lastsFor(m.Score, d.x.ms)
	if d.x.given(m.Token) {
		k.asked = append(k.asked, m.Token)
	}
}
