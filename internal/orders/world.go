package orders

import (
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// run lets the clients go on, one micro-step at a time, until all have ended.
func (w *world) run(haste int) {
	var last *client
	for {
		var able []*client
		left := false
		for _, c := range w.clients {
			left = left || !c.over()
			if !c.over() && !c.blocked() {
				able = append(able, c)
			}
		}
		if len(able) == 0 {
			w.spoiled = left
			return
		}
		c := last
		if !slices.Contains(able, c) || !w.Chance(haste) {
			c = able[w.Below(len(able))]
		}
		w.now += lock.Instant(Tick)
		c.advance()
		last = c
	}
}

func (c *client) over() bool { return c.gone || c.op == nil && len(c.plan) == 0 }

// blocked reports whether the server lets the client's statement wait for a row.
func (c *client) blocked() bool {
	if c.op == nil || c.done || c.op.SQL == nil || c.op.Kind == lock.Read && !c.op.SQL.ForUpdate {
		return false
	}
	h := c.w.holder[rowOf(c.op)]
	return h != nil && h != c
}

func (c *client) advance() {
	switch {
	case c.op == nil:
		c.ask()
	case c.w.Chance(1) && c.op.Proto == lock.Postgres:
		c.cut()
	case !c.done:
		c.effect()
		c.done = true
	default:
		c.answer()
	}
}

// ask sends the next thing of the plan, if there is one left that can be done.
func (c *client) ask() {
	next := c.plan[0]
	c.plan = c.plan[1:]
	if c.op = next(c); c.op == nil {
		return
	}
	c.w.seq++
	c.op.Seq, c.op.A, c.op.F, c.done = c.w.seq, c.w.now, c.w.now, false
	c.op.Outcome = lock.Unknown
	c.w.out.Ops = append(c.w.out.Ops, c.op)
	c.w.out.Section = append(c.w.out.Section, max(0, c.section))
}

// cut ends the client's connection before it has its answer.
func (c *client) cut() {
	if c.done {
		c.op.Rows, c.op.Row, c.op.Err = 0, nil, ""
	}
	c.op.Outcome, c.gone = lock.Unknown, true
	c.letGo()
}

func (c *client) answer() {
	op := c.op
	c.w.seq++
	op.ReplySeq, op.R, op.D = c.w.seq, c.w.now, c.w.now
	for _, cell := range op.Row {
		c.heard[cellOf(op, cell)] = valueOf(cell.Value)
	}
	switch op.Kind {
	case lock.Commit, lock.Rollback:
		c.explicit, c.snapshot = false, false
	}
	if op.Outcome == lock.Failed {
		c.failed = true
	}
	c.op = nil
}

func cellOf(op *lock.Op, c lock.Cell) cell { return cell{rowOf(op), c.Column} }

func (c *client) letGo() {
	for row, h := range c.w.holder {
		if h == c {
			delete(c.w.holder, row)
		}
	}
}

// effect is the instant at which the server does it.
func (c *client) effect() {
	op := c.op
	op.Outcome = lock.Done
	switch op.Kind {
	case lock.Store:
		c.w.token = c.token
	case lock.Release:
		if c.w.token != c.token {
			op.Outcome = lock.NotHeld
			return
		}
		c.w.token = ""
	case lock.Commit:
		c.commit()
	case lock.Rollback:
		c.letGo()
	case lock.Read, lock.Write:
		c.execute()
	}
}

func (c *client) commit() {
	for _, k := range c.order {
		c.w.put(c, k, c.pending[k])
	}
	c.letGo()
}

// put makes a value the row's, for everybody to see.
func (w *world) put(by *client, k cell, v value) {
	w.rows[k] = v
	for _, c := range w.clients {
		if c != by && c.snap != nil {
			c.changed[k.row] = true
		}
	}
}

func (c *client) execute() {
	op, row := c.op, rowOf(c.op)
	if c.failed && c.explicit {
		op.Outcome, op.Err = lock.Failed, "25P02"
		return
	}
	if c.snapshot && c.snap == nil {
		c.snap = map[cell]value{}
		for k, v := range c.w.rows {
			c.snap[k] = v
		}
	}
	locks := op.Kind == lock.Write || op.SQL.ForUpdate
	if op.Kind == lock.Write && !c.passes() {
		return // no row
	}
	if locks && c.snapshot && c.changed[row] {
		op.Outcome, op.Err = lock.Failed, "40001"
		return
	}
	op.Rows = 1
	if locks && c.explicit {
		c.w.holder[row] = c
	}
	if op.Kind == lock.Write {
		c.write()
	}
	for _, column := range op.SQL.Columns {
		op.Row = append(op.Row, lock.Cell{Column: column, Value: c.w.shown(c.sees(cell{row, column}))})
	}
}

func (w *world) shown(v value) lock.Value {
	if v.text != "" {
		return lock.Value{Hash: v.text}
	}
	return w.number(v.n)
}

// sees returns what the client's transaction finds in a cell.
func (c *client) sees(k cell) value {
	if v, ok := c.pending[k]; ok && c.explicit {
		return v
	}
	if c.snapshot {
		return c.snap[k]
	}
	return c.w.rows[k]
}

func (c *client) passes() bool {
	return !slices.ContainsFunc(guardsOf(c.op), func(g lock.Cond) bool { return !holds(c.sees(cell{rowOf(c.op), g.Column}), g) })
}

func (c *client) write() {
	for _, a := range c.op.SQL.Set {
		k := cell{rowOf(c.op), a.Column}
		v := valueOf(a.Value)
		if a.HasDelta {
			v = value{n: c.sees(k).n + a.Delta}
		}
		if !c.explicit {
			c.w.put(c, k, v)
			continue
		}
		if _, had := c.pending[k]; !had {
			c.order = append(c.order, k)
		}
		c.pending[k] = v
	}
}
