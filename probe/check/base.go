package check

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An owner is who made a read, as far as a later write's base goes: a term, a
// connection or a process.
type owner struct {
	term    lock.TermID
	session uint64
	actor   string
}

// A source is one column of a table as one owner reads it. The column is "" for
// reads that may return any.
type source struct {
	owner
	columnOf
}

// sourced are an owner's reads of a column, by row and, since rows that the same
// columns name are one or certainly not, by the columns that name them.
type sourced struct {
	byRow  map[string][]*read
	byName map[string][]*read
}

// index makes the read findable for the writes that may have been computed from it.
func (c *kase) index(r *read, columns []string) {
	table := lock.TableName(r.op.SQL.Table)
	if r.op.SQL.Opaque || len(columns) == 0 {
		columns = append(slices.Clone(columns), "")
	}
	owners := []owner{{session: r.op.Session}}
	if r.op.Actor != "" {
		owners = append(owners, owner{actor: r.op.Actor})
	}
	if r.op.Term.ID != 0 {
		owners = append(owners, owner{term: r.op.Term.ID})
	}
	for _, id := range r.op.Term.Also {
		owners = append(owners, owner{term: id})
	}
	for _, o := range owners {
		for _, column := range columns {
			c.indexAt(source{o, columnOf{table, column}}, r)
		}
		for _, column := range c.joined(r.op) {
			c.indexAt(source{o, columnOf{anyTable, column}}, r)
		}
	}
}

func (c *kase) indexAt(k source, r *read) {
	s := c.sources[k]
	if s == nil {
		s = &sourced{byRow: map[string][]*read{}, byName: map[string][]*read{}}
		c.sources[k] = s
	}
	name := namedBy(r.row)
	s.byRow[r.row] = append(s.byRow[r.row], r)
	s.byName[name] = append(s.byName[name], r)
}

// anyTable stands for those that a statement reads beside the one that it is named by.
const anyTable = ""

// joined lists the columns that a statement may have returned of another table than
// that which it is named by: "" for any. What nobody writes by its name may be a view.
func (c *kase) joined(op *lock.Op) (out []string) {
	switch {
	case op.Kind != lock.Read || !op.SQL.Opaque && c.shapeOf(op.SQL.Table).written:
		return nil
	case !op.SQL.Opaque:
		for _, v := range op.Row {
			out = append(out, v.Column)
		}
		return out
	}
	for _, column := range op.SQL.Columns {
		if column == "*" || column == "?" {
			column = ""
		}
		if !slices.Contains(out, column) {
			out = append(out, column)
		}
	}
	return out
}

// baseRead is the last read of the cell that the term had heard before it wrote.
// It is not sure if another may be the one: a later read on the same connection,
// by the same process or by the term, which may have been of the row as well.
func (c *kase) baseRead(id lock.TermID, w *write, k cell) (base *read, sure bool) {
	if base = c.lastOf(owner{term: id}, w, k); base == nil {
		return nil, false
	}
	owners := []owner{{session: w.op.Session}, {term: id}}
	if w.op.Actor != "" {
		owners = append(owners, owner{actor: w.op.Actor})
	}
	return base, inHand(base.op, w.op) && !c.reread(base, id, owners, w, k)
}

// lastOf is the last read of the cell that an owner had heard before w was asked,
// and that is the owner's for sure.
func (c *kase) lastOf(o owner, w *write, k cell) *read {
	s := c.sources[source{o, columnOf{k.table, k.column}}]
	if s == nil {
		return nil
	}
	for r := range c.heardBefore(s.byRow[k.row], w, 0) {
		if o.term == 0 || r.op.Term.ID == o.term && r.op.Term.Sure() {
			return r
		}
	}
	return nil
}

// heardBefore goes through those reads of a list whose reply was there before w
// was asked, from the last back to those asked after the op numbered after.
func (c *kase) heardBefore(list []*read, w *write, after uint64) func(yield func(*read) bool) {
	return func(yield func(*read) bool) {
		i, _ := slices.BinarySearchFunc(list, w.op.Seq, func(r *read, seq uint64) int { return cmp.Compare(r.op.Seq, seq) })
		for i--; i >= 0 && list[i].op.Seq > after; i-- {
			c.looked++
			if heard(list[i].op, w.op) && !yield(list[i]) {
				return
			}
		}
	}
}

// reread reports whether w, of the term if it is certain, may have been computed
// from a later read than base by one of the owners.
func (c *kase) reread(base *read, id lock.TermID, owners []owner, w *write, k cell) bool {
	for _, o := range owners {
		for _, from := range []columnOf{{k.table, k.column}, {k.table, ""}, {anyTable, k.column}, {anyTable, ""}} {
			if s := c.sources[source{o, from}]; s != nil && c.rereadIn(s, id, base, w, k) {
				return true
			}
		}
	}
	return false
}

func (c *kase) rereadIn(s *sourced, id lock.TermID, base *read, w *write, k cell) bool {
	for r := range c.heardBefore(s.byRow[k.row], w, base.op.Seq) {
		if rival(r, id, w) {
			return true
		}
	}
	name := namedBy(k.row)
	for other, list := range s.byName {
		if other == name {
			continue
		}
		for r := range c.heardBefore(list, w, base.op.Seq) {
			if rival(r, id, w) && !differ(r.row, k.row) {
				return true
			}
		}
	}
	return false
}

// rival reports whether a read may have been made for the write of the term:
// not by another task of its process, that is.
func rival(r *read, id lock.TermID, w *write) bool {
	return !r.op.Term.Sure() || r.op.Term.ID == id || r.op.Session == w.op.Session
}

// namedBy returns the columns by which a row was named.
func namedBy(row string) string {
	if row == unknownRow {
		return row
	}
	at := strings.Index(row, "/") + 1
	var name strings.Builder
	name.Grow(len(row))
	name.WriteString(row[:at])
	for part := range strings.FieldsFuncSeq(row[at:], ampersand) {
		if name.Len() > at {
			name.WriteByte('&')
		}
		column, _, _ := strings.Cut(part, "=")
		name.WriteString(column)
	}
	return name.String()
}

func partsOf(row string) []string {
	_, parts, _ := strings.Cut(row, "/")
	return strings.FieldsFunc(parts, ampersand)
}

func ampersand(r rune) bool { return r == '&' }

// differ reports whether two rows are certainly not the same one: of two
// upstreams, or with two values in a column that does not change.
func differ(a, b string) bool {
	if a == unknownRow || b == unknownRow {
		return false
	}
	if a[:strings.Index(a, "/")] != b[:strings.Index(b, "/")] {
		return true
	}
	values := map[string]string{}
	for _, part := range partsOf(a) {
		column, value, _ := strings.Cut(part, "=")
		values[column] = value
	}
	for _, part := range partsOf(b) {
		column, value, _ := strings.Cut(part, "=")
		if v, ok := values[column]; ok && v != value {
			return true
		}
	}
	return false
}

// certain returns the read, or one in its place without values if it is not sure.
func (c *kase) certain(r *read, sure bool) *read {
	if sure {
		return r
	}
	return &read{op: r.op, row: r.row, vague: true}
}
