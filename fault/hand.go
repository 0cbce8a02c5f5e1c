package fault

import (
	"errors"
	"fmt"
	"time"
)

// ByHand is the text of what no rule asked for.
const ByHand = "by hand"

// Hand decides a freeze that somebody asks for, and not a rule: of the moment's
// actor, within the limits that rules have. Like any other decision it must be
// followed by Ended.
func (p *Plan) Hand(m Moment, length time.Duration, scope Scope) (Decision, error) {
	r := &armed{Rule: Rule{Do: Freeze, At: After, For: Length{Fixed: length}, Scope: scope, Text: ByHand}, index: -1, called: ByHand}
	switch why := p.barFreeze(r, m); why {
	case "":
	case NotFreezable:
		return Decision{}, notFreezable(m)
	case AlreadyFrozen:
		return Decision{}, errors.New("it is frozen already")
	case TooManyFrozen:
		return Decision{}, fmt.Errorf("as many are frozen as may be at the same time (--max-frozen %d)", p.limits.MaxFrozen)
	default:
		return Decision{}, fmt.Errorf("it cannot fit --max-freeze, expected at most %s", p.limits.freeze(m.TTL))
	}
	p.hands++
	return p.fire(r, m, "", 0), nil
}

// Hands is an account of what Hand decided, as that of a rule; false if that is nothing.
func (p *Plan) Hands() (Use, bool) {
	return Use{Rule: -1, Text: ByHand, Called: ByHand, Seen: p.hands, Could: p.hands, Fired: p.hands}, p.hands > 0
}

func notFreezable(m Moment) error {
	if m.Cannot == "" {
		return errors.New("it cannot be frozen")
	}
	return fmt.Errorf("it cannot be frozen: %s", m.Cannot)
}
