package resp

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A roles remembers what scripts and functions were seen to do to locks: a call
// that is refused shows as nothing but readings of the lock's key, and then what it
// was meant for is told by what others of the same script did. At most 1024 are
// remembered.
type roles struct {
	mu      sync.Mutex
	known   map[string]*role
	line    []string
	version atomic.Uint64 // rises with what is learned
}

// A role is what calls of one script did.
type role struct {
	acquires, renews, releases bool

	key    int // which of KEYS was the lock, from 1; 0: none, or not the same one each time
	token  int // which of ARGV was the token, likewise
	member bool
}

func (r *roles) of(script string) (role, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.known[script]; known != nil {
		return *known, true
	}
	return role{}, false
}

// saw notes what a call has come to.
func (r *roles) saw(script string, kind lock.Kind, key, token int, member bool) {
	if script == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.known[script]
	if known == nil {
		known = &role{key: key, token: token, member: member}
		r.add(script, known)
	}
	was := *known
	switch kind {
	case lock.Acquire:
		known.acquires = true
	case lock.Renew:
		known.renews = true
	case lock.Release:
		known.releases = true
	}
	if *known != was {
		r.version.Add(1)
	}
	if known.key != key {
		known.key = 0
	}
	if known.token != token {
		known.token = 0
	}
}

func (r *roles) add(script string, known *role) {
	if r.known == nil {
		r.known = make(map[string]*role)
	}
	if len(r.line) >= maxScripts {
		delete(r.known, r.line[0])
		r.line = r.line[1:]
	}
	r.known[script] = known
	r.line = append(r.line, script)
}

// kind says what a call was meant for that had no success.
func (r role) kind() (lock.Kind, bool) {
	switch {
	case r.acquires:
		return lock.Acquire, true
	case r.renews && !r.releases:
		return lock.Renew, true
	case r.releases && !r.renews:
		return lock.Release, true
	}
	return lock.Other, false
}

// only says what all its calls did.
func (r role) only() (lock.Kind, bool) {
	if r.acquires && (r.renews || r.releases) {
		return lock.Other, false
	}
	return r.kind()
}

// learn notes what an op shows of its key and of its script.
func (x *reckoning) learn(op *lock.Op) {
	holds := op.Outcome == lock.Granted || op.Outcome == lock.Done && (op.Guarded || op.Member)
	if op.Kind == lock.Store || op.Kind == lock.Fence || !holds && !op.NX {
		return
	}
	sh := x.s.shade(Ref{op.DB, op.Key})
	sh.lock = true
	if !holds {
		return
	}
	sh.hold(op.Token)
	key := slices.IndexFunc(x.call.Keys, func(k []byte) bool { return string(k) == op.Key })
	x.s.scripts.roles.saw(x.call.Script, op.Kind, key+1, x.place(op.Token), op.Member)
}

// place returns which argument a token is, from 1; 0 if it is none.
func (x *reckoning) place(token lock.Value) int {
	if x.s.hash == nil || !token.Known() {
		return 0
	}
	return 1 + slices.IndexFunc(x.call.Args, func(arg []byte) bool { return arg != nil && x.s.hash.Of(arg).Same(token) })
}

// refused adds what the call was refused: it has only read the keys of locks. If
// it had success with others, then it was meant for the same.
func (x *reckoning) refused() {
	kind, known := x.meant()
	for _, k := range x.traces {
		if !k.looked || k.wrote || x.find(k, lock.Value{}) != nil || !x.isLock(k) || len(x.parts) > 0 && !k.compared {
			continue
		}
		r, _ := x.s.scripts.roles.of(x.call.Script)
		op := lock.Op{Kind: kind, Outcome: lock.NotHeld, Token: x.asks(r)}
		op.Member = r.member && k.now.Type != String
		mine, has := x.stays(k)
		switch {
		case has && kind == lock.Renew:
			op.Outcome, op.Guarded, op.Token, op.Member, op.Until = lock.Done, true, mine, k.now.Type != String, max(0, k.now.Ends)
		case has && !known && kind == lock.Other:
			continue // not refused, and it may have done nothing
		case kind == lock.Acquire && len(x.parts) > 0:
			continue
		case kind == lock.Acquire && r.renews && x.s.keys[k.key].held(op.Token):
			op.Kind, op.Guarded = lock.Renew, true
		case kind == lock.Acquire:
			op.Outcome, op.NX = lock.Refused, true
		case known:
			op.Guarded = true
		default:
			x.askedOf(k)
		}
		x.add(k, op)
	}
}

// stays returns the token that a call has given and that the key has before and
// after it: to move its end to where it is leaves no trace between two looks.
func (x *reckoning) stays(k *trace) (lock.Value, bool) {
	if x.evidence != lock.FromProbe || !x.call.affirmed() {
		return lock.Value{}, false
	}
	if k.now.Type == String {
		return k.now.Value, x.given(k.now.Value)
	}
	for _, m := range k.now.Members {
		if x.given(m.Token) {
			return m.Token, true
		}
	}
	return lock.Value{}, false
}

// asks returns the token of a call that is refused.
func (x *reckoning) asks(r role) lock.Value {
	if len(x.parts) > 0 {
		return x.parts[0].op.Token
	}
	if arg := r.token - 1; arg >= 0 && arg < len(x.call.Args) && x.call.Args[arg] != nil && x.s.hash != nil {
		return x.s.hash.Of(x.call.Args[arg])
	}
	return lock.Value{}
}

// askedOf notes what a call asks for of which it is not known what that is for.
func (x *reckoning) askedOf(k *trace) {
	if x.asked.Args == nil {
		x.asked = Asked{Args: []lock.Value{}, Plain: true}
		for _, arg := range x.call.Args[:min(len(x.call.Args), mostAsked)] {
			x.asked.Args = append(x.asked.Args, x.hashed(arg))
		}
	}
	x.asked.Plain = x.asked.Plain && k.now.Type == String
}

// hashed returns the hash of an argument; none if it was not kept.
func (x *reckoning) hashed(arg []byte) lock.Value {
	if arg == nil || x.s.hash == nil {
		return lock.Value{}
	}
	return x.s.hash.Of(arg)
}

// meant says what a call is for of which only readings show.
func (x *reckoning) meant() (lock.Kind, bool) {
	if len(x.parts) > 0 {
		return x.parts[0].op.Kind, x.parts[0].op.Kind != lock.Acquire
	}
	r, _ := x.s.scripts.roles.of(x.call.Script)
	if kind, ok := r.kind(); ok {
		return kind, true
	}
	return x.s.scripts.purpose(x.call.Script)
}
