package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An early is a write of a section, with the last that its process had read of the
// cell, which was before the section's grant.
type early struct {
	term  *lock.Term
	write *write
	read  *read
	cell  cell
	step  int64 // what was written less what was read
	steps bool  // that is known
	sure  bool  // no later read may have been of the row
}

// readsBefore finds LF312, one verdict for each lock, column and level: a write in
// a section that depends on what its process had read before the grant.
func (c *kase) readsBefore() {
	var list []early
	for _, t := range c.all {
		if t.Marker || !c.due(t) || lock.AddressOnly(t.Actor) {
			continue
		}
		for _, w := range c.ofTerm[t.ID].writes {
			if w.state != accepted || w.row == unknownRow || w.op.Verb != "UPDATE" {
				continue
			}
			for _, a := range w.op.SQL.Set {
				if e, ok := c.readBeforeGrant(t, w, a); ok {
					list = append(list, e)
				}
			}
		}
	}
	for _, e := range list {
		if e.steps {
			c.stepped(columnOf{e.cell.table, e.cell.column}, e.step)
		}
	}
	for _, e := range list {
		c.earlyRead(e)
	}
}

func (c *kase) readBeforeGrant(t *lock.Term, w *write, a lock.Assign) (early, bool) {
	k := cell{lock.TableName(w.op.SQL.Table), w.row, a.Column}
	if a.HasDelta || !a.Value.Known() || c.safeByItself(w, a) {
		return early{}, false
	}
	r := c.lastOf(owner{actor: w.op.Actor}, w, k)
	if r == nil || r.op.R > t.Grant.F || together(r.op.Term, w.op.Term) {
		return early{}, false
	}
	e := early{term: t, write: w, read: r, cell: k}
	e.step, e.steps = a.Value.Minus(r.value(k.column))
	e.sure = !c.reread(r, 0, []owner{{session: w.op.Session}, {term: t.ID}, {actor: w.op.Actor}}, w, k)
	return e, true
}

// together reports whether one term has both of them as its own. The term of a lock
// that was taken within another's section has what was read under that one.
func together(a, b lock.Attribution) bool {
	return b.Of(a.ID) || slices.ContainsFunc(a.Within, b.Of)
}

// fewSteps is how many different steps of one column are kept in mind.
const fewSteps = 8

// stepped notes by how much a column was changed, from one reading of it.
func (c *kase) stepped(k columnOf, by int64) {
	if c.steps[k] == nil {
		c.steps[k] = map[int64]int{}
	}
	if _, known := c.steps[k][by]; known || len(c.steps[k]) < fewSteps {
		c.steps[k][by]++
	}
}

// rests reports whether the write puts back what was read, and whether it may be
// computed from it otherwise: writes of the column depend on reads, and it takes a
// step.
func (e early) rests() (copied, steps bool) {
	base := e.read.value(e.cell.column)
	a, _ := e.write.assigns(e.cell.column)
	copied = base.Known() && !base.IsInt && !base.IsRel && base.Same(a.Value)
	return copied, e.steps && e.step != 0
}

func (c *kase) earlyRead(e early) {
	k := columnOf{e.cell.table, e.cell.column}
	copied, steps := e.rests()
	if !copied && (!steps || c.dependent(k, false) == no) {
		return
	}
	level, by := Proven, k.table+"."+k.column
	if !e.sure {
		level = Likely
	}
	m := many{id: e.term.Lock, code: "LF312", by: by, more: "This is so of %d writes."}
	f := c.count(m, level, func() (*proof, Verdict, []*lock.Op) {
		p := let("A be %s, and W be its %s, which sets %s.%s to what was computed from a reading of it.", holder(e.term), named(e.write.op), k.table, k.column)
		p.say("Then A's section must have read it, after its grant, which was forwarded at %s.", ms(e.term.Grant.F))
		p.say("However the last reading that its process had was %s, answered at %s: what happened to the row from then to the grant, A did not see.", named(e.read.op), ms(e.read.op.R))
		if level != Proven {
			p.say("A later read may have been of the row as well, so this is not proven.")
		}
		return p, Verdict{Table: k.table, Terms: []lock.TermID{e.term.ID}}, []*lock.Op{e.read.op, e.term.Grant, e.write.op}
	})
	if f == nil || copied {
		return
	}
	carried := c.carry
	f.unless = func() bool { return carried.isMarker(m.id) || carried.dependent(k, true) != yes }
	f.doubt = func() string {
		if carried.steps[k][e.step] < 2 {
			return "No other write takes the same step from what was read"
		}
		return ""
	}
}
