package proxy

import "github.com/lockfaultd/lockfaultd/lock"

// Await makes the first write to each table wait until BaselineRead, which is
// told of it by an Order.
func (e *Engine) Await(tables ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range tables {
		e.baselines[lock.TableName(t)] = nil
	}
}

// baseline returns the gate of the table that an op writes, if its first value
// is still to be read; e.mu is held.
func (e *Engine) baseline(op *lock.Op) *Gate {
	if len(e.baselines) == 0 || op.Kind != lock.Write || op.SQL == nil {
		return nil
	}
	table := lock.TableName(op.SQL.Table)
	g, awaited := e.baselines[table]
	if !awaited {
		return nil
	}
	if g == nil {
		g = newGate()
		e.baselines[table] = g
		e.order(Order{Baseline: table})
	}
	return g
}

// BaselineRead lets the writes to a table go on. With again, the next one waits
// too: there was nothing to read yet.
func (e *Engine) BaselineRead(table string, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.baselines[table]; g != nil {
		g.Open()
	}
	delete(e.baselines, table)
	if again {
		e.baselines[table] = nil
	}
}
