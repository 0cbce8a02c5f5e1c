package admin

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// What a part answers where it does not do what it is asked to, wrapped: everything else is the asker's mistake.
var (
	ErrUnknown  = errors.New("there is none of that name")
	ErrConflict = errors.New("it cannot be done now")
)

// Rules are those of the daemon's plan.
type Rules interface {
	// List returns them in the order in which they are asked.
	List() []Rule
	// Add takes one more, behind all others.
	Add(NewRule) (Rule, error)
	// Remove takes one away, and returns what it was.
	Remove(name string) (Rule, error)
	// Arm has one act within bounds.
	Arm(name string, b Bounds) (Rule, error)
	// Disarm has one neither act nor count.
	Disarm(name string) (Rule, error)
}

// A NewRule is what is to become a rule. One of Text and Fields is set.
type NewRule struct {
	Text   string          // the flag and its value
	Fields json.RawMessage // an object with the fields of a configuration file
	Name   string          // "": as the rule itself says, or one is found
	Off    bool            // it is not armed yet
	Bounds
}

// Bounds are how far a rule acts before it is disarmed. Zeros are none.
type Bounds struct {
	For   time.Duration
	Times int
}

// A Rule is one as it stands.
type Rule struct {
	Name   string         `json:"name"`
	Text   string         `json:"text"` // the flag and its value
	Origin string         `json:"origin"`
	Armed  bool           `json:"armed"`
	Until  time.Time      `json:"until,omitzero"` // when it is disarmed
	Left   int            `json:"left,omitempty"` // after so many more injections it is
	Seen   int            `json:"seen"`           // events that it matched
	Could  int            `json:"could"`          // of these, at which it could have acted: those are counted
	Fired  int            `json:"fired"`          // of these, at which it did
	Barred map[string]int `json:"barred"`         // the others, by reason
}

// Seen is what the daemon sees of locks, processes and connections.
type Seen interface {
	Locks() []Lock
	Actors() []Actor
	Sessions() []Session
}

// A Lock is one that is held, is wanted, or was held in the last minute.
type Lock struct {
	Name     string   `json:"name"` // the config's name, or the key
	Key      string   `json:"key"`
	DB       int      `json:"db,omitempty"`
	Upstream string   `json:"upstream,omitempty"` // where there are several of its protocol
	Held     bool     `json:"held"`
	Holders  []Holder `json:"holders"`
	Waiters  []string `json:"waiters"`             // the labels of those who asked for it and were not granted it
	Stranger bool     `json:"stranger,omitempty"`  // nobody is known to hold it, and one of them was refused it all the same
	Margin   *float64 `json:"margin_ms,omitempty"` // what was left of the lease at the last protected write
}

// A Holder is who has a lock.
type Holder struct {
	Actor    string    `json:"actor"`
	Session  uint64    `json:"session"` // that was granted it
	Since    time.Time `json:"since"`
	TTL      float64   `json:"ttl_ms,omitempty"`
	EndsFrom time.Time `json:"ends_from,omitzero"` // the lease ends by itself between the two
	EndsTo   time.Time `json:"ends_to,omitzero"`
	Overrun  bool      `json:"overrun"`        // it has certainly ended
	Gone     bool      `json:"gone,omitempty"` // the actor went away and has not given the lock back
	Fence    *int64    `json:"fence,omitempty"`
}

// An Actor is a process that is connected.
type Actor struct {
	Label     string    `json:"label"`
	State     string    `json:"state"`          // running, stalled or frozen
	Until     time.Time `json:"until,omitzero"` // when that ends at the latest
	By        string    `json:"by,omitempty"`   // the rule's name, or "by hand"
	PID       int       `json:"pid,omitempty"`
	Exe       string    `json:"exe,omitempty"`
	Address   string    `json:"address"`
	Freezable bool      `json:"freezable"`
	Reason    string    `json:"reason,omitempty"` // why it is not
	Sessions  int       `json:"sessions"`
	Holds     []string  `json:"holds"` // names of locks
}

// A Session is a connection.
type Session struct {
	ID       uint64    `json:"id"`
	Protocol string    `json:"protocol"` // redis or pg
	Upstream string    `json:"upstream"`
	Actor    string    `json:"actor,omitempty"` // none before it has done anything
	Name     string    `json:"name,omitempty"`  // what the client calls itself
	Address  string    `json:"address"`
	PID      int       `json:"pid,omitempty"`
	Since    time.Time `json:"since"`
	Held     bool      `json:"held"` // a rule, or somebody by hand, keeps it from going on
}

// Freezing freezes and thaws processes by hand.
type Freezing interface {
	// Freeze returns once the process of a label is stopped.
	Freeze(ctx context.Context, actor, scope string, length time.Duration) (Frozen, error)
	// Thaw lets go the process of a label, or all if it is empty, and returns how many.
	Thaw(actor string) (int, error)
}

// A Frozen is what was frozen by hand.
type Frozen struct {
	Actor     string    `json:"actor"`
	Until     time.Time `json:"until"`
	Injection uint64    `json:"injection"` // by which the history tells of it
}

// Stopping ends all that rules do.
type Stopping interface {
	// Stop disarms all rules and lets everything go that is held, in one step.
	Stop() Stopped
}

// Stopped is what was stopped.
type Stopped struct {
	Rules int `json:"rules"` // that were armed
	Held  int `json:"held"`  // injections that went on
}
