package check

import (
	"fmt"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// rejections finds LF201: writes and claims of a term that a guard turned away.
func (c *kase) rejections() {
	for _, w := range c.writes {
		if w.state != refused || !w.op.Term.Sure() || !c.dueOp(w.op) {
			continue
		}
		guards := c.guards(w.op)
		conflict := w.op.Verb == "INSERT" && !w.op.SQL.Returning
		if len(guards) == 0 && w.op.Outcome != lock.Failed && !conflict {
			continue
		}
		c.rejection(w, guards)
	}
	for _, op := range c.ops {
		if op.Kind == lock.Commit && op.Outcome == lock.Failed && rejects(op.Err) && op.Term.Sure() && c.dueOp(op) {
			c.rejection(&write{op: op}, nil)
		}
	}
}

func (c *kase) rejection(w *write, guards []lock.Cond) {
	t := c.byID[w.op.Term.ID]
	p := let("A be %s.", holder(t))
	v := Verdict{Code: "LF201", Level: Likely, Terms: []lock.TermID{t.ID}}
	if w.op.SQL != nil {
		v.Table = lock.TableName(w.op.SQL.Table)
	}
	p.say("A's %s was answered at %s that it changed nothing (%s).", named(w.op), ms(w.op.R), refusalOf(w.op))
	by, guard := c.refusedBy(w, guards)
	if by != nil {
		p.say("Then its guard %s %s held no more, since %s had been accepted on the row before.", guard.Column, guard.Op, named(by.op))
		v.Level = Proven
	} else {
		p.say("What it was refused for was not seen for certain before it.")
	}
	c.out.Facts.Rejected++
	cited := []*lock.Op{w.op}
	if by != nil {
		cited = append(cited, by.op, by.commit)
		if a, _ := by.assigns(guard.Column); a.HasDelta {
			cited = append(cited, c.readOf(by, w, guard))
		}
	}
	if c.refusedCurrent(t, w, by, guards) {
		p.say("%s", currentRefused(t, w, by))
		c.emitAs(t.Lock, Hazard, with(v, p), append(cited, t.Grant)...)
		return
	}
	if c.tooLate(t, w.op) {
		p.say("A stale holder was kept from writing: the defence worked.")
	} else {
		p.say("It wrote over nothing: the defence worked.")
	}
	c.emit(t.Lock, with(v, p), cited...)
}

// refusedBy returns the accepted write that made one of a write's guards false, and
// that guard; nil if none was seen that certainly did.
func (c *kase) refusedBy(w *write, guards []lock.Cond) (*write, lock.Cond) {
	for _, g := range guards {
		if by := c.newer(w, g); by != nil {
			return by, g
		}
	}
	return nil, lock.Cond{}
}

// refusedCurrent reports whether a refusal hit a holder that was certainly the current one,
// for its own fence: then the fence is too low, and not its sender too late.
func (c *kase) refusedCurrent(t *lock.Term, w *write, by *write, guards []lock.Cond) bool {
	if w.op.Outcome == lock.Failed || !c.current(t, w.op) {
		return false
	}
	// Where nothing was seen that made the fence's guard false, another may have been.
	if len(guards) != 1 && by == nil {
		return false
	}
	i := slices.IndexFunc(guards, func(g lock.Cond) bool { return raises(t, w, g) })
	if i < 0 || c.wroteItself(t, w, guards[i].Column) {
		return false
	}
	return by == nil || by == c.newer(w, guards[i])
}

// raises reports whether a guard demands that the row's fence is below the term's
// own, which the write puts there.
func raises(t *lock.Term, w *write, g lock.Cond) bool {
	a, _ := w.assigns(g.Column)
	return t.HasFence && (g.Op == "<" || g.Op == "<=") && g.Value.IsInt && g.Value.Int == t.Fence && a.Value.Same(g.Value)
}

// wroteItself reports whether the term may itself have put its fence there: then that is
// not too low, and refused only a second write, or the repetition of the first.
func (c *kase) wroteItself(t *lock.Term, w *write, column string) bool {
	return slices.ContainsFunc(c.ofTerm[t.ID].writes, func(x *write) bool {
		_, sets := x.assigns(column)
		return sets && x.row == w.row && x.state != refused
	})
}

// current reports whether the term certainly held its lock until an op of it was answered,
// and nobody can have been granted it since.
func (c *kase) current(t *lock.Term, op *lock.Op) bool {
	if c.runsUntil(t) < op.R {
		return false
	}
	granted := slices.ContainsFunc(c.terms[t.Lock], func(o *lock.Term) bool {
		return o != t && o.Grant.R > t.Grant.F && o.Grant.F < op.R
	})
	return !granted && !slices.ContainsFunc(c.during(t.Lock, t.Grant.F, op.R), func(x *lock.Op) bool {
		takes := x.Kind == lock.Store && x.Term.ID != t.ID || x.Kind == lock.Release && mayRemove(x, t)
		return takes && mayHave(x)
	})
}

// tooLate reports whether the term's lease had certainly ended, or another had certainly
// been granted the lock, before an op of it took effect.
func (c *kase) tooLate(t *lock.Term, op *lock.Op) bool {
	return t.Dead(op.F) || c.grantedBefore(t, c.terms[t.Lock], op.R) != nil
}

func currentRefused(t *lock.Term, w *write, by *write) string {
	said := fmt.Sprintf("However A was granted the lock by %s, its lease was still running at %s, and nobody had been granted the lock since: "+
		"A was the current holder, and no stale one.", ms(t.Grant.R), ms(w.op.R))
	if by == nil {
		return said + fmt.Sprintf(" Either the row is not there, or its fence is not below A's, which is %d: the number that issues the fences has fallen, "+
			"or started anew, and every holder is refused until it has caught up.", t.Fence)
	}
	return said + fmt.Sprintf(" A's fence, %d, is not above the row's: the number that issues the fences has fallen, or started anew, "+
		"or an earlier holder was issued the higher one.", t.Fence)
}

func with(v Verdict, p *proof) Verdict {
	v.Proof = p.String()
	return v
}

func refusalOf(op *lock.Op) string {
	if op.Err != "" {
		return op.Err
	}
	return fmt.Sprintf("%s 0", op.Verb)
}
