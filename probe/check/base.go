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

// A source is one column of a table, by its number, as one owner reads it.
type source struct {
	owner
	column int
}

// sourced are an owner's reads of a column, by row and, since rows that the same
// columns name are one or certainly not, by the columns that name them.
type sourced struct{ byRow, byName listing }

// A listing is reads by a name. Most owners read one row of a table and no more, so
// that there is no map until there is a second name.
type listing struct {
	name string
	list []*read
	more map[string][]*read
}

func (l *listing) add(name string, r *read) {
	switch {
	case l.list == nil || l.name == name:
		l.name, l.list = name, append(l.list, r)
		return
	case l.more == nil:
		l.more = map[string][]*read{}
	}
	l.more[name] = append(l.more[name], r)
}

func (l *listing) of(name string) []*read {
	if l.name == name {
		return l.list
	}
	return l.more[name]
}

// others calls f for what is listed by any other name, until it returns true, and
// reports whether it did.
func (l *listing) others(name string, f func([]*read) bool) bool {
	if l.name != name && f(l.list) {
		return true
	}
	for other, list := range l.more {
		if other != name && f(list) {
			return true
		}
	}
	return false
}

// columnID numbers the columns that are read, from 1: a number is looked up sooner
// than two names. The column is "" for reads that may return any.
func (c *kase) columnID(k columnOf) int {
	id := c.columnIDs[k]
	if id == 0 {
		id = len(c.columnIDs) + 1
		c.columnIDs[k] = id
	}
	return id
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
	name := c.nameOf(r.row)
	for _, column := range columns {
		c.indexAt(owners, columnOf{table, column}, r, name)
	}
	for _, column := range c.joined(r.op) {
		c.indexAt(owners, columnOf{anyTable, column}, r, name)
	}
}

func (c *kase) indexAt(owners []owner, column columnOf, r *read, name string) {
	id := c.columnID(column)
	for _, o := range owners {
		s := c.sources[source{o, id}]
		if s == nil {
			s = &sourced{}
			c.sources[source{o, id}] = s
		}
		s.byRow.add(r.row, r)
		s.byName.add(name, r)
	}
}

// nameOf is namedBy of a row, which many statements name alike.
func (c *kase) nameOf(row string) string {
	name, known := c.rowNames[row]
	if !known {
		name = namedBy(row)
		c.rowNames[row] = name
	}
	return name
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
	s := c.sources[source{o, c.columnIDs[columnOf{k.table, k.column}]}]
	if s == nil {
		return nil
	}
	for r := range c.heardBefore(s.byRow.of(k.row), w, 0) {
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
	for _, from := range [...]columnOf{{k.table, k.column}, {k.table, ""}, {anyTable, k.column}, {anyTable, ""}} {
		column := c.columnIDs[from]
		if column == 0 {
			continue // nobody reads that
		}
		for _, o := range owners {
			if s := c.sources[source{o, column}]; s != nil && c.rereadIn(s, id, base, w, k) {
				return true
			}
		}
	}
	return false
}

func (c *kase) rereadIn(s *sourced, id lock.TermID, base *read, w *write, k cell) bool {
	for r := range c.heardBefore(s.byRow.of(k.row), w, base.op.Seq) {
		if rival(r, id, w) {
			return true
		}
	}
	return s.byName.others(c.nameOf(k.row), func(list []*read) bool {
		for r := range c.heardBefore(list, w, base.op.Seq) {
			if rival(r, id, w) && !differ(r.row, k.row) {
				return true
			}
		}
		return false
	})
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
