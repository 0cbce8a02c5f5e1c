package proxy

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A moment that no rule is about costs no allocation, once rules are armed.
func TestMomentCostsNothing(t *testing.T) {
	e := engine(t, "freeze-before", "write(counter)#1=until:lease-expired+next-write")
	c := e.Open(1, owner("a"))
	taken := grant(1, "lock:1:job")
	_, _ = e.Request(c, taken, true, 1)
	e.Reply(c, taken, true, 1)
	ops := map[string]*lock.Op{
		"a refused acquire":        {Session: 1, Proto: lock.Redis, Kind: lock.Acquire, Verb: "SET", NX: true, Key: "lock:1:job", Outcome: lock.Refused},
		"a renewal":                {Session: 1, Proto: lock.Redis, Kind: lock.Renew, Verb: "PEXPIRE", Key: "lock:1:job", Term: lock.Attribution{ID: 1, Confidence: 1}},
		"a read in a section":      {Session: 1, Proto: lock.Postgres, Kind: lock.Read, Verb: "SELECT", SQL: &lock.Statement{Table: "counter"}, Term: lock.Attribution{ID: 1, Confidence: 1}},
		"a write of no section":    {Session: 1, Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", SQL: &lock.Statement{Table: "counter"}},
		"a command of another key": {Session: 1, Proto: lock.Redis, Kind: lock.Fence, Verb: "INCR", Key: "fence:1:job", FenceKey: "fence:1:job"},
	}
	for name, op := range ops {
		for _, phase := range []fault.Phase{fault.Before, fault.After} {
			if n := testing.AllocsPerRun(100, func() { e.moment(c, phase, op, 5) }); n != 0 {
				t.Errorf("%s, %s: %v allocations", name, phase, n)
			}
		}
	}
}
