package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/schedule"
)

// acquired has a process be granted a lock, and returns the gate that its reply waits at.
func acquired(e *Engine, c *conn, key string, now lock.Instant) *Gate {
	op := grant(c.id, key)
	op.Token, op.Outcome = lock.Value{Hash: c.actor.owner.Key}, lock.Pending
	e.Request(c, op, true, now)
	op.Outcome = lock.Granted
	return e.Reply(c, op, true, now)
}

// kept runs two processes that are granted a lock each, under a rule that stalls the first grant of each key.
func kept(t *testing.T, b *schedule.Book, ttl time.Duration, keys ...string) *Engine {
	t.Helper()
	e := engine(t, "stall-after", "acquire#1=ttl*0.5")
	e.Keep(b)
	for i, key := range keys {
		c := e.Open(uint64(i+1), owner(key))
		op := grant(c.id, key)
		op.TTL = ttl
		e.Request(c, op, true, 10)
		e.Reply(c, op, true, 10)
	}
	e.Advance(lock.Instant(time.Hour))
	orders, _ := e.Take()
	for _, o := range orders {
		if o.Release != nil {
			e.Released(o.Release, false, lock.Instant(time.Hour))
		}
	}
	return e
}

func scheduleOf(steps []schedule.Step) *schedule.Schedule { return &schedule.Schedule{Steps: steps} }

func TestAnEngineRepeatsWhatItDecided(t *testing.T) {
	first := kept(t, schedule.NewBook(nil), time.Second, "a", "b")
	steps := first.Steps()
	if len(steps) != 2 || steps[1].Actor != "holder:1" || steps[1].Lock != "b" || steps[1].Do != "stall" ||
		steps[1].For != schedule.Duration(500*time.Millisecond) || steps[1].Outcome != "landed" || first.Diverged() != nil {
		t.Fatalf("got %+v, %v", steps, first.Diverged())
	}
	one := scheduleOf(steps[1:])
	one.Steps[0].Step = 1
	again := kept(t, schedule.NewBook(one), time.Second, "a", "b")
	if got := again.Steps(); len(got) != 1 || got[0].Key != steps[1].Key || got[0].Outcome != "landed" || again.Diverged() != nil {
		t.Errorf("the rule would take both grants, and the schedule has the second alone: got %+v, %v", got, again.Diverged())
	}
}

func TestAnEngineTellsTheFirstDivergence(t *testing.T) {
	steps := func() *schedule.Schedule {
		return scheduleOf(kept(t, schedule.NewBook(nil), time.Second, "a").Steps())
	}
	for _, tt := range []struct {
		name string
		e    *Engine
		want string
	}{
		{"another lease", kept(t, schedule.NewBook(steps()), 2*time.Second, "a"), "expected stall for 500ms; saw stall for 1s"},
		{"no lease", kept(t, schedule.NewBook(steps()), 0, "a"), "expected stall for 500ms; saw nothing done: no lease"},
	} {
		if d := tt.e.Diverged(); d == nil || d.Step != 1 || !strings.Contains(d.String(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, d, tt.want)
		}
	}
	e := kept(t, schedule.NewBook(steps()), time.Second, "b")
	if e.Diverged() != nil {
		t.Fatal("what may still come is said to be missing")
	}
	if e.Steps(); e.Diverged() == nil || !strings.Contains(e.Diverged().Saw, "none by the end of the run; nothing at a, only at b") {
		t.Errorf("got %v", e.Diverged())
	}
}

func TestADivergenceWakesTheRunner(t *testing.T) {
	steps := kept(t, schedule.NewBook(nil), time.Second, "a").Steps()
	steps[0].Since = []string{"read"}
	e := kept(t, schedule.NewBook(scheduleOf(steps)), time.Second)
	for len(e.Wake()) > 0 {
		<-e.Wake()
	}
	op := grant(1, "a")
	c := e.Open(1, owner("a"))
	e.Request(c, op, true, 10)
	e.Reply(c, op, true, 10)
	if e.Diverged() == nil || len(e.Wake()) == 0 {
		t.Errorf("nobody was woken to end the command: %v", e.Diverged())
	}
}

func TestATickIsRepeatedAtItsProcess(t *testing.T) {
	ticked := func(b *schedule.Book) *Engine {
		p := PlanOf(t, "freeze-after", "tick(1s)#1-2=500ms")
		p.Start(1)
		e := NewEngine(lock.NewLedger(nil), p)
		e.Keep(b)
		for i, key := range []string{"a", "b"} {
			acquired(e, e.Open(uint64(i+1), owner(key)), key, 10)
		}
		e.Advance(lock.Instant(time.Second) + 1)
		orders, _ := e.Take()
		for _, o := range orders {
			e.Frozen(o.Freeze, nil, errRefused, lock.Instant(time.Second)+2)
		}
		return e
	}
	steps := ticked(schedule.NewBook(nil)).Steps()
	if len(steps) != 1 || steps[0].At != schedule.Clock || steps[0].Ordinal != 1 || steps[0].Outcome != "refused" {
		t.Fatalf("got %+v", steps)
	}
	again := ticked(schedule.NewBook(scheduleOf(steps)))
	if got := again.Steps(); len(got) != 1 || got[0].Key != steps[0].Key || again.Diverged() != nil {
		t.Errorf("got %+v, %v", got, again.Diverged())
	}
}

func TestAStepOfASectionIsKeyedByItsLock(t *testing.T) {
	e := engine(t, "stall-before", "write=until:signal:go,timeout=2s")
	e.Keep(schedule.NewBook(nil))
	c := e.Open(1, owner("a"))
	acquired(e, c, "lock:a", 10)
	op := &lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", SQL: &lock.Statement{Table: "counter"}}
	if g, _ := e.Request(c, op, true, 20); g == nil {
		t.Fatal("the write does not wait")
	}
	e.Disarm(30)
	steps := e.Steps()
	if len(steps) != 1 {
		t.Fatalf("got %+v", steps)
	}
	s := steps[0]
	if s.Lock != "lock:a" || s.Actor != "holder:1" || s.Section != 1 || strings.Join(s.Since, " ") != "acquire" || s.Statement != "UPDATE counter" {
		t.Errorf("got %+v", s)
	}
	if s.Until != "signal:go" || s.Timeout != schedule.Duration(2*time.Second) || s.For != 0 || s.Outcome != "cut short" {
		t.Errorf("a gate: got %+v", s.Fault)
	}
}

type refusal string

func (r refusal) Error() string { return string(r) }

const errRefused = refusal("it may not be frozen")

func TestWhatAProcessCallsItselfIsKeptIfItsNextRunHasItToo(t *testing.T) {
	named := func(name string, pid int) *Actor {
		return &Actor{owner: &Owner{PID: pid, Exe: "/usr/bin/python3.11"}, conns: map[uint64]*conn{2: {peer: Peer{Name: func() string { return "later" }}}, 1: {peer: Peer{Name: func() string { return name }}}}}
	}
	for _, tt := range []struct {
		name string
		pid  int
		want string
	}{{"billing", 77, "billing"}, {"worker-77", 77, "later"}, {"worker-77", 78, "worker-77"}, {"", 77, "later"}} {
		if got, program := named(tt.name, tt.pid).Called(); got != tt.want || program != "python3.11" {
			t.Errorf("%q of pid %d: got %q, %q", tt.name, tt.pid, got, program)
		}
	}
}

func TestABookIsNotAskedWithoutRules(t *testing.T) {
	e := engine(t)
	e.Keep(schedule.NewBook(nil))
	if g := acquired(e, e.Open(1, owner("a")), "a", 10); g != nil || len(e.Steps()) != 0 {
		t.Error("something was decided")
	}
}
