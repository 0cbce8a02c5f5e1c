package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockfaultd/lockfaultd/internal/nearest"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// unmet says of a declaration that nothing answers to it, and what came nearest.
func (r Run) unmet(u check.Unmet) string {
	f := r.Result.Facts
	switch u.What {
	case check.UnmetKey:
		var keys []string
		for _, l := range f.Locks {
			keys = append(keys, globKey(l))
		}
		return fmt.Sprintf("the lock %s that is declared: it was never taken%s", u.Key, nearestSeen("lock keys", u.Key, keys))
	case check.UnmetTable:
		var tables []string
		for _, t := range f.Tables {
			tables = append(tables, t.Table)
		}
		return fmt.Sprintf("the table %s that lock %s is declared to protect: no statement is about it%s", u.Table, u.Key, nearestSeen("tables", u.Table, tables))
	}
	return fmt.Sprintf("the fence column %s of table %s that is declared: no statement names it%s", u.Fence, u.Table, nearestSeen("columns", u.Fence, u.Columns))
}

// nearestSeen lists the three names that are most like the one that was meant.
func nearestSeen(what, word string, seen []string) string {
	seen = slices.Compact(slices.Sorted(slices.Values(seen)))
	if len(seen) == 0 {
		return "; no " + what + " were seen"
	}
	slices.SortStableFunc(seen, func(a, b string) int {
		return cmp.Compare(nearest.Distance(word, a), nearest.Distance(word, b))
	})
	return fmt.Sprintf("; nearest %s seen: %s", what, few(seen[:min(3, len(seen))], 3))
}

// butUnmet says on a green run's first line that what was declared did not come.
func (r Run) butUnmet() string {
	var names []string
	for _, u := range r.Result.Facts.Unmet {
		names = append(names, map[check.UnmetPart]string{
			check.UnmetKey: "lock " + u.Key, check.UnmetTable: "table " + u.Table, check.UnmetFence: "fence column " + u.Table + "." + u.Fence}[u.What])
	}
	if len(names) == 0 {
		return ""
	}
	return "; but declared and never seen: " + few(names, 3)
}

// whyNoLock asks whether the command came by where it is not known that it did.
func (r Run) whyNoLock() string {
	if r.Sessions == 0 && r.Result.Facts.Ops == 0 {
		return ": does the command connect to the addresses that it is given in REDIS_URL and DATABASE_URL?"
	}
	return ". If the command does take one, it is of a kind that is not recognised, or it was never " +
		"free to be taken: docs/locks.md"
}
