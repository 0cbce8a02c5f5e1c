package check

import "slices"

// ofOneTx lists the writes of a transaction, w among them, that may have written w's
// column of its row: what nobody else sees but for the last of them.
func (c *kase) ofOneTx(w *write, column string) []*write {
	if w.op.Tx == 0 {
		return []*write{w}
	}
	var out []*write
	for _, op := range c.txs[txID{w.op.Session, w.op.Tx}].ops {
		x := c.writeOf[op]
		if x == nil || x.state != accepted && x.state != uncertain || !x.of(w.op.SQL.Table) || differ(x.row, w.row) {
			continue
		}
		if _, sets := x.assigns(column); sets || x.op.Verb != "UPDATE" {
			out = append(out, x)
		}
	}
	return out
}

// superseded reports whether a write's own transaction may have written the column
// once more, so that others never saw what this one put.
func (c *kase) superseded(w *write, column string) bool {
	return slices.ContainsFunc(c.ofOneTx(w, column), func(x *write) bool { return x.op.Seq > w.op.Seq })
}

// addedBy returns what a transaction added to a column, where its last write of it is
// an addition; nothing where it wrote it otherwise as well, for that hides what was there.
func (c *kase) addedBy(w *write, column string) int64 {
	sum := int64(0)
	for _, x := range c.ofOneTx(w, column) {
		a, _ := x.assigns(column)
		if !a.HasDelta || x.state != accepted || x.row != w.row {
			return 0
		}
		sum += a.Delta
	}
	return sum
}
