package service

import (
	"fmt"
	"testing"
	"time"
)

// What a look cannot tell ends no episode: the first look after a start, or after one that failed, does not know of a key
// without a lifetime whether it had none before; and of more keys than are told one by one some are left out.
func TestLeasesKeepOpenWhatTheyCannotTell(t *testing.T) {
	l := &Leases{Is: About{Name: "leases"}, Lifetime: true}
	now := func(naked bool, n int) map[string]seen {
		out := map[string]seen{}
		for i := range n {
			out[fmt.Sprintf("lock:%03d", i)] = seen{value: "v", none: true, naked: naked, from: time.Now(), to: time.Now()}
		}
		return out
	}
	s, _ := open(t, t.TempDir(), nil, l)
	look := func(m map[string]seen) {
		t.Helper()
		if err := s.opine(l.About(), l.judge(m, true, time.Now()), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	look(now(true, mostBroke))
	told := s.told.last
	look(now(false, mostBroke))
	look(now(true, mostBroke))
	more := now(true, mostBroke)
	more["lock:"] = more["lock:000"]
	look(more)
	look(now(true, mostBroke))
	if s.told.last > told+1 {
		t.Errorf("%d verdicts, then %d", told, s.told.last)
	}
	look(map[string]seen{})
	if n := len(s.episodes["leases"]); n != 0 {
		t.Errorf("%d go on when the keys are gone", n)
	}
}
