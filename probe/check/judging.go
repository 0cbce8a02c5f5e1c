package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// How many ops are judged at once, and how many are kept in mind for what goes on.
const (
	windowOps = 1 << 13
	mostKept  = 1 << 16
)

// A Judging judges a history as it is told of it: op by op, in whatever order the
// history has them. What it keeps is what something that is still going on may
// touch: an open term, a transaction, an op without its reply. From time to time it
// judges what that cannot reach any more, each thing once, and forgets it.
//
// What goes on for longer than it keeps ops (65536 of them) is judged from what is
// left, and no verdict about it is more than LIKELY.
type Judging struct {
	*carry
	queue  *queue
	window int
	kept   int // how many ops may be kept before something is let go of
	room   int // how many courses are looked at in one case

	ops     []*lock.Op // what the view is made of, by request
	terms   []*lock.Term
	strays  []stray
	term    map[lock.TermID]*lock.Term
	seen    lock.TermID          // the last term that was met
	judged  map[*lock.Op]bool    // of ops, those that were judged already
	crowded map[*lock.Op]bool    // of ops, those of a cluster that is too large
	closed  map[lock.TermID]bool // of terms, likewise
	asked   map[*lock.Op]bool    // without their reply so far
	txs     map[uint64]openTx    // by session
	pinned  map[lock.TermID]bool // terms that went on for longer than ops are kept
	now     lock.Instant         // the latest instant told of
	fresh   int                  // ops since the last cut
}

// An openTx is the transaction that a session is in.
type openTx struct {
	n     uint64
	first *lock.Op
}

// NewJudging returns a judging of the history that the survey is of.
func NewJudging(setup Setup, known *Survey) *Judging {
	j := &Judging{
		carry: newCarry(setup, known), window: windowOps, kept: mostKept, room: mostCourses * mostClusters,
		term: map[lock.TermID]*lock.Term{}, judged: map[*lock.Op]bool{}, crowded: map[*lock.Op]bool{}, closed: map[lock.TermID]bool{}, asked: map[*lock.Op]bool{},
		txs: map[uint64]openTx{}, pinned: map[lock.TermID]bool{},
	}
	j.queue = newQueue(known, j.tell)
	return j
}

// Op takes in an op. It is the judging's from then on.
func (j *Judging) Op(op *lock.Op) {
	op.Term = lock.Attribution{}
	j.queue.op(op)
}

// End takes in the end of a session.
func (j *Judging) End(e End) { j.queue.end(e) }

// Gap takes in a gap.
func (j *Judging) Gap(g Gap) {
	j.out.Facts.Gaps++
	j.gap = max(j.gap, g.At)
}

// Result judges what is left and says everything that there is to say.
func (j *Judging) Result() Result {
	j.queue.flush()
	j.cut(lock.Never)
	return j.result()
}

// tell passes an event on to the ledger.
func (j *Judging) tell(e event) {
	j.now = max(j.now, e.at)
	switch {
	case e.end != nil:
		j.ledger.Closed(e.end.Session, e.end.At)
		j.over(e.end.Session, e.end.At)
		delete(j.txs, e.end.Session)
		maps.DeleteFunc(j.lastRead, func(r reading, _ *lock.Op) bool { return r.session == e.end.Session })
		j.end = max(j.end, e.end.At)
	case e.reply:
		j.ledger.Reply(e.op)
		delete(j.asked, e.op)
		j.ended(e.op)
	default:
		j.request(e.op)
	}
	for t := j.ledger.Term(j.seen + 1); t != nil; t = j.ledger.Term(j.seen + 1) {
		j.granted(t)
	}
	if j.fresh >= j.window && !e.reply {
		j.cut(j.horizon())
	}
}

func (j *Judging) request(op *lock.Op) {
	j.ledger.Request(op)
	j.end = max(j.end, op.A, op.F, op.R, op.D, op.Z)
	j.ops = append(j.ops, op)
	j.fresh++
	if answered(op) {
		j.asked[op] = true
	}
	j.began(op)
	if op.Kind == lock.Renew || op.Kind == lock.Store {
		j.unsent(op)
	}
	if op.Kind == lock.Write && !j.ofSection(op) && !j.ledger.HasOpen(op.Actor) {
		if refused := j.notGranted(op.Actor); len(refused) > 0 {
			j.strays = append(j.strays, stray{op: op, refused: refused})
		}
	}
	if _, known := j.lastAsked[op.Actor]; known || len(j.lastAsked) < mostActors {
		j.lastAsked[op.Actor] = op
	}
	if op.Token.Known() && (op.Kind == lock.Acquire && !answered(op) || len(j.hanging) > 0) {
		j.hangs(op)
	}
	if op.Kind == lock.Acquire && !answered(op) {
		j.unanswered(op)
	}
	j.recall(op.Term.ID)
	for _, id := range op.Term.Also {
		j.recall(id)
	}
	for _, id := range op.Term.Within {
		j.recall(id)
	}
}

// ofSection reports whether an op is certainly of a section: of more than the rows
// that its own transaction locked, which guard it as any UPDATE guards its row.
func (c *carry) ofSection(op *lock.Op) bool {
	return op.Term.Sure() && slices.ContainsFunc(append([]lock.TermID{op.Term.ID}, op.Term.Within...), func(id lock.TermID) bool {
		t := c.ledger.Term(id)
		return t == nil || !strings.HasPrefix(t.Lock.Key, "row:")
	})
}

// unsent tells the ledger that a renewal which never left the proxy had no effect,
// as the end of its session told the daemon's: a history may lack that end.
func (j *Judging) unsent(op *lock.Op) {
	if op.F == 0 && op.R == 0 && op.Outcome == lock.Failed {
		j.ledger.Reply(op)
	}
}

// granted takes in a new term.
func (j *Judging) granted(t *lock.Term) {
	j.seen = t.ID
	j.terms = append(j.terms, t)
	j.term[t.ID] = t
	j.tasks(t)
	delete(j.unheard[t.Actor], t.Lock)
}

// recall takes a term that was judged into view again: something of it came late.
func (j *Judging) recall(id lock.TermID) {
	if id == 0 || j.term[id] != nil || id > j.seen {
		return
	}
	if t := j.ledger.Term(id); t != nil {
		at, _ := slices.BinarySearchFunc(j.terms, id, func(t *lock.Term, id lock.TermID) int { return int(t.ID) - int(id) })
		j.terms = slices.Insert(j.terms, at, t)
		j.term[id], j.closed[id], j.pinned[id] = t, true, true
	}
}

// began notes which transaction a session is in.
func (j *Judging) began(op *lock.Op) {
	if op.Proto != lock.Postgres {
		return
	}
	if op.Tx == 0 || op.Implicit {
		delete(j.txs, op.Session)
		return
	}
	if t, ok := j.txs[op.Session]; !ok || t.n != op.Tx {
		j.txs[op.Session] = openTx{op.Tx, op}
	}
	if !answered(op) && over(op) {
		delete(j.txs, op.Session)
	}
}

// ended notes that a transaction is over.
func (j *Judging) ended(op *lock.Op) {
	if t, ok := j.txs[op.Session]; ok && t.n == op.Tx && over(op) {
		delete(j.txs, op.Session)
	}
}

// over reports whether an op ends its transaction.
func over(op *lock.Op) bool {
	return op.Kind == lock.Commit || op.Kind == lock.Rollback && !op.Savepoint
}

// view makes a case of what is in view, whose subjects are what ended before the
// horizon and was not judged yet.
func (j *Judging) view(horizon lock.Instant) *kase {
	c := newCase(j.carry)
	c.ops, c.all, c.strays, c.horizon, c.room = j.ops, j.terms, j.strays, horizon, j.room
	c.judged, c.crowded, c.closed, c.pinned, c.byID, c.within = j.judged, j.crowded, j.closed, j.pinned, j.term, j.txs
	return c
}

// cut judges what ended before the horizon, and forgets what nothing can reach.
func (j *Judging) cut(horizon lock.Instant) {
	c := j.view(horizon)
	c.judge()
	if horizon == lock.Never {
		return
	}
	j.fresh = 0
	j.forget(c)
}
