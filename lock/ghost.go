package lock

import "slices"

// A Ghost is an acquire that was sent and of which no answer came: it may have been
// granted to a client that never heard of it. One that was answered, and whose
// answer was not delivered, is an ordinary term whose Grant has no D.
type Ghost struct {
	Acquire *Op
	Shown   *Op  // what shows, or suggests, that it was granted; nil: nothing
	Sure    bool // Shown proves it: the server found the token
}

// maxGhosts is how many acquires are kept of which no answer came.
const maxGhosts = 4096

type ghosts struct {
	kept  bool
	byKey map[LockID][]*Ghost
	line  []*Ghost // oldest first
}

// KeepGhosts makes the ledger look for acquires of which no answer comes. It reads
// such an op whenever another speaks of its key, so that ops must be whole when it
// is told of them, as those of a history are: what a daemon tells of is still being
// completed by its session.
func (l *Ledger) KeepGhosts() { l.ghosts.kept = true }

// Ghosts returns the acquires without an answer, oldest first; none without KeepGhosts.
func (l *Ledger) Ghosts() []Ghost {
	var out []Ghost
	for _, g := range l.ghosts.line {
		if g.Acquire.F != 0 && !g.answered() {
			out = append(out, *g)
		}
	}
	return out
}

func (g *Ghost) answered() bool {
	return g.Acquire.R != 0 && g.Acquire.Outcome != Pending && g.Acquire.Outcome != Unknown
}

func (g *ghosts) asks(op *Op, keepAll bool) {
	if !g.kept {
		return
	}
	if g.byKey == nil {
		g.byKey = map[LockID][]*Ghost{}
	}
	own := &Ghost{Acquire: op}
	g.byKey[IDOf(op)] = append(g.byKey[IDOf(op)], own)
	if g.line = append(g.line, own); len(g.line) > maxGhosts && !keepAll {
		g.drop(g.line[0].Acquire)
		g.line = g.line[1:]
	}
}

func (g *ghosts) answered(op *Op) {
	if !g.kept {
		return
	}
	g.drop(op)
	for i, o := range slices.Backward(g.line) {
		if o.Acquire == op {
			g.line = slices.Delete(g.line, i, i+1)
			return
		}
	}
}

func (g *ghosts) drop(op *Op) {
	id := IDOf(op)
	list := slices.DeleteFunc(g.byKey[id], func(o *Ghost) bool { return o.Acquire == op })
	if len(list) == 0 {
		delete(g.byKey, id)
		return
	}
	g.byKey[id] = list
}

// shown looks whether an answered op shows that an acquire without an answer had
// been granted.
func (l *Ledger) shown(op *Op) {
	id := IDOf(op)
	for _, g := range l.ghosts.byKey[id] {
		if g.Sure || op == g.Acquire || op.R == 0 || op.F < g.Acquire.F || op.Seq < g.Acquire.Seq {
			continue
		}
		token := op.Token.Known() && op.Token.Same(g.Acquire.Token)
		switch {
		case token && op.names() && !op.Guessed && op.Outcome == Done && !l.hasToken(id, op):
			g.Shown, g.Sure = op, true
		case g.Shown == nil && op.Kind == Acquire && op.Outcome == Refused && l.mayBeGhosts(id, g, op):
			g.Shown = op
		}
	}
}

// hasToken reports whether a term of the key, of which the acquire that opened it
// was answered, has the token.
func (l *Ledger) hasToken(id LockID, op *Op) bool {
	k := l.known(id)
	return k != nil && len(k.byToken[tokenText(op.Token)]) > 0
}

// mayBeGhosts reports whether a refusal was, as far as is known, on account of an
// acquire without an answer: nobody else may have held the key then.
func (l *Ledger) mayBeGhosts(id LockID, g *Ghost, op *Op) bool {
	if ttl := g.Acquire.TTL; ttl > 0 && op.F > g.Acquire.F.Add(ttl)+window {
		return false
	}
	k := l.known(id)
	return k == nil || k.current == nil && len(k.terms) == 0 || k.current != nil && k.current.Dead(op.F)
}
