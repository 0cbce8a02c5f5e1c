package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A guarding is one set of locks under which a cell was written:
// what is said of the first such write, and not the write, since it is kept for long.
type guarding struct {
	locks     []lock.LockID
	actor     string
	several   bool // another process wrote it under them as well
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
		for _, a := range w.op.SQL.Set {
			if len(locks) > 0 {
				c.guardedBy(cell{lock.TableName(w.op.SQL.Table), w.row, a.Column}, w, locks, !c.safeByItself(w, a))
			}
		}
	}
}

// guardedBy notes under which locks a cell was written, and tells of those that have
// nothing in common with others. Each set of locks is compared when it is new, or
// new to a second process.
func (c *kase) guardedBy(k cell, w *write, locks []lock.LockID, unsafe bool) {
	list := c.guardings[k]
	own := slices.IndexFunc(list, func(o guarding) bool { return slices.Equal(o.locks, locks) })
	if own >= 0 {
		o := &list[own]
		o.unsafe = o.unsafe || unsafe
		if o.several || o.actor == w.op.Actor {
			return
		}
		o.several = true
	}
	other := slices.IndexFunc(list, func(o guarding) bool {
		apart := !slices.ContainsFunc(o.locks, func(id lock.LockID) bool { return slices.Contains(locks, id) })
		return apart && (o.several || o.actor != w.op.Actor) && (o.unsafe || unsafe)
	})
	if own < 0 && (len(list) == fewGuardings || len(list) == 0 && len(c.guardings) >= mostGuardings) {
		return
	}
	g := guarding{locks, w.op.Actor, false, holder(c.byID[w.op.Term.ID]), named(w.op), w.op.Term.ID, w.op.Seq, w.op.A, unsafe}
	if own < 0 {
		c.guardings[k] = append(list, g)
	}
	if other >= 0 {
		c.noCommon(k, list[other], g)
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
