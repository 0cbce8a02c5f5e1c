package lock

import "strings"

// loneRefusals is how many acquires of a key with members must have been refused
// while it had one member, before it is taken to admit only one.
const loneRefusals = 3

// Sort says how many may hold the lock at once: as declared, else as the keys of
// its shape have behaved so far. A judge that needs it for the whole history asks
// after the replay, or has told the ledger of a [Survey].
//
// Several members that were there at once, as the server's own answers show, make
// a semaphore; a shared holding makes a reader's lock; a holder that had it twice
// makes a re-entrant one. Exclusive is what is created exclusively, by a command or
// a script that was seen, and never has members. Of members it takes refusals while
// there was one. Where a name stands for several things, such as for the rows that
// a condition chooses, several may hold it. Anything else is not known.
func (l *Ledger) Sort(id LockID) Sort {
	if s := l.decls.sort(id.Key); s != Unsorted {
		return s
	}
	g := l.groups[l.names.of(id)]
	if k := l.known(id); k != nil {
		g = k.group
	}
	if g == nil {
		g = &groupState{}
	}
	return g.learned(id.Key)
}

func (g *groupState) learned(key string) Sort {
	switch {
	case severalThings(key):
		return Semaphore
	case g.many:
		return Semaphore
	case g.shared:
		return ReadWrite
	case g.twice:
		return Reentrant
	case g.members && g.lone < loneRefusals:
		return Unsorted
	case g.members || g.exclusive:
		return Exclusive
	}
	return Unsorted
}

// severalThings reports whether a key is a name under which several things can be
// locked at once: rows that a condition chooses, or an advisory lock, or a lease in a
// table, of which it was not told which one it is.
func severalThings(key string) bool {
	return strings.HasPrefix(key, "row:") || unresolved(key)
}

// unresolved reports whether a key of Postgres's does not tell which number, or which
// row of its table, is locked.
func unresolved(key string) bool {
	return strings.HasPrefix(key, "advisory:") && strings.Contains(key, "?") ||
		strings.HasPrefix(key, "lease:") && strings.HasSuffix(key, ":?")
}

// Queue reports whether a lock is the claim of a job in a table of such: somebody is
// known to have asked for any that is free. Such a claim is over when the job is
// done, or is given back by whoever looks after the table, and not by a lifetime.
func (l *Ledger) Queue(id LockID) bool {
	table, _, ok := strings.Cut(strings.TrimPrefix(id.Key, "lease:"), ":")
	if !ok || !strings.HasPrefix(id.Key, "lease:") {
		return false
	}
	id.Key = "lease:" + table + ":?"
	g := l.groups[l.names.of(id)]
	return g != nil && g.queue
}

// sortedBy learns from a grant.
func (g *groupState) sortedBy(op *Op) {
	g.shared = g.shared || op.Shared
	g.members = g.members || op.Member
	g.twice = g.twice || op.Depth > 1
	switch {
	case op.Member || op.Shared:
	case op.Proto == Postgres, provesAbsence(op), op.Kind == Store:
		g.exclusive = true
	case op.NX && !op.Guessed && op.Evidence != FromArguments:
		g.exclusive = true
	}
}

// provesAbsence reports whether a grant shows by itself that nobody held the key:
// it is a command that creates only, or a script was seen to.
func provesAbsence(op *Op) bool {
	if !op.NX || op.Guessed || op.Depth > 1 {
		return false
	}
	switch op.Evidence {
	case FromMonitor, FromProbe:
		return true
	case FromWire:
		return !isCall(op.Verb)
	}
	return false
}

func isCall(verb string) bool {
	return strings.HasPrefix(verb, "EVAL") || strings.HasPrefix(verb, "FCALL")
}

// refusedBeside learns from a refusal while the key had so many members for sure.
func (g *groupState) refusedBeside(members int) {
	if members == 1 && g.lone < loneRefusals {
		g.lone++
	}
}

// showsMany learns from an answer of the server that a member was there: if another
// was granted after it, while its lease was running, then there were two at once.
func (k *keyState) showsMany(t *Term, op *Op) {
	if !t.Member || t.Shared || k.group.many || op.Outcome != Done || !op.names() {
		return
	}
	for _, o := range k.recent {
		if o != t && o.Member && !o.Shared && !o.Token.Same(t.Token) &&
			o.Grant.F >= t.Grant.R && o.Grant.R <= min(op.F, t.Held()) {
			k.group.many = true
		}
	}
}
