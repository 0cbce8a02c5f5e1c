package orders

import (
	"reflect"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

func TestEveryDrawnHistoryHasAnOrder(t *testing.T) {
	for seed := range uint64(1500) {
		shape := Shape{Sections: 4, Rows: 2, Steps: 2, Haste: 70, Distinct: seed%2 == 0}
		h := Draw(seed, shape)
		if r := Judge(h, 20000); !r.Enough && r.Orders == 0 {
			t.Fatalf("seed %d: no order explains what happened:\n%s", seed, h)
		}
		if again := Draw(seed, shape); !reflect.DeepEqual(again, h) {
			t.Fatalf("seed %d: drawn anew it is another", seed)
		}
	}
}

// told builds a history of one row in a few words.
type told struct {
	h    History
	hash *lock.Hasher
	tx   uint64
}

func tell(named ...string) *told {
	return &told{h: History{Named: named}, hash: lock.NewHasher([]byte("told"))}
}

func (b *told) v(text string) lock.Value { return b.hash.Of([]byte(text)) }

// op adds a statement of a section that took effect in [from, to]; to 0: it has no
// answer. A section is one connection.
func (b *told) op(section int, kind lock.Kind, row string, from, to int) *lock.Op {
	b.tx++
	op := &lock.Op{Session: uint64(section), Proto: lock.Postgres, Kind: kind, Verb: string(kind), Implicit: true, Tx: b.tx, Rows: 1,
		Outcome: lock.Done, A: lock.Instant(from), F: lock.Instant(from), R: lock.Instant(to)}
	if to == 0 {
		op.Outcome, op.Rows = lock.Unknown, 0
	}
	if row != "" {
		op.SQL = &lock.Statement{Table: Table, Where: []lock.Cond{{Column: "id", Op: "=", Value: b.v(row)}}}
	}
	b.h.Ops, b.h.Section = append(b.h.Ops, op), append(b.h.Section, section)
	return op
}

func (b *told) read(section int, row, value string, from, to int) *lock.Op {
	op := b.op(section, lock.Read, row, from, to)
	op.Row = []lock.Cell{{Column: Column, Value: b.v(value)}}
	return op
}

func (b *told) put(section int, row, value string, from, to int) *lock.Op {
	op := b.op(section, lock.Write, row, from, to)
	op.SQL.Set = []lock.Assign{{Column: Column, Value: b.v(value)}}
	return op
}

func (b *told) add(section int, row string, by int64, from, to int) *lock.Op {
	op := b.op(section, lock.Write, row, from, to)
	op.SQL.Set = []lock.Assign{{Column: Column, Delta: by, HasDelta: true}}
	return op
}

// explicit makes one transaction of ops.
func explicit(ops ...*lock.Op) {
	for _, op := range ops {
		op.Tx, op.Implicit = ops[0].Tx, false
	}
}

func only(op *lock.Op, column, cmp string, v lock.Value) *lock.Op {
	op.SQL.Where = append(op.SQL.Where, lock.Cond{Column: column, Op: cmp, Value: v})
	return op
}

func TestWhatIsSoInTheOrdersOfAFewHistories(t *testing.T) {
	const every, some, none = "every", "some", "none"
	for _, c := range []struct {
		name, lost, anomaly string
		tell                func(b *told)
	}{
		{"one after the other", none, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.put(1, "x", "8", 3, 4)
			b.read(2, "x", "8", 5, 6)
			b.put(2, "x", "9", 7, 8)
		}},
		{"both read first", every, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.read(2, "x", "7", 3, 4)
			b.put(2, "x", "8", 5, 6)
			b.put(1, "x", "8", 7, 8)
		}},
		{"perhaps the first wrote last", some, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.put(2, "x", "9", 3, 6)
			b.put(1, "x", "8", 4, 5)
		}},
		{"one has no answer", some, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.read(2, "x", "7", 3, 4)
			b.put(2, "x", "8", 5, 6)
			b.put(1, "x", "9", 7, 0)
		}},
		{"one has no answer, and was seen", every, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.read(2, "x", "7", 3, 4)
			b.put(2, "x", "8", 5, 6)
			b.put(1, "x", "9", 7, 0)
			b.read(3, "x", "9", 11, 12)
		}},
		{"an increment is overwritten", every, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.add(2, "x", 1, 3, 4)
			b.put(1, "x", "8", 5, 6)
		}},
		{"an increment comes late", none, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.put(2, "x", "9", 3, 4)
			b.add(1, "x", 1, 5, 6)
		}},
		{"increments of two rows", none, none, func(b *told) {
			b.add(1, "x", -1, 1, 2)
			b.add(2, "x", -1, 3, 4)
			b.add(2, "y", 1, 5, 6)
			b.add(1, "y", 1, 7, 8)
		}},
		{"torn over two rows", none, every, func(b *told) {
			b.put(1, "x", "1", 1, 2)
			b.put(2, "x", "2", 3, 4)
			b.put(2, "y", "2", 5, 6)
			b.put(1, "y", "1", 7, 8)
		}},
		{"the same to two rows", none, none, func(b *told) {
			b.put(1, "x", "1", 1, 2)
			b.put(2, "x", "1", 3, 4)
			b.put(2, "y", "1", 5, 6)
			b.put(1, "y", "1", 7, 8)
		}},
		{"each writes what the other read", none, every, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.read(1, "y", "7", 3, 4)
			b.read(2, "x", "7", 5, 6)
			b.read(2, "y", "7", 7, 8)
			b.put(2, "y", "9", 9, 10)
			b.put(1, "x", "8", 11, 12)
		}},
		{"put back", none, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.put(2, "x", "9", 3, 4)
			b.put(3, "x", "7", 5, 6)
			b.put(1, "x", "8", 7, 8)
		}},
		{"compared and set", none, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			b.put(2, "x", "9", 3, 4)
			b.put(3, "x", "7", 5, 6)
			only(b.put(1, "x", "8", 7, 8), Column, "=", b.v("7"))
		}},
		{"blocked by the row", every, none, func(b *told) {
			first := b.read(1, "x", "5", 1, 2)
			w := b.put(1, "x", "6", 3, 4)
			b.read(2, "x", "5", 5, 6)
			b.put(2, "x", "6", 7, 12)
			explicit(first, w, b.op(1, lock.Commit, "", 9, 11))
		}},
		{"locked at the read", none, none, func(b *told) {
			first := b.read(1, "x", "5", 1, 2)
			first.SQL.ForUpdate = true
			w := b.put(1, "x", "6", 9, 10)
			other := b.read(2, "x", "6", 5, 14)
			other.SQL.ForUpdate = true
			v := b.put(2, "x", "7", 15, 16)
			explicit(first, w, b.op(1, lock.Commit, "", 11, 12))
			explicit(other, v, b.op(2, lock.Commit, "", 17, 18))
		}},
		{"rolled back", none, none, func(b *told) {
			b.read(1, "x", "7", 1, 2)
			first := b.read(2, "x", "7", 3, 4)
			w := b.put(2, "x", "8", 5, 6)
			explicit(first, w, b.op(2, lock.Rollback, "", 7, 8))
			b.put(1, "x", "8", 9, 10)
		}},
		{"a snapshot's read is as old as the first", every, none, func(b *told) {
			first := b.read(1, "y", "1", 1, 2)
			b.put(2, "x", "8", 3, 4)
			r := b.read(1, "x", "7", 5, 6)
			first.Snapshot, r.Snapshot = true, true
			explicit(first, r, b.op(1, lock.Commit, "", 7, 8))
			b.put(1, "x", "9", 9, 10)
		}},
		{"values that no order gives", none, none, func(b *told) {
			b.put(1, "x", "8", 1, 2)
			b.read(2, "x", "7", 3, 4)
		}},
	} {
		b := tell(Column)
		c.tell(b)
		r := Judge(b.h, 20000)
		if lost, anomaly := word(r.Lost), word(r.Anomaly); lost != c.lost || anomaly != c.anomaly {
			t.Errorf("%s: lost in %s, anomaly in %s, want %s and %s: %+v\n%s", c.name, lost, anomaly, c.lost, c.anomaly, r, b.h)
		}
	}
}

func word(t Tally) string {
	switch {
	case t.Every():
		return "every"
	case t.Some():
		return "some"
	}
	return "none"
}

// Without a read that matters nothing that was written can come of an old one.
func TestAColumnOfWhichNothingIsGivenLosesNothing(t *testing.T) {
	b := tell()
	b.read(1, "x", "7", 1, 2)
	b.read(2, "x", "7", 3, 4)
	b.put(2, "x", "8", 5, 6)
	b.put(1, "x", "9", 7, 8)
	if r := Judge(b.h, 1000); r.Lost.Some() || r.Orders != 1 {
		t.Errorf("%+v", r)
	}
}

func TestShrinkKeepsWhatWasAsked(t *testing.T) {
	lost := func(h History) bool { return Judge(h, 20000).Lost.Every() }
	n := 0
	for seed := range uint64(200) {
		h := Draw(seed, Shape{Sections: 3, Rows: 1, Steps: 2, Haste: 70})
		if !lost(h) {
			continue
		}
		n++
		small := Shrink(h, lost)
		if !lost(small) || len(small.Ops) > len(h.Ops) {
			t.Fatalf("seed %d:\n%s", seed, small)
		}
	}
	if n == 0 {
		t.Error("no history to shrink")
	}
}
