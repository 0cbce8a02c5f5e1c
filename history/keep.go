package history

import (
	"regexp"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A keeper says which integers are written down: those of the columns that the
// caller allows, those by which an invariant's query chooses its row, and a
// process's own fence where a statement of it is guarded by that number. The
// last is in the record anyway, as the fence that was issued.
type keeper struct {
	allow  func(table, column string) bool
	rows   map[column]bool
	fences map[string][]int64 // by actor, the latest few
}

type column struct{ table, name string }

// fencesKept is how many fences of a process are remembered: a process may
// hold several locks, and a stale statement may come a grant late.
const fencesKept = 8

var condition = regexp.MustCompile(`(?i)(?:where|and)\s+"?(\w+)"?\s*=`)

func newKeeper(allow func(table, column string) bool, invariants []Invariant) *keeper {
	k := &keeper{allow: allow, rows: map[column]bool{}, fences: map[string][]int64{}}
	for _, inv := range invariants {
		for _, m := range condition.FindAllStringSubmatch(inv.Query, -1) {
			if inv.Table != "" {
				k.rows[column{lock.TableName(inv.Table), m[1]}] = true
			}
		}
	}
	return k
}

// issued notes the fence that an op issued.
func (k *keeper) issued(op *lock.Op) {
	if !op.HasFence {
		return
	}
	list := append(k.fences[op.Actor], op.Fence)
	k.fences[op.Actor] = list[max(0, len(list)-fencesKept):]
}

// of returns what may be written of the integers of one op's statement.
func (k *keeper) of(op *lock.Op) kept {
	out := kept{keeper: k}
	if op.SQL == nil {
		return out
	}
	out.table = lock.TableName(op.SQL.Table)
	for _, c := range op.SQL.Where {
		guard := c.Op == "=" || c.Op == "<" || c.Op == "<="
		if guard && c.Value.IsInt && slices.Contains(k.fences[op.Actor], c.Value.Int) {
			out.guards = append(out.guards, guard1{c.Column, c.Value.Int})
		}
	}
	return out
}

type guard1 struct {
	column string
	fence  int64
}

type kept struct {
	*keeper
	table  string
	guards []guard1
}

// value drops the integer where it may not be kept. One that may not, and has
// no hash, cannot be kept at all.
func (k kept) value(name string, v lock.Value) *lock.Value {
	if !k.may(name, v) {
		v.Int, v.IsInt = 0, false
	}
	if !v.Known() {
		return nil
	}
	return &v
}

func (k kept) may(name string, v lock.Value) bool {
	return v.IsInt && (k.allow(k.table, name) || k.rows[column{k.table, name}] || slices.Contains(k.guards, guard1{name, v.Int}))
}
