package pgwire

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/lockfaultd/lockfaultd/lock"
)

const (
	cacheEntries = 1024
	cacheBytes   = 4 << 20
	cacheText    = 64 << 10 // longer texts are read each time
	cacheList    = 64       // so are those of more statements
	cacheSeen    = 4096
)

// A Cache keeps what was read from SQL texts, for all sessions: of those that
// came twice, since a client that writes values into its texts sends no two
// alike. It holds at most 1024 texts, of 4 MiB together with what was read from
// them, and none in which there may be a password. It is safe for concurrent
// use.
type Cache struct {
	mu    sync.Mutex
	texts store[[]template]
	seen  [cacheSeen]uint32 // sums of texts that were read, each at its place

	leases leaseTables
	unread atomic.Int64
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{texts: store[[]template]{entries: cacheEntries, bytes: cacheBytes, weigh: weigh}}
}

// Unread counts the statements that upstream carried out and that were not, or not
// in all their parts, understood: texts that begin with no word or go on behind what
// is kept, parentheses within each other beyond all measure, more statements in
// one text than are read.
func (c *Cache) Unread() int64 { return c.unread.Load() }

// read returns the statements of a text. A text that was cut is a prefix of
// what upstream gets, and is not kept. All sessions have the same h.
func (c *Cache) read(h *lock.Hasher, text []byte, cut bool) []template {
	if !cut {
		text, _, _ = commented(text) // a trace there makes each text another
	}
	if cut || len(text) > cacheText {
		return sealed(h, text, cut)
	}
	c.mu.Lock()
	list, ok := c.texts.get(text)
	again := ok || c.again(text)
	c.mu.Unlock()
	if ok {
		return list
	}
	list = sealed(h, text, false)
	if !again || len(list) > cacheList || secret(view(text)) {
		return list
	}
	c.mu.Lock()
	c.texts.set(string(text), list)
	c.mu.Unlock()
	return list
}

// sealed reads a text and hashes what is written in it.
func sealed(h *lock.Hasher, text []byte, cut bool) []template {
	list := readSQL(view(text), cut)
	for i := range list {
		list[i].seal(h)
	}
	return list
}

// again reports whether a text was seen before, as far as is remembered, and
// remembers it.
func (c *Cache) again(text []byte) bool {
	h := sum(text)
	place := &c.seen[h>>32%cacheSeen]
	was := *place
	*place = uint32(h) | 1
	return was == *place
}

// sum is a hash of a text, of its ends only if it is long. Two texts of one
// sum cost a place in the cache and nothing else.
func sum(text []byte) uint64 {
	const most = 256
	h := uint64(len(text)) ^ 0xcbf29ce484222325
	if len(text) > 2*most {
		h = mix(h, text[:most])
		text = text[len(text)-most:]
	}
	return mix(h, text)
}

func mix(h uint64, text []byte) uint64 {
	for _, c := range text {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return h
}

// view returns a text as a string without copying it. It is for readers that
// keep no part of it.
func view(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }

// weigh returns about how many bytes templates take, without their strings:
// those are no longer than the text.
func weigh(list []template) int {
	n := 0
	for i := range list {
		n += templateBytes + list[i].weight()
	}
	return n
}

// templateBytes is what a template takes that has no lists, and slotBytes what
// a place in one takes.
const (
	templateBytes = 512
	slotBytes     = 192
)

// weight returns about how many bytes the lists of a template take.
func (t *template) weight() int {
	n := slotBytes*(len(t.set)+len(t.where)+len(t.args)+2*len(t.holds)+len(t.guards)) + 32*(len(t.shape.Columns)+len(t.also)+len(t.shape.Also)+len(t.shape.Aside))
	if t.lease != nil {
		n += templateBytes + slotBytes*len(t.lease.key)
	}
	if t.move != nil {
		n += slotBytes + 64*len(t.move.temps)
	}
	if t.inner != nil {
		n += templateBytes + t.inner.weight()
	}
	return n
}
