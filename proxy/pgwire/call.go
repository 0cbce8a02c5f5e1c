package pgwire

import (
	"fmt"
	"slices"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// An Advisory is an advisory lock that a backend holds, as the view pg_locks has
// it: the two halves of a bigint, or two ints.
type Advisory struct {
	ClassID, ObjID uint32
	TwoInts        bool // objsubid is 2
	Shared         bool // mode is ShareLock
}

// Key returns the key of the lock, as that of an op whose number was written out.
func (a Advisory) Key() string {
	if a.TwoInts {
		return fmt.Sprintf("advisory:%d:%d", int32(a.ClassID), int32(a.ObjID))
	}
	return fmt.Sprintf("advisory:%d", int64(uint64(a.ClassID)<<32|uint64(a.ObjID)))
}

func (a Advisory) id() sharedKey { return sharedKey{a.Key(), a.Shared} }

// A Call is a statement that does something to advisory locks which the wire does
// not tell: it computes their keys, or uses what the function returns for itself.
// It implements [wire.Call].
type Call struct {
	tracker *Tracker
	locks   []held
	told    []Advisory
	known   bool
}

// PID returns the process id of the backend that runs the statement.
func (c *Call) PID() int32 { return c.tracker.BackendPID() }

// Told says which advisory locks the backend holds when the statement has been
// answered: all of them, before it is asked to do anything else.
func (c *Call) Told(held []Advisory) { c.told, c.known = held, true }

// Later implements [wire.Call]: what a backend holds by then says nothing of the
// statement any more.
func (c *Call) Later(bool) wire.Later { return nil }

// Resolve implements [wire.Call]. The ops that it returns are of locks beyond
// those that the statement's calls stand for: one call may take several.
func (c *Call) Resolve(replied bool) []*lock.Op {
	a := &c.tracker.advised
	a.calls--
	if !replied || !c.known {
		return nil
	}
	came, went := a.compare(c.told)
	if a.calls > 0 || len(came) > c.most() {
		return nil // another statement has had its effect as well
	}
	var last *held
	for i := range c.locks {
		l := &c.locks[i]
		if l.class != "advisory" || l.all || l.op.Outcome == lock.Failed || l.op.Outcome == lock.Refused {
			continue
		}
		if l.op.Kind == lock.Acquire {
			last = l
			c.acquired(l, &came)
		} else {
			c.released(l, &went)
		}
	}
	var more []*lock.Op
	for last != nil && last.op.Outcome == lock.Granted && len(last.args) == 0 && len(came) > 0 {
		op := *last.op
		op.Depth, op.Key, op.Shared = 0, came[0].key, came[0].shared
		came = came[1:]
		a.count(&held{hold: last.hold, op: &op, yes: 1})
		more = append(more, &op)
	}
	return more
}

// most returns how many locks the calls may have taken that are not known.
func (c *Call) most() int {
	n := 0
	for i := range c.locks {
		switch l := &c.locks[i]; {
		case l.op.Kind != lock.Acquire || l.op.Key != Unresolved && l.op.Outcome != lock.Unknown:
		case l.tells == byFilter || l.tells == byNone:
			return maxAdvised
		default:
			n += int(max(1, l.yes))
		}
	}
	return n
}

// acquired gives a lock that was asked for the next of those that came.
func (c *Call) acquired(l *held, came *[]sharedKey) {
	op, id := l.op, sharedKey{l.op.Key, l.op.Shared}
	fits := func(k sharedKey) bool { return k == id || op.Key == Unresolved && k.shared == op.Shared }
	switch i := slices.IndexFunc(*came, fits); {
	case i >= 0:
		op.Key, op.Outcome, op.Evidence = (*came)[i].key, lock.Granted, lock.FromPgLocks
		*came = slices.Delete(*came, i, i+1)
		l.yes = 1
		c.tracker.advised.count(l)
	case op.Outcome == lock.Unknown && op.Key != Unresolved && !c.tracker.advised.has(id):
		op.Outcome, op.Evidence = lock.Refused, lock.FromPgLocks
	}
}

// released gives a lock that was given back the next of those that went.
func (c *Call) released(l *held, went *[]sharedKey) {
	op := l.op
	i := slices.IndexFunc(*went, func(k sharedKey) bool { return k.shared == op.Shared && (op.Key == Unresolved || op.Key == k.key) })
	if i < 0 {
		return
	}
	op.Key, op.Outcome, op.Evidence = (*went)[i].key, lock.Done, lock.FromPgLocks
	delete(c.tracker.advised.counts, (*went)[i])
	*went = slices.Delete(*went, i, i+1)
}

// call returns what a witness may be asked about an execution, nil if there is
// nothing.
func (t *Tracker) call(d *doing) *Call {
	for i := range d.locks {
		if l := &d.locks[i]; l.class == "advisory" && !l.all && (len(l.args) == 0 || l.tells == byNone || l.tells == byFilter) {
			t.advised.calls++
			return &Call{tracker: t, locks: d.locks}
		}
	}
	return nil
}

// answeredCall marks that the reply of what a witness may be asked about is
// whole.
func (t *Tracker) answeredCall(d *doing, start, end int64) {
	if d.call != nil {
		t.marks = append(t.marks, wire.Mark{Kind: wire.Answered, Call: d.call, Start: start, End: end})
	}
}
