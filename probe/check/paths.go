package check

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// otherSchemas is why something is not proven where [lock.Op.Path] differs.
const otherSchemas = "The search paths of the sessions differ, or one made a temporary table of that name, so that these may be tables of different schemas, and this is not proven."

// A pathUse is under which search paths a table was named, or a lock's key.
type pathUse struct {
	first string
	mixed bool // under others as well
}

// mostPaths is of how many names it is known under which paths they were used.
const mostPaths = 1 << 13

// learnPath notes the search path under which an op named its tables.
func (k *Survey) learnPath(op *lock.Op) {
	if op.Proto != lock.Postgres {
		return
	}
	for _, name := range tablesOf(op) {
		u := k.paths[name]
		switch {
		case u != nil:
			u.mixed = u.mixed || u.first != op.Path
		case len(k.paths) < mostPaths:
			k.paths[name] = &pathUse{first: op.Path}
		default:
			k.pathed = k.pathed || op.Path != ""
		}
	}
}

// tablesOf lists what an op names: tables, and what of them it locks.
func tablesOf(op *lock.Op) []string {
	if op.SQL == nil {
		if ofTable(op.Key) {
			return []string{op.Key}
		}
		return nil
	}
	names := []string{lock.TableName(op.SQL.Table)}
	for _, table := range op.SQL.Also {
		names = append(names, lock.TableName(table))
	}
	return names
}

// ofTable reports whether a lock's key names a table.
func ofTable(key string) bool {
	class, _, _ := strings.Cut(key, ":")
	return class == "row" || class == "table" || class == "lease"
}

// mixed reports whether a name may have stood for tables of several schemas.
func (k *Survey) mixed(name string) bool {
	u := k.paths[name]
	return u == nil && k.pathed || u != nil && u.mixed
}

// elsewhere reports whether a table's name may have stood for another than that which
// an invariant reads, by the default path.
func (k *Survey) elsewhere(table string) bool {
	u := k.paths[table]
	return k.mixed(table) || u != nil && u.first != ""
}

// oneTable reports whether a name that some ops share stands for one table in all of them.
func oneTable(ops ...*lock.Op) bool {
	paths := map[string]string{}
	for _, op := range ops {
		if op == nil || op.Proto != lock.Postgres {
			continue
		}
		for _, name := range tablesOf(op) {
			if path, met := paths[name]; met && path != op.Path {
				return false
			}
			paths[name] = op.Path
		}
	}
	return true
}

// sameTable reports whether two read-modify-writes, of which the second may have no
// read, are certainly of one table.
func (c *kase) sameTable(a, b *rmw) bool {
	ops := []*lock.Op{a.read.op, a.write.op, b.write.op}
	if b.read != nil {
		ops = append(ops, b.read.op)
	}
	return oneTable(ops...)
}

// mixedIn reports whether a cluster may be of tables of several schemas.
func (c *kase) mixedIn(k *cluster) bool {
	for row := range k.rows {
		if c.known.mixed(row.table) {
			return true
		}
	}
	return false
}

// apart reports whether what a verdict rests on may be in several schemas: the ops that
// it cites, its lock, or what an invariant or a declaration calls by the same name.
func (c *carry) apart(f *finding, cited []*lock.Op) bool {
	if ofTable(f.id.Key) && c.known.mixed(f.id.Key) || !oneTable(cited...) {
		return true
	}
	of := func(op *lock.Op) bool {
		return op != nil && op.SQL != nil && slices.Contains(tablesOf(op), f.Table)
	}
	few := len(slices.Compact(slices.DeleteFunc(slices.Clone(cited), func(op *lock.Op) bool { return !of(op) }))) < 2
	switch f.Code {
	case "LF403":
		return c.known.elsewhere(f.Table)
	case "LF404":
		return few && c.known.elsewhere(f.Table)
	case "LF308":
		return few && c.known.mixed(f.Table)
	}
	return false
}
