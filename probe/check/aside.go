package check

import (
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// learnAside notes what was not understood of a write, and which columns its table
// has for certain: an UPDATE or a DELETE of that table alone, which the server took,
// can name no other's.
func (s *shape) learnAside(op *lock.Op) {
	if op.SQL.Opaque {
		s.opaque = s.opaque || !onlyAside(op)
		for _, a := range op.SQL.Aside {
			s.asides[a] = true
		}
		return
	}
	if op.Outcome != lock.Done {
		return
	}
	for _, a := range op.SQL.Set {
		s.own[a.Column] = true
	}
	if op.Verb == "UPDATE" || op.Verb == "DELETE" {
		for _, w := range op.SQL.Where {
			s.own[w.Column] = true
		}
	}
}

// onlyAside reports whether a write was understood but for comparisons with columns
// of other tables, if they are theirs.
func onlyAside(op *lock.Op) bool {
	return len(op.SQL.Aside) > 0 && (op.Verb == "UPDATE" || op.Verb == "DELETE")
}

// opaque reports whether what was not understood of a statement may have to do with
// the rows that it is about. A column without a name before it, in a subquery, is
// the written table's unless the other has it. That no row was changed may be by either
// kind of conditions.
func (k *Survey) opaque(op *lock.Op) bool {
	if !op.SQL.Opaque {
		return false
	}
	if !onlyAside(op) || answered(op) && op.Rows == 0 {
		return true
	}
	return slices.ContainsFunc(op.SQL.Aside, func(a string) bool { return !k.has(a) })
}

// unread reports whether some write of the table was not understood.
func (k *Survey) unread(table string) bool {
	s := k.shapeOf(table)
	for a := range s.asides {
		if !k.has(a) {
			return true
		}
	}
	return s.opaque
}

// has reports whether a table has a column for certain.
func (k *Survey) has(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	s := k.shapes[lock.TableName(name[:max(dot, 0)])]
	return s != nil && s.own[name[dot+1:]]
}
