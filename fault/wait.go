package fault

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Condition is one thing that a gate waits for. All but the first and the last speak of another
// term of the same lock than the held op's.
type Condition string

// The conditions; "signal:" and a name is another.
const (
	LeaseExpired Condition = "lease-expired" // the lease of the held op's own term has certainly ended by itself
	NextAcquire  Condition = "next-acquire"  // another was granted the lock
	NextRead     Condition = "next-read"     // another has read the row and not yet written it
	NextWrite    Condition = "next-write"    // another has written the row, and that is committed
	NextRelease  Condition = "next-release"  // another has given the lock back
)

// ofTheLock reports whether the condition is about what others do with the lock.
func (c Condition) ofTheLock() bool { return c != LeaseExpired && c.Signal() == "" }

// Conditions are those of a gate, as a rule has them: with + between them; "" stands for none. All
// of them have to come about.
type Conditions string

// All lists them.
func (c Conditions) All() []Condition {
	if c == "" {
		return nil
	}
	var out []Condition
	for one := range strings.SplitSeq(string(c), "+") {
		out = append(out, Condition(one))
	}
	return out
}

// Has reports whether one is among them.
func (c Conditions) Has(one Condition) bool { return slices.Contains(c.All(), one) }

// ofTheLock reports whether one of them is about what others do with the lock.
func (c Conditions) ofTheLock() bool { return slices.ContainsFunc(c.All(), Condition.ofTheLock) }

func (c Conditions) with(one Condition) Conditions {
	if c == "" {
		return Conditions(one)
	}
	return c + "+" + Conditions(one)
}

// leastTimeout bounds a gate that was given no timeout from below.
const leastTimeout = 5 * time.Second

// patience is how long a gate is waited at: what timeout= says, or max(5 s, 4 x ttl), but no longer
// than a freeze may last.
func (r *Rule) patience(ttl time.Duration, l Limits) time.Duration {
	d := r.Timeout
	if d == 0 {
		d = max(leastTimeout, 4*min(ttl, longest/4))
		if r.Do == Freeze {
			d = min(d, l.freeze(ttl))
		}
	}
	return d
}

// A Wait is that of one held op at a gate: it is told what happens, and says when all that it waits
// for has come about. It is not safe for concurrent use, and reads an op only while it is told of it.
type Wait struct {
	lock  lock.LockID
	own   lock.TermID // the held op's; 0: none
	table string      // of the held op, "" for one of no table
	where []lock.Cond // of the held op
	sets  []string    // columns that it sets

	open     map[Condition]bool // what is still waited for
	all      []Condition
	met      []Met
	readers  map[lock.TermID]bool  // have read the row, and not written it since
	writing  map[uint64][]*lock.Op // by session: wrote the row in a transaction that goes on
	renewals int                   // of the own term meanwhile
	renewer  uint64                // session of the last one
	early    uint64                // session that gave the lock of the own term back meanwhile
	crowded  uint64                // session of one who wants the lock and is frozen too
	waiting  uint64                // session of another that waits for a row's lock
	holding  uint64                // session that has it, and is held
	refusals int                   // of others
	grants   int                   // to others
	late     int                   // grants that were told of too late
}

// A Met is a condition that has come about.
type Met struct {
	Condition Condition
	At        lock.Instant
	Op        uint64 // Seq of the op that it was; 0: of none
}

// NewWait returns the wait of an op, of its own term (0: of none) of a lock.
func NewWait(conditions Conditions, id lock.LockID, own lock.TermID, op *lock.Op) *Wait {
	w := &Wait{lock: id, own: own, all: conditions.All(), open: map[Condition]bool{}, readers: map[lock.TermID]bool{}, writing: map[uint64][]*lock.Op{}}
	for _, c := range w.all {
		w.open[c] = true
	}
	if op.SQL != nil {
		w.table, w.where = lock.TableName(op.SQL.Table), op.SQL.Where
		for _, a := range op.SQL.Set {
			w.sets = append(w.sets, a.Column)
		}
	}
	return w
}

// Over reports whether everything has come about.
func (w *Wait) Over() bool { return len(w.open) == 0 }

// Waits reports whether a condition has not come about yet.
func (w *Wait) Waits(c Condition) bool { return w.open[c] }

// WaitsOnlyFor reports whether a condition is all that has not come about yet.
func (w *Wait) WaitsOnlyFor(c Condition) bool { return len(w.open) == 1 && w.open[c] }

// Met lists what has come about, in its order.
func (w *Wait) Met() []Met { return w.met }

// Lock is the lock that the conditions speak of, and Own the held op's term of it.
func (w *Wait) Lock() lock.LockID { return w.lock }

// Own is the held op's term, 0 if it is of none.
func (w *Wait) Own() lock.TermID { return w.own }

func (w *Wait) meet(c Condition, op uint64, now lock.Instant) {
	if w.open[c] {
		delete(w.open, c)
		w.met = append(w.met, Met{c, now, op})
	}
}

// Lapsed tells that the lease of the own term has certainly ended.
func (w *Wait) Lapsed(now lock.Instant) {
	if w.early == 0 {
		w.meet(LeaseExpired, 0, now)
	}
}

// GaveBack tells that a session of its owner has given back the own term's lock, whose lease ends by itself
// no more.
func (w *Wait) GaveBack(session uint64) { w.early = session }

// Crowded tells that those who are known to want the lock are frozen with the held op's process: session is
// of one of them.
func (w *Wait) Crowded(session uint64) { w.crowded = session }

// Blocked tells that a session of another waits for a row that a session which is held has locked.
func (w *Wait) Blocked(waiting, holding uint64) { w.waiting, w.holding = waiting, holding }

// Late tells of a grant that came to be known when its reply had gone on: what it led to is not heard.
func (w *Wait) Late() { w.late++ }

// NeedsOthers reports whether something that others do with the lock is still waited for.
func (w *Wait) NeedsOthers() bool {
	return slices.ContainsFunc(w.all, func(c Condition) bool { return w.open[c] && c.ofTheLock() })
}

// Hopeless reports whether something is waited for that cannot come about any more.
func (w *Wait) Hopeless() bool { return w.open[LeaseExpired] && w.early != 0 }

// Signal tells that a signal was given.
func (w *Wait) Signal(name string, now lock.Instant) { w.meet(OfSignal(name), 0, now) }

// Replied tells of an op that was answered, and that is of the term and of its lock; the zero values
// stand for none.
func (w *Wait) Replied(op *lock.Op, of lock.TermID, id lock.LockID, now lock.Instant) {
	switch op.Kind {
	case lock.Commit:
		w.committed(op, now)
		return
	case lock.Rollback:
		w.undone(op)
		return
	}
	switch {
	case id != w.lock:
	case of != 0 && of == w.own:
		w.ownOp(op)
	default:
		w.othersOp(op, of, now)
	}
}

func (w *Wait) ownOp(op *lock.Op) {
	if op.Kind == lock.Renew && op.Outcome == lock.Done {
		w.renewals++
		w.renewer = op.Session
	}
}

func (w *Wait) othersOp(op *lock.Op, of lock.TermID, now lock.Instant) {
	switch {
	case op.Kind == lock.Acquire && op.Outcome == lock.Refused:
		w.refusals++
	case (op.Kind == lock.Acquire && op.Outcome == lock.Granted || op.Kind == lock.Store && op.Outcome == lock.Done) && of != 0:
		w.grants++
		w.meet(NextAcquire, op.Seq, now)
	case op.Kind == lock.Release && op.Outcome == lock.Done && of != 0:
		w.meet(NextRelease, op.Seq, now)
	case op.Outcome == lock.Done && of != 0 && w.touches(op):
		w.worked(op, of, now)
	}
}

// worked takes in a statement on the row by another term.
func (w *Wait) worked(op *lock.Op, of lock.TermID, now lock.Instant) {
	switch {
	case op.Kind == lock.Read, op.Kind == lock.Write && op.Rows > 0 && claims(op.SQL):
		w.readers[of] = true
		w.meet(NextRead, op.Seq, now)
	case op.Kind != lock.Write || op.Rows == 0:
		return
	}
	if op.Kind != lock.Write {
		return
	}
	if !claims(op.SQL) {
		w.wrote(of)
	}
	if op.Implicit && op.Z == 0 || !op.Implicit {
		w.writing[op.Session] = append(w.writing[op.Session], op)
		return
	}
	w.meet(NextWrite, op.Seq, now)
}

// wrote ends a window between a read and a write: it has to be another's that opens the gate, unless
// it has opened.
func (w *Wait) wrote(of lock.TermID) {
	delete(w.readers, of)
	if len(w.readers) > 0 || !slices.Contains(w.all, NextRead) || w.Over() {
		return
	}
	w.open[NextRead] = true
	w.met = slices.DeleteFunc(w.met, func(m Met) bool { return m.Condition == NextRead })
}

// undone drops what a ROLLBACK, or one to a savepoint, took back: all of it, where that is not told.
func (w *Wait) undone(op *lock.Op) {
	if op.Outcome != lock.Done {
		return
	}
	w.drop(op.Session, func(wrote *lock.Op) bool { return !op.Savepoint || op.Since == 0 || wrote.Seq >= op.Since })
}

func (w *Wait) drop(session uint64, which func(wrote *lock.Op) bool) {
	if left := slices.DeleteFunc(w.writing[session], which); len(left) > 0 {
		w.writing[session] = left
	} else {
		delete(w.writing, session)
	}
}

// Left tells that a session has ended, and with it the transaction that it was in.
func (w *Wait) Left(session uint64) { delete(w.writing, session) }

// Settled tells that the implicit transaction of a statement has ended, by its outcome well or not.
func (w *Wait) Settled(op *lock.Op, now lock.Instant) {
	if !slices.Contains(w.writing[op.Session], op) {
		return
	}
	w.drop(op.Session, func(wrote *lock.Op) bool { return wrote == op })
	if op.Outcome == lock.Done {
		w.meet(NextWrite, op.Seq, now)
	}
}

func (w *Wait) committed(op *lock.Op, now lock.Instant) {
	wrote := w.writing[op.Session]
	delete(w.writing, op.Session)
	if len(wrote) > 0 && op.Outcome == lock.Done {
		w.meet(NextWrite, wrote[0].Seq, now)
	}
}

// claims reports whether a write returns what it does not set: it reads the row, to write it later.
func claims(s *lock.Statement) bool {
	return slices.ContainsFunc(s.Columns, func(c string) bool {
		return !slices.ContainsFunc(s.Set, func(a lock.Assign) bool { return a.Column == c })
	})
}

// touches reports whether a statement may be of the row of the held op; of any that one of a term works
// on, if the held op has none.
func (w *Wait) touches(op *lock.Op) bool {
	if op.SQL == nil || w.table == "" {
		return op.SQL != nil
	}
	return lock.TableName(op.SQL.Table) == w.table && !apart(w.where, op.SQL.Where)
}

// apart reports whether two conditions ask a column that both name to be two values, so that they
// choose two rows. A column that a fence is compared with differs between statements on one row, so
// only equalities count.
func apart(a, b []lock.Cond) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Op == "=" && y.Op == "=" && x.Column == y.Column && x.Value.Known() && y.Value.Known() && !x.Value.Same(y.Value) {
				return true
			}
		}
	}
	return false
}

// Why says, of a gate that did not open in time, what kept it shut.
func (w *Wait) Why() string {
	waited := Conditions("")
	for _, c := range w.all {
		if w.open[c] {
			waited = waited.with(c)
		}
	}
	return "waited in vain for " + string(waited) + ": " + w.Reason()
}

// Reason is what keeps a gate shut.
func (w *Wait) Reason() string {
	switch {
	case w.Hopeless():
		return "finished early: connection " + strconv.FormatUint(w.early, 10) + " gave the lock back while the op was held"
	case w.open[LeaseExpired] && w.renewals > 0:
		return "renewed by heartbeat: " + times(w.renewals) + ", last on connection " + strconv.FormatUint(w.renewer, 10)
	case w.waiting != 0:
		return "contender blocked by a row lock: connection " + strconv.FormatUint(w.waiting, 10) + " waits for connection " + strconv.FormatUint(w.holding, 10) + ", whose transaction is held"
	case w.late > 0 && w.NeedsOthers():
		return "a witness told too late that the lock was granted, " + times(w.late) + ": what came of it was not heard"
	case w.grants > 0:
		return "others were granted the lock " + times(w.grants)
	case w.refusals > 0:
		return "others were refused the lock " + times(w.refusals)
	case !w.NeedsOthers():
		return "it did not come about"
	case w.crowded != 0:
		return "its contenders run in what is frozen: connection " + strconv.FormatUint(w.crowded, 10) + " asked for the lock; a stall leaves them running"
	}
	return "no contender: nobody else asked for the lock"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
