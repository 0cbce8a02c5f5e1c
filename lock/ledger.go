package lock

import (
	"cmp"
	"slices"
)

// A Ledger derives terms from ops and says whose an op is. Its owner tells it
// of requests and replies in the order in which they happened. Its memory is
// bounded unless [Ledger.KeepAll] was called: closed terms, keys and candidates
// are forgotten, oldest first, when there are too many. A term is not forgotten
// while it is open, while an op of it has no answer yet on a connection that has
// not ended, or while a transaction that it wrote in is open.
type Ledger struct {
	decls   declarations
	keepAll bool
	next    TermID

	terms   map[TermID]*Term
	open    []*Term // in no order: see Term.at
	swept   int     // the open term that is looked at next
	retired []*Term // those that may be forgotten, oldest first
	keys    map[LockID]*keyState
	near    *keyState // of keys, the last that was asked for
	keyLine []LockID  // keys, oldest first
	keyRoom int       // how many there may be before some are forgotten, if more than maxKeys
	actors  map[string]*actorState
	conns   map[uint64]*connState
	tokens  map[string][]*Term // by token hash
	fences  map[fenceID][]*Term
	traces  map[string][]*Term // by the trace of a statement that is theirs
	tables  map[string]bool    // written inside a section
	columns map[columnID]*columnState

	names     groupNames
	groups    map[string]*groupState
	groupLine []string // oldest first
	counters  counters // keys that issue fences, and those that only count

	servers  servers        // of Redis
	quorums  keySet         // locks that several servers, or keys, are known to grant together
	families map[LockID]int // of keys of one server that do, by their common name: how many
	ballots  ballots
	ghosts   ghosts

	candidates int
	storeLine  []LockID // where the candidates are, oldest first
	promoted   keySet
	data       keySet          // stored keys that a survey found to be no locks
	tasks      map[string]bool // processes in which it found several sections at once, or that were seen to have had
	parallel   map[string]bool // those that were seen to have written on two connections at once

	handed map[holding][]string // the other processes that a survey saw to use a token
}

type keyState struct {
	id      LockID
	group   *groupState
	current *Term // granted last, and not removed since
	latest  *Term // granted last, whether or not it is there still
	terms   []*Term
	recent  []*Term // the last few that are members, open or not
	lock    bool    // a lock by declaration, exclusive creation or promotion
	storing bool    // a Store is a grant: it was declared, or promoted
	stores  []*Op   // candidates
	owned   int     // compare-and-deletes of a stored token by whoever stored it
	foreign int     // by somebody else
	byToken map[string][]*Term
}

type actorState struct {
	open []*Term // but for those that span a transaction
	// several: it has had two sections open at once that were not of one task; see tasks
	several  bool
	parallel bool // it has written on two connections at once
	// left are terms that were superseded and whose release was never asked
	// for: another task of the process may still be in their section
	left     []*Term
	sessions map[uint64]bool
	refused  map[LockID]*Op
	writing  map[uint64]int // writes without an answer, by session
}

type connState struct {
	actor   string
	used    []*Term // open terms of this connection, beyond doubt
	last    *Term   // the last that a statement here was certainly of
	spans   []*Term // open terms that span the session
	inTx    []*Term // open terms that span the transaction tx
	tx      uint64
	begun   *Op         // the Begin of tx, if it was seen
	writes  Attribution // whose writes the transaction has
	wrote   []*Term     // pinned by it
	leases  []effect    // what the transaction did to lease tables
	endings []ending    // ends of transactions without an answer
	asked   []question  // ops without an answer that need their term
	// renewals that have no answer yet, and the term that each would move
	renewals []renewal
}

// NewLedger returns an empty ledger that knows what the user declared.
func NewLedger(decls []Declaration) *Ledger {
	return &Ledger{
		decls:    decls,
		terms:    map[TermID]*Term{},
		keys:     map[LockID]*keyState{},
		actors:   map[string]*actorState{},
		conns:    map[uint64]*connState{},
		tokens:   map[string][]*Term{},
		fences:   map[fenceID][]*Term{},
		traces:   map[string][]*Term{},
		tables:   map[string]bool{},
		columns:  map[columnID]*columnState{},
		names:    groupNames{},
		groups:   map[string]*groupState{},
		families: map[LockID]int{},
		tasks:    map[string]bool{},
		parallel: map[string]bool{},
	}
}

// KeepAll makes the ledger forget nothing.
func (l *Ledger) KeepAll() { l.keepAll = true }

// Request notes that a request was read (Seq and A are set) and sets op.Term.
// A release request of a term closes its section, and so does the end of the
// transaction that it spans.
//
// A Read that belongs to no term leaves no trace: such reads need not be in a
// history, and one that is replayed without them must say the same.
func (l *Ledger) Request(op *Op) {
	if l.Ignores(op) {
		return
	}
	if op.Kind == Read {
		l.attribute(op)
		l.ask(op)
		return
	}
	l.meet(op)
	switch op.Kind {
	case Acquire:
		l.requestAcquire(op)
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
		l.requestWrite(op)
	case Begin:
		l.conns[op.Session].begin(op)
	case Commit, Rollback:
		l.requestEnd(op)
	}
	l.ask(op)
}

// Reply notes that a reply was read (ReplySeq, R and Outcome are set): it
// opens terms, moves lease ends and notes fences. An Acquire's, or a Store's,
// op.Term becomes the new term, and a statement that took a lock of its own
// transaction becomes that one's. When it has returned the ledger changes op no
// more; what it keeps of it, it only reads.
func (l *Ledger) Reply(op *Op) {
	if l.Ignores(op) {
		return
	}
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
	case Read:
		l.tookOwn(op)
	case Write:
		l.tookOwn(op)
		l.replyWrite(op)
	case Commit, Rollback:
		l.replyEnd(op)
	}
	l.answer(op)
	if op.Guessed && op.Outcome == Done { // of a script that was not seen: it may have taken the lock
		l.Forgive(op)
	}
}

// Ignores reports whether an op is about a key that is declared, or known, to be no
// lock: the ledger takes no note of it.
func (l *Ledger) Ignores(op *Op) bool {
	switch op.Kind {
	case Acquire, Store, Renew, Release:
		return !op.All && l.decls.ignored(op.Key)
	}
	return false
}

// Closed notes the end of a session. Sections whose process has no connection
// left end with it, and so do those whose grant was not delivered, and those that
// span the session or its transaction. A renewal that was not forwarded by then
// never will be: it puts no lease's end in doubt.
func (l *Ledger) Closed(session uint64, at Instant) {
	conn := l.conns[session]
	if conn == nil {
		return
	}
	l.unanswered(conn)
	delete(l.conns, session)
	a := l.actors[conn.actor]
	delete(a.sessions, session)
	delete(a.writing, session)
	for _, t := range slices.Concat(conn.inTx, conn.spans) {
		t.last(0, Never)
		l.end(t, at, Closed)
	}
	l.unpin(conn)
	last := len(a.sessions) == 0
	for _, t := range slices.Clone(a.open) {
		switch {
		case last && t.leftBy(conn.actor), t.Session == session && t.Grant.D == 0 && !t.reread && t.Votes == nil:
			l.end(t, at, Closed)
		}
	}
	if last {
		l.leaves(conn.actor, a)
	}
}

// leaves forgets a process that has no connection left, but for whether it has several
// tasks: it may be back.
func (l *Ledger) leaves(label string, a *actorState) {
	delete(l.actors, label)
	if AddressOnly(label) {
		return
	}
	if a.tasks() && len(l.tasks) < maxSurveyed {
		l.tasks[label] = true
	}
	if a.parallel && len(l.parallel) < maxSurveyed {
		l.parallel[label] = true
	}
}

// Term returns a term, or nil when it is unknown or forgotten.
func (l *Ledger) Term(id TermID) *Term { return l.terms[id] }

// Terms returns the terms that are remembered, by ID.
func (l *Ledger) Terms() []*Term {
	out := make([]*Term, 0, len(l.terms))
	for _, t := range l.terms {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *Term) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Open returns the open terms of all locks, by ID.
func (l *Ledger) Open() []*Term {
	out := slices.Clone(l.open)
	slices.SortFunc(out, func(a, b *Term) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Ended returns the terms that have ended since an instant, the last first, as far as they are remembered and nothing
// needs them any more: at most so many.
func (l *Ledger) Ended(since Instant, most int) (out []*Term) {
	for _, t := range slices.Backward(l.retired) {
		if len(out) == most || t.End < since {
			break
		}
		out = append(out, t)
	}
	return out
}

// OpenTerms returns the open terms of a process, in the order of their grants.
// Once-markers are not among them, and neither are locks that span a transaction:
// those say nothing about what happens outside of it.
func (l *Ledger) OpenTerms(actor string) []*Term {
	if a := l.actors[actor]; a != nil {
		return slices.Clone(a.open)
	}
	return nil
}

// HasOpen reports whether OpenTerms returns any.
func (l *Ledger) HasOpen(actor string) bool {
	a := l.actors[actor]
	return a != nil && len(a.open) > 0
}

// InTransaction reports whether a lock that spans a transaction is held on one of a
// process's connections, or on the one that is named, if that is not 0. What spans the
// transaction of one statement is over with that.
func (l *Ledger) InTransaction(actor string, session uint64) bool {
	a := l.actors[actor]
	if a == nil {
		return false
	}
	for s := range a.sessions {
		if conn := l.conns[s]; conn != nil && (session == 0 || s == session) && slices.ContainsFunc(conn.inTx, (*Term).lastsOn) {
			return true
		}
	}
	return false
}

// Protected reports whether a table was declared, or written inside a section.
func (l *Ledger) Protected(table string) bool {
	table = TableName(table)
	return l.tables[table] || slices.ContainsFunc(l.decls, func(d Declaration) bool {
		return d.Table != "" && TableName(d.Table) == table
	})
}

// Refused returns the process's last acquire of the lock if it was not
// granted, or nil.
func (l *Ledger) Refused(actor string, id LockID) *Op {
	if a := l.actors[actor]; a != nil {
		return a.refused[id]
	}
	return nil
}

// Forgive forgets that the lock of an acquire was refused to its process before: it
// has had an answer since that could not be read, and may have the lock.
func (l *Ledger) Forgive(op *Op) {
	if a := l.actors[op.Actor]; a != nil {
		delete(a.refused, IDOf(op))
		delete(a.refused, l.LockOf(op))
	}
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
		l.actor(op.Actor).sessions[op.Session] = true
	}
	l.servers.meet(op)
}

func (l *Ledger) actor(label string) *actorState {
	a := l.actors[label]
	if a == nil {
		a = &actorState{sessions: map[uint64]bool{}, refused: map[LockID]*Op{}, writing: map[uint64]int{},
			several: l.tasks[label], parallel: l.parallel[label]}
		l.actors[label] = a
	}
	return a
}

// known returns what there is of a key, or nil. What asks of one op asks of one key.
func (l *Ledger) known(id LockID) *keyState {
	if l.near != nil && l.near.id == id {
		return l.near
	}
	k := l.keys[id]
	if k != nil {
		l.near = k
	}
	return k
}

func (l *Ledger) key(id LockID) *keyState {
	k := l.known(id)
	if k == nil {
		known := l.decls.lock(id.Key)
		known = known || l.promoted[id]
		k = &keyState{id: id, group: l.groupOf(id), lock: known, storing: known}
		l.keys[id] = k
		l.keyLine = append(l.keyLine, id)
		l.forgetKeys()
	}
	return k
}
