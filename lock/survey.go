package lock

import "slices"

// A Survey looks through a whole history before it is replayed, for what a
// running ledger can only find out as it goes: which stored keys are locks, and
// which exclusive ones are once-markers. It is told of the finished ops one by
// one, in any order that puts no op far from where it happened, and keeps none
// of them. Its memory is bounded: keys on which nothing was matched are
// forgotten, oldest first, when there are too many, and are then found out in
// the replay.
type Survey struct {
	decls  []Declaration
	keys   map[LockID]*surveyed
	line   []LockID // keys, oldest first
	locks  map[LockID]bool
	groups map[string]*surveyedGroup
	names  []string // groups, oldest first
}

// A surveyed key is one of which it is not known yet whether it is a lock.
type surveyed struct {
	taken    recent // tokens that were stored
	compared recent // tokens that a release compared
	renewed  recent // tokens that a renewal compared
	takers   recent // processes that stored
	droppers recent // processes that released or renewed without comparing
}

// A surveyedGroup is what was seen of the keys of one shape.
type surveyedGroup struct {
	kept  bool // a holder released or renewed one
	taken []holding
}

type holding struct {
	id    LockID
	token string
}

// How much a survey keeps.
const (
	maxSurveyed = 4 * maxKeys
	maxPromoted = 16 * maxKeys
	maxRecent   = 16
)

// recent is the last few different texts.
type recent []string

func (r *recent) add(s string) {
	if slices.Contains(*r, s) {
		return
	}
	if *r = append(*r, s); len(*r) > maxRecent {
		*r = slices.Delete(*r, 0, 1)
	}
}

func (r recent) has(s string) bool { return slices.Contains(r, s) }

// NewSurvey returns an empty survey that knows what the user declared.
func NewSurvey(decls []Declaration) *Survey {
	return &Survey{decls: decls, keys: map[LockID]*surveyed{}, locks: map[LockID]bool{}, groups: map[string]*surveyedGroup{}}
}

// Add takes in a finished op, which it does not keep.
func (s *Survey) Add(op *Op) {
	switch op.Kind {
	case Acquire, Store:
		s.took(op)
	case Release, Renew:
		s.gave(op)
	}
}

func (s *Survey) took(op *Op) {
	id, token := IDOf(op), tokenText(op.Token)
	g := s.group(id)
	if op.Kind == Acquire && op.Outcome == Granted && !declares(s.decls, op.Key) {
		g.took(holding{id, token})
	}
	if g.kept && (op.Kind == Acquire || s.locks[id]) {
		return
	}
	k := s.key(id)
	k.taken.add(token)
	k.takers.add(op.Actor)
	if k.compared.has(token) {
		s.promote(id)
	}
	g.kept = g.kept || k.compared.has(token) || k.renewed.has(token) || k.droppers.has(op.Actor)
}

func (s *Survey) gave(op *Op) {
	id, token := IDOf(op), tokenText(op.Token)
	g := s.group(id)
	if g.kept && (s.locks[id] || op.Kind == Renew || !op.Compares()) {
		return
	}
	k := s.key(id)
	switch {
	case !op.Compares():
		k.droppers.add(op.Actor)
		g.kept = g.kept || k.takers.has(op.Actor)
		return
	case op.Kind == Release:
		k.compared.add(token)
	default:
		k.renewed.add(token)
	}
	if k.taken.has(token) {
		g.kept = true
		if op.Kind == Release {
			s.promote(id)
		}
	}
}

func (s *Survey) promote(id LockID) {
	if len(s.locks) < maxPromoted {
		s.locks[id] = true
	}
	delete(s.keys, id)
}

func (g *surveyedGroup) took(h holding) {
	if !g.kept && len(g.taken) < markerAfter && !slices.Contains(g.taken, h) {
		g.taken = append(g.taken, h)
	}
}

func (s *Survey) key(id LockID) *surveyed {
	k := s.keys[id]
	if k == nil {
		k = &surveyed{}
		s.keys[id] = k
		if s.line = append(s.line, id); len(s.line) > maxSurveyed {
			for _, old := range s.line[:maxSurveyed/2] {
				delete(s.keys, old)
			}
			s.line = slices.Clone(s.line[maxSurveyed/2:])
		}
	}
	return k
}

func (s *Survey) group(id LockID) *surveyedGroup {
	name := group(id)
	g := s.groups[name]
	if g == nil {
		g = &surveyedGroup{}
		s.groups[name] = g
		if s.names = append(s.names, name); len(s.names) > maxSurveyed {
			for _, old := range s.names[:maxSurveyed/2] {
				delete(s.groups, old)
			}
			s.names = slices.Clone(s.names[maxSurveyed/2:])
		}
	}
	return g
}

// Learn tells the ledger what a survey of the whole history found. It comes
// before the first op.
func (l *Ledger) Learn(s *Survey) {
	for id := range s.locks {
		l.Promote(id.Upstream, id.DB, id.Key)
	}
	for name, g := range s.groups {
		switch {
		case g.kept:
			l.groups[name] = &groupState{seen: true}
		case len(g.taken) == markerAfter:
			l.groups[name] = &groupState{isMarker: true}
		}
	}
}
