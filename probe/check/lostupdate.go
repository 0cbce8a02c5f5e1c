package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A premise is what a finding rests on that only the whole history tells: that
// writes of the column are proven to depend on reads of it, or that they are not.
type premise struct {
	column    columnOf
	dependent bool
}

// holds reports whether the premise turned out to be true.
func (c *carry) holds(p *premise) bool {
	return p == nil || (c.dependent(p.column, true) == yes) == p.dependent
}

// lostUpdates finds LF104, one verdict for each term to blame.
func (c *kase) lostUpdates() {
	all := c.rmws()
	for column, list := range all {
		c.learn(column, list)
	}
	c.orderClusters()
	defer c.anomalies()
	for _, column := range sortedColumns(all) {
		list := all[column]
		copies := slices.DeleteFunc(slices.Clone(list), func(m *rmw) bool { return !m.copy })
		switch c.dependent(column, c.horizon == lock.Never) {
		case yes:
			c.lostIn(list, nil)
		case no:
			c.lostIn(copies, nil)
		default:
			c.lostIn(list, &premise{column, true})
			c.lostIn(copies, &premise{column, false})
		}
	}
}

// inOrder leaves out the pairs that are a cycle in none of the orders that their
// cluster admits, and takes its word for how sure the others are.
func (c *kase) inOrder(pairs []pair, on *premise) []pair {
	var out []pair
	for _, p := range pairs {
		every, some, ok := c.together(p.x.write.op, p.y.write.op, on)
		if ok && !some {
			continue
		}
		at := c.placeOf[p.x.write.op].result
		if p.sure = p.sure && !ok || every; !p.sure && at != nil && at.proven(at.showing(on)) {
			continue // anomalies tells of it
		}
		if at != nil {
			at.told = true
		}
		out = append(out, p)
	}
	return out
}

func sortedColumns[T any](m map[columnOf]T) []columnOf {
	out := slices.Collect(maps.Keys(m))
	slices.SortFunc(out, func(a, b columnOf) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.column, b.column))
	})
	return out
}

// lostIn finds the lost updates among some read-modify-writes of one column.
func (c *kase) lostIn(list []*rmw, on *premise) {
	byCell := map[cell][]*rmw{}
	for _, m := range list {
		byCell[m.cell] = append(byCell[m.cell], m)
	}
	for _, k := range sortedCells(byCell) {
		var pairs []pair
		c.overlapping(byCell[k], func(a, b *rmw) {
			if p, ok := c.pairOf(a, b); ok {
				pairs = append(pairs, p)
			}
		})
		dependent := map[*write]bool{}
		for _, m := range byCell[k] {
			dependent[m.write] = true
		}
		for _, m := range byCell[k] {
			for _, blind := range c.overwritten(m, dependent) {
				pairs = append(pairs, pair{x: m, y: blind, sure: c.sameTable(m, blind), later: m})
			}
		}
		for _, group := range byCulprit(c.inOrder(pairs, on)) {
			c.lostUpdate(k, group, on)
		}
	}
}

// pairOf judges two read-modify-writes that overlap.
func (c *kase) pairOf(a, b *rmw) (pair, bool) {
	return c.pairBy(a, b, func() bool { return sameSection(a.write, b.write) })
}

// pairBy does so, but for those that are of one section.
func (c *kase) pairBy(a, b *rmw, together func() bool) (pair, bool) {
	if together() || a.copy && b.copy && a.put().Same(b.put()) {
		return pair{}, false
	}
	ab, ba := c.readBefore(a, b), c.readBefore(b, a)
	if ab == unordered || ba == unordered || ab == perhaps && ba == perhaps {
		return pair{}, false
	}
	p := pair{sure: ab != perhaps && ba != perhaps && !a.vague && !b.vague, value: ab == byValue || ba == byValue}
	p.sure = p.sure && c.sameTable(a, b) && !(p.value && c.known.mixed(a.cell.table))
	p.later = laterOf(a, b)
	switch c.explained(a, b) {
	case yes:
		return pair{}, false
	case maybe:
		p.sure = false
	}
	deadA, deadB := c.over(a.term, a.write.lo), c.over(b.term, b.write.lo)
	p.x = p.later
	switch {
	case deadA && !deadB:
		p.x = a
	case deadB && !deadA:
		p.x = b
	}
	p.y = a
	if p.x == a {
		p.y = b
	}
	return p, true
}

// explained reports whether the later of two wrote over what the other had put
// back as it had been, whichever the later was.
func (c *kase) explained(a, b *rmw) certainty {
	switch {
	case a.write.before(b.write):
		return c.restored(a.write, b)
	case b.write.before(a.write):
		return c.restored(b.write, a)
	}
	ab, ba := c.restored(a.write, b), c.restored(b.write, a)
	if ab != ba {
		return maybe
	}
	return ab
}

func laterOf(a, b *rmw) *rmw {
	switch {
	case a.write.before(b.write):
		return b
	case b.write.before(a.write), a.write.hi > b.write.hi:
		return a
	}
	return b
}

// byCulprit groups pairs by the term to blame and by how sure they are, in the
// order in which they were found.
func byCulprit(pairs []pair) [][]pair {
	type key struct {
		id   lock.TermID
		sure bool
	}
	at := map[key]int{}
	var out [][]pair
	proven := map[lock.TermID]bool{}
	for _, p := range pairs {
		proven[p.x.term.ID] = proven[p.x.term.ID] || p.sure
	}
	for _, p := range pairs {
		k := key{p.x.term.ID, p.sure}
		if !p.sure && proven[k.id] {
			continue
		}
		if _, ok := at[k]; !ok {
			at[k] = len(out)
			out = append(out, nil)
		}
		out[at[k]] = append(out[at[k]], p)
	}
	return out
}

func (c *kase) lostUpdate(k cell, group []pair, on *premise) {
	slices.SortStableFunc(group, func(a, b pair) int { return cmp.Compare(a.y.write.lo, b.y.write.lo) })
	victims := map[*write]bool{}
	first := group[0]
	for _, p := range group {
		c.cycle(p.x.write, on)
		c.cycle(p.y.write, on)
		if p.later == p.x {
			victims[p.y.write] = true
		}
	}
	if !c.dueOp(first.x.write.op) {
		return
	}
	for _, p := range group {
		if p.sure && on == nil {
			c.lost[k] = append(c.lost[k], p)
		}
	}
	v := Verdict{Code: "LF104", Level: Proven, Table: k.table, Count: len(victims), Proof: c.lostProof(k, first, len(group))}
	if !first.sure {
		v.Level = Likely
	}
	v.Terms = append(v.Terms, first.x.term.ID)
	for _, p := range group {
		if len(v.Terms) < 9 {
			v.Terms = append(v.Terms, p.y.term.ID)
		}
	}
	x, y := first.x, first.y
	cited := []*lock.Op{x.read.op, x.write.op, x.write.commit, y.write.op, y.write.commit, c.firstOf(x.read), heldBySession(x.term), heldBySession(y.term)}
	if y.read != nil {
		cited = append(cited, y.read.op, c.firstOf(y.read))
	}
	f := c.emit(x.term.Lock, v, cited...)
	if on != nil {
		carried := c.carry
		f.unless = func() bool { return !carried.holds(on) }
	}
}

// heldBySession returns the grant of a lock that a session holds: without it, nothing says that
// the session's statements are the term's.
func heldBySession(t *lock.Term) *lock.Op {
	if t.Span != lock.SessionSpan {
		return nil
	}
	return t.Grant
}

// cycle notes that a write is part of a cycle, on a premise.
func (c *kase) cycle(w *write, on *premise) {
	if !slices.Contains(c.cycled[w], on) {
		c.cycled[w] = append(c.cycled[w], on)
	}
}

// inCycle reports whether a write is part of a cycle, for now.
func (c *kase) inCycle(w *write) certainty {
	switch list := c.cycled[w]; {
	case len(list) == 0:
		return no
	case slices.Contains(list, nil):
		return yes
	}
	return maybe
}

func (c *kase) lostProof(k cell, p pair, n int) string {
	a, b := p.x, p.y
	if b.read == nil {
		return c.blindProof(k, a, b, n)
	}
	t := let("A be %s and B be %s; both read %s.%s of one row and then wrote it.", holder(a.term), holder(b.term), k.table, k.column)
	t.say("A read it with %s, answered at %s, and wrote it with %s, effective from %s to %s.",
		named(a.read.op), ms(a.read.op.R), named(a.write.op), ms(a.write.lo), ms(a.write.hi))
	t.say("B read it with %s, answered at %s, and wrote it with %s, effective from %s to %s.",
		named(b.read.op), ms(b.read.op.R), named(b.write.op), ms(b.write.lo), ms(b.write.hi))
	t.say("Then A read before B wrote, since %s, so in any serial order A precedes B.", c.why(a, b))
	t.say("However B read before A wrote, since %s, so B precedes A: neither saw the other's update, and one of the two is lost.", c.why(b, a))
	if a.term.Dead(a.write.lo) {
		t.say("A's lease had ended by %s, %s before its write was forwarded.", ms(a.term.LeaseEnd.Latest), span(a.write.lo.Sub(a.term.LeaseEnd.Latest)))
	} else if by := c.lostBy(a.term); by < a.write.lo {
		t.say("A's lock had gone by %s, %s before its write was forwarded, since another was granted it.", ms(by), span(a.write.lo.Sub(by)))
	}
	for _, m := range []*rmw{a, b} {
		if c.leftEarly(m) {
			t.say("%s had released its lock before its transaction committed (LF107), which let the other read what was there before.", letter(m == a))
		}
	}
	switch {
	case p.sure && (c.readBefore(a, b) == perhaps || c.readBefore(b, a) == perhaps || c.explained(a, b) == maybe):
		t.say("So it is in all of the orders that the intervals, the connections, the locks of rows and the values admit.")
	case p.sure:
	case a.vague || b.vague:
		t.say("A later read may have been of the row as well, and the write computed from that, so this is not proven.")
	case c.explained(a, b) == maybe:
		t.say("What the later had read may have been put back before it wrote, so this is not proven.")
	}
	if n > 1 {
		t.say("The same holds between A and %d more.", n-1)
	}
	return t.String()
}

// leftEarly reports whether a section had certainly released its lock before what it wrote was
// committed: that is where the cause lies then.
func (c *kase) leftEarly(m *rmw) bool {
	t := m.term
	return t.Release != nil && t.Span != lock.TxSpan && m.write.commit != nil && m.write.op.Seq < t.Release.Seq &&
		earlier(t.Release, m.write) == Proven && !c.guardedBeside(t, m.write, perhapsHeld)
}

func letter(first bool) string {
	if first {
		return "A"
	}
	return "B"
}

func (c *kase) blindProof(k cell, a, b *rmw, n int) string {
	t := let("A be %s and B be %s; A read %s.%s of one row and then wrote it, and B wrote it.", holder(a.term), holder(b.term), k.table, k.column)
	t.say("A read it with %s, answered at %s; B wrote it with %s, effective from %s to %s.",
		named(a.read.op), ms(a.read.op.R), named(b.write.op), ms(b.write.lo), ms(b.write.hi))
	t.say("Then A read before B wrote, since %s <= %s, so in any serial order A precedes B.", ms(a.read.op.R), ms(b.write.lo))
	t.say("However A wrote after B, with %s, effective from %s: B's update is lost.", named(a.write.op), ms(a.write.lo))
	if n > 1 {
		t.say("The same holds between A and %d more.", n-1)
	}
	return t.String()
}

// why gives the reason for which m read before n wrote.
func (c *kase) why(m, n *rmw) string {
	switch c.readBefore(m, n) {
	case certainly:
		if m.read.op.R <= n.write.lo {
			return fmt.Sprintf("%s <= %s", ms(m.read.op.R), ms(n.write.lo))
		}
		return "one connection carried both, in that order"
	case byValue:
		return "it returned a value that neither that write nor any that may have followed it had put"
	}
	return "it returned the value that the other had read (which may have been put there twice)"
}

// staleWrites finds LF103: unguarded writes after another term was granted that
// are part of no cycle.
func (c *kase) staleWrites() {
	for _, id := range c.lockIDs() {
		terms := c.terms[id]
		for i, t := range terms {
			if !t.Marker {
				c.staleWritesOf(t, terms[i+1:])
			}
		}
	}
}

// A staleWrite is a write after the next grant that may be part of a cycle.
type staleWrite struct {
	write *write
	next  *lock.Term
	on    []*premise // of the cycles
}

// firstOf returns the first statement of the transaction in which a read was made: it
// may have read as of that.
func (c *kase) firstOf(r *read) *lock.Op {
	if t := c.txs[txID{r.op.Session, r.op.Tx}]; t != nil && !r.op.Implicit && r.op.Tx != 0 {
		return t.first
	}
	return nil
}

// mayBeRefused reports whether a write compares a column that changes, or one that it
// sets, or has conditions that were not understood: had another written, it might not
// have passed.
func (c *kase) mayBeRefused(w *write) bool {
	return w.op.SQL.Opaque || len(c.guards(w.op)) > 0 || slices.ContainsFunc(w.op.SQL.Where, func(g lock.Cond) bool {
		_, sets := w.assigns(g.Column)
		return sets
	})
}

// hangs reports whether a write may yet take effect, or have taken it, since it or its
// COMMIT was never answered.
func (w *write) hangs() bool {
	return w.state == uncertain && w.hi == lock.Never && (w.commit == nil || answered(w.op))
}

func (c *kase) staleWritesOf(t *lock.Term, later []*lock.Term) {
	var sure, perhaps []staleWrite
	for _, w := range c.ofTerm[t.ID].writes {
		if w.state != accepted && !w.hangs() || c.inCycle(w) == yes || c.mayBeRefused(w) || !c.dueOp(w.op) {
			continue
		}
		if o := c.grantedBefore(t, later, w.lo); o != nil && w.state == accepted {
			sure = append(sure, staleWrite{w, o, c.cycled[w]})
		} else if o := c.perhapsGranted(t, w); o != nil && (w.lo >= o.Grant.R || !c.seenBefore(w, o.Grant.F)) {
			perhaps = append(perhaps, staleWrite{w, o, c.cycled[w]})
		}
	}
	level := Proven
	if c.pinned[t.ID] {
		level = Likely
	}
	c.staleOnce(t, sure, level)
	c.staleOnce(t, perhaps, Possible)
}

// staleOnce finds LF103 among writes as soon as it is known which are part of a cycle.
func (c *kase) staleOnce(t *lock.Term, list []staleWrite, level Level) {
	if !slices.ContainsFunc(list, func(s staleWrite) bool { return len(s.on) > 0 }) {
		c.carry.stale(t, list, level)
	} else if len(c.later) < mostFound {
		carried := c.carry
		c.later = append(c.later, func() { carried.stale(t, list, level) })
	}
}

// stale finds LF103 among writes of a term, once it is known which are part of a
// cycle. A term has one verdict, which counts those that are judged later as well.
func (c *carry) stale(t *lock.Term, list []staleWrite, level Level) {
	list = slices.DeleteFunc(list, func(s staleWrite) bool { return slices.ContainsFunc(s.on, c.holds) })
	if len(list) == 0 {
		return
	}
	key := staleID{t.ID, level == Possible}
	if f := c.staleOf[key]; f != nil && f.Level == level {
		f.Count += len(list)
		return
	}
	first, next := list[0].write, list[0].next
	p := let("A be %s, granted at %s, and B be %s.", holder(t), ms(t.Grant.R), holder(next))
	switch {
	case level == Possible && next.Grant.R <= first.lo && t.Member && next.Member:
		p.say("Then B was granted by %s.", ms(next.Grant.R))
		p.say("However A's %s took effect no earlier than %s; both are members of the key, of which there may be several, so this is not proven.", named(first.op), ms(first.lo))
	case level == Possible:
		p.say("Then B may have been granted from %s on, after A.", ms(next.Grant.F))
		p.say("However A's %s, %s, and nothing in it could have refused it; which came first is open, so this is not proven.", named(first.op), lateAs(first))
	default:
		p.say("Then B was granted by %s.", ms(next.Grant.R))
		p.say("However A's %s took effect no earlier than %s and was accepted; nothing in it could have refused it.", named(first.op), ms(first.lo))
	}
	if t.Span == lock.SessionSpan {
		p.say("%s", sentBeside(first, next))
	} else if first.op.A > t.LeaseEnd.Latest {
		p.say("It was sent at %s, after A's lease had ended by %s: A had not noticed (kind b).", ms(first.op.A), ms(t.LeaseEnd.Latest))
	} else {
		p.say("It was sent at %s, when A's lease need not have ended yet: it was late on its way, as a slow network alone can make it (kind a).", ms(first.op.A))
	}
	if slices.ContainsFunc(list, func(s staleWrite) bool { return !onlyAdds(s.write.op) }) {
		p.say("No lost update came of it that the record shows.")
	} else {
		p.say("It adds to what it finds, so no other's update can be lost by it, and for that it needs no fence.")
	}
	if level == Likely {
		p.say("It goes back beyond what the judge keeps in mind, so this is not proven.")
	}
	v := Verdict{Code: "LF103", Level: level, Table: lock.TableName(first.op.SQL.Table), Terms: []lock.TermID{t.ID, next.ID}, Count: len(list), Proof: p.String()}
	_, class := about(v.Code)
	f := c.file(t.Lock, class, v, t.Grant, next.Grant, first.op, first.commit)
	if level == Possible { // beside what is more than that it is not told
		f.unless = func() bool { return c.staleOf[staleID{t.ID, false}] != nil }
	}
	if f.into != nil {
		f = f.into
	}
	if len(c.staleOf) < mostFound {
		c.staleOf[key] = f
	}
}

// onlyAdds reports whether a statement changes what it finds by a difference, and no more.
func onlyAdds(op *lock.Op) bool {
	return op.Verb == "UPDATE" && !slices.ContainsFunc(op.SQL.Set, func(a lock.Assign) bool { return !a.HasDelta })
}

// lateAs says how late a write may have taken effect.
func lateAs(w *write) string {
	if w.hangs() {
		return "which was never answered, may have taken effect at any time since, or never"
	}
	return "which was accepted, may have taken effect as late as " + ms(w.hi)
}

// A staleID names the LF103 of a term: that which is POSSIBLE, or the other.
type staleID struct {
	term    lock.TermID
	perhaps bool
}

// grantedBefore returns a term that was granted after t, and certainly before at,
// and that may not hold the lock beside it.
func (c *kase) grantedBefore(t *lock.Term, later []*lock.Term, at lock.Instant) *lock.Term {
	for _, o := range later {
		if o.Grant.F > at {
			return nil
		}
		if o.Grant.R <= at && t.Grant.R <= o.Grant.F && !sameHolder(o, t) && !c.besides(t, o) && !c.unsorted(t, o) {
			return o
		}
	}
	return nil
}

// lockIDs lists the locks that have terms, in the order of their first use.
func (c *kase) lockIDs() []lock.LockID {
	var out []lock.LockID
	for _, id := range c.locks {
		if len(c.terms[id]) > 0 {
			out = append(out, id)
		}
	}
	return out
}
