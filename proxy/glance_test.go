package proxy

import (
	"fmt"
	"testing"
)

func TestNamesThatNoRuleMatchesAreSeenOnce(t *testing.T) {
	e := engine(t, "stall-before", "GET(other)=1ms")
	keys := e.Keys("GET")
	e = engine(t, "stall-before", "SELECT(other)=1ms")
	for i, want := range []bool{true, false, false} {
		if got := keys([]byte("key")); got != want {
			t.Errorf("look %d at a key that no rule matches: %v", i, got)
		}
		if got := e.Reads("counter"); got != want {
			t.Errorf("look %d at a table that no rule matches: %v", i, got)
		}
		if !keys([]byte("other")) || !e.Reads("other") {
			t.Errorf("look %d: what a rule matches is not seen", i)
		}
	}
	for i := range 10_000 {
		keys(fmt.Append(nil, i))
	}
	if keys([]byte("late")) {
		t.Error("a name was seen after so many others")
	}
	key := []byte("key")
	if n := testing.AllocsPerRun(100, func() { keys(key) }); n != 0 {
		t.Errorf("%v allocations a look", n)
	}
}
