package proxy

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Reads reports, without the mutex, whether a SELECT from a table matters to
// anybody. One that nobody asked for, while no lock was ever granted, takes no
// part in anything and is not recorded. The table is as lock.TableName has it.
func (e *Engine) Reads(table string) bool {
	selects := e.selects()
	if e.busy.Load() || e.tables[table] || selects && e.plan.CouldTable("SELECT", table) {
		return true
	}
	if selects && e.glances.first(e.glances.selects, []byte(table)) {
		e.glimpse(&lock.Op{Proto: lock.Postgres, Kind: lock.Read, Verb: "SELECT", SQL: &lock.Statement{Table: table}})
	}
	return false
}

// selects reports, without the mutex, whether an armed rule names SELECT.
func (e *Engine) selects() bool { return e.plan.Wants(lock.Postgres, "SELECT") }

// Keys returns what reports, without the mutex, whether a command on a key that
// matters only because rules name its verb matters to any of them.
func (e *Engine) Keys(verb string) func(key []byte) bool {
	match, h := e.plan.KeysOf(verb), maphash.String(e.glances.seed, verb)
	return func(key []byte) bool {
		if match(key) {
			return true
		}
		if e.glances.first(h, key) {
			e.glimpse(&lock.Op{Proto: lock.Redis, Kind: lock.Other, Verb: verb, Key: string(key)})
		}
		return false
	}
}

// glimpse tells the plan of an event that no rule can match and that is no op,
// so that a rule that never matched can tell what came nearest.
func (e *Engine) glimpse(op *lock.Op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.plan.Glimpse(op)
}

// glances remember, by their hashes, which names the plan was told of. They
// take no lock, and hold the first that come.
type glances struct {
	seed    maphash.Seed
	selects uint64
	names   [256]atomic.Uint64
}

func newGlances() *glances {
	g := &glances{seed: maphash.MakeSeed()}
	g.selects = maphash.String(g.seed, "pg:SELECT")
	return g
}

// first reports whether a name has not come before with that verb. It may say
// no to a new one whose places others have taken.
func (g *glances) first(verb uint64, name []byte) bool {
	h := maphash.Bytes(g.seed, name) ^ verb
	for i := range uint64(8) {
		place := &g.names[(h+i)%uint64(len(g.names))]
		if place.Load() == 0 && place.CompareAndSwap(0, h) {
			return true
		}
		if place.Load() == h {
			return false
		}
	}
	return false
}
