package pgwire

import (
	"bytes"
	"encoding/binary"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A cursor reads the fields of a body. Behind its end it gives zeros and is
// bad.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) text() []byte {
	n := bytes.IndexByte(c.b, 0)
	if n < 0 {
		c.bad, c.b = true, nil
		return nil
	}
	s := c.b[:n]
	c.b = c.b[n+1:]
	return s
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.bad, c.b = true, nil
		return nil
	}
	s := c.b[:n]
	c.b = c.b[n:]
	return s
}

func (c *cursor) count() int {
	if b := c.take(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (c *cursor) uint32() uint32 {
	if b := c.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// field reads a value with its length before it. null is also said of what is
// not there.
func (c *cursor) field() (b []byte, null bool) {
	n := int32(c.uint32())
	if c.bad || n == -1 {
		return nil, true
	}
	b = c.take(int(n))
	return b, c.bad
}

// formats are the format codes of a Bind: none is text, one is for all.
type formats struct {
	codes   []byte // two bytes each
	unknown bool
}

func (c *cursor) formats() formats { return formats{codes: c.take(2 * c.count())} }

func (f formats) binary(i int) bool {
	if len(f.codes) == 2 {
		i = 0
	}
	return 2*i+1 < len(f.codes) && f.codes[2*i+1] == 1
}

// keep returns a copy that outlives the body.
func (f formats) keep() formats { return formats{codes: bytes.Clone(f.codes)} }

// A column is one of a row's, as RowDescription has it. An expression has no
// name: it could only be an alias.
type column struct {
	name string
	oid  uint32
}

const (
	maxColumns = 64  // that are kept of a row
	maxName    = 256 // bytes of a name that is kept
)

// describe reads a RowDescription.
func describe(body []byte) []column {
	c := cursor{b: body}
	n := min(c.count(), maxColumns)
	var out []column
	for range n {
		name := c.text()
		table := c.uint32()
		c.take(2)
		oid := c.uint32()
		c.take(8)
		if c.bad || len(name) > maxName {
			break
		}
		if table == 0 {
			name = nil
		}
		out = append(out, column{name: string(name), oid: oid})
	}
	return out
}

// oids reads a list of type OIDs with its count before it.
func (c *cursor) oids() []uint32 {
	n := min(c.count(), maxParams)
	var out []uint32
	for range n {
		if oid := c.uint32(); !c.bad {
			out = append(out, oid)
		}
	}
	return out
}

// bound are the parameters of a Bind that its statement needs.
type bound []lock.Value

func (b bound) at(param int) lock.Value {
	if param > len(b) {
		return lock.Value{}
	}
	return b[param-1]
}

func (b bound) when(int) moment { return moment{} }

// timed are parameters of which it is known what they say of time.
type timed struct {
	bound
	moments []moment
}

func (t timed) when(param int) moment {
	if param > len(t.moments) {
		return moment{}
	}
	return t.moments[param-1]
}

// moments reads the formats and parameters of a Bind for what they say of time.
func (c *cursor) moments(oids []uint32, n int) []moment {
	f := c.formats()
	out := make([]moment, min(n, c.count()))
	for i := range out {
		b, null := c.field()
		if c.bad {
			break
		}
		if !null {
			out[i] = momentOf(b, at(oids, i), f.binary(i))
		}
	}
	return out
}

// parameters reads the formats and parameters of a Bind. The first n of them
// are wanted.
func (c *cursor) parameters(h *lock.Hasher, oids []uint32, n int) bound {
	f := c.formats()
	count := c.count()
	out := make(bound, min(n, count))
	used := 0
	for i := range count {
		b, null := c.field()
		if c.bad {
			break
		}
		if used += len(b); i >= len(out) || null || used > maxValues {
			continue
		}
		out[i] = valueOf(h, b, at(oids, i), f.binary(i))
	}
	return out
}

// row reads a DataRow. Columns whose names are not known have none.
func row(h *lock.Hasher, body []byte, columns []column, f formats) []lock.Cell {
	c := cursor{b: body}
	n := c.count()
	var out []lock.Cell
	for i := range min(n, maxColumns) {
		b, null := c.field()
		if c.bad {
			break
		}
		desc := at(columns, i)
		cell := lock.Cell{Column: desc.name}
		if !null {
			cell.Value = valueOf(h, b, desc.oid, f.binary(i))
		}
		out = append(out, cell)
	}
	return out
}

func at[T any](list []T, i int) (v T) {
	if i < len(list) {
		v = list[i]
	}
	return v
}

// sqlState returns the SQLSTATE of an ErrorResponse.
func sqlState(body []byte) string { return errorField(body, 'C') }

// errorField returns one field of an ErrorResponse, "" if it has none. The last
// one may have been cut.
func errorField(body []byte, typ byte) string {
	for len(body) > 0 && body[0] != 0 {
		text, rest, _ := bytes.Cut(body[1:], []byte{0})
		if body[0] == typ {
			return string(text)
		}
		body = rest
	}
	return ""
}

// tag reads a CommandComplete: its first word's end and its count, if it has
// one.
func tag(body []byte) (word []byte, rows int64, counted bool) {
	c := cursor{b: body}
	text := c.text()
	word, _, _ = bytes.Cut(text, []byte{' '})
	last := text[bytes.LastIndexByte(text, ' ')+1:]
	for _, d := range last {
		if !isDigit(d) || rows > 1<<58 {
			return word, 0, false
		}
		rows = rows*10 + int64(d-'0')
	}
	return word, rows, len(last) > 0
}
