package lock

import "slices"

// A Survey looks through a whole history before it is replayed, for what a
// running ledger can only find out as it goes: which stored keys are locks, which
// exclusive ones are once-markers, how many may hold a lock at once, which counters
// are no fences, which locks are granted by a quorum, and which processes have
// several sections open at once. It is told of the finished ops one by one, in any
// order that puts no op far from where it happened, and keeps none of them. Its
// memory is bounded: keys on which nothing was matched are forgotten, oldest first,
// when there are too many, and are then found out in the replay.
type Survey struct {
	decls  declarations
	keys   fifo[LockID, *surveyed]
	locks  map[LockID]bool
	data   map[LockID]bool
	groups fifo[string, *surveyedGroup]
	tokens fifo[string, *surveyedToken]
	actors fifo[string, *surveyedActor]

	holders fifo[LockID, *handedTokens] // who was granted the last tokens, and who used them
	handed  map[holding][]string        // the other processes that used a token

	names    groupNames
	servers  servers
	quorums  map[LockID]bool
	families map[LockID]*surveyedFamily
}

// A surveyed key is one of which it is not known yet whether it is a lock.
type surveyed struct {
	taken    recent // tokens that were stored, with who did
	compared recent // tokens that a release or renewal compared, with who did
	takers   recent // processes that stored
	droppers recent // processes that released or renewed without comparing
	owned    int
	foreign  int
	stored   bool // by a plain SET, too

	members []surveyedMember
	joined  int     // members that were added directly, and not removed since
	ends    Instant // when the key lapses, if it was made to
	set     bool    // there were too many of them for a lock
}

// A surveyedMember is a grant of a member of a key.
type surveyedMember struct {
	token    string
	from, to Instant // F and R of the grant
	held     Instant // certainly until then
}

// A surveyedGroup is what was seen of the keys of one shape.
type surveyedGroup struct {
	kept    bool // a holder released or renewed one
	taken   []holding
	counted bool // an INCR of one was seen
	expires bool // one was made to expire, which may be because it counts
	sorted  groupState
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

// recent is the last few different texts, each with who used it.
type recent []use

type use struct{ text, by string }

func (r *recent) add(u use) {
	if slices.Contains(*r, u) {
		return
	}
	if *r = append(*r, u); len(*r) > maxRecent {
		*r = slices.Delete(*r, 0, 1)
	}
}

// has reports whether the text was used by the same process, and by anyone.
func (r recent) has(u use) (own, any bool) {
	for _, o := range r {
		if o.text == u.text {
			any = true
			own = own || o.by == u.by || AddressOnly(o.by) || AddressOnly(u.by)
		}
	}
	return own, any
}

// A fifo is a map of bounded size, out of which the oldest go first.
type fifo[K comparable, V any] struct {
	all  map[K]V
	line []K
}

// get returns what there is under a name; make makes it if there is nothing.
func (f *fifo[K, V]) get(name K, make func() V) V {
	v, ok := f.all[name]
	if ok {
		return v
	}
	if f.all == nil {
		f.all = map[K]V{}
	}
	v = make()
	f.all[name] = v
	if f.line = append(f.line, name); len(f.line) > maxSurveyed {
		for _, old := range f.line[:maxSurveyed/2] {
			delete(f.all, old)
		}
		f.line = slices.Clone(f.line[maxSurveyed/2:])
	}
	return v
}

// NewSurvey returns an empty survey that knows what the user declared.
func NewSurvey(decls []Declaration) *Survey {
	return &Survey{decls: decls, locks: map[LockID]bool{}, data: map[LockID]bool{}, handed: map[holding][]string{},
		names: groupNames{}, quorums: map[LockID]bool{}, families: map[LockID]*surveyedFamily{}}
}

// Add takes in a finished op, which it does not keep.
func (s *Survey) Add(op *Op) {
	s.servers.meet(op)
	switch op.Kind {
	case Acquire, Store:
		if !s.decls.ignored(op.Key) {
			s.took(op)
			s.held(op)
			s.voted(op)
			s.began(op)
		}
	case Release, Renew:
		if !op.All && !s.decls.ignored(op.Key) {
			s.gave(op)
			s.used(op)
			s.ended(op)
		}
	case Fence:
		g := s.group(IDOf(op))
		g.counted = true
	case Write, Read:
		s.acted(op)
	}
}

func (s *Survey) took(op *Op) {
	id, token := IDOf(op), use{tokenText(op.Token), op.Actor}
	g := s.group(id)
	g.sorted.queue = g.sorted.queue || op.Kind == Acquire && op.Outcome == Refused && unresolved(op.Key)
	if op.Kind == Acquire && op.Outcome == Granted {
		g.sorted.sortedBy(op)
		if !s.decls.lock(op.Key) {
			g.took(holding{id, token.text})
		}
	}
	if op.Member {
		s.key(id).grant(op)
		s.joins(id, op)
	}
	if op.Kind == Acquire && g.kept || s.locks[id] || op.Kind == Store && op.Outcome == NotHeld {
		return
	}
	k := s.key(id)
	k.stored = k.stored || op.Kind == Store
	k.taken.add(token)
	k.takers.add(use{by: op.Actor, text: op.Actor})
	own, any := k.compared.has(token)
	_, dropped := k.droppers.has(use{text: op.Actor})
	g.kept = g.kept || any || dropped
	s.compares(id, k, own, any)
}

func (s *Survey) gave(op *Op) {
	id, token := IDOf(op), use{tokenText(op.Token), op.Actor}
	g := s.group(id)
	if op.Kind == Renew && op.TTL > 0 && op.TTL <= longest && !op.Compares() {
		g.expires = true
	}
	if op.Member {
		s.key(id).shows(g, op)
	}
	s.leaves(id, op)
	if g.kept && (s.locks[id] || !op.tells()) {
		return
	}
	k := s.key(id)
	if !op.tells() {
		k.droppers.add(use{text: op.Actor})
		_, taken := k.takers.has(use{text: op.Actor})
		g.kept = g.kept || taken
		return
	}
	if !op.Token.Known() && op.Outcome == NotHeld {
		return // which says of nobody that it was the key's
	}
	k.compared.add(token)
	own, any := k.taken.has(token)
	g.kept = g.kept || any
	s.compares(id, k, own, any)
}

// compares counts who compares what was stored in a key: if it is mostly the
// storer, then it is a lock.
func (s *Survey) compares(id LockID, k *surveyed, own, any bool) {
	switch {
	case k.set:
		return
	case own:
		k.owned++
	case any:
		k.foreign++
	default:
		return
	}
	data := isData(k.owned, k.foreign)
	switch {
	case !data && len(s.locks) < maxPromoted:
		s.locks[id] = true
		delete(s.data, id)
	case data && k.stored && len(s.data) < maxPromoted:
		s.data[id] = true
		delete(s.locks, id)
	}
}

func (k *surveyed) grant(op *Op) {
	if op.Outcome != Granted || op.Shared {
		return
	}
	token := tokenText(op.Token)
	k.members = slices.DeleteFunc(k.members, func(m surveyedMember) bool { return m.token == token })
	k.members = append(k.members, surveyedMember{token, op.F, op.R, Lease(op, op.TTL).Earliest})
	if len(k.members) > maxRecent {
		k.members = k.members[1:]
	}
}

// shows learns from an answer of the server that a member was there: if another
// was granted since, while its lease was running, then there were two at once.
func (k *surveyed) shows(g *surveyedGroup, op *Op) {
	if op.Outcome != Done {
		return
	}
	token := tokenText(op.Token)
	at := slices.IndexFunc(k.members, func(m surveyedMember) bool { return m.token == token })
	if at < 0 {
		return
	}
	m := &k.members[at]
	for _, o := range k.members {
		if o.token != token && o.from >= m.to && o.to <= min(op.F, m.held) {
			g.sorted.many = true
		}
	}
	if op.Kind == Renew {
		m.held = Lease(op, op.TTL).Earliest
	}
}

// joins counts the members of a key that is no lock if there are too many: see
// [Ledger.collects].
func (s *Survey) joins(id LockID, op *Op) {
	k := s.key(id)
	switch {
	case op.Kind != Store || op.Outcome != Done || s.decls.lock(id.Key):
		return
	case k.ends > 0 && op.F > k.ends:
		k.joined, k.ends = 0, 0
	}
	k.joined++
	if k.set = k.set || k.joined > mostMembers; k.set && len(s.data) < maxPromoted {
		s.data[id] = true
		delete(s.locks, id)
	}
}

func (s *Survey) leaves(id LockID, op *Op) {
	k := s.keys.all[id]
	switch {
	case k == nil || k.joined == 0 || op.Outcome != Done:
	case op.Kind == Renew:
		k.ends = 0
		if op.TTL > 0 {
			k.ends = Lease(op, op.TTL).Latest
		}
	case op.Member:
		k.joined--
	default:
		k.joined, k.ends = 0, 0
	}
}

func (g *surveyedGroup) took(h holding) {
	if !g.kept && len(g.taken) < markerAfter && !slices.Contains(g.taken, h) {
		g.taken = append(g.taken, h)
	}
}

func (s *Survey) key(id LockID) *surveyed {
	return s.keys.get(id, func() *surveyed { return &surveyed{} })
}

func (s *Survey) group(id LockID) *surveyedGroup {
	return s.groups.get(s.names.of(id), func() *surveyedGroup { return &surveyedGroup{} })
}

// Learn tells the ledger what a survey of the whole history found. It comes
// before the first op.
func (l *Ledger) Learn(s *Survey) {
	l.Servers(s.servers.count())
	for id := range s.locks {
		l.promoted.add(id)
	}
	for id := range s.data {
		l.data.add(id)
	}
	for id := range s.quorums {
		l.quorums.add(id)
	}
	for name, f := range s.families {
		if !f.bad && f.votes > 1 {
			l.families[name] = familySize(f.top)
		}
	}
	l.handed = s.handed
	for name, a := range s.actors.all {
		if a.several {
			l.tasks[name] = true
		}
	}
	for name, g := range s.groups.all {
		l.learnGroup(name, g)
	}
}

func (l *Ledger) learnGroup(name string, g *surveyedGroup) {
	own := g.sorted
	own.seen = g.kept
	own.isMarker = !g.kept && len(g.taken) == markerAfter
	own.lone = 0 // the ledger counts those itself
	l.groups[name] = &own
	l.groupLine = append(l.groupLine, name)
	if g.counted && g.expires {
		l.counters.limit(name)
	}
}
