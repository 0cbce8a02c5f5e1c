package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A place is where a statement stands: in which cluster, and in which section of it.
type place struct {
	result  *clustered
	section int
}

// A clustered is what the orders of a cluster show.
type clustered struct {
	scene  *scene
	blind  bool // something may have been written there that is not in the scene
	with   showing
	within showing // without the live reads that rest on a premise
	on     []columnOf
	told   bool                // there is a verdict about two of its sections
	first  map[[2]*lock.Op]int // of two writes with fences: in how many orders the one came before the other
	real   uint64              // the deeds that took effect in some order
}

// neverTook reports whether a write that was never answered took effect in no order.
func (r *clustered) neverTook(w *lock.Op) bool {
	if r == nil || r.blind {
		return false
	}
	for i := range r.scene.deeds {
		if d := &r.scene.deeds[i]; d.op == w && len(d.sets) > 0 {
			return r.real>>i&1 == 0
		}
	}
	return false
}

// A showing counts orders. Strictly, only what is certain to be a dependency counts,
// and values that may be the same are the same; loosely, the other way round.
type showing struct {
	orders         int
	rows, rowsMay  int // with a cycle on one row
	many, manyMay  int // with one across rows, and none on one
	pairs, pairMay map[[2]int]int
	row, across    []link       // a cycle of each kind, of what is sure if there is one
	in             map[int]bool // the sections of all those that were found

	sureRows, sureMany int // as rows and many, of sections all of whose statements are theirs
}

func (t *showing) add(strict, loose, sure harms) {
	if t.pairs == nil {
		t.pairs, t.pairMay, t.in = map[[2]int]int{}, map[[2]int]int{}, map[int]bool{}
	}
	t.orders++
	t.rows += asInt(strict.row)
	t.many += asInt(strict.any && !strict.row)
	t.rowsMay += asInt(loose.row)
	t.manyMay += asInt(loose.any && !loose.row)
	for p := range strict.pairs {
		t.pairs[p]++
	}
	for p := range loose.pairs {
		t.pairMay[p]++
	}
	for _, l := range loose.cycle {
		t.in[l.from] = true
	}
	switch {
	case sure.row:
		if t.sureRows++; t.sureRows == 1 {
			t.row = sure.cycle
		}
	case sure.any:
		if t.sureMany++; t.sureMany == 1 {
			t.across = sure.cycle
		}
	}
	switch {
	case loose.row && t.row == nil:
		t.row = loose.cycle
	case loose.any && !loose.row && t.across == nil:
		t.across = loose.cycle
	}
}

// findClusters finds the clusters of the case, and holds back those of which
// something goes on: they are due when all of it is over.
func (c *kase) findClusters() {
	c.placeOf = map[*lock.Op]place{}
	var ready []*cluster
	c.sections = c.findSections()
	for _, k := range c.clusters(c.sections) {
		k.core = len(k.sections)
		switch {
		case !k.has(func(op *lock.Op) bool { return !c.judged[op] }):
		case c.horizon != lock.Never && !c.pinnedIn(k) && (k.has(func(op *lock.Op) bool { return c.opEnd(op) >= c.horizon }) || c.soon(k)):
			k.has(func(op *lock.Op) bool { c.waiting[op] = true; return false })
			c.holdBack(k)
		default:
			ready = append(ready, k)
		}
	}
	c.ready = ready
	c.awaitTakers()
	c.listSubjects()
}

// listSubjects notes which ops are due, now that nothing more is held back.
func (c *kase) listSubjects() {
	subjects := make(map[*lock.Op]bool, len(c.ops))
	for _, op := range c.ops {
		if c.isDue(op) {
			subjects[op] = true
		}
	}
	c.subjects = subjects
}

// soon reports whether somebody may yet read what a cluster left behind, which tells
// of its order. It is waited for, for a while.
func (c *kase) soon(k *cluster) bool {
	if k.end < c.readBy || len(c.ops) > waitedFor && c.ops[len(c.ops)-waitedFor].A > k.end {
		return false
	}
	last := c.lastMet()
	for row := range k.rows {
		if last[row] < k.end {
			return true
		}
	}
	return false
}

// waitedFor is for how many ops.
const waitedFor = 4096

// holdBack lets the terms of a cluster wait as well, and all that they did.
func (c *kase) holdBack(k *cluster) {
	for _, s := range k.sections {
		if s.term == nil {
			continue
		}
		for _, t := range c.all {
			if t.ID == s.term.ID || c.madeBy(s, t.ID) {
				c.held[t.ID] = true
			}
		}
	}
}

// madeBy reports whether something of the section is the term's.
func (c *kase) madeBy(s *section, id lock.TermID) bool {
	return slices.ContainsFunc(s.writes, func(w *write) bool { return w.op.Term.ID == id }) ||
		slices.ContainsFunc(s.reads, func(r *read) bool { return r.op.Term.ID == id })
}

func (c *kase) pinnedIn(k *cluster) bool {
	return slices.ContainsFunc(k.sections, func(s *section) bool { return s.term != nil && c.pinned[s.term.ID] })
}

// orderClusters goes through the orders of the clusters in which somebody may have
// got between another's read and write.
func (c *kase) orderClusters() {
	room := c.room
	for _, k := range c.ready {
		r := c.ordersOf(k, &room)
		for n := 0; r != nil && r.ambiguous() && n < mostWitnesses; n++ {
			more := c.witnesses(r.scene.cluster)
			if more == nil {
				break
			}
			if next := c.ordersOf(more, &room); next != nil {
				r = next
			} else {
				break
			}
		}
		if r == nil {
			continue
		}
		c.results = append(c.results, r)
		for i, sec := range r.scene.cluster.sections[:len(k.sections)] {
			for _, w := range sec.writes {
				c.placeOf[w.op] = place{r, i}
			}
		}
	}
}

// How many courses are looked at in one case, in times mostCourses, and how many
// sections that came later are asked for an order.
const (
	mostClusters  = 64
	mostWitnesses = 3
)

// ordersOf goes through the orders of a cluster, as far as there is room.
func (c *kase) ordersOf(k *cluster, room *int) *clustered {
	s, ok := c.sceneOf(k)
	if !ok || !s.entangled() && !s.fencesMet() {
		return nil
	}
	r := &clustered{scene: s, blind: s.blind || c.blindIn(k) || c.mixedIn(k), on: s.premises()}
	left, ok := s.every(min(mostCourses, *room), func(x *course) { s.tell(x, r) })
	*room -= min(mostCourses, *room) - left
	if !ok {
		c.meet(boundOrders)
	}
	if !ok || r.with.orders == 0 {
		return nil
	}
	return r
}

// ambiguous reports whether there is harm in some of the orders and not in all.
func (r *clustered) ambiguous() bool {
	t := &r.with
	return t.rowsMay > 0 && t.rows < t.orders || t.manyMay > 0 && t.many < t.orders
}

// witnesses adds to a cluster the section that came next on one of its rows, which
// may tell by what it found there in which order the others were. Nil if there is none.
func (c *kase) witnesses(k *cluster) *cluster {
	var next *section
	for _, s := range c.sections {
		if s.start < k.end || slices.Contains(k.sections, s) || next != nil && s.start >= next.start || c.unfinished(s) {
			continue
		}
		for row := range s.rows {
			if k.rows[row] {
				next = s
			}
		}
	}
	if next == nil || next.end == lock.Never {
		return nil
	}
	more := &cluster{core: k.core, start: k.start, end: k.end, rows: map[tableRow]bool{}}
	for row := range k.rows {
		more.rows[row] = true
	}
	more.sections = append(slices.Clone(k.sections), next)
	more.end = max(more.end, next.end)
	for _, s := range c.sections { // what met it
		if s.start < next.end && s.end > next.start && !slices.Contains(more.sections, s) && meets(s, more.rows) {
			if c.unfinished(s) {
				return nil
			}
			more.sections = append(more.sections, s)
			more.end = max(more.end, s.end)
		}
	}
	if len(more.sections) > mostTogether {
		return nil
	}
	return more
}

func meets(s *section, rows map[tableRow]bool) bool {
	for row := range s.rows {
		if rows[row] {
			return true
		}
	}
	return false
}

// unfinished reports whether something of a section goes on.
func (c *kase) unfinished(s *section) bool {
	k := &cluster{sections: []*section{s}}
	return k.has(func(op *lock.Op) bool { return c.opEnd(op) >= c.horizon && c.horizon != lock.Never })
}

// tell notes what one order shows.
func (s *scene) tell(x *course, r *clustered) {
	every := func(sure bool) (lives []live) {
		for _, l := range s.live {
			if l.sure || !sure {
				lives = append(lives, l)
			}
		}
		return lives
	}
	bare := func(lives []live) []live {
		return slices.DeleteFunc(lives, func(l live) bool { return !l.everything })
	}
	of := func(lives []live, same bool) harms {
		return s.harmsOf(slices.DeleteFunc(s.links(x, lives, same), func(l link) bool { return max(l.from, l.to) >= s.cluster.core }))
	}
	s.firsts(x, r)
	for _, v := range x.versions {
		r.real |= v.writes
	}
	add := func(t *showing, sure, all []live) {
		strict := of(sure, true)
		own := strict
		if s.doubtful() {
			own = s.harmsOf(slices.DeleteFunc(s.links(x, sure, true), func(l link) bool {
				return max(l.from, l.to) >= s.cluster.core || min(s.cluster.sections[l.from].doubt, s.cluster.sections[l.to].doubt) < surely
			}))
		}
		t.add(strict, of(all, false), own)
	}
	add(&r.with, every(true), every(false))
	if len(r.on) > 0 {
		add(&r.within, bare(every(true)), bare(every(false)))
	}
}

// doubtful reports whether a statement may be another's than its section's.
func (s *scene) doubtful() bool {
	return slices.ContainsFunc(s.cluster.sections, func(sec *section) bool { return sec.doubt < surely })
}

// premises lists the columns of which it is not known yet whether writes of them
// depend on reads.
func (s *scene) premises() []columnOf {
	var out []columnOf
	for _, l := range s.live {
		if !l.everything && !slices.Contains(out, l.on) {
			out = append(out, l.on)
		}
	}
	return out
}

// entangled reports whether there can be a cycle at all: a live read whose write is
// another deed than the read, and that another section may have overwritten before;
// or two sections that both wrote two cells; or that the order may tell whether what was
// never answered took effect.
func (s *scene) entangled() bool {
	if len(s.cluster.sections) > 1 && slices.ContainsFunc(s.deeds, func(d deed) bool { return d.optional }) {
		return true
	}
	for _, l := range s.live {
		for i := range s.deeds {
			d := &s.deeds[i]
			other := s.txs[d.tx].section != l.section
			if other && l.read != l.write && slices.ContainsFunc(d.sets, func(a assigned) bool { return a.cell == l.cell }) {
				return true
			}
		}
	}
	return s.bothWroteTwo()
}

func (s *scene) bothWroteTwo() bool {
	wrote := map[[2]int]bool{} // section, cell
	for i := range s.deeds {
		for _, a := range s.deeds[i].sets {
			wrote[[2]int{s.txs[s.deeds[i].tx].section, a.cell}] = true
		}
	}
	shared := map[[2]int]int{}
	for a := range wrote {
		for b := range wrote {
			if a[1] == b[1] && a[0] < b[0] {
				shared[[2]int{a[0], b[0]}]++
			}
		}
	}
	for _, n := range shared {
		if n > 1 {
			return true
		}
	}
	return len(s.cluster.sections) > 2 && len(shared) > 2
}

// proven reports whether there is a cycle on one row in every order.
func (r *clustered) proven(t *showing) bool { return r != nil && !r.blind && t.rows == t.orders }

// showing returns what counts on a premise.
func (r *clustered) showing(on *premise) *showing {
	if on != nil && !on.dependent && len(r.on) > 0 {
		return &r.within
	}
	return &r.with
}

// together returns what the orders of the cluster of two writes show of it: in which
// of them their sections form a cycle on one row. It is not ok where that was not
// found out.
func (c *kase) together(a, b *lock.Op, on *premise) (every, some, ok bool) {
	p, q := c.placeOf[a], c.placeOf[b]
	if p.result == nil || p.result != q.result || p.section == q.section || p.result.blind {
		return false, false, false
	}
	t := p.result.showing(on)
	pair := [2]int{min(p.section, q.section), max(p.section, q.section)}
	every, some = t.pairs[pair] == t.orders, t.pairMay[pair] > 0
	of := p.result.scene.cluster.sections
	if every && min(of[p.section].doubt, of[q.section].doubt) < surely {
		return false, some, false // it may take something that is not theirs
	}
	return every, some, true
}
