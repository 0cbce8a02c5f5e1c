package resp

import "github.com/lockfaultd/lockfaultd/lock"

// Places of the arguments of EVALSHA digest 1 key token [milliseconds [mode]],
// the form in which lock libraries call the scripts that compare a token with
// a key's value before they remove the key or move its expiry.
const (
	digestAt = iota + 1
	keysAt
	lockAt
	tokenAt
	expiryAt
	modeAt
	guessEnd
)

// minToken is the shortest text that is taken for a token. What is shorter is
// a count, a flag or a name, and also hardly unique.
const minToken = 8

// beginGuess reports whether the script that the request names by a digest
// whose text is not known may be told by the arguments that follow.
func (r *requests) beginGuess() bool {
	return r.argc > tokenAt && r.argc <= guessEnd && isDigest(r.arg(digestAt))
}

// guesses reports whether the call at hand is to be told by its arguments: a
// witness is better.
func (t *Tracker) guesses() bool {
	return !t.opt.EffectsOnly && t.req.plan.cmd.verb == evalSHAVerb && t.req.plan.cmd.name == "EVALSHA" && t.req.beginGuess()
}

// mayFit reports whether an argument of that size may still suit.
func mayFit(at, size int64) bool {
	switch at {
	case keysAt:
		return size == 1
	case tokenAt:
		return size >= minToken
	case expiryAt:
		return size > 0 && size <= 20
	}
	return true
}

// suits reports whether an argument is what such a call has there.
func (r *requests) suits(at int) bool {
	arg := r.arg(at)
	switch at {
	case keysAt:
		return string(arg) == "1"
	case tokenAt:
		return isToken(arg)
	case expiryAt:
		n, ok := parseInt(arg)
		return ok && n >= 0
	}
	return arg != nil
}

// isToken keeps out numbers, such as the counts and the times of day that rate
// limiters send.
func isToken(b []byte) bool {
	if len(b) < minToken {
		return false
	}
	for i, c := range b {
		sign := i == 0 && (c == '-' || c == '+')
		if (c < '0' || c > '9') && c != '.' && !sign {
			return true
		}
	}
	return false
}

// guess makes an op of a script whose text was never seen: a server that was
// there before may hold it, and its clients then never send it.
func (t *Tracker) guess() *ask {
	r := &t.req
	if !t.guesses() {
		return nil
	}
	for i := keysAt; i < int(r.argc); i++ {
		if !r.suits(i) {
			return nil
		}
	}
	op := lock.Op{Kind: lock.Release, Guarded: true, Guessed: true, Evidence: lock.FromArguments, Token: t.hash(r.arg(tokenAt))}
	if r.argc > expiryAt {
		op.Kind = lock.Renew
		// Any mode but "1" may add to what is left, or give the number
		// before it another meaning.
		if r.argc == modeAt || string(r.arg(modeAt)) == "1" {
			n, _ := parseInt(r.arg(expiryAt))
			l := readLease(r.arg(expiryAt), false, n >= longAgo)
			op.TTL, op.Until = l.ttl, l.until
		}
	}
	return oneOp(readGuess, t.op(op, r.arg(lockAt)))
}

// ofGuess reads the reply to a script of which only the arguments are known.
func ofGuess(op *lock.Op, a *answer) lock.Outcome {
	n, isInt := a.integer()
	if op.Kind == lock.Release && isInt && n > 1 {
		// One key was named, so this counts no removed keys: scripts that
		// answer how long their caller's lock has to live take the same arguments.
		return lock.Failed
	}
	return verdict(op, isInt && n > 0 || a.is("OK"), isInt || a.isNull())
}
