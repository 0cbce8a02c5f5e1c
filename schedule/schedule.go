package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Schema is the version that is written: major.minor. Another major version is refused.
const Schema = "1.0"

// A Schedule is what one run decided.
type Schedule struct {
	Schema    string   `json:"schema"`
	MaxFrozen int      `json:"max_frozen"`
	MaxFreeze Duration `json:"max_freeze,omitempty"` // 0: 30 s or twice the lease
	Rules     []Rule   `json:"rules"`
	Cut       int      `json:"cut,omitempty"` // decisions of the run that are no steps; such a schedule cannot be repeated
	Steps     []Step   `json:"steps"`
}

// A Rule is one that was armed: a flag without its dashes, and its value.
type Rule struct {
	Flag string `json:"flag"`
	Rule string `json:"rule"`
}

// A Key tells one moment of a run from all others.
type Key struct {
	Actor   string `json:"actor"`
	Lock    string `json:"lock,omitempty"`
	Name    string `json:"name,omitempty"` // where no lock is known: the table
	Event   string `json:"event"`          // a class, or else a verb in capitals
	At      string `json:"at"`             // before, after, or clock
	Ordinal int    `json:"ordinal"`        // among those of which all else is equal, from 1
}

// The sides of a moment.
const (
	Before = "before"
	After  = "after"
	Clock  = "clock" // of a tick
)

// String says it in words.
func (k Key) String() string {
	of := ""
	switch {
	case k.Lock != "":
		of = " under " + k.Lock
	case k.Name != "":
		of = " of " + k.Name
	}
	if k.At == Clock {
		return fmt.Sprintf("tick %d, at %s", k.Ordinal, k.Actor)
	}
	return fmt.Sprintf("%s: %s %s %d%s", k.Actor, k.At, k.Event, k.Ordinal, of)
}

// A Context is what has to be so at a step's moment beside its key.
type Context struct {
	Section   int      `json:"section,omitempty"`   // how often the actor had been granted the lock by then
	Since     []string `json:"since,omitempty"`     // what it had done in the section so far, without renewals
	Statement string   `json:"statement,omitempty"` // verb, table and columns
}

// same says what of the context is not as it was; "" if nothing.
func (c Context) same(was Context) (expected, saw string) {
	switch {
	case c.Section != was.Section:
		return fmt.Sprintf("it in section %d of its actor", was.Section), fmt.Sprintf("it in section %d", c.Section)
	case path(c.Since) != path(was.Since):
		return "it behind " + path(was.Since), "it behind " + path(c.Since)
	case c.Statement != was.Statement:
		return "it to be " + orNothing(was.Statement), orNothing(c.Statement)
	}
	return "", ""
}

func path(list []string) string { return orNothing(strings.Join(list, ", ")) }

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// A Fault is what was done.
type Fault struct {
	Rule    int      `json:"rule"` // place among the rules, from 1
	Do      string   `json:"fault"`
	Scope   string   `json:"scope,omitempty"`
	Until   string   `json:"until,omitempty"`
	Timeout Duration `json:"timeout,omitempty"` // of a gate
	For     Duration `json:"for,omitempty"`     // of everything else
}

// String says it in words.
func (f Fault) String() string {
	switch {
	case f.Until != "":
		return fmt.Sprintf("%s until %s, at most %s", f.Do, f.Until, time.Duration(f.Timeout))
	case f.For != 0:
		return fmt.Sprintf("%s for %s", f.Do, time.Duration(f.For))
	}
	return f.Do
}

// A Step is one injection that was decided, and what came of it.
type Step struct {
	Step int `json:"step"` // from 1
	Key
	Context
	Fault
	Outcome string `json:"outcome"` // as in the history
}

// A Duration is written as flags have it.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf("%q: expected a duration such as 800ms", b)
	}
	*d = Duration(v)
	return nil
}
