package pgwire

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// maxTables bounds the tables that a statement or a transaction is known to have
// written.
const maxTables = 64

const (
	maxUnsettled  = 1 << 16 // ops of one implicit transaction
	keepUnsettled = 16      // places that are kept for them: a connection may be idle
)

// transactions follows the session's transactions twice: as the client must
// believe them to be after all that it has asked, and as upstream has said
// they are. The first numbers ops when they are made; the second decides.
type transactions struct {
	count uint64 // numbers given

	// What the client has asked for.
	current  uint64 // number for the next op; 0: a new one
	explicit bool
	chained  bool // it goes on as the one before was
	tables   []string

	// How transactions are isolated: by a snapshot, or not.
	started   bool // as the session began
	snapshots bool // those that begin now and say nothing
	before    bool // likewise, as of when the open one began
	snapshot  bool // the current one

	paths *paths

	// What upstream has answered.
	open      bool
	number    uint64 // of the open one, 0 if not known
	failed    bool   // an error since the transaction began
	unsettled []*lock.Op
	kept      int // of those, which code that cannot be seen may have committed
	points    savepoints
}

func (x *transactions) next() uint64 {
	x.count++
	return x.count
}

// assign gives a new op its transaction.
func (x *transactions) assign(op *lock.Op, tm *template) {
	if x.current == 0 {
		x.current, x.tables = x.next(), nil
		if !x.chained {
			x.snapshot = x.snapshots
		}
		x.chained = false
	}
	op.Tx, op.Implicit = x.current, !x.explicit
	switch op.Kind {
	case lock.Begin:
		x.before = x.snapshots
		op.Implicit, x.explicit = false, true
		x.isolate(tm.iso)
	case lock.Commit:
		op.Implicit, op.Tables = false, x.tables
		x.paths.ending = x.paths.ending || x.paths.touched
		x.finish(tm.chain)
	case lock.Rollback:
		op.Implicit, op.Savepoint = false, tm.savepoint
		if !tm.savepoint {
			if x.explicit {
				x.snapshots = x.before
			}
			x.paths.ends(true)
			x.finish(tm.chain)
		}
	case lock.Read:
		op.Snapshot = x.snapshot
	case lock.Write:
		op.Snapshot = x.snapshot
		x.wrote(op.SQL.Table)
		for _, table := range op.SQL.Also {
			x.wrote(table)
		}
	}
}

func (x *transactions) finish(chain bool) {
	x.paths.ends(false)
	x.explicit = x.explicit && chain
	x.chained = x.explicit
	x.current, x.tables = 0, nil
}

func (x *transactions) wrote(table string) {
	if len(x.tables) < maxTables && !slices.Contains(x.tables, table) {
		x.tables = append(x.tables, table)
	}
}

// synced says that the client ended an implicit transaction, if that is what
// it is in.
func (x *transactions) synced() {
	if !x.explicit {
		x.finish(false)
	}
}

// correct gives an op its real transaction, where the client's view was wrong.
func (x *transactions) correct(op *lock.Op) {
	switch op.Kind {
	case lock.Begin, lock.Commit, lock.Rollback:
		return
	}
	if op.Outcome == lock.Failed || op.Implicit != x.open {
		return
	}
	op.Implicit = !x.open
	if op.Implicit {
		op.Tx = x.next()
	} else if x.number != 0 {
		op.Tx = x.number
	}
}

// answered follows an op that has its outcome.
func (t *Tracker) answered(op *lock.Op, tm *template, m *message) {
	x := &t.tx
	x.correct(op)
	if op.Implicit {
		x.unsettled = append(x.unsettled, op)
	}
	if len(x.unsettled) > maxUnsettled {
		t.blind(m.end, "upstream's message %q: more than %d statements in one pipeline, expected a Sync", m.typ, maxUnsettled)
		return
	}
	if op.Seq != 0 {
		x.points.seq = op.Seq
	}
	if op.Outcome == lock.Failed {
		return
	}
	switch op.Kind {
	case lock.Begin:
		if !x.open {
			x.open, x.number = true, op.Tx
		}
	case lock.Commit, lock.Rollback:
		if op.Savepoint {
			op.Since = x.points.back(tm.name)
			return
		}
		t.committed(op.Outcome == lock.RolledBack)
		x.points.clear()
		x.failed = op.Kind == lock.Rollback || op.Outcome == lock.RolledBack
		t.advised.tx = nil
		t.settle(m)
		x.open, x.number = x.open && tm.chain, 0
	}
}

// settle ends the implicit transaction, or what a BEGIN dragged into its own.
// Only a Write is still its session's to change.
func (t *Tracker) settle(m *message) {
	x := &t.tx
	for i, op := range x.unsettled {
		if x.failed && op.Kind == lock.Write && op.Outcome == lock.Done {
			op.Outcome = lock.RolledBack
			if i < x.kept {
				op.Outcome = lock.Unknown
			}
		}
		t.marks = append(t.marks, wire.Mark{Kind: wire.Settle, Op: op, Start: m.start, End: m.end})
		x.unsettled[i] = nil
	}
	x.unsettled, x.failed, x.kept = x.unsettled[:0], false, 0
	if cap(x.unsettled) > keepUnsettled {
		x.unsettled = nil
	}
}

// runsCode notes that upstream ran a CALL or a DO, to its end or not: outside
// of a transaction it may have committed what was done before.
func (t *Tracker) runsCode() {
	if x := &t.tx; !x.open {
		x.kept = len(x.unsettled)
	}
}

// hidden reports whether a statement runs code that may commit.
func hidden(verb string) bool { return verb == "CALL" || verb == "DO" }

// ready takes the status of a ReadyForQuery. Idle is certain; another one only
// once nothing is outstanding, and not while a Sync is due, since Postgres 18
// also says so of a pipeline's implicit transaction.
func (t *Tracker) ready(m *message, status byte) {
	x := &t.tx
	if status == 'I' {
		t.settle(m)
		x.open, x.number = false, 0
		x.points.clear()
		t.advised.tx = nil
	}
	if t.asked.len() > 0 {
		return
	}
	t.surplus, x.paths.fresh = 0, false
	switch {
	case status == 'I':
		x.explicit = false
		x.finish(false)
		t.portals.clear()
	case !t.piped:
		if x.current == 0 {
			x.current, x.tables = x.next(), nil
		}
		x.explicit, x.open, x.number = true, true, x.current
	}
}
