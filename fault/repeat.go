package fault

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// repeats has rules act where they did in another run, and nowhere else.
type repeats struct {
	tick func(rule int, number int64, actors []string) string
	why  string // what barred the rule that was due last
}

// Repeat has the rules select nothing for themselves: each acts at the moments whose Due names it, and
// at a tick, told by its rule from 1 and its number, at the actor that the function picks: "" for none.
// What bars a rule bars it all the same.
func (p *Plan) Repeat(tick func(rule int, number int64, actors []string) string) {
	p.repeats = &repeats{tick: tick}
}

// Barred returns why the rule that was due at the last moment could not act; "" if it could, or did
// not match.
func (p *Plan) Barred() string {
	if p.repeats == nil {
		return ""
	}
	return p.repeats.why
}

// selects reports whether a rule acts at an event at which it could.
func (p *Plan) selects(r *armed, t Moment, name string, n int) bool {
	if p.repeats != nil {
		return t.Due == r.index+1
	}
	return r.Select.Picks(n) && p.draw(r, name, n)
}

// begin forgets what barred a rule at the moment before.
func (s *repeats) begin() {
	if s != nil {
		s.why = ""
	}
}

func (s *repeats) barred(r *armed, t Moment, why string) {
	if s != nil && t.Due == r.index+1 {
		s.why = why
	}
}

func (s *repeats) strike(p *Plan, r *armed, free []string, now lock.Instant) Decision {
	picked := s.tick(r.index+1, r.ticks, free)
	if !slices.Contains(free, picked) {
		return Decision{}
	}
	return p.ask(r, Moment{Actor: picked, Freezable: true, Due: r.index + 1}, "", now)
}
