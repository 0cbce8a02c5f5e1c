package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A premise is what a finding rests on that only the whole history tells: that
// writes of each of the columns are proven to depend on reads of it, or that those of
// one are not.
type premise struct {
	columns   []columnOf
	dependent bool
}

// holds reports whether the premise turned out to be true.
func (c *carry) holds(p *premise) bool {
	return p == nil || p.dependent != slices.ContainsFunc(p.columns, func(k columnOf) bool { return c.dependent(k, true) != yes })
}

// is reports whether two premises are the same.
func (p *premise) is(o *premise) bool {
	return p == o || p != nil && o != nil && p.dependent == o.dependent && slices.Equal(p.columns, o.columns)
}

// onlyIf keeps a finding from being told unless the premise turns out to be true. It is of
// the carry: what waits for the end must not hold what is in view.
func (c *carry) onlyIf(f *finding, on *premise) {
	if on != nil {
		f.unless = func() bool { return !c.holds(on) }
	}
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
			c.lostIn(list, &premise{[]columnOf{column}, true})
			c.lostIn(copies, &premise{[]columnOf{column}, false})
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
	if p.sure && !a.base().Same(b.base()) && mayBeSame(c.finalOf(a), c.finalOf(b)) { // whoever came later, that is what is there
		p.sure = false
	}
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
	c.onlyIf(c.emit(x.term.Lock, v, cited...), on)
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
	if !slices.ContainsFunc(c.cycled[w], on.is) {
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
		t.say("A's lock had gone by %s, %s before its write was forwarded, since %s.", ms(by), span(a.write.lo.Sub(by)), c.lostHow(a.term))
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
