package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A guarding is one set of locks under which a cell was written, by one process:
// what is said of the first such write, and not the write, since it is kept for long.
type guarding struct {
	locks     []lock.LockID
	actor     string
	who, what string
	term      lock.TermID
	seq       uint64
	at        lock.Instant
	unsafe    bool // the write would overwrite whatever it finds
}

// How many cells, and sets of locks of each, are kept in mind.
const (
	mostGuardings = 1 << 14
	fewGuardings  = 4
)

// noCommonLock finds LF311, one verdict for each two locks and table: cells that two
// processes write under locks of which none is common.
func (c *kase) noCommonLock() {
	for _, w := range c.writes {
		if w.state != accepted || w.row == unknownRow || !w.op.Term.Sure() || w.op.Verb == "INSERT" || lock.AddressOnly(w.op.Actor) || !c.dueOp(w.op) {
			continue
		}
		locks := c.locksAround(w)
		if len(locks) == 0 {
			continue
		}
		for _, a := range w.op.SQL.Set {
			k := cell{lock.TableName(w.op.SQL.Table), w.row, a.Column}
			g := guarding{locks, w.op.Actor, holder(c.byID[w.op.Term.ID]), named(w.op), w.op.Term.ID, w.op.Seq, w.op.A, !c.safeByItself(w, a)}
			if o := c.uncommon(k, g); o != nil {
				c.noCommon(k, *o, g)
			}
		}
	}
}

// locksAround lists the locks of the sections that a write belongs to. Those of
// which several may be held at once keep nobody out.
func (c *kase) locksAround(w *write) []lock.LockID {
	var out []lock.LockID
	for _, id := range append([]lock.TermID{w.op.Term.ID}, w.op.Term.Within...) {
		t := c.byID[id]
		if t == nil || t.Marker || t.Shared || c.sortOf(t.Lock) == lock.Semaphore {
			return nil
		}
		out = append(out, t.Lock)
	}
	return out
}

// safeByItself reports whether a write needs no lock: it changes what it finds,
// compares it, or carries a fence.
func (c *kase) safeByItself(w *write, a lock.Assign) bool {
	return a.HasDelta || c.versioned(w, a.Column) || len(c.guards(w.op)) > 0 || c.ledger.IsFence(w.op.SQL.Table, a.Column)
}

// uncommon returns a set of locks, noted of the cell before, that has nothing in
// common with this one, which is noted as well.
func (c *kase) uncommon(k cell, g guarding) *guarding {
	list := c.guardings[k]
	known := false
	var found *guarding
	for i := range list {
		o := &list[i]
		if o.actor == g.actor && slices.Equal(o.locks, g.locks) {
			known = true
			o.unsafe = o.unsafe || g.unsafe
		}
		if o.actor != g.actor && (o.unsafe || g.unsafe) && !slices.ContainsFunc(o.locks, func(id lock.LockID) bool { return slices.Contains(g.locks, id) }) {
			found = o
		}
	}
	if known {
		return nil
	}
	if len(list) < fewGuardings && (len(list) > 0 || len(c.guardings) < mostGuardings) {
		c.guardings[k] = append(list, g)
	}
	return found
}

func (c *kase) noCommon(k cell, a, b guarding) {
	m := many{id: a.locks[0], code: "LF311", by: k.table + " " + b.locks[0].String(), more: "This is so of %d columns and rows."}
	f := c.count(m, Proven, func() (*proof, Verdict, []*lock.Op) {
		p := let("A be %s, with its %s, and B be %s, with its %s; both wrote %s.%s of one row.", a.who, a.what, b.who, b.what, k.table, k.column)
		p.say("Then only a lock that both hold keeps one from writing over the other.")
		p.say("However A wrote under %s and B under %s: no lock is common to them.", namesOf(a.locks), namesOf(b.locks))
		return p, Verdict{Table: k.table, Terms: []lock.TermID{a.term, b.term}, Ops: []uint64{a.seq, b.seq}}, nil
	})
	if f != nil {
		f.from = a.at
	}
}

func namesOf(ids []lock.LockID) string {
	text := ids[0].String()
	for _, id := range ids[1:min(3, len(ids))] {
		text += " and " + id.String()
	}
	return text
}
