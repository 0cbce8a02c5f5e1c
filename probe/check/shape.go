package check

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A shape is what the history's statements tell of one table.
type shape struct {
	mutable  map[string]bool // assigned by an UPDATE or ON CONFLICT somewhere
	keys     map[string]bool // compared with = somewhere
	upserts  map[string]bool // of mutable: assigned by ON CONFLICT only
	compared map[string]bool // compared somewhere, in whatever way
	// For each column, what the UPDATEs that assign it may change.
	updates map[string][][]string
	seen    map[string]bool
	written bool            // somebody writes it by its name
	opaque  bool            // some write of the table was not understood
	asides  map[string]bool // or not but for comparisons with these columns, as [lock.Statement.Aside]
	own     map[string]bool // columns that the table has for certain
	// Rows that were chosen by columns that never change alone, by the names of
	// those; whether such a statement met several; and rows that were chosen with
	// two values of one that does change, which may thus be two.
	alone, many, split map[string]bool
	echoed             map[string]bool // set to what the same statement demands of it
	values             map[string]lock.Value
	crowded            bool // there were too many rows to tell of each whether it is split
}

// rowVersion is the column that Postgres itself changes with every write of a row.
const rowVersion = "xmin"

func newShape() *shape {
	s := &shape{mutable: map[string]bool{rowVersion: true}, keys: map[string]bool{}, upserts: map[string]bool{}, compared: map[string]bool{}, updates: map[string][][]string{}, seen: map[string]bool{},
		echoed: map[string]bool{}, asides: map[string]bool{}, own: map[string]bool{}}
	s.forgetRows()
	return s
}

func (s *shape) forgetRows() {
	s.alone, s.many, s.split, s.crowded = map[string]bool{}, map[string]bool{}, map[string]bool{}, false
	s.values = map[string]lock.Value{}
}

// mostRows is how many rows of a table are told apart when it is asked which were
// chosen with two values of a column that changes.
const mostRows = 1 << 15

// A cell is one column of one row: of those rows that the same equality
// conditions on columns that never change select. row is "?" when unknown.
type cell struct{ table, row, column string }

const unknownRow = "?"

func (k *Survey) shapeOf(table string) *shape {
	if k.last != nil && k.lastOf == table {
		return k.last // one is mostly asked for many times in a row
	}
	name := lock.TableName(table)
	s := k.shapes[name]
	if s == nil {
		s = newShape()
		k.shapes[name] = s
	}
	k.last, k.lastOf = s, table
	return s
}

func (c *carry) shapeOf(table string) *shape { return c.known.shapeOf(table) }

// learnShape takes in a statement. What is known of columns that change decides
// how rows are named: if that changes after rows were, the survey is to be made again.
func (k *Survey) learnShape(op *lock.Op) {
	if op.SQL == nil || op.Kind != lock.Read && op.Kind != lock.Write {
		return
	}
	s := k.shapeOf(op.SQL.Table)
	if !k.second {
		if op.Kind == lock.Write {
			k.restless = s.learn(op) || k.restless
		}
		k.restless = s.learnKeys(op) || k.restless
	}
	if (!op.SQL.Opaque || onlyAside(op)) && op.Verb != "INSERT" {
		s.learnRow(op)
	}
}

// learnKeys notes the columns that a statement compares, and reports whether that
// tells of one that it does not change after all.
func (s *shape) learnKeys(op *lock.Op) (changed bool) {
	for _, w := range op.SQL.Where {
		s.compared[w.Column] = true
		if w.Op != "=" || s.keys[w.Column] {
			continue
		}
		s.keys[w.Column] = true
		if s.upserts[w.Column] {
			delete(s.mutable, w.Column)
			delete(s.upserts, w.Column)
			changed = true
		}
	}
	return changed
}

// learnRow notes by what a statement chose its rows.
func (s *shape) learnRow(op *lock.Op) {
	var parts []string
	var guards []lock.Cond
	for _, w := range op.SQL.Where {
		switch {
		case w.Op != "=" || !w.Value.Known():
		case s.mutable[w.Column]:
			guards = append(guards, w)
		default:
			parts = append(parts, w.Column+"="+text(w.Value))
		}
	}
	row := rowName(op, parts)
	if len(guards) == 0 {
		name := namedBy(row)
		s.alone[name] = s.alone[name] || !op.SQL.Opaque
		s.many[name] = s.many[name] || op.Rows > 1
	}
	for i, part := range parts {
		if column, value, _ := strings.Cut(part, "="); s.echoed[column] {
			s.differs(rowName(op, slices.Delete(slices.Clone(parts), i, i+1)), column, lock.Value{Hash: value})
		}
	}
	for _, g := range guards {
		s.differs(row, g.Column, g.Value)
	}
}

// differs notes that a row was chosen by a value of one more column.
func (s *shape) differs(row, column string, v lock.Value) {
	if s.crowded || s.split[row] {
		return
	}
	k := row + " " + column
	old, ok := s.values[k]
	if ok && !old.Same(v) {
		s.split[row] = true
	}
	if len(s.values) >= mostRows && !ok || len(s.split) >= mostRows {
		s.crowded, s.values, s.split = true, nil, nil
		return
	}
	s.values[k] = v
}

// needed leaves out the columns that are only demanded to be as they always are,
// where the others alone are seen to choose the row.
func (s *shape) needed(op *lock.Op, parts []string) []string {
	for i, part := range parts {
		column, _, _ := strings.Cut(part, "=")
		if !s.echoed[column] || len(parts) == 1 {
			continue
		}
		rest := slices.Delete(slices.Clone(parts), i, i+1)
		row := rowName(op, rest)
		if name := namedBy(row); s.alone[name] && !s.many[name] && !s.isSplit(row) {
			return s.needed(op, rest)
		}
	}
	return parts
}

// ambiguous reports whether what is called one row may be two, told apart by a
// column that changes.
func (s *shape) ambiguous(row string) bool {
	name := namedBy(row)
	return s.isSplit(row) && (!s.alone[name] || s.many[name])
}

// guards reports whether statements compare the column though it changes.
func (s *shape) guards(column string) bool { return s.mutable[column] && s.compared[column] }

func (s *shape) isSplit(row string) bool { return s.crowded || s.split[row] }

// unchanged reports whether a statement assigns to a column what it demands of it.
func unchanged(op *lock.Op, a lock.Assign) bool {
	return !a.HasDelta && a.Value.Known() && slices.ContainsFunc(op.SQL.Where, func(w lock.Cond) bool {
		return w.Column == a.Column && w.Op == "=" && w.Value.Same(a.Value)
	})
}

// learn notes what a write assigns, and reports whether a column by which rows
// were told apart is found to change, or to be only demanded as it is.
func (s *shape) learn(op *lock.Op) (changed bool) {
	s.written = s.written || op.Outcome == lock.Done
	s.learnAside(op)
	if op.Verb == "INSERT" && !op.SQL.Upsert {
		return false
	}
	var sets, columns []string
	for _, a := range op.SQL.Set {
		columns = append(columns, a.Column)
		if unchanged(op, a) {
			changed = changed || s.keys[a.Column] && !s.echoed[a.Column]
			s.echoed[a.Column] = true
			continue
		}
		sets = append(sets, a.Column)
		changed = s.changes(a.Column, op.Verb == "INSERT") || changed
	}
	text := strings.Join(columns, ",") + ">" + strings.Join(sets, ",")
	if s.seen[text] || op.Verb == "INSERT" {
		return changed
	}
	s.seen[text] = true
	for _, column := range columns {
		s.updates[column] = append(s.updates[column], sets)
	}
	return changed
}

// changes notes that a column is assigned, by ON CONFLICT or by an UPDATE.
func (s *shape) changes(column string, upsert bool) (changed bool) {
	if !upsert {
		delete(s.upserts, column)
	}
	if s.mutable[column] || upsert && s.keys[column] {
		return false
	}
	s.mutable[column] = true
	if upsert {
		s.upserts[column] = true
	}
	return s.keys[column]
}

// rowOf returns which row a statement is about, as far as its conditions tell.
func (c *kase) rowOf(op *lock.Op) string {
	s := c.shapeOf(op.SQL.Table)
	if c.known.opaque(op) {
		return unknownRow
	}
	var parts []string
	if op.Verb == "INSERT" {
		for _, a := range op.SQL.Set {
			if s.keys[a.Column] && !s.mutable[a.Column] {
				parts = append(parts, a.Column+"="+text(a.Value))
			}
		}
		return rowName(op, parts)
	}
	guarded := false
	for _, w := range op.SQL.Where {
		switch {
		case s.mutable[w.Column]:
			guarded = true
		case w.Op == "=" && w.Value.Known():
			parts = append(parts, w.Column+"="+text(w.Value))
		default:
			return unknownRow
		}
	}
	if len(parts) == 0 && guarded && s.keyed() {
		return unknownRow
	}
	row := rowName(op, s.needed(op, parts))
	if guarded && s.ambiguous(row) {
		return unknownRow
	}
	return row
}

func rowName(op *lock.Op, parts []string) string {
	if len(parts) == 1 {
		return op.Upstream + "/" + parts[0]
	}
	slices.Sort(parts)
	return op.Upstream + "/" + strings.Join(slices.Compact(parts), "&")
}

// keyed reports whether the table's rows are told apart by a column that does
// not change. One whose are not is taken to have a single row.
func (s *shape) keyed() bool {
	for column := range s.keys {
		if !s.mutable[column] {
			return true
		}
	}
	return false
}

func text(v lock.Value) string {
	if v.Hash != "" {
		return v.Hash
	}
	if v.IsInt {
		return "n" + itoa(v.Int)
	}
	return ""
}

// guards returns the conditions of a write on columns that change. Those that stand
// beside each other are not copied.
func (c *kase) guards(op *lock.Op) []lock.Cond {
	s, all := c.shapeOf(op.SQL.Table), op.SQL.Where
	changes := func(w lock.Cond) bool { return s.mutable[w.Column] }
	from := slices.IndexFunc(all, changes)
	if from < 0 {
		return nil
	}
	to := from + 1
	for to < len(all) && changes(all[to]) {
		to++
	}
	out := all[from:to:to]
	for _, w := range all[to:] {
		if changes(w) {
			out = append(out, w)
		}
	}
	return out
}

// versioned reports whether a write of the column is a compare-and-set, or
// guarded by a version: by equality on a column that every writer of the
// column changes too.
func (c *kase) versioned(w *write, column string) bool {
	for _, g := range c.guards(w.op) {
		if g.Op == "=" && (g.Column == column || g.Column == rowVersion || c.changedWith(w.op.SQL.Table, column, g.Column)) {
			return true
		}
	}
	return false
}

// changedWith reports whether every UPDATE that assigns the column assigns the
// guard as well.
func (c *kase) changedWith(table, column, guard string) bool {
	for _, sets := range c.shapeOf(table).updates[column] {
		if !slices.Contains(sets, guard) {
			return false
		}
	}
	return true
}
