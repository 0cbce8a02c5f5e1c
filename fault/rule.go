package fault

import (
	"strconv"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Phase is the side of an op on which a moment lies.
type Phase string

// The phases. Before: the request was read and not forwarded. After: the
// server answered and the reply is held back.
const (
	Before Phase = "before"
	After  Phase = "after"
)

// A Scope is how much an act covers.
type Scope string

// The scopes.
const (
	ScopeConn    Scope = "conn"    // the op's connection
	ScopeProcess Scope = "process" // the actor: its threads (freeze), or all its proxied connections (stall)
	ScopeTree    Scope = "tree"    // the actor and all that descends from it
	ScopeCgroup  Scope = "cgroup"  // everything in the actor's cgroup
)

// tick is the event of the clock. Its rules have a Period and no name to match.
const tick = "tick"

// A Rule is one intention, compiled. [Parse] makes it; its String is the
// canonical text of it, which parses to the same rule.
type Rule struct {
	At     Phase
	Do     Act
	Proto  lock.Protocol // "" when the event is a class of both protocols, or tick
	Event  string        // a verb in capitals, a class, or "tick"
	Period time.Duration // of a tick
	Glob   string        // as typed, escapes kept; "" matches every name
	Select Selector
	// PerSection has Select count the events of each section by themselves, whatever their names.
	PerSection bool
	Chance     float64 // percent in (0, 100]; 0 when not given
	For        Length
	Until      Conditions // of a gate, "": it lasts For
	Scope      Scope

	Max      int           // most injections; 0: no bound
	Cooldown time.Duration // from the end of one injection to the next
	Timeout  time.Duration // of a gate; 0: max(5 s, 4 x ttl)
	Name     string        // given by name=; may be empty

	Text string // as it was typed: the flag with its dashes, a space, the value
}

// A Selector picks events by their ordinal. The zero Selector picks every one.
type Selector struct {
	From, To int // N-M, both included; From 0: not used
	Every    int // each multiple of it; 0: not used
}

// Picks reports whether the n-th event, from 1, is selected.
func (s Selector) Picks(n int) bool {
	if s.Every > 0 {
		return n%s.Every == 0
	}
	return s.From == 0 || s.From <= n && n <= s.To
}

// picksAfter reports whether an event behind the n-th may be selected.
func (s Selector) picksAfter(n int) bool { return s.Every > 0 || s.From == 0 || n < s.To }

func (s Selector) String() string {
	switch {
	case s.Every > 0:
		return "#*/" + strconv.Itoa(s.Every)
	case s.From == 0:
		return ""
	case s.From == s.To:
		return "#" + strconv.Itoa(s.From)
	}
	return "#" + strconv.Itoa(s.From) + "-" + strconv.Itoa(s.To)
}

// A Length is how long an effect lasts: Fixed, or from the ttl that the grant
// of the op's own term had. At most one of Times, Percent and Fixed modifies
// the ttl.
type Length struct {
	TTL     bool
	Times   float64       // ttl*Times; 0: not used
	Percent float64       // ttl+Percent%, negative for less
	Fixed   time.Duration // the length itself, or what is added to the ttl (negative for less)
}

// Of returns the length for a grant with the given ttl: never negative, and
// never more than a year.
func (l Length) Of(ttl time.Duration) time.Duration {
	if !l.TTL {
		return l.Fixed
	}
	factor := 1 + l.Percent/100
	if l.Times > 0 {
		factor = l.Times
	}
	// In floats, since a hostile ttl times 1000 leaves the integers.
	d := float64(ttl)*factor + float64(l.Fixed)
	return time.Duration(min(max(d, 0), float64(longest)))
}

// longest bounds a computed length, so that instants cannot overflow.
const longest = 366 * 24 * time.Hour

func (l Length) String() string {
	switch {
	case !l.TTL:
		return l.Fixed.String()
	case l.Times > 0:
		return "ttl*" + decimal(l.Times)
	case l.Percent > 0:
		return "ttl+" + decimal(l.Percent) + "%"
	case l.Percent < 0:
		return "ttl-" + decimal(-l.Percent) + "%"
	case l.Fixed > 0:
		return "ttl+" + l.Fixed.String()
	case l.Fixed < 0:
		return "ttl-" + (-l.Fixed).String()
	}
	return "ttl"
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Flag returns the name of the flag that makes this rule, without dashes.
func (r Rule) Flag() string { return flagOf(r.Do, r.At) }

// String returns the rule's text in its shortest spelling, without the flag.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(r.anchor())
	b.WriteString(r.Select.String())
	if r.Chance > 0 {
		b.WriteString("@" + decimal(r.Chance) + "%")
	}
	if r.Do.Lasts() {
		b.WriteString("=" + r.effect())
	}
	if r.Scope != defaultScope(r.Do, r.Event) {
		b.WriteString(",scope=" + string(r.Scope))
	}
	if r.PerSection {
		b.WriteString(",per=section")
	}
	if r.Max > 0 {
		b.WriteString(",max=" + strconv.Itoa(r.Max))
	}
	if r.Cooldown > 0 {
		b.WriteString(",cooldown=" + r.Cooldown.String())
	}
	if r.Timeout > 0 {
		b.WriteString(",timeout=" + r.Timeout.String())
	}
	if r.Name != "" {
		b.WriteString(",name=" + r.Name)
	}
	return b.String()
}

func (r Rule) effect() string {
	if r.Until != "" {
		return "until:" + string(r.Until)
	}
	return r.For.String()
}

func (r Rule) anchor() string {
	if r.Event == tick {
		return "tick(" + r.Period.String() + ")"
	}
	s := r.Event
	if r.Proto != "" && r.Proto != defaultProto(r.Event) {
		s = string(r.Proto) + ":" + s
	}
	if r.Glob != "" {
		s += "(" + r.Glob + ")"
	}
	return s
}

// A stall by the clock has no connection to wait on, so it covers the process.
func defaultScope(do Act, event string) Scope {
	if do == Freeze || event == tick {
		return ScopeProcess
	}
	return ScopeConn
}
