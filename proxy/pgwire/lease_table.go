package pgwire

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A leaseTable is what is known of a table whose rows are locks.
type leaseTable struct {
	guess  bool // nothing: names have to do
	hinted bool // the table's own name suggests it

	owner   string     // column that says who has a lock
	times   []string   // columns that say when
	key     []string   // columns that name the row
	fence   string     // column that counts the holders
	flag    string     // column that says whether it is taken
	taken   lock.Value // by this
	version bool       // fence is who has it, and moves with each renewal
}

func (k *leaseTable) isOwner(column string) bool {
	if k.owner != "" {
		return column == k.owner
	}
	return ownerName(column) && !slices.Contains(k.key, column)
}

func (k *leaseTable) isTime(column string) bool {
	return slices.Contains(k.times, column) || timeName(column)
}

// maxLeaseTables bounds the tables that are known to hold leases.
const maxLeaseTables = 1024

// leaseTables are those that are known, of all sessions.
type leaseTables struct {
	some atomic.Bool
	mu   sync.Mutex
	by   map[string]*leaseTable
}

// of returns what is known of a table, nil if that is nothing.
func (l *leaseTables) of(table string) *leaseTable {
	if !l.some.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.by[table]
}

// Declare says of a table that its rows are locks, and what its columns say.
func (c *Cache) Declare(t lock.LeaseTable) {
	l := &c.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &leaseTable{owner: t.Owner, key: t.Key}
	if t.Until != "" {
		k.times = []string{t.Until}
	}
	if l.by == nil {
		l.by = map[string]*leaseTable{}
	}
	l.by[lock.TableName(t.Table)] = k
	l.some.Store(true)
}

// learn notes what a statement that takes a lease shows of its table.
func (l *leaseTables) learn(table string, by *lease, from binding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.by[table]
	if k != nil && (k.owner != "" || by.owner == "") {
		return
	}
	if k == nil && len(l.by) >= maxLeaseTables {
		return
	}
	k = &leaseTable{owner: by.owner, times: by.times, fence: by.fence, flag: by.flag.column, taken: by.flag.of(from), version: by.version}
	for _, s := range by.key {
		k.key = append(k.key, s.column)
	}
	if l.by == nil {
		l.by = map[string]*leaseTable{}
	}
	l.by[table] = k
	l.some.Store(true)
}
