package orders

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A History is a small history of which everything is known but the instants of
// the effects: every statement names one row by its column id, and no statement
// is opaque.
type History struct {
	Ops     []*lock.Op // by request
	Section []int      // of each op, from 1; 0: none, so that its transaction is one of its own
	Named   []string   // columns of which it is given that writes depend on what was read
	Grants  bool       // the instants of the grants are placed as well, for Result.Stale
}

// A cell is one column of one row.
type cell struct{ row, column string }

// A value is what a cell has: a number, or a text by its hash.
type value struct {
	n    int64
	text string
}

func valueOf(v lock.Value) value {
	if v.IsInt {
		return value{n: v.Int}
	}
	return value{text: v.Hash}
}

// cellsOf lists the cells that a history speaks of.
func cellsOf(h History) []cell {
	var out []cell
	add := func(k cell) {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	for _, op := range h.Ops {
		if op.SQL == nil {
			continue
		}
		row := rowOf(op)
		for _, a := range op.SQL.Set {
			add(cell{row, a.Column})
		}
		for _, w := range guardsOf(op) {
			add(cell{row, w.Column})
		}
		for _, c := range op.Row {
			add(cell{row, c.Column})
		}
	}
	return out
}

// rowOf returns the row that a statement names.
func rowOf(op *lock.Op) string {
	for _, w := range op.SQL.Where {
		if w.Column == "id" {
			return w.Value.Hash
		}
	}
	return ""
}

// guardsOf returns the other conditions of a statement.
func guardsOf(op *lock.Op) []lock.Cond {
	return slices.DeleteFunc(slices.Clone(op.SQL.Where), func(w lock.Cond) bool { return w.Column == "id" })
}

func answered(op *lock.Op) bool { return op.R != 0 && op.Outcome != lock.Unknown }

// A trans is one transaction, explicit or of one statement.
type trans struct {
	section  int
	explicit bool
	snapshot bool
	first    *lock.Op
}

// A txKey names a transaction in the record.
type txKey struct{ session, n uint64 }

// transactions finds the transactions of a history and, for each op, which one it
// is of (-1: none).
func transactions(h History) (all []*trans, of []int) {
	at := map[txKey]int{}
	own := 1 + slices.Max(append([]int{0}, h.Section...))
	for i, op := range h.Ops {
		of = append(of, -1)
		if op.Proto != lock.Postgres {
			continue
		}
		k := txKey{op.Session, op.Tx}
		n, ok := at[k]
		if !ok || op.Implicit {
			n = len(all)
			at[k] = n
			t := &trans{section: h.Section[i], explicit: !op.Implicit}
			if t.section == 0 {
				t.section = own
				own++
			}
			all = append(all, t)
		}
		of[i] = n
		t := all[n]
		t.snapshot = t.snapshot || op.Snapshot
		if t.first == nil && op.SQL != nil {
			t.first = op
		}
	}
	return all, of
}

// String writes a history down, one op a line.
func (h History) String() string {
	var b strings.Builder
	names := map[string]string{}
	fmt.Fprintf(&b, "writes of %v depend on reads\n", h.Named)
	for i, op := range h.Ops {
		fmt.Fprintf(&b, "%s section %d: %s", op.Actor, h.Section[i], op.Verb)
		if op.SQL != nil {
			describe(&b, op, names)
		}
		fmt.Fprintf(&b, "  tx %d implicit %v snapshot %v: %s rows %d %s [%d, %d]\n", op.Tx, op.Implicit, op.Snapshot, op.Outcome, op.Rows, op.Err, op.F/1e6, op.R/1e6)
	}
	return b.String()
}

func describe(b *strings.Builder, op *lock.Op, names map[string]string) {
	name := func(v lock.Value) string {
		if v.IsInt {
			return fmt.Sprint(v.Int)
		}
		if names[v.Hash] == "" {
			names[v.Hash] = string(rune('p' + len(names)))
		}
		return names[v.Hash]
	}
	for _, a := range op.SQL.Set {
		if a.HasDelta {
			fmt.Fprintf(b, " %s+=%d", a.Column, a.Delta)
		} else {
			fmt.Fprintf(b, " %s:=%s", a.Column, name(a.Value))
		}
	}
	for _, w := range op.SQL.Where {
		fmt.Fprintf(b, " [%s%s%s]", w.Column, w.Op, name(w.Value))
	}
	for _, c := range op.Row {
		fmt.Fprintf(b, " ->%s=%s", c.Column, name(c.Value))
	}
}
