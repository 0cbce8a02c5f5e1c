package orders

import (
	"fmt"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

func (c *client) redis(kind lock.Kind, verb string) *lock.Op {
	return &lock.Op{Session: c.session, Actor: c.name, Proto: lock.Redis, Kind: kind, Verb: verb, Key: "lock:c", Token: c.w.text(c.token)}
}

// grant takes the lock with a plain SET, which excludes nobody: what is drawn is to
// go wrong often.
func (c *client) grant() *lock.Op {
	c.token = fmt.Sprintf("t-%s-%d", c.name, c.section)
	op := c.redis(lock.Store, "SET")
	op.TTL = []time.Duration{20 * Tick, time.Hour}[c.w.Below(2)]
	return op
}

func (c *client) release() *lock.Op {
	op := c.redis(lock.Release, "EVAL")
	op.Guarded = true
	return op
}

func (c *client) pg(kind lock.Kind, verb string) *lock.Op {
	op := &lock.Op{Session: c.session + 1, Actor: c.name, Proto: lock.Postgres, Kind: kind, Verb: verb, Implicit: !c.explicit, Snapshot: c.snapshot}
	if op.Implicit {
		c.tx++
	}
	op.Tx = c.tx
	return op
}

func (c *client) begin() *lock.Op {
	c.tx++
	c.explicit, c.snapshot = true, c.w.Chance(30)
	c.snap, c.pending, c.order, c.changed, c.failed = nil, map[cell]value{}, nil, map[string]bool{}, false
	return c.pg(lock.Begin, "BEGIN")
}

func (c *client) end() *lock.Op {
	if c.failed || c.w.Chance(8) {
		return c.pg(lock.Rollback, "ROLLBACK")
	}
	return c.pg(lock.Commit, "COMMIT")
}

func (c *client) statement(kind lock.Kind, verb, row string) *lock.Op {
	op := c.pg(kind, verb)
	op.SQL = &lock.Statement{Table: Table, Where: []lock.Cond{{Column: "id", Op: "=", Value: lock.Value{Hash: row}}}}
	return op
}

func (c *client) read(row string, locks bool, columns ...string) *lock.Op {
	op := c.statement(lock.Read, "SELECT", row)
	op.SQL.Columns, op.SQL.ForUpdate = columns, locks
	return op
}

func (c *client) update(row string, set []lock.Assign, guards ...lock.Cond) *lock.Op {
	op := c.statement(lock.Write, "UPDATE", row)
	op.SQL.Set, op.SQL.Where = set, append(op.SQL.Where, guards...)
	return op
}

func (c *client) assign(column string, n int64) lock.Assign {
	return lock.Assign{Column: column, Value: c.w.number(n)}
}

// modify writes what was read, and by more.
func (c *client) modify(row string, by int64) *lock.Op {
	base, ok := c.heard[cell{row, Column}]
	if !ok {
		return nil
	}
	return c.update(row, []lock.Assign{c.assign(Column, base.n+by)})
}

func (c *client) add(row string, by int64) *lock.Op {
	return c.update(row, []lock.Assign{{Column: Column, Delta: by, HasDelta: true}})
}

func (c *client) set(row string, n int64) *lock.Op {
	return c.update(row, []lock.Assign{c.assign(Column, n)})
}

// swap compares and sets.
func (c *client) swap(row string, by int64) *lock.Op {
	base, ok := c.heard[cell{row, Column}]
	if !ok {
		return nil
	}
	return c.update(row, []lock.Assign{c.assign(Column, base.n+by)}, lock.Cond{Column: Column, Op: "=", Value: c.w.number(base.n)})
}

// compare compares the version that was read.
func (c *client) compare(row string, by int64) *lock.Op {
	base, ok := c.heard[cell{row, Column}]
	if !ok {
		return nil
	}
	v := c.heard[cell{row, "version"}].n
	return c.update(row, []lock.Assign{c.assign(Column, base.n+by), c.assign("version", v+1)},
		lock.Cond{Column: "version", Op: "=", Value: c.w.number(v)})
}

// fenced writes under a fence that is checked only then.
func (c *client) fenced(row string, by int64) *lock.Op {
	base, ok := c.heard[cell{row, Column}]
	if !ok {
		return nil
	}
	f := int64(c.section + 1)
	set := []lock.Assign{c.assign(Column, base.n+by), c.assign(Fence, f)}
	if c.w.Chance(30) {
		return c.update(row, set) // nobody checks it
	}
	return c.update(row, set,
		lock.Cond{Column: Fence, Op: "<", Value: c.w.number(f)})
}

// claim puts the fence first, and returns what is there.
func (c *client) claim(row string) *lock.Op {
	f := int64(c.section + 1)
	op := c.update(row, []lock.Assign{c.assign(Fence, f)}, lock.Cond{Column: Fence, Op: "<", Value: c.w.number(f)})
	op.SQL.Returning, op.SQL.Columns = true, []string{Column}
	return op
}

// whole writes a row back of which one column was changed: the number, mostly.
func (c *client) whole(row string, by int64, note string) *lock.Op {
	base, ok := c.heard[cell{row, Column}]
	if !ok {
		return nil
	}
	set := []lock.Assign{c.assign(Column, base.n+by), {Column: "note", Value: c.w.text(note)}}
	if old := c.heard[cell{row, "note"}]; c.w.Chance(50) {
		set[1].Value = lock.Value{Hash: old.text}
	}
	return c.update(row, set)
}
