package fault

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// The first call of a script by a digest that nobody knows may as well take the
// lock: it must not use up the first renewal.
func TestGuessedCallsOfNoLock(t *testing.T) {
	for _, event := range []string{"renew", "release"} {
		r, err := Parse("stall-before", event+"#1=1s")
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan([]Rule{r}, 1, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		op := &lock.Op{Proto: lock.Redis, Kind: lock.Kind(event), Verb: "EVALSHA", Key: "lock:a", Guarded: true, Guessed: true}
		if d := p.Decide(before(op), 1); d.Act != Pass {
			t.Errorf("%s: a guess without a term was taken for one", event)
		}
		op.Term = lock.Attribution{ID: 1, Confidence: 1}
		if d := p.Decide(before(op), 2); d.Act != Stall || d.Ordinal != 1 {
			t.Errorf("%s: a guess with the token of a term was not: %+v", event, d)
		}
	}
}
