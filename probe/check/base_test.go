package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A leader that keeps its lock reads and writes for days under one term.
func TestBasesOfOneLongTerm(t *testing.T) {
	const turns = 20000
	s := &script{hash: lock.NewHasher([]byte("t")), label: map[string]uint64{}, lease: time.Hour}
	line := func(format string, args ...any) {
		if err := s.line(strings.Fields(fmt.Sprintf(format, args...))); err != nil {
			t.Fatal(err)
		}
	}
	line("counter counter.value 0 %d", turns)
	line("A acquire lock:c=a 1-2")
	for i := range turns {
		at := 10 + 4*i
		line("A select counter[id=1] value=%d %d-%d", i, at, at+1)
		line("A select counter[id=%d] value=0 %d.2-%d.4", i+2, at+1, at+1)
		line("A update counter[id=1] value:=%d %d-%d", i+1, at+2, at+3)
	}
	c := judge(s.in, len(s.in.Ops)+1, len(s.in.Ops))
	c.result()
	if got := c.out.Counters[0]; got.Acknowledged != turns || got.NetDeficit != 0 {
		t.Errorf("%+v", got)
	}
	if c.looked == 0 || c.looked > 20*turns {
		t.Errorf("%d reads were gone through for %d writes", c.looked, turns)
	}
}
