package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// anomalies finds LF106, and the LF104 that only the orders as a whole show: cycles
// of the sections of a cluster of which no two are known to be a lost update.
func (c *kase) anomalies() {
	for _, r := range c.results {
		if len(r.on) == 0 {
			c.anomaliesIn(r, &r.with, nil)
			continue
		}
		c.anomaliesIn(r, &r.with, &premise{r.on, true})
		c.anomaliesIn(r, &r.within, &premise{r.on, false})
	}
}

func (c *kase) anomaliesIn(r *clustered, t *showing, on *premise) {
	c.cycleWrites(r.scene, t, on)
	if t.rowsMay > 0 && !r.told {
		c.anomaly("LF104", r, t.row, extent{t.rows == t.orders, t.sureRows == t.orders}, t, on)
	}
	if t.manyMay > 0 {
		c.anomaly("LF106", r, t.across, extent{t.many == t.orders, t.sureMany == t.orders}, t, on)
	}
}

// A cycleID tells cycles apart: by code, premise and sections. Those that stood between
// the sections of another cluster are of both.
type cycleID struct {
	code           string
	may, dependent bool // whether it rests on a premise, and on which
	sections       string
}

func (s *scene) idOf(code string, on *premise, cycle []link) cycleID {
	var ids []string
	for _, l := range cycle {
		sec := s.cluster.sections[l.from]
		if sec.term != nil {
			ids = append(ids, "t"+itoa(int64(sec.term.ID)))
		} else {
			ids = append(ids, "o"+itoa(int64(sec.firstOp().Seq)))
		}
	}
	slices.Sort(ids)
	return cycleID{code, on != nil, on != nil && on.dependent, strings.Join(slices.Compact(ids), " ")}
}

// anomaly makes a verdict of a cycle, if there is none that is as sure.
func (c *kase) anomaly(code string, r *clustered, cycle []link, in extent, t *showing, on *premise) {
	s := r.scene
	v := Verdict{Code: code, Level: s.level(r, t, in), Table: s.cells[cycle[0].cell].table}
	apart := code == "LF106" && !c.underOneLock(s, cycle)
	if apart && v.Level == Proven {
		v.Level = Likely
	}
	id := s.idOf(code, on, cycle)
	if told := c.cycles[id]; told != nil && told.Level.atLeast(v.Level) {
		return
	} else if told != nil {
		told.unless = func() bool { return true }
	}
	cycle = c.blameFirst(s, cycle)
	var cited []*lock.Op
	p := c.cycleProof(s, cycle, &cited)
	p.say("%s", inWhichOrders(code, v.Level, in.every, t))
	if apart {
		p.say("No lock is around all of them, so that nothing promised an order of them, and on which rows a write depends is not certain.")
	}
	if r.blind {
		p.say("What else was written there in that time is not known.")
	}
	of := lock.LockID{}
	for _, l := range cycle {
		if term := s.cluster.sections[l.from].term; term != nil {
			if v.Terms = append(v.Terms, term.ID); of.Key == "" {
				of = term.Lock
			}
		}
	}
	f := c.emit(of, with(v, p), cited...)
	c.onlyIf(f, on)
	if len(c.cycles) < mostFound {
		c.cycles[id] = f
	}
}

// inWhichOrders says in which orders there is a cycle of the code, and why it is proven or not.
func inWhichOrders(code string, level Level, every bool, t *showing) string {
	const orders = "of the orders that the intervals, the connections, the locks of rows and the values admit"
	may := t.rowsMay
	if code == "LF106" {
		may = t.manyMay
	}
	switch {
	case level == Proven:
		return "So it is in all " + orders + "."
	case every:
		return "So it is in all " + orders + "; but whose each statement was, or what else was written, is not certain, so this is not proven."
	case may == t.orders:
		return "So it may be in all " + orders + ", but which read a write was computed from, or whether two values are the same, is not certain, so this is not proven."
	}
	return fmt.Sprintf("So it is in some %s (%d of %d), so this is not proven.", orders, may, t.orders)
}

// cycleWrites notes that the writes of the sections that are in a cycle in some order
// are part of one, or may be, on a premise.
func (c *kase) cycleWrites(s *scene, t *showing, on *premise) {
	for n, sec := range s.cluster.sections {
		if !t.in[n] {
			continue
		}
		for _, w := range sec.writes {
			if w.state == accepted {
				c.cycle(w, on)
			}
		}
	}
}

// surely is the confidence from which on a statement is taken to be its section's.
const surely = 0.9

// An extent says whether there is a cycle in every order, and one of statements that are
// certainly their sections'.
type extent struct{ every, sure bool }

// level is how sure it is that there is a cycle: in other orders it may be another one.
func (s *scene) level(r *clustered, t *showing, in extent) Level {
	doubt := 1.0
	for n := range t.in {
		doubt = min(doubt, s.cluster.sections[n].doubt)
	}
	switch {
	case in.sure && !r.blind:
		return Proven
	case in.every && doubt >= 0.6:
		return Likely
	}
	return Possible
}

// underOneLock reports whether a lock is around all sections of a cycle.
func (c *kase) underOneLock(s *scene, cycle []link) bool {
	common := c.locksOf(s.cluster.sections[cycle[0].from])
	for _, l := range cycle[1:] {
		own := c.locksOf(s.cluster.sections[l.from])
		common = slices.DeleteFunc(common, func(id lock.LockID) bool { return !slices.Contains(own, id) })
	}
	return len(common) > 0
}

// locksOf lists the locks around what a section did.
func (c *kase) locksOf(s *section) (out []lock.LockID) {
	of := func(op *lock.Op) {
		for _, id := range append([]lock.TermID{op.Term.ID}, op.Term.Within...) {
			if t := c.byID[id]; t != nil && !slices.Contains(out, t.Lock) {
				out = append(out, t.Lock)
			}
		}
	}
	for _, r := range s.reads {
		of(r.op)
	}
	for _, w := range s.writes {
		of(w.op)
	}
	return out
}

// blameFirst turns a cycle so that it begins with the section to blame: the one
// whose lease had ended when it wrote, else the one that wrote last.
func (c *kase) blameFirst(s *scene, cycle []link) []link {
	type guilt struct {
		dead bool
		last lock.Instant
	}
	of := func(l link) (g guilt) {
		sec := s.cluster.sections[l.from]
		for _, w := range sec.writes {
			if w.state == accepted {
				g.last = max(g.last, w.hi)
				g.dead = g.dead || sec.term != nil && c.over(sec.term, w.lo)
			}
		}
		return g
	}
	first := 0
	for i := range cycle {
		a, b := of(cycle[i]), of(cycle[first])
		if a.dead && !b.dead || a.dead == b.dead && a.last > b.last {
			first = i
		}
	}
	return slices.Concat(cycle[first:], cycle[:first])
}

// cycleProof says what a cycle consists of.
func (c *kase) cycleProof(s *scene, cycle []link, cited *[]*lock.Op) *proof {
	names := map[int]string{}
	p := new(proof)
	for i, l := range cycle {
		names[l.from] = string(rune('A' + i))
		if i == 0 {
			p = let("%s be %s", names[l.from], s.cluster.sections[l.from].who())
		} else {
			p.say("and %s be %s", names[l.from], s.cluster.sections[l.from].who())
		}
	}
	p.WriteByte('.')
	for _, l := range cycle {
		k := s.cells[l.cell]
		what := k.table + "." + k.column
		switch l.kind {
		case rw:
			read := s.live[l.live]
			p.say("%s read %s with %s, and wrote what depends on it, before the write of %s.", names[l.from], what, named(read.read), names[l.to])
			*cited = append(*cited, read.read, read.write)
		case wr:
			p.say("%s read %s as %s had written it.", names[l.to], what, names[l.from])
		default:
			p.say("%s wrote %s before %s did.", names[l.from], what, names[l.to])
		}
		s.cite(l, cited)
	}
	p.say("Then %s would have to come before itself, whatever serial order the lock is to give.", names[cycle[0].from])
	return p
}

// cite adds the writes of a link.
func (s *scene) cite(l link, cited *[]*lock.Op) {
	for _, n := range []int{l.from, l.to} {
		for _, w := range s.cluster.sections[n].writes {
			k := s.cells[l.cell]
			if _, ok := w.assigns(k.column); ok && w.row == k.row && w.state != refused {
				*cited = append(*cited, w.op)
				if w.commit != nil {
					*cited = append(*cited, w.commit)
				}
			}
		}
	}
}

func sortLives(list []live) {
	slices.SortFunc(list, func(a, b live) int {
		return cmp.Or(cmp.Compare(a.write.Seq, b.write.Seq), cmp.Compare(a.cell, b.cell), cmp.Compare(a.read.Seq, b.read.Seq))
	})
}
