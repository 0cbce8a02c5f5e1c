package resp

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A tri is an answer that may not be known.
type tri int8

const (
	no    tri = -1
	maybe tri = 0
	yes   tri = 1
)

func sure(b bool) tri {
	if b {
		return yes
	}
	return no
}

// nearlyEnds is around a key's end for so many milliseconds it is not known
// whether the key is there: commands use the time at which their script began.
const nearlyEnds = 5

// at returns what is left of a state by that time, Unix milliseconds.
func (st State) at(ms int64) State {
	switch {
	case st.Type <= Absent, st.Ends <= 0, ms < st.Ends-nearlyEnds:
		return st
	case ms > st.Ends+nearlyEnds:
		return State{Type: Absent}
	}
	return State{}
}

// present reports whether the key is there.
func (st State) present() tri {
	switch {
	case st.Type == Absent:
		return no
	case st.Type == Unseen, st.Ends == UnknownEnd:
		return maybe
	}
	return yes
}

// holds reports whether the key is a string of that value.
func (st State) holds(v lock.Value) tri {
	switch {
	case st.Type == Absent, st.Type > String:
		return no
	case st.Type == Unseen, !st.Value.Known(), !v.Known():
		return maybe
	case !st.Value.Same(v):
		return no
	}
	return st.present()
}

// member returns what is known of a member, and whether it is there.
func (st State) member(token lock.Value) (Member, tri) {
	if i := st.find(token); i >= 0 {
		return st.Members[i], st.present()
	}
	if st.Type == Unseen || st.Partial && st.Type > String {
		return Member{Token: token}, maybe
	}
	return Member{Token: token}, no
}

func (st State) find(token lock.Value) int {
	return slices.IndexFunc(st.Members, func(m Member) bool { return m.Token.Same(token) })
}

// with returns the state once the key has that member.
func (st State) with(t KeyType, m Member) State {
	switch st.Type {
	case Absent:
		st = State{}
	case Unseen:
		st = State{Partial: true, Ends: UnknownEnd}
	}
	st.Type = t
	i := st.find(m.Token)
	switch {
	case i >= 0:
		st.Members = slices.Clone(st.Members)
		st.Members[i] = m
	case len(st.Members) == MaxMembers:
		st.Partial = true
	default:
		st.Members = append(slices.Clip(st.Members), m)
	}
	return st
}

// without returns the state once the key does not have that member. A key
// without members is none.
func (st State) without(token lock.Value) State {
	i := st.find(token)
	if i < 0 {
		return st
	}
	if len(st.Members) == 1 && !st.Partial {
		return State{Type: Absent}
	}
	st.Members = slices.Delete(slices.Clone(st.Members), i, i+1)
	return st
}
