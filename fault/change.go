package fault

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// ErrUnknown says that no rule of the plan is called so.
var ErrUnknown = errors.New("no rule has that name")

// ErrTaken says that the name of a rule is another's.
var ErrTaken = errors.New("expected a name of its own")

// An Origin is where a rule came from, in the order in which rules are asked.
type Origin int

// The origins.
const (
	Given Origin = iota // with the plan
	Filed               // by Reload
	Added               // by Add
)

// arming is whether and how far a rule acts.
type arming struct {
	on    bool
	again int          // how often it has been armed after it was disarmed
	until lock.Instant // when it is disarmed; 0: never
	left  int          // injections until it is disarmed; 0: no bound
	spent int          // injections since it was armed
}

// An Arming bounds how far a rule acts. The zero Arming does not.
type Arming struct {
	For   time.Duration // 0: no bound
	Times int           // 0: no bound
}

// check refuses what would be over before it began.
func (a Arming) check() error {
	if a.For < 0 || a.Times < 0 {
		return errors.New("a rule cannot be armed for less than nothing, expected more")
	}
	return nil
}

// Add puts a rule behind all others and arms it, unless off. It returns what the
// rule is called. The counts and draws of others do not change.
func (p *Plan) Add(r Rule, a Arming, off bool, now lock.Instant) (string, error) {
	if err := a.check(); err != nil {
		return "", err
	}
	if err := fits(r, p.limits); err != nil {
		return "", err
	}
	if r.Name != "" && p.find(r.Name) != nil {
		return "", fmt.Errorf("another rule has the name %s, %w", r.Name, ErrTaken)
	}
	one := p.newRule(r, Added, now)
	one.called = p.call(one, nil)
	p.rules = append(p.rules, one)
	if one.on = !off; one.on {
		one.bound(a, now)
	}
	p.changed()
	return one.called, nil
}

// newRule returns a rule that is armed and not in the list yet.
func (p *Plan) newRule(r Rule, from Origin, now lock.Instant) *armed {
	one := &armed{Rule: r, index: p.next, origin: from, base: now, barred: map[string]int{}}
	one.on = true
	one.forget()
	p.next++
	return one
}

// forget has a rule count anew.
func (r *armed) forget() {
	r.counts, r.within, r.told, r.spent = map[string]int{}, sections{}, map[string]bool{}, 0
}

// call returns what a rule is called beside those of the plan and some others.
func (p *Plan) call(r *armed, others []*armed) string {
	if r.Name != "" {
		return r.Name
	}
	taken := func(name string) bool {
		return p.find(name) != nil || slices.ContainsFunc(others, func(o *armed) bool { return o.Name == name || o.called == name })
	}
	for n := r.index + 1; ; n++ {
		if name := fmt.Sprintf("rule-%d", n); !taken(name) {
			return name
		}
	}
}

func (p *Plan) find(name string) *armed {
	for _, r := range p.rules {
		if r.called == name {
			return r
		}
	}
	return nil
}

// Remove takes a rule off the list. What it has begun goes on.
func (p *Plan) Remove(name string) error {
	r := p.find(name)
	if r == nil {
		return ErrUnknown
	}
	p.rules = slices.DeleteFunc(p.rules, func(o *armed) bool { return o == r })
	p.changed()
	return nil
}

// Arm arms a rule, or bounds anew how far one acts that is armed. One that was
// disarmed counts its events and its injections from now on, from 1.
func (p *Plan) Arm(name string, a Arming, now lock.Instant) error {
	p.Expire(now)
	r := p.find(name)
	if r == nil {
		return ErrUnknown
	}
	if err := a.check(); err != nil {
		return err
	}
	if !r.on {
		r.on = true
		r.again++
		r.forget()
		r.base = now.Add(-r.Period * time.Duration(r.ticks))
	}
	r.bound(a, now)
	p.changed()
	return nil
}

func (r *armed) bound(a Arming, now lock.Instant) {
	r.until, r.left = 0, a.Times
	if a.For > 0 {
		r.until = now.Add(min(a.For, longest))
	}
}

// Disarm has a rule neither act nor count. What it has begun goes on.
func (p *Plan) Disarm(name string) error {
	r := p.find(name)
	if r == nil {
		return ErrUnknown
	}
	r.off()
	p.changed()
	return nil
}

// DisarmAll disarms every rule.
func (p *Plan) DisarmAll() {
	for _, r := range p.rules {
		r.off()
	}
	p.changed()
}

func (r *armed) off() { r.on, r.until, r.left = false, 0, 0 }

// spend counts an injection of a rule, and disarms it after the last.
func (p *Plan) spend(r *armed) {
	r.spent++
	if r.left == 0 {
		return
	}
	if r.left--; r.left == 0 {
		r.off()
		p.changed()
	}
}

// Expire disarms the rules whose time is over. Decide and Tick do so first.
func (p *Plan) Expire(now lock.Instant) {
	if now < p.soonest {
		return
	}
	for _, r := range p.rules {
		if r.until != 0 && r.until <= now {
			r.off()
		}
	}
	p.changed()
}

// NextExpiry returns when Expire has something to do, Never if that is not known.
func (p *Plan) NextExpiry() lock.Instant { return p.soonest }

// changed has everything follow what is armed now.
func (p *Plan) changed() {
	p.soonest, p.any = lock.Never, false
	for _, r := range p.rules {
		p.any = p.any || r.on
		if r.until != 0 {
			p.soonest = min(p.soonest, r.until)
		}
	}
	p.anchor()
}

// Armed reports whether a rule is.
func (p *Plan) Armed() bool { return p.any }

// Rules lists the rules in the order in which they are asked.
func (p *Plan) Rules() []Rule {
	out := make([]Rule, 0, len(p.rules))
	for _, r := range p.rules {
		out = append(out, r.Rule)
	}
	return out
}

// A Reloaded is what has come of a list that was read again.
type Reloaded struct {
	Kept, New, Gone int
}

// Reload makes the rules of a file those that are given now: behind the plan's
// first ones, and before those that were added. One whose text is as before goes
// on with its counts, armed or not as it is; a new one is armed. If one of them
// is refused, nothing changes.
func (p *Plan) Reload(rules []Rule, now lock.Instant) (Reloaded, error) {
	before := p.of(Filed)
	if err := p.replace(Filed, rules, now); err != nil {
		return Reloaded{}, err
	}
	after := p.of(Filed)
	var r Reloaded
	for _, a := range after {
		if slices.Contains(before, a) {
			r.Kept++
		}
	}
	r.New, r.Gone = len(after)-r.Kept, len(before)-r.Kept
	return r, nil
}

// of lists the rules of an origin.
func (p *Plan) of(from Origin) (out []*armed) {
	for _, r := range p.rules {
		if r.origin == from {
			out = append(out, r)
		}
	}
	return out
}

// replace puts rules where those of an origin stand.
func (p *Plan) replace(from Origin, rules []Rule, now lock.Instant) error {
	old := p.of(from)
	rest := slices.DeleteFunc(slices.Clone(p.rules), func(r *armed) bool { return r.origin == from })
	if err := p.allowed(rules, rest); err != nil {
		return err
	}
	var list []*armed
	for _, r := range rules {
		if i := slices.IndexFunc(old, func(o *armed) bool { return o.Text == r.Text }); i >= 0 {
			list = append(list, old[i])
			old = slices.Delete(old, i, i+1)
			continue
		}
		list = append(list, p.newRule(r, from, now))
	}
	at := slices.IndexFunc(rest, func(r *armed) bool { return r.origin > from })
	if at < 0 {
		at = len(rest)
	}
	p.rules = slices.Insert(rest, at, list...)
	for _, r := range list {
		if r.called == "" {
			r.called = p.call(r, list)
		}
	}
	p.changed()
	return nil
}

// An Unfit error is of a rule that cannot be armed beside others.
type Unfit struct {
	At   int // its place in the list, from 0
	Rule Rule
	Err  error
}

func (u *Unfit) Error() string { return fmt.Sprintf("arm rule %s: %v", u.Rule.Text, u.Err) }
func (u *Unfit) Unwrap() error { return u.Err }

// allowed refuses rules that cannot be armed beside others.
func (p *Plan) allowed(rules []Rule, others []*armed) error {
	names := map[string]bool{}
	for _, o := range others {
		names[o.called] = true
	}
	for i, r := range rules {
		if err := fits(r, p.limits); err != nil {
			return &Unfit{i, r, err}
		}
		if r.Name != "" && names[r.Name] {
			return &Unfit{i, r, fmt.Errorf("another rule has the name %s, %w", r.Name, ErrTaken)}
		}
		names[r.Name] = true
	}
	return nil
}
