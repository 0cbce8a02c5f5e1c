package resp

import (
	"bytes"
	"math"
	"strconv"

	"github.com/lockfaultd/lockfaultd/lock"
)

// hash takes in what is done to hashes.
func (a *applying) hash() bool {
	switch a.name {
	case "HSET", "HMSET":
		for i := 1; i+1 < len(a.args); i += 2 {
			a.field(i, false)
		}
	case "HSETNX":
		a.field(1, true)
	case "HINCRBY":
		a.countField()
	case "HDEL":
		a.leaveEach(a.behind())
	default:
		return false
	}
	return true
}

// field takes in the field at i, and its value behind it.
func (a *applying) field(i int, nx bool) {
	t := a.join(Hash, a.arg(i))
	t.nx, t.value = nx, a.hashOf(a.arg(i+1))
	if nx {
		_, there := t.was.member(t.token)
		t.did = min(t.did, -there)
	}
	a.joined(t, Hash)
}

func (a *applying) countField() {
	t := a.join(Hash, a.arg(1))
	t.by, _ = parseInt(a.arg(2))
	switch m, there := t.was.member(t.token); {
	case there == no:
		t.value = a.number(t.by)
	case m.Value.IsInt:
		t.value = a.number(m.Value.Int + t.by)
	}
	a.joined(t, Hash)
}

// join begins a touch that sets a member.
func (a *applying) join(typ KeyType, token []byte) *touch {
	t := a.touch(joins, a.arg(0))
	t.member, t.token = true, a.hashOf(token)
	t.did = yes
	if t.was.Type > Absent && t.was.Type != typ {
		t.did = no
	}
	return t
}

// joined ends it: where it is not known whether the member is new, it is there
// now.
func (a *applying) joined(t *touch, typ KeyType) {
	switch {
	case t.did == yes:
		t.now = t.was.with(typ, Member{Token: t.token, Value: t.value, Score: t.score})
	case t.did == maybe:
		t.now = t.was.with(typ, Member{Token: t.token, Score: math.NaN()})
	}
	a.done(t)
}

// leaveEach takes in members that are removed.
func (a *applying) leaveEach(tokens [][]byte) {
	for _, token := range tokens {
		a.leave(a.hashOf(token))
	}
}

func (a *applying) leave(token lock.Value) {
	t := a.touch(leaves, a.arg(0))
	t.member, t.token = true, token
	if _, t.did = t.was.member(token); t.did == no {
		a.done(t)
		return
	}
	if t.did == maybe && a.trusts != nil && a.trusts(t.key) {
		t.did = yes
	}
	t.now = t.was.without(token)
	a.done(t)
}

// set takes in what is done to sets.
func (a *applying) set() bool {
	switch a.name {
	case "SADD":
		for _, m := range a.behind() {
			t := a.join(Set, m)
			_, there := t.was.member(t.token)
			t.did = min(t.did, -there)
			a.joined(t, Set)
		}
	case "SREM":
		a.leaveEach(a.behind())
	default:
		return false
	}
	return true
}

// sorted takes in what is done to sorted sets.
func (a *applying) sorted() bool {
	switch a.name {
	case "ZADD":
		a.zadd()
	case "ZREM":
		a.leaveEach(a.behind())
	case "ZREMRANGEBYSCORE":
		a.leaveRange()
	default:
		return false
	}
	return true
}

// zadd takes in ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member ...
func (a *applying) zadd() {
	var nx, xx, odd bool
	i := 1
	for ; i < len(a.args); i++ {
		arg := a.arg(i)
		if is(arg, "NX") {
			nx = true
		} else if is(arg, "XX") {
			xx = true
		} else if is(arg, "GT") || is(arg, "LT") || is(arg, "INCR") {
			odd = true
		} else if !is(arg, "CH") {
			break
		}
	}
	for ; i+1 < len(a.args); i += 2 {
		t := a.join(SortedSet, a.arg(i+1))
		t.nx, t.xx = nx, xx
		t.score, _ = readScore(a.arg(i))
		_, there := t.was.member(t.token)
		switch {
		case odd && there != no:
			t.did = min(t.did, maybe)
		case nx:
			t.did = min(t.did, -there)
		case xx && there == maybe:
			t.did, t.now = maybe, State{}
			a.done(t)
			continue
		case xx:
			t.did = min(t.did, there)
		}
		a.joined(t, SortedSet)
	}
}

// readScore reads a bound or a score; open is one that begins with a bracket.
func readScore(b []byte) (v float64, open bool) {
	if rest, ok := bytes.CutPrefix(b, []byte{'('}); ok {
		b, open = rest, true
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		v = math.NaN()
	}
	return v, open
}

// leaveRange takes in ZREMRANGEBYSCORE key min max, by which those whose time is
// over leave. The members that do are no holders' releases.
func (a *applying) leaveRange() {
	least, openLeast := readScore(a.arg(1))
	most, openMost := readScore(a.arg(2))
	t := a.touch(sizes, a.arg(0))
	t.score = most
	a.tell(t)
	if t.was.Type == Unseen || t.was.Type == Absent {
		return
	}
	st := t.was
	for _, m := range t.was.Members {
		if s := m.Score; (s > least || s == least && !openLeast) && (s < most || s == most && !openMost) {
			st = st.without(m.Token)
		}
	}
	a.s.See(t.key, st)
}
