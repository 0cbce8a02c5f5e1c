package main

import "testing"

func TestThawSaysWhatItFound(t *testing.T) {
	for n, want := range map[int]string{
		0: "nothing to let go: no freeze of a dead lockfaultd is in force, by the journal j",
		2: "let go 2 that a dead lockfaultd had left frozen, by the journal j",
	} {
		if got := thawed(n, "j"); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
