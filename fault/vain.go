package fault

// Vain says of a rule that it waits for what cannot come about.
type Vain struct {
	Rule string // its text
	Name string // the key or table of the event
	Why  string
}

// tell notes, once for each rule, that it was barred for good: who waits for it is to hear of that at once
// and not at the end.
func (p *Plan) tell(r *armed, why, name string) {
	if why == NoLease && r.barred[why] == 0 {
		p.vain = append(p.vain, Vain{r.Text, name, "no lease: the lock is there until it is given back, or its session or transaction ends"})
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
