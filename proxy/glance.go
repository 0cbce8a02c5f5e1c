package proxy

import (
	"hash/maphash"
	"sync/atomic"
)

// glances let the first event of a name be seen even where no rule matches it,
// so that a rule that never matches can tell what came nearest. They remember
// some names, by their hashes, and cost no lock and no memory.
type glances struct {
	seed  maphash.Seed
	names [256]atomic.Uint64
}

// first reports whether a name has not come before. It may say no to a new one
// whose place another has taken.
func (g *glances) first(name []byte) bool {
	h := maphash.Bytes(g.seed, name)
	place := &g.names[h%uint64(len(g.names))]
	return place.Load() == 0 && place.CompareAndSwap(0, h)
}
