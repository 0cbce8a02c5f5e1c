package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// reading is how long one reading of an invariant may take.
const reading = 10 * time.Second

// invariants are the numbers that the run is judged by, read from the database
// itself and not through the proxy. Its methods may be called concurrently.
type invariants struct {
	from  probe.Database
	typed []string            // where each was typed, for errors
	clock func() lock.Instant // nil: the run has not begun

	mu   sync.Mutex
	list []check.Invariant
	errs map[string]error
}

func newInvariants(list []check.Invariant, typed []string, from probe.Database) (*invariants, error) {
	if len(list) > 0 && from.URL == "" {
		return nil, usagef("%s: no database to read it from; expected DATABASE_URL, PGHOST or --database", typed[0])
	}
	return &invariants{from: from, typed: typed, list: list, errs: map[string]error{}}, nil
}

// start takes the first readings. What cannot be read yet, since its table or
// row is not there or the server does not answer, is read before the first
// write to its table. What the server refuses is the user's to mend.
func (v *invariants) start(ctx context.Context) error {
	for i, inv := range v.list {
		v.read(ctx, i, false)
		if err := v.errs[inv.Query]; probe.Refused(err) {
			return usagef("%s: %v", v.typed[i], err)
		}
	}
	return nil
}

// notes says of each number that is not there yet what is missing: the command may
// make it, or its name is not spelled right.
func (v *invariants) notes(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, reading)
	defer cancel()
	var out []string
	for i, inv := range v.readings() {
		if !inv.HasStart && v.errs[inv.Query] == nil {
			out = append(out, fmt.Sprintf("%s: %s yet: it is read before the first write to it", v.typed[i], v.from.Lacks(ctx, inv)))
		}
	}
	return out
}

// missing lists the tables whose first reading is still to be taken.
func (v *invariants) missing() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for _, inv := range v.list {
		if !inv.HasStart && inv.Table != "" {
			out = append(out, inv.Table)
		}
	}
	return out
}

// baseline reads what was missing of a table, just before a write to it. It
// reports whether there is still nothing to read.
func (v *invariants) baseline(ctx context.Context, table string) (again bool) {
	for i := range v.list {
		if sameTable(v.list[i].Table, table) && !v.has(i) {
			v.read(ctx, i, false)
			again = again || !v.has(i)
		}
	}
	return again
}

func (v *invariants) has(i int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.list[i].HasStart
}

// end takes the last readings, once the backends that were proxied are idle.
func (v *invariants) end(pids []int32) {
	if len(v.list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), reading)
	defer cancel()
	if err := v.from.WaitIdle(ctx, pids); err != nil {
		v.fail("waiting for idle backends", err)
	}
	for i := range v.list {
		v.read(ctx, i, true)
	}
}

func (v *invariants) read(ctx context.Context, i int, end bool) {
	ctx, cancel := context.WithTimeout(ctx, reading)
	defer cancel()
	v.mu.Lock()
	inv := v.list[i]
	v.mu.Unlock()
	value, exists, err := v.from.ReadInvariant(ctx, inv)
	if err != nil {
		v.fail(inv.Query, err)
		return
	}
	lacks := ""
	if end && !exists {
		lacks = v.from.Lacks(ctx, inv)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.errs, inv.Query)
	if end {
		v.list[i].End, v.list[i].HasEnd = value, exists
		if !exists {
			v.errs[inv.Query] = errors.New(lacks)
		}
	} else {
		v.list[i].Start, v.list[i].HasStart = value, exists
		if v.clock != nil {
			v.list[i].ReadAt = v.clock()
		}
	}
}

func (v *invariants) fail(what string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.errs[what] = err
}

// readings returns the invariants with what was read so far.
func (v *invariants) readings() []check.Invariant {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.list
}

// unread says which could not be read, and why.
func (v *invariants) unread() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for what, err := range v.errs {
		out = append(out, fmt.Sprintf("%s: %v", what, err))
	}
	return out
}

func invariantsForHeader(list []check.Invariant) []history.Invariant {
	out := make([]history.Invariant, 0, len(list))
	for _, i := range list {
		out = append(out, history.Invariant(i))
	}
	return out
}
