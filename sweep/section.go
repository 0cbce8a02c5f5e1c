package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Section is what holders of one lock do, once.
type Section struct {
	Lock   string        // its key
	Many   bool          // each holding has a key of its own
	Lease  time.Duration // 0: it has none
	Actors int           // processes that asked for it
	Count  int           // holdings that were seen
	Alike  int           // of those, that went this way
	Steps  []Step
}

// A Step is one thing that is done in a section.
type Step struct {
	Event string // a class of rules
	Name  string // key or table
	N     int    // the how-manieth of its class and name in the section, from 1
	Claim bool   // a write that reads the row, for a write that comes later
	Tx    bool   // in a transaction that goes on behind it
	Locks bool   // its row is locked from then on, until the transaction ends
	Needs bool   // a read that waits where somebody else has locked the row
}

// holding is one term's ops.
type holding struct {
	lock  lock.LockID
	lease time.Duration
	ended bool
	ops   []*lock.Op
}

// Derive finds the way that most holders of a lock go. Of several locks it takes the one whose key is
// given, or else the one under which most is written.
func Derive(ops []*lock.Op, key string) (Section, error) {
	byLock := map[string][]*holding{}
	for _, h := range holdings(ops) {
		if k := h.lock.String(); h.ended && (key == "" || k == key) {
			byLock[k] = append(byLock[k], h)
		}
	}
	if len(byLock) == 0 {
		return Section{}, none(ops, key)
	}
	busiest := slices.MaxFunc(sortedKeys(byLock), func(a, b string) int {
		return cmp.Or(cmp.Compare(written(byLock[a]), written(byLock[b])), cmp.Compare(len(byLock[a]), len(byLock[b])), strings.Compare(b, a))
	})
	list := byLock[busiest]
	s := Section{Lock: busiest}
	if len(list) == 1 && len(byLock) > 1 {
		s.Many = true
		list = nil
		for _, k := range sortedKeys(byLock) {
			list = append(list, byLock[k]...)
		}
	}
	s.shape(list)
	s.Actors = askers(ops, s)
	return s, nil
}

func none(ops []*lock.Op, key string) error {
	if key != "" {
		return fmt.Errorf("no section of the lock %s was seen to its end", key)
	}
	if len(ops) == 0 {
		return errors.New("no lock and no statement was seen")
	}
	return errors.New("no section was seen to its end: no lock was granted and given back")
}

// holdings collects the ops of each term, in the order of requests.
func holdings(ops []*lock.Op) []*holding {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b *lock.Op) int { return cmp.Compare(a.Seq, b.Seq) })
	terms := map[lock.TermID]*holding{}
	var out []*holding
	for _, op := range ops {
		id := op.Term.ID
		if id == 0 || !op.Term.Sure() {
			continue
		}
		if granted(op) && terms[id] == nil {
			terms[id] = &holding{lock: lock.IDOf(op), lease: op.TTL}
			out = append(out, terms[id])
		}
		if h := terms[id]; h != nil {
			h.ops = append(h.ops, op)
			h.ended = h.ended || op.Outcome == lock.Done && (op.Kind == lock.Release || op.Kind == lock.Commit && h.ops[0].Span == lock.TxSpan)
		}
	}
	return out
}

func granted(op *lock.Op) bool {
	return op.Kind == lock.Acquire && op.Outcome == lock.Granted || op.Kind == lock.Store && op.Outcome == lock.Done
}

func written(list []*holding) (n int) {
	for _, h := range list {
		if slices.ContainsFunc(h.ops, func(op *lock.Op) bool { return op.Kind == lock.Write }) {
			n++
		}
	}
	return n
}

// shape takes the way that most of the holdings went.
func (s *Section) shape(list []*holding) {
	ways, counts := map[string]*holding{}, map[string]int{}
	for _, h := range list {
		way := fmt.Sprint(steps(h.ops, s.Many))
		counts[way]++
		if ways[way] == nil {
			ways[way] = h
		}
	}
	way := slices.MaxFunc(sortedKeys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(len(a), len(b))) })
	s.Count, s.Alike, s.Lease = len(list), counts[way], ways[way].lease
	s.Steps = steps(ways[way].ops, s.Many)
}

// steps lists what is done, up to the release; renewals are the clock's.
func steps(ops []*lock.Op, many bool) []Step {
	var out []Step
	seen := map[string]int{}
	for i, op := range ops {
		s, ok := step(op)
		if !ok || i > 0 && s.Event == "acquire" { // a lock that is had is taken anew, or renewed by a plain SET
			continue
		}
		if many && s.keyed() {
			s.Name = ""
		}
		seen[s.Event+" "+s.Name]++
		s.N = seen[s.Event+" "+s.Name]
		out = append(out, s)
		if s.Event == "release" {
			break
		}
	}
	return out
}

func (s Step) keyed() bool { return s.Event == "acquire" || s.Event == "release" || s.Event == "fence" }

func step(op *lock.Op) (Step, bool) {
	s := Step{Event: string(op.Kind), Name: op.Key}
	switch op.Kind {
	case lock.Acquire, lock.Store:
		s.Event = "acquire"
		return s, granted(op)
	case lock.Release:
		return s, op.Outcome == lock.Done
	case lock.Fence:
		return s, true
	case lock.Read, lock.Write:
		s.Name = lock.TableName(op.SQL.Table)
		s.Claim = op.Kind == lock.Write && claims(op.SQL)
		s.Tx = !op.Implicit
		s.Locks = s.Tx && (op.Kind == lock.Write || op.SQL.ForUpdate)
		s.Needs = s.Claim || op.SQL.ForUpdate
		return s, !op.SQL.Lease
	case lock.Commit:
		if len(op.Tables) > 0 {
			s.Name = lock.TableName(slices.Min(op.Tables))
		}
		return s, !op.Implicit && len(op.Tables) > 0
	}
	return s, false
}

// claims reports whether a write returns what it does not set: it reads the row, to write it later.
func claims(s *lock.Statement) bool {
	return s.Returning && slices.ContainsFunc(s.Columns, func(c string) bool {
		return c == "*" || !slices.ContainsFunc(s.Set, func(a lock.Assign) bool { return a.Column == c })
	})
}

// askers counts the processes that asked for the lock.
func askers(ops []*lock.Op, s Section) int {
	who := map[string]bool{}
	for _, op := range ops {
		if (op.Kind == lock.Acquire || op.Kind == lock.Store && op.Term.ID != 0) && (s.Many || lock.IDOf(op).String() == s.Lock) {
			who[op.Actor] = true
		}
	}
	return len(who)
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
