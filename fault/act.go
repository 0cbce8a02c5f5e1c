package fault

// An Act is what a decision does.
type Act string

// The acts. The zero Act lets the message pass.
const (
	Pass   Act = ""
	Stall  Act = "stall"      // both directions wait
	Freeze Act = "freeze"     // the process stops
	Hold   Act = "hold"       // the message and what follows it in its direction waits
	Drop   Act = "drop-reply" // the reply is lost, and both connections are reset
	Reset  Act = "reset"      // both connections are reset: before, nothing of the request has gone on; after, it has
	Lose   Act = "lose-key"   // the server forgets the lock's key
	Kill   Act = "kill-backend"
)

// lasts reports whether an act goes on for a time, which its rule has to give.
func (a Act) lasts() bool { return a == Stall || a == Freeze || a == Hold }

// A Flag is one rule flag: what it does, and on which side of an op.
type Flag struct {
	Name  string // without dashes
	Do    Act
	At    Phase
	Built bool // whether Parse accepts it yet
}

// Flags lists the rule flags in the order in which help shows them.
func Flags() []Flag {
	return []Flag{
		{"stall-before", Stall, Before, true}, {"stall-after", Stall, After, true},
		{"freeze-before", Freeze, Before, true}, {"freeze-after", Freeze, After, true},
		{"hold", Hold, Before, true}, {"hold-reply", Hold, After, true}, {"drop-reply", Drop, After, true},
		{"reset-before", Reset, Before, true}, {"reset-after", Reset, After, true},
		{"lose-key", Lose, After, false}, {"kill-backend", Kill, After, false},
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
