package check

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A write of a section that is in a cycle in some order is not proven to be a stale one
// without a cycle, whichever of several cycles is told.
func TestEveryPossibleCycleHidesAStaleWrite(t *testing.T) {
	in := inputOf(drawn(0x37b0615e2))
	if level(Judge(in), "LF103") != "none" {
		t.Fatal("the history has a stale write by itself")
	}
	for _, op := range in.Ops {
		if op.Actor == "C" && op.Kind == lock.Write {
			op.F, op.R = op.F-34e6, op.R+32e6
			op.Z = max(op.Z, op.R)
		}
	}
	r := Judge(in)
	if level(r, "LF104") != "some" || level(r, "LF103") == "every" {
		t.Errorf("%q", summary(r))
	}
}
