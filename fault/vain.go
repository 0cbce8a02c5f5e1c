package fault

import "github.com/lockfaultd/lockfaultd/lock"

// Vain says of a rule that it waits for what cannot come about.
type Vain struct {
	At   lock.Instant
	Rule string // its text
	Name string // the key or table of the event
	Why  string
}

// hopeless are the reasons by which a rule is barred for good, in words.
func hopeless(r *armed, t Moment, why string) string {
	switch {
	case why == NotFreezable && t.Cannot != "":
		return NotFreezable + ": " + t.Cannot
	case why == NoLease && r.leased():
		return "no lease: the lock is there until it is given back, or its session or transaction ends"
	case why == NoLease:
		return "no lease: nobody else can have the lock before it is given back, and its holder is held"
	case why == GivenBack:
		return "given back: the lease that it waits for was ended by its holder"
	case why == TooShort:
		return "timeout: it is shorter than what is left of the lease that it waits for"
	case why == TooLong && r.Until.Has(LeaseExpired):
		return "max-freeze: it is shorter than what is left of the lease that it waits for"
	}
	return ""
}

// tell notes, once for each rule and reason, that it was barred for good, or by whose process it is: who waits for it is to hear of that at
// once and not at the end. A rule that has picked all that it will of a name is waited for no more.
func (p *Plan) tell(r *armed, t Moment, why, name string, now lock.Instant) {
	if said := hopeless(r, t, why); said != "" && !r.told[why] && r.Select.picksAfter(r.counts[name]) {
		r.told[why] = true
		p.vain = append(p.vain, Vain{now, r.Text, name, said})
	}
}

// Vain returns what is new since the last call.
func (p *Plan) Vain() []Vain {
	out := p.vain
	p.vain = nil
	return out
}

// leased reports whether a rule needs a lease: its length is counted from it, or its gate waits for its end.
func (r *armed) leased() bool { return r.For.TTL || r.Until.Has(LeaseExpired) }
