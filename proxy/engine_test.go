package proxy

import (
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

func engine(t *testing.T, rules ...string) *Engine {
	t.Helper()
	p := PlanOf(t, rules...)
	p.Start(1)
	return NewEngine(lock.NewLedger(nil), p)
}

// RulesOf reads rules, each of them a flag and its value; for the tests of both
// packages.
func RulesOf(t *testing.T, flags ...string) []fault.Rule {
	t.Helper()
	var list []fault.Rule
	for i := 0; i < len(flags); i += 2 {
		r, err := fault.Parse(flags[i], flags[i+1])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// PlanOf makes a plan of such rules.
func PlanOf(t *testing.T, flags ...string) *fault.Plan {
	t.Helper()
	p, err := fault.NewPlan(RulesOf(t, flags...), 1, fault.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func owner(key string) Peer { return Peer{Owner: &Owner{Key: key, PID: 1, Address: "10.0.0.1"}} }

func grant(session uint64, key string) *lock.Op {
	return &lock.Op{
		Session: session, Proto: lock.Redis, Kind: lock.Acquire, Verb: "SETNX", NX: true, Key: key,
		TTL: time.Second, Token: lock.Value{Hash: "t"}, Outcome: lock.Granted, A: 1, F: 1, R: 1,
	}
}

// A write to a table whose first reading is missing waits for it, and a rule
// about the same write is decided afterwards, once.
func TestWriteWaitsForTheFirstReading(t *testing.T) {
	e := engine(t, "stall-before", "UPDATE(counter)=1s")
	e.Await("counter")
	c := e.Open(1, owner("a"))
	op := &lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", SQL: &lock.Statement{Table: "counter"}}
	g, again := e.Request(c, op, true, 10)
	if g == nil || !again || g.Opened() {
		t.Fatalf("gate %v, again %v; want a closed gate and to be asked again", g, again)
	}
	orders, _ := e.Take()
	if len(orders) != 1 || orders[0].Baseline != "counter" {
		t.Fatalf("orders %+v, want the reading of counter", orders)
	}
	e.BaselineRead("counter", false)
	if !g.Opened() {
		t.Error("the gate is closed although the reading was taken")
	}
	if g, _ := e.Before(c, op, 20); g == nil || g.Opened() {
		t.Error("the rule about the write was forgotten")
	}
	if g, _ := e.Request(c, &lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Write, SQL: &lock.Statement{Table: "counter"}}, true, 30); g != nil {
		t.Error("the second write waits too")
	}
}

func TestReadingIsAskedForAgainWhileThereIsNone(t *testing.T) {
	e := engine(t)
	e.Await("counter")
	c := e.Open(1, owner("a"))
	write := func() *Gate {
		g, _ := e.Request(c, &lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Write, SQL: &lock.Statement{Table: "counter"}}, true, 10)
		return g
	}
	first := write()
	e.BaselineRead("counter", true)
	if second := write(); second == nil || second == first || second.Opened() {
		t.Error("the next write does not wait for another reading")
	}
}

// Ending a run must not stumble over a reading that nobody waits for.
func TestDisarmWithNothingWaiting(t *testing.T) {
	e := engine(t)
	e.Await("counter")
	e.Disarm(10)
	if !e.Idle() {
		t.Error("not idle")
	}
}

// A process that was thawed may send, and be frozen again, before its thaw was
// reported. The second freeze waits for that report.
func TestFreezeAnewWaitsForTheThaw(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX=1s")
	c := e.Open(1, owner("a"))
	freeze := func(key string, now lock.Instant) *injection {
		op := grant(1, key)
		_, _ = e.Request(c, op, true, now)
		if e.Reply(c, op, true, now) == nil {
			t.Fatalf("%s: not frozen", key)
		}
		orders, _ := e.Take()
		return orders[0].Freeze
	}
	first := freeze("k1", 10)
	e.Frozen(first, nil, nil, 20)
	e.Advance(lock.Instant(20).Add(time.Second))
	if orders, _ := e.Take(); len(orders) != 1 || orders[0].Thaw != first {
		t.Fatalf("orders %+v, want the thaw", orders)
	}
	second := freeze("k2", lock.Instant(30).Add(time.Second))
	if len(second.behind) != 1 || second.behind[0].Opened() {
		t.Fatal("the second freeze does not wait for the thaw")
	}
	e.Thawed(first, "", nil, lock.Instant(40).Add(time.Second))
	if !second.behind[0].Opened() {
		t.Error("the second freeze waits although the thaw was reported")
	}
}

// While one process is frozen no other is, and the event does not count.
func TestOnlyOneFrozenAtATime(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX#2=1s")
	a, b := e.Open(1, owner("a")), e.Open(2, owner("b"))
	reply := func(c *conn, session uint64, key string) *Gate {
		op := grant(session, key)
		_, _ = e.Request(c, op, true, 10)
		return e.Reply(c, op, true, 10)
	}
	if reply(a, 1, "k") != nil || reply(a, 1, "k") == nil {
		t.Fatal("want the second grant of k frozen")
	}
	for range 2 {
		if reply(b, 2, "j") != nil {
			t.Error("a second process was frozen meanwhile")
		}
	}
	uses := e.plan.Uses()
	if uses[0].Fired != 1 || uses[0].Could != 2 {
		t.Errorf("use %+v, want one fired and two counted", uses[0])
	}
}

// Labels: what the client calls itself where nobody else does, else A1, A2.
func TestLabels(t *testing.T) {
	e := engine(t)
	named := func(key, name string) string {
		p := owner(key)
		p.Name = func() string { return name }
		return e.label(e.Open(uint64(len(e.conns)+1), p))
	}
	for _, tt := range []struct{ key, name, want string }{
		{"a", "billing", "billing"}, {"b", "billing", "A1"}, {"c", "", "A2"}, {"a", "other", "billing"},
	} {
		if got := named(tt.key, tt.name); got != tt.want {
			t.Errorf("process %s calling itself %q: label %q, want %q", tt.key, tt.name, got, tt.want)
		}
	}
	if got := e.label(e.Open(99, Peer{Owner: &Owner{Address: "10.0.0.9"}})); got != "@10.0.0.9" {
		t.Errorf("a client without a process: label %q", got)
	}
}

// A connection that a stalled process opens meanwhile waits with the others,
// and the end of one does not let the others go.
func TestProcessStallCoversItsConnections(t *testing.T) {
	e := engine(t, "stall-after", "SETNX=1s,scope=process")
	a, b := e.Open(1, owner("a")), e.Open(2, owner("a"))
	op := grant(1, "k")
	_, _ = e.Request(a, op, true, 10)
	g := e.Reply(a, op, true, 10)
	late, other := e.Open(3, owner("a")), e.Open(4, owner("b"))
	if b.stall.Load() != g || late.stall.Load() != g || other.stall.Load() != nil {
		t.Error("the stall covers other connections than those of the process")
	}
	e.Closed(b, 20)
	if g.Opened() {
		t.Error("the end of one connection ended the stall")
	}
	e.Advance(lock.Instant(10).Add(time.Second))
	orders, _ := e.Take()
	if len(orders) != 1 || orders[0].Release == nil {
		t.Fatalf("orders %+v, want the release", orders)
	}
	e.Released(orders[0].Release, false, lock.Instant(10).Add(time.Second))
	if !g.Opened() {
		t.Error("the stall goes on")
	}
}

// A freeze that is being confirmed when everything is to be let go ends as
// soon as it has begun, and no rule acts any more.
func TestDisarmCatchesAFreezeBeingConfirmed(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX=900ms")
	c := e.Open(1, owner("a"))
	op := grant(1, "k")
	_, _ = e.Request(c, op, true, 10)
	e.Reply(c, op, true, 10)
	orders, _ := e.Take()
	e.Disarm(20)
	e.Frozen(orders[0].Freeze, nil, nil, 30)
	if orders, _ := e.Take(); len(orders) != 1 || orders[0].Thaw == nil {
		t.Fatalf("orders %+v, want the thaw", orders)
	}
	again := grant(1, "k")
	_, _ = e.Request(c, again, true, 40)
	if e.Reply(c, again, true, 40) != nil {
		t.Error("a rule acts although all are disarmed")
	}
}

// A write to public.counter is a write to counter.
func TestFirstReadingWhateverTheSchemaIsCalled(t *testing.T) {
	e := engine(t)
	e.Await("counter")
	c := e.Open(1, owner("a"))
	g, _ := e.Request(c, &lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Write, SQL: &lock.Statement{Table: "public.counter"}}, true, 10)
	if g == nil {
		t.Error("the write does not wait for the reading")
	}
}

// A write to several tables waits for the first readings of all.
func TestWriteToSeveralTablesWaitsForAllReadings(t *testing.T) {
	for name, sql := range map[string]*lock.Statement{
		"named":   {Table: "users", Also: []string{"counter", "public.fence", "counter"}},
		"cascade": {Table: "users", Cascade: true},
	} {
		e := engine(t)
		e.Await("counter", "fence")
		c := e.Open(1, owner("a"))
		g, _ := e.Request(c, &lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Write, SQL: sql}, true, 10)
		orders, _ := e.Take()
		if g == nil || len(orders) != 2 || orders[0].Baseline != "counter" || orders[1].Baseline != "fence" {
			t.Fatalf("%s: gate %v, orders %+v", name, g, orders)
		}
		e.BaselineRead("counter", false)
		if g.Opened() {
			t.Errorf("%s: the write goes on with one reading of two", name)
		}
		if e.BaselineRead("fence", false); !g.Opened() {
			t.Errorf("%s: the write waits for nothing", name)
		}
	}
}

// Of two stalls of one connection the longer one holds both directions.
func TestLongerStallHolds(t *testing.T) {
	e := engine(t, "stall-after", "SETNX(a)=1s", "stall-after", "SETNX(b)=2s,scope=process")
	one, two := e.Open(1, owner("p")), e.Open(2, owner("p"))
	stall := func(c *conn, session uint64, key string) *Gate {
		op := grant(session, key)
		_, _ = e.Request(c, op, true, 10)
		return e.Reply(c, op, true, 10)
	}
	stall(one, 1, "a")
	if long := stall(two, 2, "b"); one.stall.Load() != long {
		t.Error("the shorter stall stands")
	}
}

// On a key that is declared to be no lock a rule of a class has nothing to do; one
// that names the command has.
func TestAnIgnoredKeyIsNoLockForRules(t *testing.T) {
	for _, tt := range []struct {
		rule string
		want bool
	}{{"acquire=1s", false}, {"SETNX=1s", true}} {
		plan := PlanOf(t, "stall-before", tt.rule)
		plan.Start(1)
		e := NewEngine(lock.NewLedger([]lock.Declaration{{Key: "cache:*", Ignore: true}}), plan)
		op := grant(1, "cache:x")
		if g, _ := e.Request(e.Open(1, owner("a")), op, true, 10); (g != nil) != tt.want {
			t.Errorf("%s: stalled %v", tt.rule, g != nil)
		}
		if op.Kind != lock.Acquire {
			t.Errorf("%s: the op became %s", tt.rule, op.Kind)
		}
	}
}

// A statement in its holder's own transaction is in a section, and one beside it is if its
// whole process is held, not if only its connection is.
func TestALockOfATransactionMakesASection(t *testing.T) {
	for _, c := range []struct {
		rule    []string
		session uint64
		want    bool
	}{
		{[]string{"freeze-before", "UPDATE(counter)=1s"}, 1, true},
		{[]string{"stall-before", "UPDATE(counter)=0ms"}, 1, true},
		{[]string{"freeze-before", "UPDATE(counter)=1s"}, 2, true},
		{[]string{"stall-before", "UPDATE(counter)=0ms"}, 2, false},
		{[]string{"stall-before", "UPDATE(counter)=0ms,scope=process"}, 2, true},
	} {
		e := engine(t, c.rule...)
		conns := map[uint64]*conn{1: e.Open(1, owner("a")), 2: e.Open(2, owner("a"))}
		own := &lock.Op{Session: 1, Proto: lock.Postgres, Kind: lock.Acquire, Verb: "SELECT", Key: "row:counter:1", Span: lock.TxSpan,
			Tx: 1, Outcome: lock.Granted, A: 1, F: 1, R: 1}
		_, _ = e.Request(conns[1], own, true, 1)
		e.Reply(conns[1], own, true, 1)
		write := &lock.Op{Session: c.session, Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", Tx: 1, SQL: &lock.Statement{Table: "counter"}}
		_, _ = e.Request(conns[c.session], write, true, 10)
		orders, ended := e.Take()
		got := false
		for _, o := range orders {
			got = got || o.Freeze != nil && o.Freeze.section
		}
		for _, i := range ended {
			got = got || i.Section
		}
		for _, in := range e.active {
			got = got || in.section
		}
		if len(orders)+len(ended)+len(e.active) == 0 || got != c.want {
			t.Errorf("%v on session %d: in a section: %v", c.rule, c.session, got)
		}
	}
}

// A long freeze whose grant has not been handed over yet never begins when everything is to be let go.
func TestDisarmEndsAFreezeBeforeItsGrantIsRead(t *testing.T) {
	e := engine(t, "freeze-after", "SETNX=20s")
	c := e.Open(1, owner("a"))
	op := grant(1, "k")
	_, _ = e.Request(c, op, true, 10)
	if e.Reply(c, op, true, 10) != nil {
		t.Error("the grant waits for the freeze")
	}
	e.Disarm(20)
	e.Delivered(op, 30)
	if orders, ended := e.Take(); len(orders) != 0 || len(ended) != 1 || ended[0].Outcome != "cut short" || !e.Idle() {
		t.Errorf("orders %+v, ended %+v", orders, ended)
	}
}
