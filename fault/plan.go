package fault

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Limits bound what a plan may do at once.
type Limits struct {
	MaxFrozen int           // actors frozen at the same time; 0 means 1
	MaxFreeze time.Duration // longest freeze; 0 means 30 s, or twice the lease's ttl where that is more
}

const defaultMaxFreeze = 30 * time.Second

// freeze is the longest freeze for a lease with the given ttl, 0 if unknown.
func (l Limits) freeze(ttl time.Duration) time.Duration {
	if l.MaxFreeze > 0 {
		return l.MaxFreeze
	}
	return max(defaultMaxFreeze, 2*min(ttl, longest))
}

// A Moment is a point where a rule may act.
type Moment struct {
	Phase     Phase
	Op        *lock.Op      // read during the call only
	TTL       time.Duration // observed on the grant of the op's own term, or on this grant; 0: unknown
	Actor     string        // label of the process; "" when it is not known
	Freezable bool          // whether the actor could be frozen
	Cannot    string        // why not, where that is known
	Lock      bool          // the lock is known that the op asks for, or in whose section it is
	NoLease   bool          // the op's own term is known, and has no lease that could end
	Due       int           // of a plan that repeats: the rule that is to act, from 1; 0: none
	Left      time.Duration // when the lease of that term has certainly ended, from now on, if nobody moves it; 0: not known
	Back      bool          // the lock of that term has been given back
	Sole      Sole          // whether others can have that lock meanwhile
	Key       bool          // the lock that the op is about is known, and is a key of Redis
	Backend   bool          // the lock that the op is about is known, and a Postgres backend has it
}

// Sole says whether others can have the lock of an op's own term before that is given back.
type Sole int

// The answers.
const (
	Free  Sole = iota // they may
	Kept              // no, but the holder may yet give it back on another connection
	Bound             // no, and it is given back on the op's connection only
)

// A Decision is what to do at a moment. The zero Decision lets it pass.
type Decision struct {
	Act       Act
	At        Phase         // on which side of the op it is done
	Injection uint64        // from 1, in the order of the decisions; Ended takes it
	Rule      int           // its number: see Use; -1 of what no rule decided
	RuleText  string        // Rule.Text
	Name      string        // Rule.Name
	Called    string        // what the rule is called: Name, or one that it was given
	For       time.Duration // never negative; with 0 there is an injection that takes no time; of a gate the longest
	Until     Conditions    // of a gate
	Scope     Scope
	Actor     string // whom it is about: the moment's actor, or the one that a tick picked
	Matched   string // the name that the event was counted under: key or table; "" for a tick
	Ordinal   int    // which event of that name it was, from 1; 0 when names are no longer counted
	Tick      int64  // number of the tick, of a rule of the clock
}

// A Plan is a list of rules, of which those that are armed act.
type Plan struct {
	rules   []*armed
	seed    uint64
	limits  Limits
	anchors atomic.Pointer[anchors]
	lists   map[shape][]*armed // of those that are armed, filled as shapes come by
	next    int                // number of the next rule
	any     bool               // one is armed
	hands   int                // decisions by Hand
	soonest lock.Instant       // when the next one is disarmed by its time
	last    uint64             // injection
	vain    []Vain
	live    map[uint64]live
	seen    seen
	started bool
	repeats *repeats // nil: rules select for themselves

	baseline baseline
}

type verb struct {
	proto lock.Protocol
	name  string
}

// live is an injection whose effect is not over.
type live struct {
	rule   *armed
	frozen string // actor, of a freeze
}

// armed is a rule that is armed or was, with what happened to it.
type armed struct {
	Rule
	arming
	index  int    // its number, which no other rule of the plan ever has
	called string // its name, or one that it was given
	origin Origin
	counts map[string]int // by name: events at which it could have fired
	within sections       // of a rule that counts by section, instead
	seen   int            // events that the anchor matched
	could  int            // of those, at which it could have fired
	fired  int
	barred map[string]int
	told   map[string]bool // by reason: that it is barred for good

	active int          // injections not over
	ended  lock.Instant // when the last one was
	ticks  int64        // number of the last tick dealt with
	base   lock.Instant // from when they are counted
}

// NewPlan arms the rules, in the order in which they are asked. It refuses two
// rules of one name, and a freeze that cannot fit the limits.
func NewPlan(rules []Rule, seed uint64, limits Limits) (*Plan, error) {
	if limits.MaxFrozen < 0 || limits.MaxFreeze < 0 {
		return nil, fmt.Errorf("arm rules: --max-frozen and --max-freeze cannot be negative")
	}
	limits.MaxFrozen = max(limits.MaxFrozen, 1)
	p := &Plan{seed: seed, limits: limits, live: map[uint64]live{}, seen: newSeen(), soonest: lock.Never}
	if err := p.replace(Given, rules, 0); err != nil {
		return nil, err
	}
	return p, nil
}

// fits refuses a freeze whose least length is over the limit. With a limit
// that grows with the ttl, only a length without one can be judged here.
func fits(r Rule, limits Limits) error {
	least, told := r.For.Of(0), r.For.String()
	if r.Timeout > 0 {
		least, told = r.Timeout, r.Timeout.String()
	}
	if r.Do != Freeze || least <= limits.freeze(0) || r.For.TTL && limits.MaxFreeze == 0 {
		return nil
	}
	return fmt.Errorf("a freeze of %s cannot fit --max-freeze=%s, expected a shorter one or a higher limit",
		told, limits.freeze(0))
}

// Wants reports whether an armed rule names this wire verb, so that a parser should
// make an op of it even where nothing else needs one. It is safe for
// concurrent use.
func (p *Plan) Wants(proto lock.Protocol, name string) bool {
	return p.anchors.Load().verbs[verb{proto, name}] != nil
}

// Decide says what to do at a moment. Each decision that is not Pass must be
// followed by Ended, even if it could not be carried out.
func (p *Plan) Decide(m Moment, now lock.Instant) Decision {
	p.Expire(now)
	if m.Op == nil || len(p.rules) == 0 {
		return Decision{}
	}
	p.repeats.begin()
	p.baseline.note(m, now)
	if m.Phase == Before {
		p.seen.note(m.Op, 1)
	}
	m.TTL = knownTTL(m)
	var won Decision
	for _, r := range p.about(m.Phase, m.Op) {
		name, ok := r.matches(m.Phase, m.Op)
		if !ok {
			continue
		}
		// Going on after a win is what makes later rules know of the event.
		r.seen++
		if won.Act != Pass {
			r.barred[EarlierRule]++
			continue
		}
		won = p.ask(r, m, name, now)
	}
	return won
}

// knownTTL leaves out a ttl that a caller knows from a request alone: before
// an acquire nothing was granted.
func knownTTL(m Moment) time.Duration {
	if m.Phase == Before && (m.Op.Kind == lock.Acquire || m.Op.Kind == lock.Store) {
		return 0
	}
	return m.TTL
}

// ask counts an event for a rule that it matches, and fires the rule if it
// could fire and selects the event.
func (p *Plan) ask(r *armed, t Moment, name string, now lock.Instant) Decision {
	if why := p.bar(r, t, name, now); why != "" {
		p.tell(r, t, why, name, now)
		r.barred[why]++
		p.repeats.barred(r, t, why)
		return Decision{}
	}
	n := r.count(name, t.Op)
	if !p.selects(r, t, name, n) {
		return Decision{}
	}
	return p.fire(r, t, name, n)
}

func (p *Plan) fire(r *armed, t Moment, name string, n int) Decision {
	p.last++
	l := live{rule: r}
	if r.Do == Freeze {
		l.frozen = t.Actor
	}
	p.live[p.last] = l
	r.active++
	r.fired++
	p.spend(r)
	return Decision{
		Act: r.Do, At: r.At, Injection: p.last, Rule: r.index, RuleText: r.Text, Name: r.Name, Called: r.called,
		For: p.lasts(r, t.TTL), Until: r.Until, Scope: r.Scope, Actor: t.Actor, Matched: name, Ordinal: n,
	}
}

// lasts is how long an effect goes on at most.
func (p *Plan) lasts(r *armed, ttl time.Duration) time.Duration {
	if r.Until != "" {
		return r.patience(ttl, p.limits)
	}
	return r.For.Of(ttl)
}

// Ended tells that the effect of an injection is over, or never began. From
// now on it does not count for --max-frozen, and its rule's cooldown runs. An
// injection that is not known, or ended before, is ignored.
func (p *Plan) Ended(injection uint64, now lock.Instant) {
	l, ok := p.live[injection]
	if !ok {
		return
	}
	delete(p.live, injection)
	l.rule.active--
	l.rule.ended = max(l.rule.ended, now)
}

// The reasons why a rule could not fire at an event that it matched.
const (
	InBaseline    = "baseline"       // it came in the stretch at the start in which no rule acts
	EarlierRule   = "earlier rule"   // one that stands before it in the list took the event
	BudgetSpent   = "max"            // it has fired max times
	CoolingDown   = "cooldown"       // the last injection goes on, or ended less than cooldown ago
	NotFreezable  = "not freezable"  // the freezer would refuse the actor, or it is not known
	NoActor       = "no actor"       // a tick found nobody to freeze; scope=process and no process is known
	AlreadyFrozen = "already frozen" // the actor is
	TooManyFrozen = "max-frozen"     // as many actors as allowed are
	TooLong       = "max-freeze"     // the ttl makes the freeze longer than allowed
	UnknownTTL    = "ttl unknown"    // the op belongs to no term, or its lease has no known lifetime
	NoLease       = "no lease"       // the op's lock has no lease that could end: it is there until it is given back, and nobody else has it before
	GivenBack     = "given back"     // a gate waits for a lease's end, and the op's lock has been given back
	TooShort      = "timeout"        // the gate's is over before the lease that it waits for
	UnknownLock   = "no section"     // a gate listens to a lock, and the op belongs to no section and asks for none
	NoKey         = "no key"         // the op's lock is no key of Redis, or none that is known
	NoBackend     = "no backend"     // the op's lock is not one that a Postgres connection has, or none that is known
	TooManyNames  = "too many names" // no room to count one more name, and the rule needs the count
	LateTick      = "late tick"      // the clock was asked too late; only the last tick due is used
)

// bar says why a rule cannot fire at an event; "" if it can.
func (p *Plan) bar(r *armed, t Moment, name string, now lock.Instant) string {
	switch {
	case p.baseline.goesOn(now):
		return InBaseline
	case r.Max > 0 && r.spent >= r.Max:
		return BudgetSpent
	case r.cooling(now):
		return CoolingDown
	case t.Actor == "" && r.Do == Stall && r.Scope != ScopeConn:
		return NoActor
	case r.leased() && t.TTL <= 0 && t.NoLease, r.shutBy(t):
		return NoLease
	case r.leased() && t.TTL <= 0:
		return UnknownTTL
	case r.Until.Has(LeaseExpired) && t.Back:
		return GivenBack
	case r.Until.Has(LeaseExpired) && p.lasts(r, t.TTL) < t.Left:
		return p.tooShort(r)
	case !t.Lock && r.Until.ofTheLock(), r.PerSection && !t.Op.Term.Sure():
		return UnknownLock
	case r.Do == Lose && !t.Key:
		return NoKey
	case r.Do == Kill && !t.Backend:
		return NoBackend
	case r.counted() && !r.PerSection && len(r.counts) >= mostNames && r.counts[name] == 0:
		return TooManyNames
	case r.Do == Freeze:
		return p.barFreeze(r, t)
	}
	return ""
}

// shutBy reports whether a gate waits for others at a lock that nobody else can have while the op is held.
func (r *armed) shutBy(t Moment) bool {
	return r.Until.ofTheLock() && (t.Sole == Bound || t.Sole == Kept && r.Do == Freeze)
}

// tooShort names what ends a gate before its lease: its own timeout, or what bounds that.
func (p *Plan) tooShort(r *armed) string {
	if r.Timeout == 0 && r.Do == Freeze {
		return TooLong
	}
	return TooShort
}

func (p *Plan) barFreeze(r *armed, t Moment) string {
	frozen := p.frozen()
	switch {
	case !t.Freezable || t.Actor == "":
		return NotFreezable
	case slices.Contains(frozen, t.Actor):
		return AlreadyFrozen
	case len(frozen) >= p.limits.MaxFrozen:
		return TooManyFrozen
	case p.lasts(r, t.TTL) > p.limits.freeze(t.TTL):
		return TooLong
	}
	return ""
}

// frozen lists the actors that are frozen, or about to be.
func (p *Plan) frozen() []string {
	var actors []string
	for _, l := range p.live {
		if l.frozen != "" {
			actors = append(actors, l.frozen)
		}
	}
	return actors
}

func (r *armed) cooling(now lock.Instant) bool {
	if r.Cooldown == 0 || r.fired == 0 {
		return false
	}
	return r.active > 0 || now.Sub(r.ended) < r.Cooldown
}

// mostNames bounds the names that one rule counts, since a service may use a
// new key for every job.
const mostNames = 1 << 16

// counted reports whether the rule's choice depends on its counts.
func (r *armed) counted() bool { return r.Select != Selector{} || r.Chance > 0 }

// count returns the event's ordinal among those of its name, or of its section.
func (r *armed) count(name string, op *lock.Op) int {
	r.could++
	if r.PerSection {
		return r.within.count(op.Term.ID)
	}
	if _, ok := r.counts[name]; !ok && len(r.counts) >= mostNames {
		return 0
	}
	r.counts[name]++
	return r.counts[name]
}

// sections counts events by their term.
type sections map[lock.TermID]int

// count returns the event's ordinal in its section. Where there are too many, those that began longest ago are
// forgotten.
func (s sections) count(of lock.TermID) int {
	if _, ok := s[of]; !ok && len(s) >= mostNames {
		maps.DeleteFunc(s, func(id lock.TermID, _ int) bool { return id+mostNames/2 < of })
	}
	s[of]++
	return s[of]
}
