package fault

// An Act is what a decision does.
type Act string

// The acts. The zero Act lets the message pass.
const (
	Pass   Act = ""
	Stall  Act = "stall"        // both directions wait
	Freeze Act = "freeze"       // the process stops
	Hold   Act = "hold"         // the message and what follows it in its direction waits
	Drop   Act = "drop-reply"   // the reply is lost, and both connections are reset
	Reset  Act = "reset"        // both connections are reset: before, nothing of the request has gone on; after, it has
	Lose   Act = "lose-key"     // the server forgets the lock's key
	Kill   Act = "kill-backend" // the server ends the connection that has the lock
)

// Lasts reports whether an act goes on for a time, which its rule has to give.
func (a Act) Lasts() bool { return a == Stall || a == Freeze || a == Hold }

// A Flag is one rule flag: what it does, and on which side of an op.
type Flag struct {
	Name string // without dashes
	Do   Act
	At   Phase
}

// Flags lists the rule flags in the order in which help shows them.
func Flags() []Flag {
	return []Flag{
		{"stall-before", Stall, Before}, {"stall-after", Stall, After},
		{"freeze-before", Freeze, Before}, {"freeze-after", Freeze, After},
		{"hold", Hold, Before}, {"hold-reply", Hold, After}, {"drop-reply", Drop, After},
		{"reset-before", Reset, Before}, {"reset-after", Reset, After},
		{"lose-key", Lose, After}, {"kill-backend", Kill, After},
	}
}

// flagOf names the flag that does this on that side; "" where there is none.
func flagOf(do Act, at Phase) string {
	for _, f := range Flags() {
		if f.Do == do && f.At == at {
			return f.Name
		}
	}
	return ""
}

// side is on which side of an op a rule is asked about it. A reset after an op is decided before
// that goes on, so that nothing goes on behind it; what comes of it nobody hears.
func (r *Rule) side() Phase {
	if r.Do == Reset {
		return Before
	}
	return r.At
}
