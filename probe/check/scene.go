package check

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A scene is what a cluster did, ready to be placed in order.
type scene struct {
	later   []*lock.Op // what told of what the cluster left behind
	c       *kase
	cluster *cluster
	cells   []cell
	rowOf   []int // of each cell, its row's place
	rows    []tableRow
	numbers map[string]datum // of the hashes of which the number is known
	txs     []trans
	deeds   []deed
	live    []live
	first   []datum // what was in each cell before, where that is known
	last    []datum // and after
	blind   bool    // something that was written there may be otherwise than it is here
}

// A trans is one transaction.
type trans struct {
	section  int // its place in the cluster
	explicit bool
	snapshot bool
	t        *tx
}

// value is what a value of a column stands for.
func (s *scene) value(column columnOf, v lock.Value) datum {
	if n, ok := s.numbers[v.Hash]; ok && v.Hash != "" {
		return n
	}
	d := plain(v)
	d.sent = d.kind == noNumber && !s.c.returned(column, v)
	return d
}

func plain(v lock.Value) datum {
	switch {
	case v.IsInt:
		return datum{n: v.Int, kind: aNumber}
	case v.IsRel:
		return datum{n: v.Rel, kind: aShifted}
	}
	return datum{hash: v.Hash}
}

// learnNumbers notes the numbers behind hashes. A hash with two numbers, one of them
// shifted, has that which is not.
func (s *scene) learnNumbers(v lock.Value) {
	if p := plain(v); v.Hash != "" && p.kind != noNumber && s.numbers[v.Hash].kind != aNumber {
		s.numbers[v.Hash] = p
	}
}

func (s *scene) cell(k cell) int {
	if i := slices.Index(s.cells, k); i >= 0 {
		return i
	}
	row := slices.Index(s.rows, k.of())
	if row < 0 {
		row = len(s.rows)
		s.rows = append(s.rows, k.of())
	}
	s.cells, s.rowOf = append(s.cells, k), append(s.rowOf, row)
	return len(s.cells) - 1
}

// sceneOf makes ready what a cluster did, and reports whether it can be placed.
func (c *kase) sceneOf(k *cluster) (*scene, bool) {
	if k.statements() > mostDeeds {
		return nil, false
	}
	s := &scene{c: c, cluster: k, numbers: map[string]datum{}}
	for _, sec := range k.sections {
		for _, r := range sec.reads {
			s.learnOp(r.op)
		}
		for _, w := range sec.writes {
			s.learnOp(w.op)
		}
	}
	at := map[txID]int{}
	for i, sec := range k.sections {
		for _, r := range sec.reads {
			if r.row != unknownRow && !r.claim {
				s.read(r, s.transOf(at, r.op, i))
			}
		}
		for _, w := range slices.Concat(sec.writes, sec.undone) {
			if w.row != unknownRow {
				s.write(w, s.transOf(at, w.op, i))
			}
		}
	}
	s.ends()
	slices.SortStableFunc(s.deeds, func(a, b deed) int { return seqOf(&a, &b) })
	if len(s.deeds) > mostDeeds {
		return nil, false
	}
	s.relate()
	for i := range k.sections {
		s.liveReads(i)
	}
	sortLives(s.live)
	s.around()
	return s, true
}

// statements counts what sections did, but for what their writes returned.
func (k *cluster) statements() (n int) {
	for _, s := range k.sections {
		n += len(s.writes) + len(s.undone)
		for _, r := range s.reads {
			if !r.claim {
				n++
			}
		}
	}
	return n
}

func seqOf(a, b *deed) int {
	if a.op.Seq != b.op.Seq {
		return int(int64(a.op.Seq) - int64(b.op.Seq))
	}
	return int(a.kind) - int(b.kind)
}

func (s *scene) learnOp(op *lock.Op) {
	for _, v := range op.Row {
		s.learnNumbers(v.Value)
	}
	for _, a := range op.SQL.Set {
		s.learnNumbers(a.Value)
	}
	for _, g := range op.SQL.Where {
		s.learnNumbers(g.Value)
	}
}

func (s *scene) transOf(at map[txID]int, op *lock.Op, section int) int {
	id := txID{op.Session, op.Tx}
	if n, ok := at[id]; ok && !op.Implicit && op.Tx != 0 {
		s.txs[n].snapshot = s.txs[n].snapshot || op.Snapshot
		return n
	}
	n := len(s.txs)
	s.txs = append(s.txs, trans{section: section, explicit: !op.Implicit && op.Tx != 0, snapshot: op.Snapshot, t: s.c.txs[id]})
	if s.txs[n].explicit {
		at[id] = n
	}
	return n
}

func (s *scene) read(r *read, tx int) {
	d := s.deedOf(deedLook, r.op, r.row, tx)
	d.locks = r.op.SQL.ForUpdate
	for _, column := range s.c.columnsOf(r) { // of those whose values are not told
		if !slices.ContainsFunc(r.op.Row, func(c lock.Cell) bool { return c.Column == column }) && column != "*" {
			d.returned = append(d.returned, returned{s.cell(cell{lock.TableName(r.op.SQL.Table), r.row, column}), datum{}})
		}
	}
	s.deeds = append(s.deeds, d)
}

func (s *scene) write(w *write, tx int) {
	d := s.deedOf(deedTake, w.op, w.row, tx)
	switch {
	case w.state == refused && w.op.Outcome == lock.Failed:
		return
	case w.state == refused:
		d.kind = deedMiss
	case s.txs[tx].explicit && w.state == uncertain && answered(w.commit): // undone, perhaps
		s.blind = true
		return
	case !s.txs[tx].explicit:
		d.kind, d.optional = deedPut, w.state == uncertain
	case !answered(w.op):
		return
	}
	s.deeds = append(s.deeds, d)
}

// deedOf makes the deed of a statement.
func (s *scene) deedOf(kind deedKind, op *lock.Op, row string, tx int) deed {
	d := deed{kind: kind, op: op, tx: tx, lo: op.F, hi: max(op.R, op.Z)}
	if !answered(op) {
		d.hi = lock.Never
	}
	table := lock.TableName(op.SQL.Table)
	at := func(column string) int { return s.cell(cell{table, row, column}) }
	value := func(column string, v lock.Value) datum { return s.value(columnOf{table, column}, v) }
	for _, a := range op.SQL.Set {
		v := value(a.Column, a.Value)
		if a.HasDelta {
			v = datum{n: a.Delta, kind: aNumber}
		}
		d.sets = append(d.sets, assigned{at(a.Column), v, a.HasDelta})
	}
	for _, g := range s.c.guards(op) {
		d.guards = append(d.guards, guarded{at(g.Column), g.Op, value(g.Column, g.Value)})
	}
	for _, c := range op.Row {
		d.returned = append(d.returned, returned{at(c.Column), value(c.Column, c.Value)})
	}
	if i := slices.Index(s.rows, tableRow{table, row}); i >= 0 {
		d.row = i
	} else {
		d.row = len(s.rows)
		s.rows = append(s.rows, tableRow{table, row})
	}
	return d
}

// ends adds the commits of explicit transactions, and their snapshots.
func (s *scene) ends() {
	for i, x := range s.txs {
		if !x.explicit || x.t == nil {
			continue
		}
		if first := x.t.first; x.snapshot && first != nil {
			s.deeds = append(s.deeds, deed{kind: deedSnapshot, op: first, tx: i, row: -1, lo: x.t.began(), hi: max(first.R, first.Z)})
		}
		s.deeds = append(s.deeds, s.endOf(i, x))
	}
}

func (s *scene) endOf(i int, x trans) deed {
	op := x.t.last
	if op == nil { // its connection ended, and it with that, some time
		op = x.t.ops[len(x.t.ops)-1]
		return deed{kind: deedUndo, op: op, tx: i, row: -1, lo: op.F, hi: lock.Never, optional: true}
	}
	d := deed{kind: deedCommit, op: op, tx: i, row: -1, lo: op.F, hi: max(op.R, op.Z)}
	if !answered(op) {
		d.hi = lock.Never
	}
	switch {
	case op.Kind == lock.Commit && !answered(op):
		d.kind, d.optional = deedEither, true
	case op.Kind == lock.Commit && op.Outcome == lock.Done && !x.t.undone:
	default:
		d.kind, d.optional = deedUndo, !answered(op)
	}
	return d
}

// relate notes which deeds certainly come before which: by the clock, and of one
// connection by its sequence.
func (s *scene) relate() {
	for i := range s.deeds {
		for j := range s.deeds {
			a, b := &s.deeds[i], &s.deeds[j]
			if i != j && (a.hi <= b.lo || a.op.Session == b.op.Session && i < j) {
				b.after |= 1 << i
			}
		}
	}
}
