package fault

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Every op that a rule matches has to be found by the index, and its verb and
// name by Could.
func TestIndexFindsWhateverMatches(t *testing.T) {
	plan := planOf(t, everyEvent())
	matched := 0
	for _, op := range everyOp() {
		for _, phase := range []Phase{Before, After} {
			about := plan.about(phase, &op)
			if !slices.IsSortedFunc(about, func(a, b *armed) int { return a.index - b.index }) {
				t.Fatalf("rules about %v come out of order", op)
			}
			for _, r := range plan.rules {
				if _, ok := r.matches(phase, &op); !ok {
					continue
				}
				matched++
				if !slices.Contains(about, r) {
					t.Errorf("%s matches %s %s %s and is not found", r.Text, phase, op.Kind, op.Verb)
				}
				if r.Event == op.Verb && !could(plan, op.Proto, op.Verb, subject(&op)) {
					t.Errorf("%s matches %s of %q, but Could says no", r.Text, op.Verb, subject(&op))
				}
			}
		}
	}
	if matched < 100 {
		t.Errorf("only %d matches: the samples are too poor", matched)
	}
}

func planOf(t *testing.T, texts []string) *Plan {
	t.Helper()
	var rules []Rule
	for _, text := range texts {
		for _, flag := range []string{"stall-before", "stall-after"} {
			// Not every event has a before, or a name.
			if r, err := Parse(flag, text); err == nil {
				rules = append(rules, r)
			}
		}
	}
	p, err := NewPlan(rules, 1, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func everyEvent() (out []string) {
	for _, event := range known() {
		for _, glob := range []string{"", "(*)", "(a*)", "(*r)", "(other)", `(\a*)`, "(public.counter)"} {
			out = append(out, event+glob+"=1ms")
		}
	}
	return out
}

func everyOp() (out []lock.Op) {
	for _, kind := range []lock.Kind{lock.Acquire, lock.Store, lock.Renew, lock.Release, lock.Fence, lock.Read, lock.Write, lock.Commit, lock.Begin} {
		for _, verb := range []string{"SET", "SETNX", "GET", "SELECT", "UPDATE", "COMMIT", "DEL", "INCR", "PEXPIRE"} {
			for _, name := range []string{"account", "counter", "other"} {
				for _, outcome := range []lock.Outcome{lock.Granted, lock.Refused, lock.Done} {
					op := lock.Op{Kind: kind, Verb: verb, Outcome: outcome, NX: verb == "SET", Term: lock.Attribution{ID: 1, Confidence: 1}}
					op.Proto, op.Key = lock.Redis, name
					out = append(out, op)
					op.Proto, op.Key, op.SQL = lock.Postgres, "", &lock.Statement{Table: name}
					out = append(out, op)
				}
			}
		}
	}
	return out
}

func could(p *Plan, proto lock.Protocol, verb, subject string) bool {
	if proto == lock.Redis {
		return p.KeysOf(verb)([]byte(subject))
	}
	return p.CouldTable(verb, subject)
}

func subject(op *lock.Op) string {
	if op.SQL != nil {
		return op.SQL.Table
	}
	return op.Key
}

func TestCouldTellsNamesApart(t *testing.T) {
	var texts []string
	for i := range 100 {
		texts = append(texts, fmt.Sprintf("GET(nothing:%d)=1ms", i), fmt.Sprintf("SELECT(nothing_%d)=1ms", i))
	}
	p := planOf(t, append(texts, `DEL(*)=1ms`, `PTTL(\*x)=1ms`))
	for _, c := range []struct {
		proto         lock.Protocol
		verb, subject string
		want          bool
	}{
		{lock.Redis, "GET", "nothing:7", true}, {lock.Redis, "GET", "something", false}, {lock.Redis, "GET", "nothing:100", false},
		{lock.Redis, "SET", "nothing:7", false}, {lock.Redis, "DEL", "any", true}, {lock.Redis, "GET", "", true},
		{lock.Redis, "PTTL", "*x", true}, {lock.Redis, "PTTL", "ax", false},
		{lock.Postgres, "SELECT", "nothing_7", true}, {lock.Postgres, "SELECT", "public.nothing_7", true}, {lock.Postgres, "SELECT", "counter", false},
	} {
		if got := could(p, c.proto, c.verb, c.subject); got != c.want {
			t.Errorf("Could(%s, %s, %s) = %v", c.proto, c.verb, c.subject, got)
		}
	}
}
