package proxy

import (
	"errors"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/schedule"
)

func altering(t *testing.T, rules ...string) *Engine {
	e := engine(t, rules...)
	e.Alters()
	return e
}

// Where rules are fixed, and where a schedule says all that happens, nothing is changed.
func TestFixedRulesStay(t *testing.T) {
	repeated := altering(t, "stall-before", "write=1s")
	repeated.Keep(schedule.NewBook(&schedule.Schedule{}))
	kept := altering(t, "stall-before", "write=1s")
	kept.Keep(schedule.NewBook(nil))
	for name, tt := range map[string]struct {
		e    *Engine
		want error
	}{"fixed": {engine(t, "stall-before", "write=1s"), ErrFixed}, "repeated": {repeated, ErrScheduled}, "a run": {kept, nil}} {
		disarm := func(p *fault.Plan) error { return p.Disarm("rule-1") }
		if err := tt.e.Alter(disarm); !errors.Is(err, tt.want) || tt.e.Uses()[0].Armed != (tt.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
		tt.e.Open(1, owner("a"))
		want := tt.want
		if want == nil {
			want = ErrNoActor
		}
		if _, err := tt.e.Freeze("A1", fault.ScopeProcess, time.Second, 1); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Once a run is about to end nothing is frozen by hand, which nobody would thaw in time, and no rule comes.
func TestNothingBeginsAtTheEnd(t *testing.T) {
	e := altering(t, "stall-before", "write=1s")
	c := e.Open(1, owner("a"))
	e.Request(c, grant(1, "k"), true, 1)
	e.Disarm(2)
	if _, err := e.Freeze("A1", fault.ScopeProcess, time.Second, 3); !errors.Is(err, ErrOver) || !e.Idle() {
		t.Errorf("a freeze: %v, idle %t", err, e.Idle())
	}
	if err := e.Alter(func(p *fault.Plan) error { return p.Disarm("rule-1") }); !errors.Is(err, ErrOver) {
		t.Errorf("a change: %v", err)
	}
}

// A rule's time is over when it is, whether something comes by or not.
func TestArmingEndsInTime(t *testing.T) {
	e := altering(t, "stall-before", "write=1s")
	if err := e.Alter(func(p *fault.Plan) error { return p.Arm("rule-1", fault.Arming{For: time.Second}, 10) }); err != nil {
		t.Fatal(err)
	}
	end := lock.Instant(10).Add(time.Second)
	if next, ok := e.NextDeadline(20); !ok || next != end {
		t.Errorf("the next deadline is %v, %t", next, ok)
	}
	if e.Advance(end - 1); !e.Uses()[0].Armed {
		t.Error("it is disarmed before its time")
	}
	if e.Advance(end); e.Uses()[0].Armed {
		t.Error("it is armed after its time")
	}
	if _, ok := e.NextDeadline(end); ok {
		t.Error("there is another deadline")
	}
}

// A signal that was kept is forgotten by a stop: it was for a gate of before.
func TestStopForgetsSignals(t *testing.T) {
	e := altering(t, "stall-before", "write=until:signal:go")
	e.Signal("go", 1)
	e.Stop(2)
	if _, kept := e.Waiting("go"); kept {
		t.Error("it is kept")
	}
	if names := e.Signals(); len(names) > 0 {
		t.Errorf("rules that are disarmed wait for %v", names)
	}
	if err := e.Alter(func(p *fault.Plan) error { return p.Arm("rule-1", fault.Arming{}, 3) }); err != nil {
		t.Fatal(err)
	}
	if names := e.Signals(); len(names) != 1 || names[0] != "go" {
		t.Errorf("an armed rule waits for %v", names)
	}
}

// A signal is kept for as long as a rule is armed that waits for it.
func TestAKeptSignalGoesWithItsRule(t *testing.T) {
	const rule = "write=until:signal:go"
	forever := func(p *fault.Plan) error { return p.Arm("rule-1", fault.Arming{}, 30) }
	off := func(p *fault.Plan) error { return p.Disarm("rule-1") }
	for name, tt := range map[string]struct {
		rules   []string
		changes []func(p *fault.Plan) error
		kept    bool
	}{
		"nothing":         {[]string{rule}, nil, true},
		"armed anew":      {[]string{rule}, []func(*fault.Plan) error{forever}, true},
		"off":             {[]string{rule}, []func(*fault.Plan) error{off}, false},
		"off and on":      {[]string{rule}, []func(*fault.Plan) error{off, forever}, false},
		"removed":         {[]string{rule}, []func(*fault.Plan) error{func(p *fault.Plan) error { return p.Remove("rule-1") }}, false},
		"another waits":   {[]string{rule, "DEL=until:signal:go"}, []func(*fault.Plan) error{off}, true},
		"its time was up": {[]string{rule}, []func(*fault.Plan) error{func(p *fault.Plan) error { return p.Arm("rule-1", fault.Arming{For: 10}, 10) }, nil, forever}, false},
	} {
		var flags []string
		for _, r := range tt.rules {
			flags = append(flags, "stall-before", r)
		}
		e := altering(t, flags...)
		e.Signal("go", 1)
		for _, change := range tt.changes {
			if change == nil {
				e.Advance(25)
			} else if err := e.Alter(change); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if _, kept := e.Waiting("go"); kept != tt.kept {
			t.Errorf("%s: kept %t", name, kept)
		}
	}
}

// group is who has a connection, with the control group of its process.
func group(key, cgroup string) Peer {
	p := owner(key)
	p.Owner.Cgroup = cgroup
	return p
}

// A process that is frozen with its cgroup is thawed by its own label; another one's is not.
func TestThawOfAProcessInAFrozenCgroup(t *testing.T) {
	for label, want := range map[string]int{"A1": 1, "A2": 1, "A3": 0, "A4": 0, "": 1} {
		e := altering(t)
		for n, p := range []Peer{group("a", "/g"), group("b", "/g"), group("c", "/h"), owner("d")} {
			session := uint64(n + 1)
			op := grant(session, "k")
			e.Request(e.Open(session, p), op, true, 1)
		}
		if _, err := e.Freeze("A1", fault.ScopeCgroup, time.Second, 2); err != nil {
			t.Fatal(err)
		}
		e.Frozen(theFreeze(t, e), nil, nil, 3)
		n, err := e.Thaw(label, 4)
		orders, _ := e.Take()
		if err != nil || n != want || len(orders) != want {
			t.Errorf("thaw of %q: %d, %v, orders %+v", label, n, err, orders)
		}
	}
}

// What is thawed or let go already is not counted once more by who asks for it again, whether the freeze was confirmed or not.
func TestWhatEndsAlreadyIsNotCounted(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		e := altering(t, "stall-before", "DEL=1s")
		c, other := e.Open(1, owner("a")), e.Open(2, owner("b"))
		e.Request(c, grant(1, "k"), true, 1)
		if g, _ := e.Request(other, &lock.Op{Session: 2, Proto: lock.Redis, Kind: lock.Release, Verb: "DEL", Key: "k"}, true, 2); g == nil {
			t.Fatal("nothing is held")
		}
		if _, err := e.Freeze("A1", fault.ScopeProcess, time.Second, 3); err != nil {
			t.Fatal(err)
		}
		if in := theFreeze(t, e); confirmed {
			e.Frozen(in, nil, nil, 4)
		}
		for _, want := range []int{1, 0} {
			if n, err := e.Thaw("", 5); n != want || err != nil {
				t.Errorf("confirmed %t: thawed %d, %v, want %d", confirmed, n, err, want)
			}
		}
		for _, want := range []int{1, 0} { // the stall
			if _, n := e.Stop(6); n != want {
				t.Errorf("confirmed %t: let go %d, want %d", confirmed, n, want)
			}
		}
	}
}

// A gate that is shut hears its signal although its rule is disarmed meanwhile.
func TestDisarmedGateHears(t *testing.T) {
	e := altering(t, "stall-before", "UPDATE=until:signal:go")
	c := e.Open(1, owner("a"))
	g, _ := e.Request(c, &lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", SQL: &lock.Statement{Table: "counter"}}, true, 10)
	if g == nil {
		t.Fatal("no gate")
	}
	if err := e.Alter(func(p *fault.Plan) error { return p.Disarm("rule-1") }); err != nil {
		t.Fatal(err)
	}
	if names := e.Signals(); len(names) != 1 {
		t.Errorf("waited for: %v", names)
	}
	if heard, opened := e.Signal("go", 20); heard != 1 || opened != 1 {
		t.Errorf("heard by %d, opened %d", heard, opened)
	}
}

// What nobody has a rule for costs no allocation, however rules may come.
func TestAlteringCostsNothing(t *testing.T) {
	e := altering(t)
	c := e.Open(1, owner("a"))
	keys, key := e.Keys("GET"), []byte("key")
	keys(key) // which notes it once
	e.Reads("counter")
	op := &lock.Op{Session: 1, Proto: lock.Redis, Kind: lock.Other, Verb: "GET", Key: "k"}
	e.Request(c, op, true, 10)
	if n := testing.AllocsPerRun(100, func() {
		keys(key)
		e.Reads("counter")
		e.Request(c, op, true, 10)
		e.Reply(c, op, true, 11)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
