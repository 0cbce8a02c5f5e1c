package fault

import (
	"slices"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// What a statement did to a lock is shown as a rule may name it, in the next run too:
// by its class, and without the hash of a row.
func TestTheNearestCanBeTyped(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before acquire(lease:jobs)=1s")
	for _, key := range []string{"lease:job_lease:5c9e1fb86d19feb2", "lease:job_lease:50672fb86d19feb2", "row:stock:50672fb86d19feb2", "advisory:4711:7"} {
		op := sqlOp(lock.Acquire, "UPDATE", "")
		op.SQL, op.Key = nil, key
		p.Decide(before(op), 0)
	}
	p.Decide(before(redisOp(lock.Acquire, "SET", "lease:job:7", lock.Pending)), 0)
	near := p.Account()[0].Nearest
	for _, want := range []Count{{"acquire(lease:job_lease:*)", 2}, {"acquire(row:stock:*)", 1}, {"acquire(advisory:4711:7)", 1}, {"SET(lease:job:7)", 1}} {
		if !slices.Contains(near, want) {
			t.Errorf("%v is not among %v", want, near)
		}
	}
	if len(near) != 4 {
		t.Error(near)
	}
	for _, c := range near {
		if c.What == "SET(lease:job:7)" {
			continue
		}
		again := armedWith(t, Limits{}, "stall-before "+c.What+"=1s")
		op := sqlOp(lock.Acquire, "UPDATE", "")
		op.SQL, op.Key = nil, map[string]string{"acquire(lease:job_lease:*)": "lease:job_lease:1111111111111111",
			"acquire(row:stock:*)": "row:stock:1", "acquire(advisory:4711:7)": "advisory:4711:7"}[c.What]
		if d := again.Decide(before(op), 0); d.Act != Stall {
			t.Errorf("%s matches nothing", c.What)
		}
	}
}

// How the rules stand is asked for again and again while they act: it looks at none of the events.
func TestUsesLookAtNoEvents(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before UPDATE(counter)=1s")
	p.Glimpse(sqlOp(lock.Write, "UPDATE", "other"))
	if near := p.Uses()[0].Nearest; near != nil {
		t.Errorf("uses tell %v", near)
	}
	if near := p.Account()[0].Nearest; len(near) != 1 {
		t.Errorf("the account tells %v", near)
	}
}
