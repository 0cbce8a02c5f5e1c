package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

func one(t testing.TB, text string) Rule { return rules(t, text)[0] }

// account shows rules as name:armed:left:seen/fired.
func account(p *Plan) string {
	var out []string
	for _, u := range p.Uses() {
		on := "off"
		if u.Armed {
			on = "on"
		}
		out = append(out, fmt.Sprintf("%s:%s:%d:%d/%d", u.Called, on, u.Left, u.Seen, u.Fired))
	}
	return strings.Join(out, " ")
}

func add(t testing.TB, p *Plan, text string, a Arming, off bool, now lock.Instant) string {
	t.Helper()
	name, err := p.Add(one(t, text), a, off, now)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

var aWrite = before(sqlOp(lock.Write, "UPDATE", "counter"))

func TestEveryRuleHasAName(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write=1s", "stall-before read=1s,name=rule-1", "stall-before commit=1s,name=mine", "stall-after write=1s")
	if got := account(p); got != "rule-2:on:0:0/0 rule-1:on:0:0/0 mine:on:0:0/0 rule-4:on:0:0/0" {
		t.Error(got)
	}
	if name := add(t, p, "stall-before write=2s", Arming{}, false, 0); name != "rule-5" {
		t.Error(name)
	}
}

func TestAddRefuses(t *testing.T) {
	p := armedWith(t, Limits{MaxFreeze: time.Second}, "stall-before write=1s", "stall-before read=1s,name=mine")
	for text, want := range map[string]string{
		"stall-after read=1s,name=mine":   "another rule has the name mine",
		"stall-after read=1s,name=rule-1": "another rule has the name rule-1",
		"freeze-before write=2s":          "cannot fit --max-freeze",
	} {
		if _, err := p.Add(one(t, text), Arming{}, false, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, a := range []Arming{{For: -1}, {Times: -1}} {
		if _, err := p.Add(one(t, "stall-after read=1s"), a, false, 0); err == nil {
			t.Errorf("%+v is taken", a)
		}
		if err := p.Arm("mine", a, 0); err == nil {
			t.Errorf("%+v is taken", a)
		}
	}
	if got := len(p.Uses()); got != 2 {
		t.Errorf("%d rules", got)
	}
}

func TestUnknownNames(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write=1s")
	for what, err := range map[string]error{"remove": p.Remove("x"), "arm": p.Arm("x", Arming{}, 0), "disarm": p.Disarm("x")} {
		if !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestArmedForATime(t *testing.T) {
	p := armedWith(t, Limits{})
	add(t, p, "stall-before write=0s", Arming{For: 10 * ms}, false, 5)
	end := lock.Instant(5).Add(10 * ms)
	if p.NextExpiry() != end || p.Uses()[0].Until != end {
		t.Errorf("until %v, %v", p.NextExpiry(), p.Uses()[0].Until)
	}
	if d := p.Decide(aWrite, end-1); d.Act != Stall {
		t.Error("it does not act in its time")
	}
	if d := p.Decide(aWrite, end); d.Act != Pass {
		t.Error("it acts after its time")
	}
	if got := account(p); got != "rule-1:off:0:1/1" || p.Armed() || p.NextExpiry() != lock.Never {
		t.Error(got, p.NextExpiry())
	}
	if p.Wants(lock.Postgres, "write") {
		t.Error("its event is asked for still")
	}
}

func TestArmedForATickInTime(t *testing.T) {
	p := armedWith(t, Limits{})
	p.Start(0)
	add(t, p, "freeze-after tick(10ms)=1ms", Arming{For: 25 * ms}, false, lock.Instant(100*ms))
	if at, _ := p.NextTick(lock.Instant(101 * ms)); at != lock.Instant(110*ms) {
		t.Errorf("the first tick is due at %v", at)
	}
	var at []string
	for now := lock.Instant(101 * ms); now < lock.Instant(150*ms); now += lock.Instant(ms) {
		for _, d := range p.Tick(now, []string{"A1"}) {
			at = append(at, fmt.Sprint(time.Duration(now), d.Tick))
			p.Ended(d.Injection, now)
		}
	}
	if got := strings.Join(at, " "); got != "110ms 1 120ms 2" {
		t.Error(got)
	}
	if err := p.Arm("rule-1", Arming{}, lock.Instant(200*ms)); err != nil {
		t.Fatal(err)
	}
	if at, _ := p.NextTick(lock.Instant(200 * ms)); at != lock.Instant(210*ms) {
		t.Errorf("armed anew, the first tick is due at %v", at)
	}
	if d := p.Tick(lock.Instant(210*ms), []string{"A1"}); len(d) != 1 || d[0].Tick != 3 {
		t.Errorf("%+v", d)
	}
	if u := p.Uses()[0]; len(u.Barred) != 0 {
		t.Errorf("ticks were late: %+v", u.Barred)
	}
}

func TestArmedForSomeTimes(t *testing.T) {
	p := armedWith(t, Limits{})
	add(t, p, "stall-before write#*/2=0s", Arming{Times: 2}, false, 0)
	if got := fires(p, aWrite, 7); !slices.Equal(got, []int{2, 4}) {
		t.Errorf("it acts at %v", got)
	}
	if got := account(p); got != "rule-1:off:0:4/2" {
		t.Error(got)
	}
}

// What was disarmed begins anew: its first is the first since.
func TestArmingCountsAnew(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write#1=0s,max=1,name=a")
	if got := fires(p, aWrite, 3); !slices.Equal(got, []int{1}) {
		t.Fatal(got)
	}
	if err := p.Disarm("a"); err != nil {
		t.Fatal(err)
	}
	if got := fires(p, aWrite, 3); got != nil {
		t.Errorf("disarmed, it acts at %v", got)
	}
	if got := account(p); got != "a:off:0:3/1" {
		t.Errorf("disarmed, it counts: %s", got)
	}
	if err := p.Arm("a", Arming{Times: 5}, 0); err != nil {
		t.Fatal(err)
	}
	if got := fires(p, aWrite, 3); !slices.Equal(got, []int{1}) {
		t.Errorf("armed anew, it acts at %v", got)
	}
	if got := account(p); got != "a:on:4:6/2" {
		t.Error(got)
	}
}

// One whose time is over was disarmed, though nobody has looked since.
func TestArmingAfterItsTime(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write#1=0s,name=a")
	if err := p.Arm("a", Arming{For: 10 * ms}, 0); err != nil {
		t.Fatal(err)
	}
	fires(p, aWrite, 1)
	if err := p.Arm("a", Arming{}, lock.Instant(20*ms)); err != nil {
		t.Fatal(err)
	}
	if got := fires(p, aWrite, 2); !slices.Equal(got, []int{1}) {
		t.Errorf("it acts at %v", got)
	}
}

// To arm what is armed changes how long, and nothing that it has counted.
func TestArmingOfTheArmed(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write#3=0s,name=a")
	fires(p, aWrite, 2)
	if err := p.Arm("a", Arming{For: time.Second}, 0); err != nil {
		t.Fatal(err)
	}
	if got := fires(p, aWrite, 2); !slices.Equal(got, []int{3}) {
		t.Errorf("it acts at %v", got)
	}
}

// struckAt lists the events at which a rule of chance acts, among those that another may act at too.
func struckAt(p *Plan, times int) (at []int) {
	for i := range times {
		d := p.Decide(aWrite, 0)
		if d.Name == "mine" {
			at = append(at, i)
		}
		p.Ended(d.Injection, 0)
	}
	return at
}

// What comes and goes behind a rule, or beside it, changes neither its ordinals nor its draws.
func TestOthersDoNotChangeARule(t *testing.T) {
	alone := struckAt(armedWith(t, Limits{}, "stall-before commit=0s", "stall-before write@30%=0s,name=mine"), 60)
	p := armedWith(t, Limits{}, "stall-before commit=0s", "stall-before write@30%=0s,name=mine")
	got := struckAt(p, 20)
	if err := p.Remove("rule-1"); err != nil {
		t.Fatal(err)
	}
	name := add(t, p, "stall-before write@50%=0s", Arming{}, false, 0)
	for _, i := range struckAt(p, 20) {
		got = append(got, 20+i)
	}
	if err := p.Remove(name); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reload(rules(t, "stall-before read=1s"), 0); err != nil {
		t.Fatal(err)
	}
	for _, i := range struckAt(p, 20) {
		got = append(got, 40+i)
	}
	if !slices.Equal(got, alone) {
		t.Errorf("it acts at %v\nalone at %v", got, alone)
	}
}

// A rule that comes again, or is armed again, draws anew.
func TestDrawsAreNotRepeated(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write@50%=0s,name=mine")
	first := struckAt(p, 64)
	if err := errors.Join(p.Disarm("mine"), p.Arm("mine", Arming{}, 0)); err != nil {
		t.Fatal(err)
	}
	second := struckAt(p, 64)
	if err := p.Remove("mine"); err != nil {
		t.Fatal(err)
	}
	add(t, p, "stall-before write@50%=0s,name=mine", Arming{}, false, 0)
	if third := struckAt(p, 64); slices.Equal(first, second) || slices.Equal(first, third) || slices.Equal(second, third) {
		t.Errorf("%v\n%v\n%v", first, second, third)
	}
}

// Whoever asked before a rule came is told of it.
func TestInterestFollows(t *testing.T) {
	p := armedWith(t, Limits{})
	keys, epoch := p.KeysOf("SET"), p.Epoch()
	if keys([]byte("k1")) || p.Wants(lock.Redis, "SET") || p.CouldTable("SELECT", "counter") {
		t.Fatal("somebody is interested from the start")
	}
	add(t, p, "stall-before SET(k*)=1s,name=a", Arming{}, false, 0)
	add(t, p, "stall-before SELECT(counter)=1s", Arming{}, true, 0)
	if !keys([]byte("k1")) || keys([]byte("x")) || !p.Wants(lock.Redis, "SET") || p.Epoch() == epoch {
		t.Error("a rule that was added is not heard of")
	}
	if p.Wants(lock.Postgres, "SELECT") || p.CouldTable("SELECT", "counter") {
		t.Error("one that is not armed is")
	}
	if err := p.Arm("rule-2", Arming{}, 0); err != nil {
		t.Fatal(err)
	}
	if !p.Wants(lock.Postgres, "SELECT") || !p.CouldTable("SELECT", "public.counter") {
		t.Error("one that is armed is not")
	}
	if err := p.Remove("a"); err != nil {
		t.Fatal(err)
	}
	if p.DisarmAll(); keys([]byte("k1")) || p.Wants(lock.Redis, "SET") || p.Wants(lock.Postgres, "SELECT") || p.Armed() {
		t.Error("one that has gone is heard of still")
	}
}

// An op that was asked about before is asked about again.
func TestDecideFollows(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after write=0s")
	fires(p, aWrite, 2)
	name := add(t, p, "stall-before write=0s", Arming{}, false, 0)
	if got := fires(p, aWrite, 2); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("added: %v", got)
	}
	if err := p.Remove(name); err != nil {
		t.Fatal(err)
	}
	if got := fires(p, aWrite, 2); got != nil {
		t.Errorf("removed: %v", got)
	}
}

// What a rule has begun is over when it is over, whatever becomes of the rule.
func TestRemovedWhileItActs(t *testing.T) {
	p := armedWith(t, Limits{}, "freeze-before write=1s,name=a")
	d := p.Decide(aWrite, 0)
	if err := p.Remove("a"); err != nil || d.Act != Freeze {
		t.Fatal(err, d.Act)
	}
	add(t, p, "freeze-before write=1s,name=a", Arming{}, false, 0)
	if d := p.Decide(aWrite, 0); d.Act != Pass || p.Uses()[0].Barred[0].What != AlreadyFrozen {
		t.Errorf("%+v %+v", d, p.Uses())
	}
	p.Ended(d.Injection, 0)
	if d := p.Decide(aWrite, 0); d.Act != Freeze {
		t.Error("it is taken for frozen still")
	}
}

func TestReload(t *testing.T) {
	p := armedWith(t, Limits{MaxFreeze: time.Second}, "stall-before commit=0s,name=typed")
	reload := func(want string, texts ...string) {
		t.Helper()
		r, err := p.Reload(rules(t, texts...), 0)
		if got := fmt.Sprintf("%d kept, %d new, %d gone", r.Kept, r.New, r.Gone); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	reload("0 kept, 2 new, 0 gone", "stall-before write#2=0s", "stall-after write=0s,name=late")
	add(t, p, "stall-before read=0s,name=api", Arming{}, false, 0)
	fires(p, aWrite, 1)
	reload("1 kept, 1 new, 1 gone", "stall-after read=0s", "stall-before write#2=0s")
	if got := account(p); got != "typed:on:0:0/0 rule-5:on:0:0/0 rule-2:on:0:1/0 api:on:0:0/0" {
		t.Error(got)
	}
	if got := fires(p, aWrite, 1); !slices.Equal(got, []int{2}) {
		t.Errorf("one that stays does not count on: %v", got)
	}
	before := account(p)
	for _, bad := range []string{"freeze-before write=2s", "stall-before read=0s,name=api", "stall-before read=0s,name=typed"} {
		if _, err := p.Reload(rules(t, "stall-before write=1s", bad), 0); err == nil || account(p) != before {
			t.Errorf("%s: %v, %s", bad, err, account(p))
		}
	}
	if err := p.Disarm("rule-2"); err != nil {
		t.Fatal(err)
	}
	reload("1 kept, 0 new, 1 gone", "stall-before write#2=0s")
	if got := account(p); got != "typed:on:0:0/0 rule-2:off:0:2/1 api:on:0:0/0" {
		t.Errorf("one that was disarmed does not stay so: %s", got)
	}
	reload("0 kept, 0 new, 1 gone")
	if got := account(p); got != "typed:on:0:0/0 api:on:0:0/0" {
		t.Error(got)
	}
}

// Two rules of one text are two.
func TestReloadOfTwoAlike(t *testing.T) {
	p := armedWith(t, Limits{})
	for _, want := range []Reloaded{{New: 2}, {Kept: 2}} {
		if r, err := p.Reload(rules(t, "stall-before write=0s", "stall-before write=0s"), 0); err != nil || r != want {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if got := account(p); got != "rule-1:on:0:0/0 rule-2:on:0:0/0" {
		t.Error(got)
	}
}

func TestHandKeepsToTheLimits(t *testing.T) {
	p := armedWith(t, Limits{MaxFreeze: time.Second}, "freeze-before write=1s")
	m := Moment{Actor: "A2", Freezable: true}
	for _, tt := range []struct {
		m    Moment
		d    time.Duration
		want string
	}{
		{m, 2 * time.Second, "cannot fit --max-freeze, expected at most 1s"},
		{Moment{Actor: "A2", Cannot: "it is a shell"}, time.Second, "it cannot be frozen: it is a shell"},
		{Moment{Actor: "A2"}, time.Second, "it cannot be frozen"},
	} {
		if _, err := p.Hand(tt.m, tt.d, ScopeProcess); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	d, err := p.Hand(m, time.Second, ScopeTree)
	if err != nil || d != (Decision{Act: Freeze, At: After, Injection: 1, Rule: -1, RuleText: ByHand, Called: ByHand, For: time.Second, Scope: ScopeTree, Actor: "A2"}) {
		t.Fatalf("%+v, %v", d, err)
	}
	if u, some := p.Hands(); !some || u.Fired != 1 || u.Text != ByHand {
		t.Errorf("%+v", u)
	}
	for actor, want := range map[string]string{"A2": "frozen already", "A3": "--max-frozen 1"} {
		if _, err := p.Hand(Moment{Actor: actor, Freezable: true}, time.Second, ScopeProcess); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", actor, err)
		}
	}
	if d := p.Decide(aWrite, 0); d.Act != Pass {
		t.Error("a rule freezes one more than may be")
	}
	p.Ended(d.Injection, 0)
	if d := p.Decide(aWrite, 0); d.Act != Freeze {
		t.Error("it counts for frozen still")
	}
}

func TestAskingCostsNoAllocation(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before SET(k*)=1s")
	keys, key := p.KeysOf("SET"), []byte("other")
	if n := testing.AllocsPerRun(100, func() {
		_ = p.Wants(lock.Redis, "GET")
		_ = p.CouldTable("SELECT", "counter")
		_ = keys(key)
		_ = p.Epoch()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
