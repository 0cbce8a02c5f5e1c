package resp

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// maxShadow is how many keys a shadow knows of.
const maxShadow = 1 << 16

// A Shadow is what is known of the keys of one server, by the commands that it
// is told of: MONITOR shows neither replies nor failures, so what a command did
// has to be worked out from what was there before.
//
// It says what scripts and functions did to locks, either from the commands that
// they ran ([Shadow.Script]) or, where nothing shows these, from the states of
// some keys before and after ([Shadow.Compare]). Its memory is bounded: of keys
// that were not heard of for long it forgets what it knew. It is not safe for
// concurrent use. Instants are told by the server's clock.
type Shadow struct {
	hash    *lock.Hasher
	scripts *Scripts
	keys    map[Ref]*shade
	line    []Ref // oldest first
	whole   bool  // what is not among the keys is absent
}

// A shade is what a shadow has of one key.
type shade struct {
	state State
	lock  bool // it was taken, extended or released as a lock
	used  bool // since it was spared last

	holders [4]lock.Value // who held that, the last first
}

// hold notes who holds the lock.
func (sh *shade) hold(token lock.Value) {
	if !token.Known() || sh.holders[0].Same(token) {
		return
	}
	copy(sh.holders[1:], sh.holders[:])
	sh.holders[0] = token
}

// held reports whether that was one of its last holders.
func (sh *shade) held(token lock.Value) bool {
	return slices.ContainsFunc(sh.holders[:], token.Same)
}

// NewShadow returns a shadow of a server of which nothing is known. The hasher is
// that of the trackers; the scripts, which it shares with them, remember what each
// was seen to do.
func NewShadow(h *lock.Hasher, s *Scripts) *Shadow {
	return &Shadow{hash: h, scripts: s, keys: make(map[Ref]*shade)}
}

// Whole says that the server has no keys but those that were told: it was empty,
// or has been looked through.
func (s *Shadow) Whole() { s.whole = true }

// Look returns what is known of a key at an instant, in Unix milliseconds.
func (s *Shadow) Look(k Ref, ms int64) State {
	switch sh := s.keys[k]; {
	case sh != nil:
		sh.used = true
		return sh.state.at(ms)
	case s.whole:
		return State{Type: Absent}
	}
	return State{}
}

// See takes in what a look at a key has found.
func (s *Shadow) See(k Ref, st State) { s.shade(k).state = st }

// Forget says that the server was lost sight of: nothing that was known of its
// keys need hold any more.
func (s *Shadow) Forget() {
	s.whole = false
	for _, sh := range s.keys {
		sh.state = State{}
	}
}

// IsLock reports whether the key was seen in use as a lock.
func (s *Shadow) IsLock(k Ref) bool { return s.keys[k] != nil && s.keys[k].lock }

func (s *Shadow) shade(k Ref) *shade {
	if sh := s.keys[k]; sh != nil {
		return sh
	}
	if len(s.keys) >= maxShadow {
		s.evict()
	}
	sh := &shade{}
	s.keys[k] = sh
	s.line = append(s.line, k)
	return sh
}

// evict drops the key that was not heard of for longest, but spares each that was
// since it was spared last.
func (s *Shadow) evict() {
	for {
		k := s.line[0]
		s.line = s.line[1:]
		if sh := s.keys[k]; sh.used {
			sh.used = false
			s.line = append(s.line, k)
			continue
		}
		delete(s.keys, k)
		s.whole = false
		return
	}
}

// Took says that a key was taken as a lock by a command that no call has run.
func (s *Shadow) Took(k Ref, token lock.Value) {
	sh := s.shade(k)
	sh.lock = true
	sh.hold(token)
}

// Run takes in a command that no script has run.
func (s *Shadow) Run(c *Command) {
	a := applying{s: s, db: c.DB, ms: c.At / 1000, tell: s.noteLock}
	a.apply(c.Args)
}

// noteLock notes that a key is used as a lock.
func (s *Shadow) noteLock(t *touch) {
	if t.act < stores || !t.nx && !t.equal {
		return
	}
	sh := s.shade(t.key)
	sh.lock = true
	if t.did == yes && t.act == stores {
		sh.hold(t.value)
	}
}

// set notes the state that a command has left.
func (s *Shadow) set(t *touch) {
	if t.act <= compares {
		return
	}
	s.shade(t.key).state = t.now
}
