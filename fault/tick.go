package fault

import (
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Start sets the instant from which ticks are counted: tick(1.5s) is due 1.5 s,
// 3 s ... after it. Without it, the first call of NextTick is the start. Only
// the first start counts; those of a rule that is armed later are counted from
// then on.
func (p *Plan) Start(now lock.Instant) {
	if !p.started {
		p.started = true
		for _, r := range p.rules {
			r.base = now
		}
	}
}

// NextTick returns when Tick must be called next, which may be in the past, and
// false if no rule waits for the clock any more.
func (p *Plan) NextTick(now lock.Instant) (lock.Instant, bool) {
	p.Start(now)
	next, ok := lock.Never, false
	for _, r := range p.rules {
		if r.ticking() {
			next, ok = min(next, r.base.Add(r.Period*time.Duration(r.ticks+1))), true
		}
	}
	return next, ok
}

// ticking reports whether a rule waits for the clock, and can fire yet.
func (r *armed) ticking() bool {
	spent := r.Max > 0 && r.spent >= r.Max || r.Select.From > 0 && r.counts[""] >= r.Select.To
	return r.Event == tick && r.on && !spent
}

// Tick decides for every tick that is due. The actors are the labels of those
// that could be frozen now, in any order. A tick that is called so late that
// the next one is due too is barred, and only the last is used.
func (p *Plan) Tick(now lock.Instant, actors []string) []Decision {
	p.Start(now)
	p.Expire(now)
	var made []Decision
	for _, r := range p.rules {
		if !r.ticking() {
			continue
		}
		if due := int64(now.Sub(r.base) / r.Period); due > r.ticks {
			late := int(due - r.ticks - 1)
			r.ticks = due
			r.seen += late + 1
			if late > 0 {
				r.barred[LateTick] += late
			}
			if d := p.strike(r, actors, now); d.Act != Pass {
				d.Tick = r.ticks
				made = append(made, d)
			}
		}
	}
	return made
}

// strike picks the tick's target and asks the rule.
func (p *Plan) strike(r *armed, actors []string, now lock.Instant) Decision {
	free := p.free(r, actors)
	if len(free) == 0 {
		r.barred[p.nobody(actors)]++
		return Decision{}
	}
	if p.repeats != nil {
		return p.repeats.strike(p, r, free, now)
	}
	picked := free[p.hash(r, tick, r.counts[""]+1)%uint64(len(free))]
	return p.ask(r, Moment{Actor: picked, Freezable: true}, "", now)
}

// free sorts the actors and leaves out those that a freeze could not take.
func (p *Plan) free(r *armed, actors []string) []string {
	free := slices.Clone(actors)
	slices.Sort(free)
	free = slices.Compact(free)
	frozen := p.frozen()
	return slices.DeleteFunc(free, func(a string) bool {
		return a == "" || r.Do == Freeze && slices.Contains(frozen, a)
	})
}

func (p *Plan) nobody(actors []string) string {
	if len(p.frozen()) > 0 && len(actors) > 0 {
		return AlreadyFrozen
	}
	return NoActor
}
