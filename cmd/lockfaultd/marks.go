package main

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/live"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// mostMarks bounds what the page is told of the last minute, and nearby is how close to each other two refusals, or two
// writes, of one process are one mark.
const (
	mostMarks = 2000
	nearby    = 500 * time.Millisecond
)

// marks are what has happened in the last minute, the oldest first, in bounded memory. Its methods may be called
// concurrently.
type marks struct {
	mu   sync.Mutex
	list []*mark
	last map[markOf]*mark
}

// A mark may stand for several events of one kind.
type mark struct {
	live.Mark
	of    markOf
	times int
}

type markOf struct{ kind, lock, actor string }

func newMarks() *marks { return &marks{last: map[markOf]*mark{}} }

// note takes in a mark. One that comes right behind another of the same kind, where joins, makes that longer.
func (m *marks) note(one live.Mark, joins bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := markOf{one.Kind, one.Lock, one.Actor}
	if last := m.last[of]; joins && last != nil && one.At.Sub(later(last.At, last.To)) < nearby {
		last.To = one.At
		last.times++
		last.Text = strconv.Itoa(last.times) + " times"
		return
	}
	m.drop(one.At.Add(-lookback))
	if len(m.list) == mostMarks {
		m.forget(mostMarks / 4)
	}
	fresh := &mark{one, of, 1}
	m.list, m.last[of] = append(m.list, fresh), fresh
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// drop forgets what was over before an instant.
func (m *marks) drop(before time.Time) {
	n := 0
	for n < len(m.list) && later(m.list[n].At, m.list[n].To).Before(before) {
		n++
	}
	m.forget(n)
}

// forget drops the first n.
func (m *marks) forget(n int) {
	for _, old := range m.list[:n] {
		if m.last[old.of] == old {
			delete(m.last, old.of)
		}
	}
	m.list = slices.Delete(m.list, 0, n)
}

// since returns copies of what was not over at an instant.
func (m *marks) since(at time.Time) (out []live.Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(at)
	for _, one := range m.list {
		out = append(out, one.Mark)
	}
	return out
}

// noting is a recorder that keeps marks, too.
type noting struct {
	*proxy.Record
	d *daemon
}

// Op implements proxy.Recorder.
func (n noting) Op(op *lock.Op) {
	n.d.noteOp(op)
	n.Record.Op(op)
}

func (d *daemon) noteOp(op *lock.Op) {
	switch {
	case op.Kind == lock.Acquire && op.Outcome == lock.Refused:
		d.marks.note(live.Mark{At: d.wall(op.R), Kind: live.MarkRefusal, Lock: d.setup.nameOfLock(lock.IDOf(op)), Actor: op.Actor}, true)
	case op.Kind != lock.Write || op.Outcome != lock.Done || !op.Term.Sure() || op.SQL == nil:
	case op.Rows == 0:
		d.marks.note(live.Mark{At: d.wall(op.R), Kind: live.MarkRejected, Actor: op.Actor, Text: lock.TableName(op.SQL.Table)}, true)
	default:
		d.marks.note(live.Mark{At: d.wall(op.R), Kind: live.MarkWrite, Actor: op.Actor, Text: lock.TableName(op.SQL.Table)}, true)
	}
}

// noteInjection takes in one that is over.
func (d *daemon) noteInjection(in history.Injection) {
	if d.marks == nil || in.Confirmed == 0 {
		return
	}
	m := live.Mark{At: d.wall(in.Confirmed), Kind: kindOf(fault.Act(in.Effect)), Actor: in.Actor, Text: in.Rule}
	if m.Kind != live.MarkInjection {
		m.To = d.wall(in.Ended)
	}
	d.marks.note(m, false)
}

func kindOf(act fault.Act) string {
	switch {
	case act == fault.Freeze:
		return live.MarkFreeze
	case act.Lasts():
		return live.MarkStall
	}
	return live.MarkInjection
}
