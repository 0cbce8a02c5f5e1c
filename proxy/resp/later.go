package resp

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// mostNameless is how many calls may wait, all in all, for what tells what they
// were for.
const mostNameless = 1024

// mostAsked is how many arguments of one may be the token.
const mostAsked = 16

// Asked is what a call asked for that was refused before any call of its script
// had success.
type Asked struct {
	Args  []lock.Value // ARGV; not Known() where one was not kept
	Plain bool         // the keys are strings
}

// Later implements [wire.Call].
func (c *Call) Later(unheard bool) wire.Later {
	switch {
	case unheard && c.effect == nil:
		return belated{c}
	case len(c.nameless) == 0:
		return nil
	}
	if c.scripts.nameless.Add(1) > mostNameless {
		c.scripts.nameless.Add(-1)
		return nil
	}
	return &nameless{scripts: c.scripts, script: c.Script, ops: c.nameless, asked: c.effect.Asked, evidence: c.effect.Evidence}
}

// A belated is a call that a witness tells of when its reply has gone on.
type belated struct{ *Call }

func (b belated) Ops() []*lock.Op { return b.ops }

func (b belated) Known() bool { return b.effect != nil }

func (b belated) Amend(copies []*lock.Op) []*lock.Op { return b.resolve(copies) }

// A nameless is a call that was refused: it has read the key of a lock and no more.
// Its ops are of no kind, or of one that is a guess.
// What it was for is told by the first of its script that has success.
type nameless struct {
	scripts  *Scripts
	script   string
	ops      []*lock.Op
	asked    Asked
	evidence lock.Evidence
	version  uint64 // of the roles, when they were looked up last
}

func (n *nameless) Ops() []*lock.Op { return n.ops }

func (n *nameless) Known() bool {
	v := n.scripts.roles.version.Load()
	if v == n.version {
		return false
	}
	n.version = v
	_, ok := n.role()
	return ok
}

// role returns what the script is for. One that both acquires and renews is for
// neither: which of them was refused is not known any more.
func (n *nameless) role() (role, bool) {
	r, _ := n.scripts.roles.of(n.script)
	_, ok := r.only()
	return r, ok
}

func (n *nameless) Amend(copies []*lock.Op) []*lock.Op {
	n.scripts.nameless.Add(-1)
	r, ok := n.role()
	if !ok {
		return nil
	}
	for _, op := range copies {
		n.name(op, r)
	}
	return nil
}

// name makes of a refused op what calls of that role do.
func (n *nameless) name(op *lock.Op, r role) {
	guess := op.Kind
	if op.Kind, _ = r.only(); op.Kind != guess {
		op.TTL, op.Until = 0, 0
	}
	op.Guessed, op.Guarded, op.Evidence = false, false, n.evidence
	op.Member = r.member && !n.asked.Plain
	if i := r.token - 1; i >= 0 && i < len(n.asked.Args) {
		op.Token = n.asked.Args[i]
	}
	if op.Kind == lock.Acquire {
		op.Outcome, op.NX = lock.Refused, true
		return
	}
	op.Guarded = true
}

// namelessOf returns the ops of which it is not known what was refused.
func namelessOf(ops []*lock.Op) []*lock.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(op *lock.Op) bool {
		return !isNameless(op) && !(op.Guessed && op.Outcome == lock.NotHeld)
	})
}

// isNameless reports whether an op is a refusal, of whatever it was.
func isNameless(op *lock.Op) bool { return op.Kind == lock.Other && op.Outcome == lock.NotHeld }
