package fault

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// matches reports whether the rule's anchor matches, and under which name the
// event counts.
func (r *Rule) matches(phase Phase, op *lock.Op) (string, bool) {
	if r.side() != phase || r.Event == tick || r.Proto != "" && r.Proto != op.Proto {
		return "", false
	}
	if !r.means(phase, op) || phase == After && !r.answered(op) {
		return "", false
	}
	return r.named(op)
}

// means reports whether the op is the rule's event, whatever its answer.
func (r *Rule) means(phase Phase, op *lock.Op) bool {
	switch r.Event {
	case "acquire":
		// A plain SET shows that it took a lock by being given a term.
		return op.Kind == lock.Acquire || phase == After && op.Kind == lock.Store && op.Term.ID != 0
	case "refused":
		return op.Kind == lock.Acquire && phase == After
	case "renew", "release":
		// What was guessed of a script is true only of a lock's own token.
		return string(op.Kind) == r.Event && (!op.Guessed || op.Term.ID != 0)
	case "fence":
		return op.Kind == lock.Fence
	case "read", "write":
		return string(op.Kind) == r.Event && op.Term.Sure()
	case "commit":
		return op.Kind == lock.Commit && !op.Implicit && (op.Term.Sure() || len(op.Tables) > 0)
	case "SETNX":
		return op.Verb == "SETNX" || op.Verb == "SET" && op.NX
	}
	return op.Verb == r.Event && !beside(op.Proto, op.Kind)
}

// beside reports whether such an op is what a Postgres statement does to a lock.
// The statement has an op of its own beside it, and that one is what its verb
// names.
func beside(p lock.Protocol, k lock.Kind) bool {
	return p == lock.Postgres && (k == lock.Acquire || k == lock.Renew || k == lock.Release)
}

// answered reports whether the answer is one that the rule waits for: after an
// acquire means after it was granted, whatever event named it.
func (r *Rule) answered(op *lock.Op) bool {
	switch {
	case r.Event == "refused":
		return op.Outcome == lock.Refused
	case op.Kind == lock.Acquire, r.Event == "SETNX":
		return op.Outcome == lock.Granted
	}
	return true
}

// named finds the name that the glob matches: the key, or the table. Of the
// tables of a COMMIT, or of a statement that writes several, it is the first in
// the order of letters.
func (r *Rule) named(op *lock.Op) (string, bool) {
	if op.Key != "" || op.Proto == lock.Redis {
		return label(op), r.Glob == "" || globMatch(r.Glob, op.Key)
	}
	found, ok := "", false
	for _, table := range tables(op) {
		if name := lock.TableName(table); r.matchesTable(table) && (!ok || name < found) {
			found, ok = name, true
		}
	}
	return short(found), ok || r.Glob == ""
}

func tables(op *lock.Op) []string {
	if op.SQL == nil {
		return op.Tables
	}
	if len(op.SQL.Also) == 0 {
		return []string{op.SQL.Table}
	}
	return append([]string{op.SQL.Table}, op.SQL.Also...)
}

// matchesTable takes the table as the statement has it, without its schema, and
// where it has none with the default one.
func (r *Rule) matchesTable(table string) bool {
	if r.Glob == "" || globMatch(r.Glob, table) {
		return true
	}
	dot := strings.LastIndexByte(table, '.')
	return dot >= 0 && globMatch(r.Glob, table[dot+1:]) || dot < 0 && globMatch(r.Glob, "public."+table)
}

// label is the name that an op's events are counted and shown under.
func label(op *lock.Op) string {
	switch {
	case op.Key == "" && op.Proto != lock.Redis:
		if t := tables(op); len(t) > 0 {
			return short(lock.TableName(slices.Min(t)))
		}
		return ""
	case op.DB != 0:
		return short(op.Key) + " db " + strconv.Itoa(op.DB)
	}
	return short(op.Key)
}

// short keeps names from filling the memory: a long one keeps its beginning
// and a hash of the whole.
func short(name string) string {
	const most, kept = 256, 64
	if len(name) <= most {
		return name
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	return name[:kept] + "..." + strconv.FormatUint(h.Sum64(), 16)
}
