package history

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A keeper says which integers are written down: those of the columns that the
// caller allows, those by which an invariant's query chooses its row, and a
// process's own fence where a statement of it is guarded by that number. The
// last is in the record anyway, as the fence that was issued.
//
// The other integers of rows and assignments are shifted by a secret, drawn
// anew for each column of each history. A column of which one number is told
// for a guard is shifted no more, since the two together would tell the others.
type keeper struct {
	allow  func(table, column string) bool
	rows   map[column]bool
	fences map[string][]int64 // by actor, the latest few
	shifts map[column]int64
	bare   map[column]bool // a number of it was told for a guard
}

type column struct{ table, name string }

// fencesKept is how many fences of a process are remembered: a process may
// hold several locks, and a stale statement may come a grant late.
const fencesKept = 8

var condition = regexp.MustCompile(`(?i)(?:where|and)\s+(?:\w+\.|"\w+"\.)*(?:(\w+)|"(\w+)")\s*=`)

func newKeeper(allow func(table, column string) bool, invariants []Invariant) *keeper {
	k := &keeper{allow: allow, rows: map[column]bool{}, fences: map[string][]int64{},
		shifts: map[column]int64{}, bare: map[column]bool{}}
	for _, inv := range invariants {
		for _, m := range condition.FindAllStringSubmatch(inv.Query, -1) {
			if inv.Table != "" {
				k.rows[column{lock.TableName(inv.Table), cmp.Or(m[2], strings.ToLower(m[1]))}] = true
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
			k.bare[column{out.table, c.Column}] = true
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

// assigned is value for a column's own value, in a row or an assignment: its
// integer is shifted where it may not be kept.
func (k kept) assigned(name string, v lock.Value) *lock.Value {
	if v.IsRel { // of a history that was read back
		return &lock.Value{Hash: v.Hash, Rel: v.Rel, IsRel: true}
	}
	if c := (column{k.table, name}); v.IsInt && v.Hash != "" && k.table != "" && !k.bare[c] && !k.may(name, v) {
		return &lock.Value{Hash: v.Hash, Rel: v.Int + k.shift(c), IsRel: true}
	}
	return k.value(name, v)
}

// shift returns the secret of a column, within 2^60 of 0.
func (k *keeper) shift(c column) int64 {
	by, ok := k.shifts[c]
	if !ok {
		var b [8]byte
		_, _ = rand.Read(b[:]) // it never fails
		by = int64(binary.LittleEndian.Uint64(b[:])>>3) - 1<<60
		k.shifts[c] = by
	}
	return by
}

// value drops the integer where it may not be kept. One that may not, and has
// no hash, cannot be kept at all.
func (k kept) value(name string, v lock.Value) *lock.Value {
	v.Rel, v.IsRel = 0, false
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
