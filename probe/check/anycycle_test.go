package check

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/orders"
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

// What was never answered took effect in none of the orders, though its reply does not say so.
func TestWhatTookEffectInNoOrderIsNoStaleWrite(t *testing.T) {
	for _, seed := range []uint64{45762, 87744} {
		if got := level(Judge(inputOf(drawn(seed))), "LF103"); got != "none" {
			t.Errorf("seed %d: %s", seed, got)
		}
	}
}

// Of two grants the first may be the later one, if the other's lease was cut short in between.
func TestALeaseThatWasCutShortIsNoDoubleGrant(t *testing.T) {
	if got := level(judgeKey(orders.DrawKey(67695, keyShapeOf(67695))), "LF305"); got == "every" {
		t.Error("it is proven")
	}
}
