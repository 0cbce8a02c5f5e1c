package fault

import (
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

const second = lock.Instant(time.Second)

func TestTicksOnSchedule(t *testing.T) {
	for _, flag := range []string{"freeze-after", "freeze-before"} {
		p := armedWith(t, Limits{}, flag+" tick(1.5s)#2-3=800ms")
		p.Start(10 * second)
		p.Start(99 * second) // only the first start counts
		var fired []lock.Instant
		for {
			at, ok := p.NextTick(20 * second)
			if !ok {
				break
			}
			for _, d := range p.Tick(at, []string{"A1"}) {
				if d.Act != Freeze || d.For != 800*ms || d.Actor != "A1" || d.Matched != "" {
					t.Fatalf("%+v", d)
				}
				fired = append(fired, at)
				p.Ended(d.Injection, at+second)
			}
		}
		if want := []lock.Instant{13 * second, 14*second + second/2}; !slices.Equal(fired, want) {
			t.Errorf("%s: fired at %v, want %v", flag, fired, want)
		}
	}
}

func TestNextTickStartsThePlan(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after tick(1s)=1ms", "stall-after write=1s")
	if at, ok := p.NextTick(5 * second); !ok || at != 6*second {
		t.Errorf("next %d %t", at, ok)
	}
	if d := p.Tick(5*second+1, []string{"A1"}); d != nil {
		t.Errorf("before it was due: %+v", d)
	}
	if at, ok := armedWith(t, Limits{}, "stall-after write=1s").NextTick(0); ok {
		t.Errorf("without a tick rule: %d", at)
	}
}

func TestTickStartsThePlan(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after tick(1s)=1ms")
	if d := p.Tick(5*second, []string{"A1"}); d != nil {
		t.Errorf("at the start: %+v", d)
	}
	if d := p.Tick(6*second, []string{"A1"}); len(d) != 1 {
		t.Errorf("a period later: %+v", d)
	}
}

func TestTickWithoutActors(t *testing.T) {
	p := armedWith(t, Limits{}, "freeze-after tick(1s)#1=1s")
	p.Start(0)
	if d := p.Tick(second, nil); d != nil {
		t.Fatalf("%+v", d)
	}
	if d := p.Tick(2*second, []string{""}); d != nil {
		t.Fatalf("%+v", d)
	}
	if d := p.Tick(3*second, []string{"A1"}); len(d) != 1 || d[0].Ordinal != 1 {
		t.Errorf("the first tick that found somebody: %+v", d)
	}
	if barred(p, 0, NoActor) != 2 {
		t.Errorf("%+v", p.Uses())
	}
}

func TestTickSparesTheFrozen(t *testing.T) {
	p := armedWith(t, Limits{MaxFrozen: 2}, "freeze-after tick(1s)=10s")
	p.Start(0)
	first := p.Tick(second, []string{"A1", "A2"})
	second2 := p.Tick(2*second, []string{"A1", "A2"})
	if len(first) != 1 || len(second2) != 1 || first[0].Actor == second2[0].Actor {
		t.Fatalf("%+v %+v", first, second2)
	}
	if d := p.Tick(3*second, []string{"A1", "A2"}); d != nil || barred(p, 0, AlreadyFrozen) != 1 {
		t.Errorf("%+v %+v", d, p.Uses())
	}
}

func TestLateTicksAreOne(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after tick(1s)=1ms")
	p.Start(0)
	if d := p.Tick(5*second+1, []string{"A1"}); len(d) != 1 || d[0].Ordinal != 1 {
		t.Errorf("%+v", d)
	}
	if at, _ := p.NextTick(5*second + 1); at != 6*second || barred(p, 0, LateTick) != 4 || p.Uses()[0].Seen != 5 {
		t.Errorf("next %d, %+v", at, p.Uses())
	}
}

func TestTickTargetsIgnoreOrder(t *testing.T) {
	targets := func(seed uint64, actors []string) (picked []string) {
		p, err := NewPlan(rules(t, "stall-after tick(1s)=1ms"), seed, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		p.Start(0)
		for i := range lock.Instant(60) {
			picked = append(picked, p.Tick((i+1)*second, actors)[0].Actor)
		}
		return picked
	}
	first := targets(7, []string{"A1", "A2", "A3"})
	if again := targets(7, []string{"A3", "A1", "A2", "A1"}); !slices.Equal(first, again) {
		t.Errorf("order or repetition matters:\n%v\n%v", first, again)
	}
	if slices.Equal(first, targets(8, []string{"A1", "A2", "A3"})) {
		t.Error("the seed does not matter")
	}
	for _, a := range []string{"A1", "A2", "A3"} {
		if !slices.Contains(first, a) {
			t.Errorf("%s is never picked in 60", a)
		}
	}
}

func TestSpentTickRuleStopsTheClock(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after tick(1s)=1ms,max=1")
	p.Start(0)
	p.Tick(second, []string{"A1"})
	if _, ok := p.NextTick(second); ok {
		t.Error("goes on after max")
	}
}
