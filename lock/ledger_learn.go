package lock

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// How much is kept by a ledger that runs for long.
const (
	maxTerms      = 8192
	maxKeys       = 8192
	maxCandidates = 4096 // Stores that may turn out to be grants, over all keys
	maxPerKey     = 64   // of those, for one key
	abandonAfter  = 10 * time.Minute
	maxShared     = 256 // terms looked through for one token
	markerAfter   = 3   // lapses in a row
	learnedAfter  = 3   // sections
)

type fenceID int64

type columnID struct{ group, table, column string }

type columnState struct {
	hits, misses int
	last         TermID
}

// A groupState is what was seen of keys that differ only in the parts that
// look like identifiers: once-markers mostly have a key each.
type groupState struct {
	last     *Term
	lapses   int
	seen     bool // a holder released or renewed one
	isMarker bool
}

// kept notes that a holder released or renewed a key: it is a lock.
func (g *groupState) kept() { g.seen, g.isMarker, g.lapses = true, false, 0 }

// group returns a key's shape: every run of letters and digits that has a
// digit in it becomes a star.
func group(id LockID) string {
	var b strings.Builder
	b.WriteString(id.Upstream + "/" + strconv.Itoa(id.DB) + "/")
	word := func(w string) {
		if strings.ContainsAny(w, "0123456789") {
			w = "*"
		}
		b.WriteString(w)
	}
	from := 0
	for i, c := range id.Key {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			continue
		}
		word(id.Key[from:i])
		b.WriteRune(c)
		from = i + len(string(c))
	}
	word(id.Key[min(from, len(id.Key)):])
	return b.String()
}

func (l *Ledger) groupOf(id LockID) *groupState {
	name := group(id)
	g := l.groups[name]
	if g == nil {
		if len(l.groups) > maxKeys && !l.keepAll {
			clear(l.groups)
		}
		g = &groupState{}
		l.groups[name] = g
	}
	return g
}

// lapsed counts how the group's last term ended, and reports whether keys of
// this shape behave as once-markers: taken, and never released.
func (l *Ledger) lapsed(k *keyState, t *Term) bool {
	g := l.groupOf(t.Lock)
	if l.declaredLock(t.Lock.Key) {
		return false
	}
	if last := g.last; last != nil && !g.seen {
		gone := last.Lock == t.Lock || last.Dead(t.Grant.F) || last.Session == t.Session
		if last.Release == nil && gone && (last.Lock != t.Lock || !last.Token.Same(t.Token)) {
			g.lapses++
		}
	}
	g.last = t
	g.isMarker = g.isMarker || g.lapses >= markerAfter
	return g.isMarker
}

// learnFence counts the columns that a section compares with its own fence.
// An equal number that is only assigned is no sign: values rise as fences do.
func (l *Ledger) learnFence(t *Term, op *Op) {
	for _, c := range op.SQL.Where {
		if !c.Value.Known() || c.Op == ">" || c.Op == ">=" || c.Op == "<>" {
			continue
		}
		s := l.column(t, op.SQL.Table, c.Column)
		if !c.Value.IsInt || c.Value.Int != t.Fence {
			s.misses++
		} else if s.last != t.ID {
			s.hits++
			s.last = t.ID
		}
	}
}

func (l *Ledger) column(t *Term, table, column string) *columnState {
	id := columnID{group(t.Lock), TableName(table), column}
	s := l.columns[id]
	if s == nil {
		s = &columnState{}
		l.columns[id] = s
	}
	return s
}

// FenceColumn reports whether a column keeps the fences of the lock: it was
// declared, or three sections compared it with their own fence and none with
// another number.
func (l *Ledger) FenceColumn(id LockID, table, column string) bool {
	for _, d := range l.decls {
		if d.FenceColumn == column && d.FenceColumn != "" && TableName(d.Table) == TableName(table) && d.Covers(id.Key) {
			return true
		}
	}
	s := l.columns[columnID{group(id), TableName(table), column}]
	return s != nil && s.hits >= learnedAfter && s.misses == 0
}

// MayBeFence reports whether a column keeps the fences of the lock, or may turn out
// to: so far its sections compared it with their own fence and with nothing else.
func (l *Ledger) MayBeFence(id LockID, table, column string) bool {
	s := l.columns[columnID{group(id), TableName(table), column}]
	return s != nil && s.hits > 0 && s.misses == 0 || l.FenceColumn(id, table, column)
}

// IsFence reports whether a column keeps the fences of any lock.
func (l *Ledger) IsFence(table, column string) bool {
	for _, d := range l.decls {
		if d.FenceColumn == column && d.FenceColumn != "" && TableName(d.Table) == TableName(table) {
			return true
		}
	}
	for id, s := range l.columns {
		if id.table == TableName(table) && id.column == column && s.hits >= learnedAfter && s.misses == 0 {
			return true
		}
	}
	return false
}

// requestStore treats a plain SET of the current term's token as a renewal in
// flight.
func (l *Ledger) requestStore(op *Op) {
	k := l.keys[IDOf(op)]
	if k == nil || !k.lock || k.current == nil || !k.current.Token.Same(op.Token) {
		return
	}
	op.Term = Attribution{ID: k.current.ID, Confidence: 1}
	l.suspend(k.current, op)
}

func (l *Ledger) replyStore(op *Op) {
	if t := l.terms[op.Term.ID]; t != nil {
		l.replyRenew(op)
		return
	}
	if op.Outcome != Done && op.Outcome != Granted {
		return
	}
	k := l.key(IDOf(op))
	if k.lock {
		l.grantStore(k, op)
		return
	}
	l.candidate(k, op)
}

func (l *Ledger) grantStore(k *keyState, op *Op) {
	if cur := k.current; cur != nil && cur.Token.Same(op.Token) && cur.Session == op.Session {
		cur.set(op)
		cur.Renewals++
		cur.settle()
		return
	}
	l.grant(k, op)
}

// candidate keeps a copy: by the time that the key turns out to be a lock, op is
// its recorder's, who may be reading it.
func (l *Ledger) candidate(k *keyState, op *Op) {
	own := *op
	op = &own
	if len(k.stores) == maxPerKey {
		k.stores = k.stores[1:]
		l.candidates--
	}
	k.stores = append(k.stores, op)
	l.storeLine = append(l.storeLine, IDOf(op))
	l.candidates++
	for l.candidates > maxCandidates && len(l.storeLine) > 0 {
		l.dropCandidate()
	}
	if len(l.storeLine) > 4*maxCandidates {
		l.storeLine = slices.Clone(l.storeLine[len(l.storeLine)-2*maxCandidates:])
	}
}

func (l *Ledger) dropCandidate() {
	old := l.keys[l.storeLine[0]]
	l.storeLine = l.storeLine[1:]
	if old != nil && len(old.stores) > 0 {
		old.stores = old.stores[1:]
		l.candidates--
	}
}

// Promote says that a key is a lock. Its candidate Stores are read again as
// grants, each with its own instants; later ones are grants at once.
func (l *Ledger) Promote(upstream string, db int, key string) {
	k := l.key(LockID{upstream, db, key})
	if k.lock && len(k.stores) == 0 {
		return
	}
	k.lock, k.kept = true, true
	stores := k.stores
	k.stores = nil
	l.candidates -= len(stores)
	for _, op := range stores {
		l.grantStore(k, op)
		if t := l.terms[op.Term.ID]; t != nil && t.Grant == op {
			t.reread = true
		}
	}
}

// promoteBy promotes a key whose compare-and-delete names a stored token.
func (l *Ledger) promoteBy(id LockID, token Value) {
	k := l.keys[id]
	if k != nil && slices.ContainsFunc(k.stores, func(s *Op) bool { return s.Token.Same(token) }) {
		l.Promote(id.Upstream, id.DB, id.Key)
	}
}

func tokenText(v Value) string {
	if v.Hash == "" && v.IsInt {
		return "n" + strconv.FormatInt(v.Int, 10)
	}
	return v.Hash
}
