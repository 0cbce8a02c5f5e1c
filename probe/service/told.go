package service

import (
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// told is what was told so far: the last of it, and groups of all.
type told struct {
	last   uint64 // the number of the last verdict
	list   []Verdict
	groups map[groupID]*Group
	order  []groupID
}

// How many verdicts are remembered one by one, and how many groups of them there may be: what comes later counts as of
// no lock, table or invariant.
const (
	mostTold   = 5000
	mostGroups = 2000
)

type groupID struct {
	code                   string
	level                  check.Level
	invariant, lock, table string
}

// A Group is verdicts that are alike.
type Group struct {
	Code      string      `json:"code"`
	Name      string      `json:"name"`
	Class     check.Class `json:"class"`
	Level     check.Level `json:"level"`
	Harm      bool        `json:"harm"`
	Invariant string      `json:"invariant,omitempty"`
	Lock      string      `json:"lock,omitempty"`
	Table     string      `json:"table,omitempty"`
	Verdicts  int         `json:"verdicts"`
	Count     int         `json:"count"` // what they count together
	First     time.Time   `json:"first"`
	Last      time.Time   `json:"last"`
	Example   Verdict     `json:"example"` // the first of them
}

func (t *told) add(list []Verdict) {
	for _, v := range list {
		t.last = max(t.last, v.N)
		t.group(v)
	}
	t.remember(list)
}

// remember has verdicts at hand that were counted.
func (t *told) remember(list []Verdict) {
	for _, v := range list {
		if len(t.list) >= mostTold {
			t.list = slices.Clone(t.list[mostTold/10:])
		}
		t.list = append(t.list, v)
	}
}

// restore takes in the sum of what was told before.
func (t *told) restore(past Past) {
	t.last, t.groups, t.order = past.Last, map[groupID]*Group{}, nil
	for _, g := range past.Groups {
		id := groupID{g.Code, g.Level, g.Invariant, g.Lock, g.Table}
		t.groups[id] = &g
		t.order = append(t.order, id)
	}
}

// past is the sum of what was told, but for episodes.
func (t *told) past() Past {
	past := Past{Last: t.last}
	for _, id := range t.order {
		past.Groups = append(past.Groups, *t.groups[id])
	}
	return past
}

func (t *told) group(v Verdict) {
	id := groupID{v.Code, v.Level, v.Invariant, v.Lock, v.Table}
	if t.groups[id] == nil && len(t.groups) >= mostGroups {
		id.invariant, id.lock, id.table = "", "", ""
	}
	g := t.groups[id]
	if g == nil {
		if t.groups == nil {
			t.groups = map[groupID]*Group{}
		}
		g = &Group{Code: v.Code, Name: v.Name, Class: v.Class, Level: v.Level, Invariant: id.invariant, Lock: id.lock, Table: id.table, First: v.At, Example: v}
		t.groups[id] = g
		t.order = append(t.order, id)
	}
	g.Harm = g.Harm || v.Harm
	g.Verdicts++
	g.Count += max(1, v.Count)
	g.Last = v.At
}

// since lists the verdicts behind number n that are remembered, and says whether there were others.
func (t *told) since(n uint64) (list []Verdict, more bool) {
	at, _ := slices.BinarySearchFunc(t.list, n+1, func(v Verdict, n uint64) int { return int(v.N) - int(n) })
	first := t.last + 1
	if len(t.list) > 0 {
		first = t.list[0].N
	}
	return slices.Clone(t.list[at:]), first > n+1
}

// byGroup lists copies of the groups: harm first, then by code.
func (t *told) byGroup() []Group {
	out := []Group{}
	for _, id := range t.order {
		out = append(out, *t.groups[id])
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		if a.Harm != b.Harm {
			if a.Harm {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Code, b.Code)
	})
	return out
}

// An episode's key is the watch's name and the thing that it is about. Names have no line ends.
func joinKey(watch, thing string) string { return watch + "\n" + thing }

func splitKey(key string) (watch, thing string) {
	watch, thing, _ = strings.Cut(key, "\n")
	return watch, thing
}
