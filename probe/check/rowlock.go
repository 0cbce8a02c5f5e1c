package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A commonLocks are the locks under which every statement on a row may have been.
type commonLocks struct {
	locks []lock.LockID
	n     int // statements
}

// rowLock takes in what a statement tells of the lock that its row is used under.
func (c *kase) rowLock(op *lock.Op, row string) {
	if row == unknownRow || op.Term.ID == 0 || !c.dueOp(op) {
		return
	}
	k := tableRow{lock.TableName(op.SQL.Table), row}
	may := c.locksOfAny(op)
	s := c.commonOf[k]
	switch {
	case s != nil:
		s.locks = slices.DeleteFunc(s.locks, func(id lock.LockID) bool { return !slices.Contains(may, id) })
	case len(c.commonOf) >= mostCells:
		return
	default:
		s = &commonLocks{locks: may}
		c.commonOf[k] = s
	}
	s.n++
}

// locksOfAny lists the locks of the terms that a statement may be of.
func (c *kase) locksOfAny(op *lock.Op) (out []lock.LockID) {
	for _, id := range append(op.Term.Candidates(), op.Term.Within...) {
		if t := c.byID[id]; t != nil && !t.Marker && t.Span != lock.TxSpan && !slices.Contains(out, t.Lock) {
			out = append(out, t.Lock)
		}
	}
	return out
}

// usedUnder returns the one lock under which all that was done to a row may have been,
// if enough was: likely it is the row's.
func (c *carry) usedUnder(row tableRow) (lock.LockID, int) {
	if s := c.commonOf[row]; s != nil && s.n >= cleanSections && len(s.locks) == 1 {
		return s.locks[0], s.n
	}
	return lock.LockID{}, 0
}
