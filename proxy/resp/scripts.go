package resp

import (
	"crypto/sha1"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Bounds of a script cache.
const (
	maxScripts     = 1024
	maxScriptBytes = 4 << 20
)

// Scripts remembers what the Lua scripts of an upstream do, by the sha1 of
// their text. The texts themselves are not kept. It holds at most 1024 scripts
// and 4 MiB; those that were not used of late go first. Beside them it remembers
// as many functions, what the calls of 1024 scripts were seen to do, and which
// 4096 keys were locks of late. The zero value is
// ready, and all methods are safe for concurrent use.
type Scripts struct {
	mu    sync.RWMutex
	known map[digest]*program
	order []digest // oldest first
	bytes int
	roles roles
	keys  keySet

	nameless atomic.Int64 // calls that wait for what tells what they were for

	functions     map[string]*program // by name
	functionBytes int
}

type digest [sha1.Size]byte

// NewScripts returns an empty cache.
func NewScripts() *Scripts { return &Scripts{} }

// learn returns what the script does, having looked at it once.
func (s *Scripts) learn(text []byte) *program {
	sum := digest(sha1.Sum(text))
	if p := s.find(sum); p != nil {
		return p
	}
	p := classify(text)
	p.bytes, p.purpose = p.cost(), purposeOf(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.known[sum]; q != nil {
		return q
	}
	s.add(sum, p)
	return p
}

// lookup returns what the script with that sha1, in hexadecimal, does; nil if
// its text was never seen.
func (s *Scripts) lookup(sha []byte) *program {
	sum, ok := parseDigest(sha)
	if !ok {
		return nil
	}
	return s.find(sum)
}

func parseDigest(sha []byte) (sum digest, ok bool) {
	if len(sha) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], sha)
	return sum, err == nil
}

func isDigest(sha []byte) bool {
	_, ok := parseDigest(sha)
	return ok
}

func (s *Scripts) find(sum digest) *program {
	s.mu.RLock()
	p := s.known[sum]
	s.mu.RUnlock()
	if p != nil && !p.used.Load() {
		p.used.Store(true)
	}
	return p
}

func (s *Scripts) add(sum digest, p *program) {
	if s.known == nil {
		s.known = make(map[digest]*program)
	}
	for len(s.order) > 0 && (len(s.order) >= maxScripts || s.bytes+p.bytes > maxScriptBytes) {
		s.evict()
	}
	s.known[sum] = p
	s.order = append(s.order, sum)
	s.bytes += p.bytes
}

// evict drops the oldest script that was not used since it was last spared:
// texts with values pasted into them must not drive out a lock's script.
func (s *Scripts) evict() {
	for {
		sum := s.order[0]
		s.order = s.order[1:]
		p := s.known[sum]
		if p.used.Swap(false) {
			s.order = append(s.order, sum)
			continue
		}
		s.bytes -= p.bytes
		delete(s.known, sum)
		return
	}
}

// A program is what a script does to the one key that makes it an op.
type program struct {
	used       atomic.Bool
	bytes      int // its cost
	effect     effect
	key        ref
	token      ref
	ends       due
	fence      ref      // the counter, if the script issues and returns a number
	spoken     []spoken // what an acquire script answers literally
	fenceFirst bool     // it begins the array that is returned
	// success is the number that is returned beside the effect, where the text
	// says so literally and the usual reading of replies would be wrong.
	success    int64
	hasSuccess bool
	// lead is the number that precedes a fence in the array returned with it.
	lead    int64
	hasLead bool
	// own is the place, in an array that is returned, of what the acquiring
	// command itself answered.
	own    int
	hasOwn bool
	vague  bool // a refusal may answer any number or text, such as a PTTL
	// purpose is what the text suggests of a script that has no effect.
	purpose effect
}

type effect uint8

const (
	noEffect effect = iota
	acquires
	renews
	releases
)

func (e effect) kind() lock.Kind {
	switch e {
	case acquires:
		return lock.Acquire
	case renews:
		return lock.Renew
	}
	return lock.Release
}

func (p *program) cost() int {
	n := 256 + p.key.cost() + p.token.cost() + p.ends.cost() + p.fence.cost()
	for _, s := range p.spoken {
		n += 64 + len(s.text)
	}
	return n
}
