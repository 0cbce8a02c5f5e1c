package schedule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An Actor is a process as the run knows it.
type Actor interface {
	ID() string                     // its label in this run
	Called() (name, program string) // what it calls itself, if it does, and what it runs
}

// An Event is one moment: an op, and a side of it.
type Event struct {
	Actor Actor
	Op    *lock.Op    // read during the call only
	At    string      // Before or After
	Lock  lock.LockID // the one that the op asks for, or in whose section it certainly is; zero: none
	Term  lock.TermID // that section; 0: none
}

// most bounds what a book counts, since a service may use a new lock for every job.
const most = 1 << 16

// longest bounds what is kept of one section.
const longest = 1 << 10

// keys counts, and so tells moments apart.
type keys struct {
	counts  map[counted]int
	holders map[held]string
	granted map[group]int
	named   map[string]string // by the actor's ID
	came    map[string]int    // by name or program
	paths   map[lock.TermID][]string
}

// counted is what an ordinal counts.
type counted struct {
	actor, lock, name, event, at string
}

type held struct{ actor, lock string }

type group struct{ lock, name string }

func newKeys() keys {
	return keys{
		counts: map[counted]int{}, holders: map[held]string{}, granted: map[group]int{},
		named: map[string]string{}, came: map[string]int{}, paths: map[lock.TermID][]string{},
	}
}

// note counts an event and returns its place.
func (k *keys) note(ev Event) Place {
	event, id := Class(ev.Op, ev.At), ev.Lock.String()
	k.arrive(ev.Actor)
	if event == "acquire" && ev.At == After {
		k.grant(ev.Actor, id)
	}
	c := counted{ev.Actor.ID(), id, nameless(ev), event, ev.At}
	n := k.count(c)
	key := Key{Actor: k.actor(ev.Actor, id), Lock: id, Name: c.name, Event: event, At: ev.At, Ordinal: n}
	p := Place{key: key, section: k.section(ev, id), since: slices.Clip(k.paths[ev.Term]), op: ev.Op}
	k.pass(ev, event)
	return p
}

func (k *keys) count(c counted) int {
	if _, ok := k.counts[c]; !ok && len(k.counts) >= most {
		return 0
	}
	k.counts[c]++
	return k.counts[c]
}

// arrive names an actor by the order in which it came.
func (k *keys) arrive(a Actor) {
	if _, known := k.named[a.ID()]; known || len(k.named) >= most {
		return
	}
	name, program := a.Called()
	if name == "" {
		name = program
	}
	k.came[name]++
	k.named[a.ID()] = "process:" + name + ":" + strconv.Itoa(k.came[name])
}

// grant names an actor by the order in which it was first granted a lock.
func (k *keys) grant(a Actor, id string) {
	h := held{a.ID(), id}
	if _, known := k.holders[h]; known || len(k.holders) >= most {
		return
	}
	name, _ := a.Called()
	k.granted[group{id, name}]++
	n := strconv.Itoa(k.granted[group{id, name}])
	if name != "" {
		n = name + ":" + n
	}
	k.holders[h] = "holder:" + n
}

func (k *keys) actor(a Actor, id string) string {
	if name, ok := k.holders[held{a.ID(), id}]; ok {
		return name
	}
	return k.named[a.ID()]
}

// section is how often the actor has been granted the lock.
func (k *keys) section(ev Event, id string) int {
	if ev.Lock == (lock.LockID{}) {
		return 0
	}
	return k.counts[counted{ev.Actor.ID(), id, "", "acquire", After}]
}

// pass notes an event as one that later ones of its section come behind. What is done again
// and again is noted once, and renewals are not: how many there are is the clock's to say.
func (k *keys) pass(ev Event, event string) {
	if ev.Term == 0 || event == "renew" {
		return
	}
	if event == "release" && ev.At == After {
		delete(k.paths, ev.Term)
		return
	}
	p := k.paths[ev.Term]
	if ev.At == Before && len(p) > 0 && p[len(p)-1] == event || ev.At == After && event != "acquire" || len(p) == 0 && len(k.paths) >= most || len(p) >= longest {
		return
	}
	k.paths[ev.Term] = append(p, event)
}

// Class is what a key calls an op: its class, or else its verb.
func Class(op *lock.Op, at string) string {
	switch op.Kind {
	case lock.Acquire:
		return asked(op, at)
	case lock.Store:
		if at == After && op.Term.ID != 0 {
			return "acquire"
		}
	case lock.Renew, lock.Release, lock.Fence:
		return string(op.Kind)
	case lock.Read, lock.Write:
		if op.Term.Sure() {
			return string(op.Kind)
		}
	case lock.Commit:
		if !op.Implicit {
			return "commit"
		}
	}
	return op.Verb
}

// asked tells those who got a lock from those who did not.
func asked(op *lock.Op, at string) string {
	switch {
	case at == Before, op.Outcome == lock.Granted:
		return "acquire"
	case op.Outcome == lock.Refused:
		return "refused"
	}
	return op.Verb
}

// nameless is what an event of no lock is counted by: its table.
func nameless(ev Event) string {
	switch op := ev.Op; {
	case ev.Lock != (lock.LockID{}):
		return ""
	case op.SQL != nil:
		return lock.TableName(op.SQL.Table)
	case len(op.Tables) > 0:
		return lock.TableName(slices.Min(op.Tables))
	}
	return ""
}

// statement says what a statement is, without its values: its verb, its table, and the columns that it
// sets, asks for and returns.
func statement(op *lock.Op) string {
	if op.SQL == nil {
		return ""
	}
	var set, where []string
	for _, a := range op.SQL.Set {
		set = append(set, a.Column)
	}
	for _, c := range op.SQL.Where {
		where = append(where, c.Column+" "+c.Op)
	}
	return op.Verb + " " + lock.TableName(op.SQL.Table) + part(" set ", set) + part(" where ", where) + part(" giving ", op.SQL.Columns)
}

func part(name string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return name + strings.Join(list, ", ")
}
