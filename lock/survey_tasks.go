package lock

import "slices"

// A surveyedActor is what was seen of the sections of a process.
type surveyedActor struct {
	several bool
	open    []section
	closed  []section // the last few
	last    Instant   // when its latest statement was sent
}

type section struct {
	holding
	session  uint64
	from, to Instant
	renewed  bool
	inner    int
}

// maxSections is how many sections of a process are compared with each other.
const maxSections = 32

func (s *Survey) actor(label string) *surveyedActor {
	return s.actors.get(label, func() *surveyedActor { return &surveyedActor{} })
}

func (s *Survey) began(op *Op) {
	if op.Span == TxSpan || op.Kind != Acquire || op.Outcome != Granted || AddressOnly(op.Actor) {
		return
	}
	a := s.actor(op.Actor)
	h := holding{IDOf(op), tokenText(op.Token)}
	if a.several || slices.ContainsFunc(a.open, func(o section) bool { return o.holding == h }) {
		return
	}
	a.open = keepLast(append(a.open, section{holding: h, session: op.Session, from: op.R}))
}

func keepLast(list []section) []section { return list[max(0, len(list)-maxSections):] }

// ended compares a section that has ended with those beside it: see [Ledger.nest].
func (s *Survey) ended(op *Op) {
	a := s.actors.all[op.Actor]
	if a == nil || a.several {
		return
	}
	id, token := IDOf(op), tokenText(op.Token)
	at := -1
	for i, o := range a.open {
		if o.id == id && (o.token == token || !op.names()) {
			at = i
		}
	}
	if at < 0 {
		return
	}
	if op.Kind == Renew {
		a.open[at].renewed = true
		return
	}
	own := a.open[at]
	own.to = op.A
	a.open = slices.Delete(a.open, at, at+1)
	a.several = a.several || a.beside(own)
	a.closed = keepLast(append(a.closed, own))
}

// beside reports whether a section that has ended and one beside it are not of one
// task.
func (a *surveyedActor) beside(own section) bool {
	inner := 0
	for _, o := range a.closed {
		switch {
		case o.to <= own.from || o.from >= own.to:
		case o.id == own.id:
			return true
		case o.from < own.from && o.to > own.to: // it lies within that one
		case o.from < own.from: // that one ended first
			if o.session != own.session || a.last > o.to {
				return true
			}
		default:
			if inner++; o.session != own.session {
				return true
			}
			for _, p := range a.closed {
				if p.from < o.from && p.from > own.from && p.to >= o.to {
					inner-- // within another that lies within this one
					break
				}
			}
		}
	}
	for i := range a.open {
		if o := &a.open[i]; o.renewed && o.from < own.from {
			if o.inner++; o.inner > 1 {
				return true
			}
		}
	}
	return inner > 1
}

func (s *Survey) acted(op *Op) {
	a := s.actor(op.Actor)
	a.last = max(a.last, op.A)
}
