package check

import "github.com/lockfaultd/lockfaultd/lock"

// A columnText is a text in a column, by its hash.
type columnText struct {
	columnOf
	hash string
}

// returned reports whether some reading of a column returned a text as it is. One that
// none did may be another form of what was returned: a client writes 8.5, or a time in
// its own way, and Postgres returns 8.50.
func (c *kase) returned(column columnOf, v lock.Value) bool {
	if c.texts == nil {
		c.texts = map[columnText]bool{}
		for _, r := range c.reads {
			for _, x := range r.op.Row {
				c.texts[columnText{columnOf{lock.TableName(r.op.SQL.Table), x.Column}, x.Value.Hash}] = true
			}
		}
	}
	return c.texts[columnText{column, v.Hash}]
}

// unlike reports whether a value that was written to a column is certainly not what
// was read of it.
func (c *kase) unlike(column columnOf, put, base lock.Value) bool {
	if by, ok := put.Minus(base); ok {
		return by != 0
	}
	number := func(v lock.Value) bool { return v.IsInt || v.IsRel }
	return !put.Same(base) && !number(put) && !number(base) && c.returned(column, put)
}
