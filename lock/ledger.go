package lock

import "slices"

// A Ledger derives terms from ops and says whose an op is. Its owner tells it
// of requests and replies in the order in which they happened. Its memory is
// bounded unless [Ledger.KeepAll] was called: closed terms, keys and candidates
// are forgotten, oldest first, when there are too many.
type Ledger struct {
	decls   []Declaration
	keepAll bool
	next    TermID

	terms   map[TermID]*Term
	order   []*Term // by ID; forgotten ones leave from the front
	open    []*Term // open, by ID
	keys    map[LockID]*keyState
	keyLine []LockID // keys, oldest first
	keyRoom int      // how many there may be before some are forgotten, if more than maxKeys
	actors  map[string]*actorState
	conns   map[uint64]*connState
	tokens  map[string][]*Term // by token hash
	fences  map[fenceID][]*Term
	tables  map[string]bool // written inside a section
	columns map[columnID]*columnState
	groups  map[string]*groupState

	candidates int
	storeLine  []LockID // where the candidates are, oldest first
}

type keyState struct {
	current *Term // granted last, and not removed since
	terms   []*Term
	lock    bool  // a lock by declaration, exclusive creation or promotion
	stores  []*Op // candidates
	kept    bool  // promoted: to be remembered as a lock
	byToken map[string][]*Term
}

type actorState struct {
	open   []*Term
	hadTwo bool
	// left are terms that were superseded and whose release was never asked
	// for: another task of the process may still be in their section
	left     []*Term
	sessions map[uint64]bool
	refused  map[LockID]*Op
}

type connState struct {
	actor  string
	used   []*Term // open terms of this connection, beyond doubt
	last   *Term   // the last that a statement here was certainly of
	tx     uint64
	writes []*Term // whose writes the transaction has
	sure   float64
	// renewals that have no answer yet, and the term that each would move
	renewals []renewal
}

// NewLedger returns an empty ledger that knows what the user declared.
func NewLedger(decls []Declaration) *Ledger {
	return &Ledger{
		decls:   decls,
		terms:   map[TermID]*Term{},
		keys:    map[LockID]*keyState{},
		actors:  map[string]*actorState{},
		conns:   map[uint64]*connState{},
		tokens:  map[string][]*Term{},
		fences:  map[fenceID][]*Term{},
		tables:  map[string]bool{},
		columns: map[columnID]*columnState{},
		groups:  map[string]*groupState{},
	}
}

// KeepAll makes the ledger forget nothing, which a judge needs.
func (l *Ledger) KeepAll() { l.keepAll = true }

// Request notes that a request was read (Seq and A are set) and sets op.Term.
// A release request of a term closes its section.
//
// A Read that belongs to no term leaves no trace: such reads need not be in a
// history, and one that is replayed without them must say the same.
func (l *Ledger) Request(op *Op) {
	if op.Kind == Read {
		l.attribute(op)
		return
	}
	l.meet(op)
	switch op.Kind {
	case Release:
		l.requestRelease(op)
	case Renew:
		l.requestRenew(op)
	case Fence:
		l.requestFence(op)
	case Store:
		l.requestStore(op)
	case Write:
		l.attribute(op)
	case Commit, Rollback:
		l.endTx(op)
	}
}

// Reply notes that a reply was read (ReplySeq, R and Outcome are set): it
// opens terms, moves lease ends and notes fences. An Acquire's, or a Store's,
// op.Term becomes the new term. When it has returned the ledger changes op no
// more; what it keeps of it, it only reads.
func (l *Ledger) Reply(op *Op) {
	switch op.Kind {
	case Acquire:
		l.replyAcquire(op)
	case Store:
		l.replyStore(op)
	case Renew:
		l.replyRenew(op)
	case Release:
		l.replyRelease(op)
	case Fence:
		l.replyFence(op)
	case Write:
		l.replyWrite(op)
	}
}

// Closed notes the end of a session. Sections whose process has no connection
// left end with it, and so do those whose grant was not delivered. A renewal that
// was not forwarded by then never will be: it puts no lease's end in doubt.
func (l *Ledger) Closed(session uint64, at Instant) {
	conn := l.conns[session]
	if conn == nil {
		return
	}
	conn.unsent()
	delete(l.conns, session)
	a := l.actors[conn.actor]
	delete(a.sessions, session)
	last := len(a.sessions) == 0
	for _, t := range slices.Clone(a.open) {
		if last || t.Session == session && t.Grant.D == 0 && !t.reread {
			l.end(t, at, Closed)
		}
	}
	if last {
		delete(l.actors, conn.actor)
	}
}

// Term returns a term, or nil when it is unknown or forgotten.
func (l *Ledger) Term(id TermID) *Term { return l.terms[id] }

// Terms returns the terms that are remembered, by ID.
func (l *Ledger) Terms() []*Term { return slices.Clone(l.order) }

// OpenTerms returns the open terms of a process, by ID. Once-markers are not among them.
func (l *Ledger) OpenTerms(actor string) []*Term {
	if a := l.actors[actor]; a != nil {
		return slices.Clone(a.open)
	}
	return nil
}

// Protected reports whether a table was declared, or written inside a section.
func (l *Ledger) Protected(table string) bool {
	table = TableName(table)
	return l.tables[table] || slices.ContainsFunc(l.decls, func(d Declaration) bool {
		return d.Table != "" && TableName(d.Table) == table
	})
}

// Watching reports whether a statement of the process might matter: a term is
// open somewhere (its token may be handed over), or a table is protected.
func (l *Ledger) Watching(string) bool {
	return len(l.open) > 0 || len(l.tables) > 0 || len(l.decls) > 0
}

// Refused returns the process's last acquire of the lock if it was not
// granted, or nil.
func (l *Ledger) Refused(actor string, id LockID) *Op {
	if a := l.actors[actor]; a != nil {
		return a.refused[id]
	}
	return nil
}

// Refusals returns the locks whose last acquire by the process was not granted.
func (l *Ledger) Refusals(actor string) map[LockID]*Op {
	if a := l.actors[actor]; a != nil {
		return a.refused
	}
	return nil
}

func (l *Ledger) meet(op *Op) {
	if l.conns[op.Session] == nil {
		l.conns[op.Session] = &connState{actor: op.Actor}
		a := l.actor(op.Actor)
		a.sessions[op.Session] = true
	}
}

func (l *Ledger) actor(label string) *actorState {
	a := l.actors[label]
	if a == nil {
		a = &actorState{sessions: map[uint64]bool{}, refused: map[LockID]*Op{}}
		l.actors[label] = a
	}
	return a
}

func (l *Ledger) key(id LockID) *keyState {
	k := l.keys[id]
	if k == nil {
		k = &keyState{lock: l.declaredLock(id.Key)}
		l.keys[id] = k
		l.keyLine = append(l.keyLine, id)
		l.forgetKeys()
	}
	return k
}

func (l *Ledger) declaredLock(key string) bool { return declares(l.decls, key) }

func declares(decls []Declaration, key string) bool {
	return slices.ContainsFunc(decls, func(d Declaration) bool { return d.Covers(key) })
}

// IDOf returns the lock that a Redis op speaks of.
func IDOf(op *Op) LockID { return LockID{op.Upstream, op.DB, op.Key} }
