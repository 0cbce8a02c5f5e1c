package lock

// Left returns the last holding of a lock whose holder went away without giving it back, while the key may be there
// for all that is known: its lease is not over for certain, and nobody removed it. Nil where there is none.
func (l *Ledger) Left(id LockID, now Instant) *Term {
	k := l.known(id)
	if k == nil || k.current == nil {
		return nil
	}
	t := k.current
	left := t.EndBy == Closed && t.Span == LeaseSpan && !t.Marker && t.Gone == nil && t.Lost == nil && !t.Dead(now)
	if t.Open() || !left {
		return nil
	}
	return t
}

// Stranger reports whether an acquire was refused on account of somebody who was not seen to take the lock: no section of
// it is open, and what was granted last had certainly ended before the acquire was sent.
func (l *Ledger) Stranger(op *Op) bool {
	if op.Outcome != Refused || op.F == 0 {
		return false
	}
	k := l.known(l.LockOf(op))
	if k == nil {
		return true
	}
	one := !k.group.members // else each asks for a place of his own
	return one && len(k.terms) == 0 && (k.latest == nil || k.latest.overBefore(op.F))
}

// overBefore reports whether the server had certainly ended a holding before an instant.
func (t *Term) overBefore(at Instant) bool {
	return t.Released != nil && t.Released.R < at || t.Dead(at)
}
