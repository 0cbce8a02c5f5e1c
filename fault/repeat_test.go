package fault

import (
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

func repeating(t *testing.T, tick func(int, int64, []string) string, texts ...string) *Plan {
	t.Helper()
	p := armedWith(t, Limits{}, texts...)
	p.Repeat(tick)
	return p
}

func due(rule int, actor string) Moment {
	op := &lock.Op{Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", SQL: &lock.Statement{Table: "counter"}, Term: sure}
	return Moment{Phase: Before, Op: op, Actor: actor, Freezable: true, TTL: time.Second, Lock: true, Due: rule}
}

func TestAPlanThatRepeatsSelectsNothingForItself(t *testing.T) {
	p := repeating(t, nil, "freeze-before write#1=1s", "freeze-before write=2s")
	if d := p.Decide(due(0, "A1"), 1); d.Act != Pass {
		t.Fatalf("it acted where nothing was due: %+v", d)
	}
	d := p.Decide(due(2, "A1"), 2)
	if d.Act != Freeze || d.Rule != 1 || d.For != 2*time.Second || p.Barred() != "" {
		t.Fatalf("the second rule was due: got %+v, barred by %q", d, p.Barred())
	}
	if d := p.Decide(due(1, "A1"), 3); d.Act != Pass || p.Barred() != AlreadyFrozen {
		t.Errorf("one that is frozen was frozen anew: %+v, %q", d, p.Barred())
	}
	p.Ended(d.Injection, 4)
	if d := p.Decide(due(1, "A1"), 5); d.Act != Freeze || d.For != time.Second || p.Barred() != "" {
		t.Errorf("its third event, and due: got %+v, %q", d, p.Barred())
	}
}

func TestAPlanThatRepeatsStrikesWhomItIsTold(t *testing.T) {
	p := repeating(t, func(rule int, number int64, actors []string) string {
		if rule == 1 && number == 2 {
			return "A3"
		}
		return ""
	}, "freeze-after tick(1s)=500ms")
	p.Start(0)
	second := lock.Instant(time.Second)
	if d := p.Tick(second, []string{"A1", "A3"}); len(d) != 0 {
		t.Errorf("the first tick: got %+v", d)
	}
	d := p.Tick(2*second, []string{"A1", "A3"})
	if len(d) != 1 || d[0].Actor != "A3" || d[0].Tick != 2 {
		t.Errorf("the second tick: got %+v", d)
	}
	p.Ended(d[0].Injection, 2*second)
	if d := p.Tick(3*second, []string{"A1"}); len(d) != 0 {
		t.Errorf("the third tick: got %+v", d)
	}
}
