package resp

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// aboutNow is how far, in milliseconds, the end of a key that was just made may
// be from where its lease puts it.
const aboutNow = 250

// Settle takes in a look at one of the keys that the effect of a call is unsure
// of, made at the instant at, in Unix microseconds.
func (s *Shadow) Settle(e *Effect, c *Call, k Sight, at int64) {
	s.See(k.Ref, k.State)
	e.Unsure = slices.DeleteFunc(e.Unsure, func(r Ref) bool { return r == k.Ref })
	x := &reckoning{s: s, call: c, ms: at / 1000}
	for i := range e.Ops {
		if op := &e.Ops[i]; op.DB == k.DB && op.Key == k.Key {
			x.settle(op, k.State)
			x.learn(op)
		}
	}
}

// settle says more of an op by the state that it has left.
func (x *reckoning) settle(op *lock.Op, now State) {
	switch {
	case op.Kind == lock.Acquire && op.Outcome == lock.Unknown && !op.Member && now.Type > Absent:
		op.Outcome = x.winner(op, now)
	case op.Kind == lock.Renew && !op.Token.Known() && now.Type == String && x.given(now.Value):
		op.Token, op.Guarded = now.Value, true
	}
}

// winner says whether a key that is there is the one that the acquire has made.
// Its token may be one that was there before.
func (x *reckoning) winner(op *lock.Op, now State) lock.Outcome {
	if now.holds(op.Token) == no {
		return lock.Refused
	}
	due := lease{expires: op.TTL > 0 || op.Until > 0, ttl: op.TTL, until: op.Until}.ends(x.ms)
	if now.Ends == due || due > 0 && now.Ends > due-aboutNow && now.Ends <= due+nearlyEnds {
		return lock.Granted
	}
	return lock.Unknown
}
