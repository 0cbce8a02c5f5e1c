package check

import (
	"cmp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A many is what one verdict of a lock counts, time after time.
type many struct {
	id    lock.LockID
	code  string
	by    string // what has a verdict of its own beside others of the lock; "" if nothing has
	class Class  // "": that of the code
	more  string // what is added to the proof of several: a format with their number
}

// count adds one to the verdict of its code and level, which the first makes. It
// does not hold of a lock that turns out to be a marker.
func (c *kase) count(m many, level Level, first func() (*proof, Verdict, []*lock.Op)) *finding {
	if c.piled(m.code, level, m.id, m.by, 1) {
		return nil
	}
	p, v, cited := first()
	v.Code, v.Level = m.code, level
	class := m.class
	if class == "" {
		_, class = about(m.code)
	}
	f := c.emitAs(m.id, class, with(v, p), cited...)
	if m.id.Key != "" {
		f.unless = c.carry.markerLater(m.id)
	}
	return c.pile(f, m.by, m.more)
}

// follows notes that what was counted last of a code is no root cause: it follows
// from another.
func (c *kase) follows(m many, level Level) {
	if f := c.piles[pileOf(m.code, level, m.id, m.by)]; f != nil {
		f.Train++
	}
}

// removedByAnother reports whether another client's release took the term's lock away.
func removedByAnother(t *lock.Term) bool {
	return t != nil && t.Released != nil && !byRule(t.Released) && t.Released.Term.ID != t.ID && !(t.Released.Compares() && t.Released.Session == t.Session)
}

// markerLater is for what does not hold of a lock that turns out to be a marker.
func (c *carry) markerLater(id lock.LockID) func() bool { return func() bool { return c.isMarker(id) } }

// viewed is what is found out once of what is in view.
type viewed struct {
	renewed   map[lock.TermID][]*lock.Op   // see renewals
	renewing  lockRenewals                 // see renewalsOf
	cut       map[lock.TermID]lock.Instant // see cutShort
	unlocking map[uint64][]*lock.Op        // see unlocks
	lawless   map[*lock.Op]bool            // writes that LF308 tells of
	inside    map[lock.TermID][]*write     // see writesIn
}

// remembered is what outlasts the view.
type remembered struct {
	clocks     map[string][]Clock                  // by upstream, in order
	unheard    map[string]map[lock.LockID]*lock.Op // by process, its last acquires that were never answered
	ghostly    []maybeGhost
	hanging    map[hangID]bool         // acquires without an answer; whether their token was used again
	lastAsked  map[string]*lock.Op     // by process, what it asked for last
	ended      map[uint64]lock.Instant // sessions
	guardings  map[cell][]guarding
	steps      map[columnOf]map[int64]int // by how much sections change a column, and how often
	blind      map[tableOf]*halfSeen
	blindOrder []tableOf
	calls      map[lock.LockID]*calling
	mapped     chartBook
}

func newRemembered(clocks []Clock) *remembered {
	r := &remembered{clocks: map[string][]Clock{}, ended: map[uint64]lock.Instant{}, lastAsked: map[string]*lock.Op{}, hanging: map[hangID]bool{}, unheard: map[string]map[lock.LockID]*lock.Op{}, guardings: map[cell][]guarding{},
		steps: map[columnOf]map[int64]int{}, blind: map[tableOf]*halfSeen{}, calls: map[lock.LockID]*calling{},
		mapped: chartBook{entries: map[lock.LockID]*charted{}, perhaps: map[lock.LockID]map[string]*chartedTable{}, tables: map[string]*tableWrites{}}}
	for _, k := range clocks {
		r.clocks[k.Upstream] = append(r.clocks[k.Upstream], k)
	}
	for _, list := range r.clocks {
		slices.SortStableFunc(list, func(a, b Clock) int { return cmp.Compare(a.From, b.From) })
	}
	return r
}

// mostEnded is how many sessions are known to have ended: the last ones.
const mostEnded = 1 << 16

// over notes the end of a session.
func (r *remembered) over(session uint64, at lock.Instant) {
	if len(r.ended) >= mostEnded {
		clear(r.ended)
	}
	r.ended[session] = at
}

// writesIn lists the writes of a term, and those of the terms within it.
func (c *kase) writesIn(t *lock.Term) []*write {
	if c.inside == nil {
		c.inside = map[lock.TermID][]*write{}
		for _, w := range c.writes {
			if !w.op.Term.Sure() {
				continue
			}
			for _, id := range append([]lock.TermID{w.op.Term.ID}, w.op.Term.Within...) {
				c.inside[id] = append(c.inside[id], w)
			}
		}
	}
	return c.inside[t.ID]
}
