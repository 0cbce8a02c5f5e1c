package resp

import "github.com/lockfaultd/lockfaultd/lock"

// A reading is how a reply tells an op's outcome.
type reading uint8

const (
	readDone     reading = iota // whatever is no error
	readOK                      // OK, or nil for no
	readCount                   // the number of keys that it took effect on
	readChanged                 // the same, but 0 says nothing of whether the key is there
	readAbsent                  // SET NX GET: the old value, nil if there was none
	readPresent                 // SET XX GET
	readDeadline                // the deadline that was replaced: see replaced
	readUnclear                 // cannot be told
	readFence                   // the number issued
	readScript                  // as the script's text suggests
	readGuess                   // as its arguments suggest
)

// counted reports whether the reply is no array, whatever comes of the op.
func (d *ask) counted() bool {
	switch d.read {
	case readOK, readCount, readChanged, readFence:
		return true
	}
	return false
}

// judge fills in the reply's part of the op.
func (d *ask) judge(op *lock.Op, a *answer) {
	if a.isError() {
		op.Outcome, op.Err = lock.Failed, a.word()
		return
	}
	switch d.read {
	case readDone:
		op.Outcome = lock.Done
	case readOK:
		op.Outcome = verdict(op, a.is("OK"), a.isNull())
	case readCount:
		op.Outcome = d.count(op, a)
	case readChanged:
		op.Outcome = d.count(op, a)
		if op.Outcome == lock.NotHeld {
			op.Outcome = lock.Failed
		}
	case readAbsent:
		op.Outcome = verdict(op, a.isNull(), !a.isNull())
	case readPresent:
		op.Outcome = verdict(op, !a.isNull(), a.isNull())
	case readDeadline:
		op.Outcome = replaced(op, a)
	case readFence:
		op.Outcome = lock.Unknown
		if n, ok := a.integer(); ok {
			op.Outcome, op.Fence, op.HasFence = lock.Done, n, true
		}
	case readScript:
		op.Outcome = d.ofScript(op, a)
	case readGuess:
		op.Outcome = ofGuess(op, a)
	default:
		op.Outcome = lock.Unknown
	}
}

// verdict words a yes or a no for the op's kind; neither is Unknown.
func verdict(op *lock.Op, yes, no bool) lock.Outcome {
	switch {
	case yes && op.Kind == lock.Acquire:
		return lock.Granted
	case yes:
		return lock.Done
	case no && op.Kind == lock.Acquire:
		return lock.Refused
	case no:
		return lock.NotHeld
	}
	return lock.Unknown
}

// replaced reads the value in whose place a deadline was stored. If that was a
// deadline and is over, the client has taken the lock. The op's TTL, which whoever
// has a clock fills in at the request, tells when it is; without it that is not known.
func replaced(op *lock.Op, a *answer) lock.Outcome {
	old := deadline(a.text())
	switch {
	case a.isNull():
		return lock.Granted
	case old == 0 || op.TTL == 0:
		return lock.Unknown
	}
	return verdict(op, old < op.Until-op.TTL.Milliseconds(), true)
}

// count reads a number of keys. Of some but not all of several keys it cannot
// be told which.
func (d *ask) count(op *lock.Op, a *answer) lock.Outcome {
	n, ok := a.integer()
	return verdict(op, ok && n == d.keys, ok && n == 0)
}

func (d *ask) ofScript(op *lock.Op, a *answer) lock.Outcome {
	if op.Kind == lock.Acquire {
		return d.ofAcquire(op, a)
	}
	n, isInt := a.integer()
	switch {
	case d.script.hasSuccess && isInt:
		return verdict(op, n == d.script.success, true)
	case d.script.vague:
		return lock.Unknown
	case d.keys > 1 && n > 0 && n < d.keys:
		return lock.Unknown
	}
	return verdict(op, isInt && n > 0 || a.is("OK"), isInt || a.isNull())
}

func (d *ask) ofAcquire(op *lock.Op, a *answer) lock.Outcome {
	n, isInt := a.integer()
	granted, refused := d.granted(a, n, isInt)
	out := verdict(op, granted, refused)
	if out != lock.Granted || op.FenceKey == "" {
		return out
	}
	switch {
	case isInt && a.kind != '#':
		op.Fence, op.HasFence = n, true
	case a.isArray() && d.script.fenceFirst && a.lead:
		op.Fence, op.HasFence = a.first, true
	case a.isArray() && a.ints > 0:
		op.Fence, op.HasFence = a.last, true
	}
	return out
}

// granted reads the answer of an acquire script. Text that is no number is
// what such a script returns when it has taken the lock: its token, or OK.
func (d *ask) granted(a *answer, n int64, isInt bool) (yes, no bool) {
	p := d.script
	says := p.says(a)
	switch {
	case p.hasOwn && a.isArray() && (a.nulls|a.zeros)>>p.own&1 == 1:
		return false, true
	case p.hasLead && a.isArray() && a.lead:
		return a.first == p.lead, a.first != p.lead
	case says == granting:
		return true, false
	case says == refusing:
		return false, true
	case says == either:
		return false, false
	case p.vague && !a.is("OK"):
		return false, isInt && n <= 0
	case a.isArray() && !p.hasOwn && a.nulls&1 == 1:
		return false, true
	}
	switch {
	case a.isNull():
		return false, true
	case isInt:
		return n > 0, n <= 0
	case a.isArray():
		return a.above, !a.above
	case a.kind == '+', a.kind == '$':
		return a.n > 0, false
	}
	return false, false
}
