package check

import (
	"fmt"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// ghosts finds LF307, one verdict for each lock and level: terms whose client
// never heard that it was granted the lock.
func (c *kase) ghosts() {
	for _, id := range c.lockIDs() {
		if c.isMarker(id) {
			continue
		}
		for i, t := range c.terms[id] {
			if c.due(t) && c.unheard(t) && !retaken(t, c.terms[id][i+1:]) {
				c.ghost(t)
			}
		}
	}
}

// unheard reports whether the term's grant was never delivered, and whether
// nothing that its client did later shows that it knew of it.
func (c *kase) unheard(t *lock.Term) bool {
	g := t.Grant
	if g.D != 0 || g.R == 0 || t.Span == lock.TxSpan || t.Release != nil || t.Released != nil || t.Renewals > 0 {
		return false
	}
	over := c.ended[t.Session] >= t.Grant.F && c.ended[t.Session] != 0
	return len(c.ofTerm[t.ID].acts()) == 0 && (over || c.usedAfter(t) != nil)
}

// usedAfter returns an op that shows that the client used its connection for
// something else, so that the answer can reach it no more.
func (c *kase) usedAfter(t *lock.Term) *lock.Op {
	i := slices.IndexFunc(c.ops, func(op *lock.Op) bool { return op.Session == t.Session && op.Seq > t.Grant.ReplySeq && op.R != 0 })
	if i < 0 {
		return nil
	}
	return c.ops[i]
}

// retaken reports whether the same client was granted the lock with the same token
// later, and heard of that.
func retaken(t *lock.Term, later []*lock.Term) bool {
	return slices.ContainsFunc(later, func(o *lock.Term) bool { return o.Token.Same(t.Token) && o.Grant.D != 0 && sameClient(o, t) })
}

// A maybeGhost is a term whose client never heard of it. It is one if the client's
// process goes on: one that died in the middle holds its lock as any other that
// dies does.
type maybeGhost struct {
	id      lock.LockID
	actor   string
	session uint64
	at      lock.Instant
	v       Verdict
}

// mostGhosts is how many of those are kept until the whole is known.
const mostGhosts = 4096

func (c *kase) ghost(t *lock.Term) {
	if len(c.ghostly) == mostGhosts {
		return
	}
	p := let("A be %s, which the server granted between %s and %s.", holder(t), ms(t.Grant.F), ms(t.Grant.R))
	p.say("Then the lock is A's %s.", untilWhen(t))
	p.say("However the answer was not delivered, since its client had gone or had asked for something else, and its process went on: nobody works under A, and nobody was seen to release it.")
	v := Verdict{Code: "LF307", Level: Proven, Terms: []lock.TermID{t.ID}, Ops: []uint64{t.Grant.Seq}}
	c.ghostly = append(c.ghostly, maybeGhost{t.Lock, t.Actor, t.Session, t.Grant.R, with(v, p)})
}

// sumGhosts finds LF307 in those whose process went on.
func (c *carry) sumGhosts() {
	c.unansweredGhosts()
	for _, g := range c.ghostly {
		next := c.lastAsked[g.actor]
		if next == nil || next.A <= g.at || g.actor == "" {
			continue
		}
		unsure := lock.AddressOnly(g.actor) && next.Session != g.session
		if unsure {
			g.v.Level = Likely
		}
		if c.piled(g.v.Code, g.v.Level, g.id, "", 1) {
			continue
		}
		g.v.Proof += fmt.Sprintf(" It asked for %s at %s.", named(next), ms(next.A))
		if unsure {
			g.v.Proof += " That this was its process is only known by the address, so this is not proven."
		}
		f := c.file(g.id, Hazard, g.v, next)
		f.from, f.unless = g.at, c.markerLater(g.id)
		c.pile(f, "", "There are %d such terms.")
	}
}

func untilWhen(t *lock.Term) string {
	if t.LeaseEnd.Latest == lock.Never {
		return "for ever, unless someone else removes it"
	}
	return "until " + ms(t.LeaseEnd.Earliest) + " at least, unless someone else removes it"
}

// A hangID names an acquire that was never answered, by its key and its token.
type hangID struct {
	id    lock.LockID
	token string
}

// mostHanging is how many of those are kept in mind.
const mostHanging = 4096

// hangs notes an acquire that was never answered, or that its token was used again:
// then its client does not leave the lock lying.
func (j *Judging) hangs(op *lock.Op) {
	k := hangID{lock.IDOf(op), text(op.Token)}
	if _, known := j.hanging[k]; known {
		j.hanging[k] = true
	} else if op.Kind == lock.Acquire && !answered(op) && op.F != 0 && len(j.hanging) < mostHanging {
		j.hanging[k] = false
	}
}

// unansweredGhosts finds LF307 in acquires that were never answered, and after
// which others were refused a key that nobody who was seen can have had.
func (c *carry) unansweredGhosts() {
	for _, g := range c.ledger.Ghosts() {
		op, x := g.Acquire, g.Shown
		followed, known := c.hanging[hangID{lock.IDOf(op), text(op.Token)}]
		if x == nil || g.Sure || x.Outcome != lock.Refused || x.Session == op.Session || op.D != 0 || followed || !known || op.A >= c.ghostsBy || c.isMarker(lock.IDOf(op)) {
			continue
		}
		c.unansweredGhost(lock.IDOf(op), op, x)
	}
}

func (c *carry) unansweredGhost(id lock.LockID, op, refused *lock.Op) {
	if c.piled("LF307", Likely, id, "", 1) {
		return
	}
	p := let("G be %s, forwarded at %s and never answered.", named(op), ms(op.F))
	p.say("Then its client did not hear whether the lock was its own, and its token was not used again.")
	p.say("However %s was refused the key between %s and %s, when nobody else who was seen can have had it: it was G's. Someone who was not seen may have had it, so this is not proven.",
		named(refused), ms(refused.F), ms(refused.R))
	c.pile(c.file(id, Hazard, with(Verdict{Code: "LF307", Level: Likely}, p), op, refused), "", "There are %d such terms.")
}
