package check

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Of two grants that overlap, the one that found nothing came first. What found only its own place free, or was one vote of
// several, tells nothing of the other's key; and what came later came later.
func TestCameFirst(t *testing.T) {
	s, err := readScript("testdata/bad/LF303-set-as-the-other-took-it.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := told(s.in).view(lock.Never)
	c.settle()
	c.collect()
	took, set := *c.byID[2], *c.byID[3]
	if !c.cameFirst(&took, &set) || c.cameFirst(&set, &took) {
		t.Error("A found nothing there")
	}
	member, vote, late, op := took, took, took, *took.Grant
	member.Member, vote.Votes = true, []*lock.Vote{{}}
	op.F, op.R = set.Grant.R, set.Grant.R+1
	late.Grant = &op
	for what, o := range map[string]lock.Term{"member": member, "vote": vote, "later": late} {
		if c.cameFirst(&o, &set) {
			t.Error(what)
		}
	}
}
