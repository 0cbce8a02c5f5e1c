package fault

import (
	"slices"
	"testing"
)

func TestSignalsOfRules(t *testing.T) {
	var rules []Rule
	for _, text := range []string{"write=until:signal:stay+next-write", "write=until:signal:go", "read=1s", "read=until:signal:go"} {
		r, err := Parse("stall-before", text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, r)
	}
	if got := Signals(rules); !slices.Equal(got, []string{"go", "stay"}) {
		t.Error(got)
	}
	if got := Signals(nil); len(got) != 0 {
		t.Error(got)
	}
}
