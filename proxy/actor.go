package proxy

import (
	"fmt"
	"io"
	"maps"
	"sort"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// An Owner is the process, or the processes, that hold the client's end of a
// connection, as a [Freezer] found them.
type Owner struct {
	Key     string // equal for two connections of the same processes; pid and start time
	PID     int    // 0: not known, then Reason says why
	Start   uint64 // clock ticks after boot
	Exe     string
	Cgroup  string
	Address string // the client's host
	Reason  string // why the process cannot be frozen; "" if it can
	Handle  io.Closer
}

func (o *Owner) close() {
	if o.Handle != nil {
		_ = o.Handle.Close()
	}
}

// An Actor is a process that speaks on one or more connections.
type Actor struct {
	Label string // "" until its first op
	owner *Owner
	conns map[uint64]*conn
	held  *injection // what froze it
}

func (a *Actor) freezable() bool { return a.owner.Reason == "" && a.held == nil }

// actorOf returns the actor of an owner, and notes what was found of it last.
// What is only known by its address is one actor for each address.
func (e *Engine) actorOf(o *Owner) *Actor {
	key := o.Key
	if key == "" {
		key = "@" + o.Address
	}
	a := e.actors[key]
	if a == nil {
		a = &Actor{owner: o, conns: map[uint64]*conn{}}
		e.actors[key] = a
	}
	a.owner = o
	return a
}

// mostActors is how many are remembered before those without a connection are
// forgotten as they leave.
const mostActors = 4096

// forgetActor drops an actor that never did anything, so that short
// connections leave nothing behind. One with a label keeps it for its return.
func (e *Engine) forgetActor(a *Actor) {
	if len(a.conns) > 0 || a.held != nil || a.Label != "" && len(e.actors) < mostActors {
		return
	}
	delete(e.labels, a.Label)
	maps.DeleteFunc(e.actors, func(_ string, b *Actor) bool { return a == b })
}

// label names the actor of a connection at its first op: what the client calls
// itself, where nobody else does, or the next of A1, A2 ...
func (e *Engine) label(c *conn) string {
	a := c.actor
	if a.Label != "" {
		return a.Label
	}
	a.Label = e.newLabel(a)
	o := a.owner
	e.untold = append(e.untold, history.Actor{Label: a.Label, PID: o.PID, Start: o.Start, Exe: o.Exe, Cgroup: o.Cgroup, Address: o.Address})
	return a.Label
}

func (e *Engine) newLabel(a *Actor) string {
	if a.owner.PID == 0 {
		return "@" + a.owner.Address
	}
	ids := make([]uint64, 0, len(a.conns))
	for id := range a.conns {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	for _, id := range ids {
		if name := a.conns[id].peer.Name; name != nil && !lock.AddressOnly(name()) && !e.labels[name()] {
			e.labels[name()] = true
			return name()
		}
	}
	for {
		e.names++
		if n := fmt.Sprintf("A%d", e.names); !e.labels[n] {
			return n
		}
	}
}

// NewActors returns the actors that got their label since the last call, in
// that order, for the record.
func (e *Engine) NewActors() []history.Actor {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.untold
	e.untold = nil
	return out
}
