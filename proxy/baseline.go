package proxy

import (
	"maps"
	"slices"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Await makes the first write to each table wait until BaselineRead, which is
// told of it by an Order.
func (e *Engine) Await(tables ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range tables {
		e.baselines[lock.TableName(t)] = nil
	}
}

// baseline returns the gate of the tables that an op writes, if the first value
// of any is still to be read; e.mu is held. Those that nobody waits for yet share
// one, which opens with the last.
func (e *Engine) baseline(op *lock.Op) *Gate {
	if len(e.baselines) == 0 || op.Kind != lock.Write || op.SQL == nil {
		return nil
	}
	var fresh []string
	var gate *Gate
	for _, table := range e.awaited(op.SQL) {
		if g := e.baselines[table]; g != nil {
			gate = g
		} else {
			fresh = append(fresh, table)
		}
	}
	if gate == nil && len(fresh) > 0 {
		gate = newGate()
	}
	for _, table := range fresh {
		e.baselines[table] = gate
		e.order(Order{Baseline: table})
	}
	return gate
}

// awaited lists, in order, the tables of a statement whose first value is still
// to be read.
func (e *Engine) awaited(s *lock.Statement) []string {
	if s.Cascade {
		return slices.Sorted(maps.Keys(e.baselines))
	}
	var out []string
	for _, t := range append([]string{s.Table}, s.Also...) {
		table := lock.TableName(t)
		if _, is := e.baselines[table]; is && !slices.Contains(out, table) {
			out = append(out, table)
		}
	}
	return out
}

// BaselineRead lets the writes to a table go on. With again, the next one waits
// too: there was nothing to read yet.
func (e *Engine) BaselineRead(table string, again bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.baselines[table]
	delete(e.baselines, table)
	if shared := slices.Contains(slices.Collect(maps.Values(e.baselines)), g); g != nil && !shared {
		g.Open()
	}
	if again {
		e.baselines[table] = nil
	}
}
