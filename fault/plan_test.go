package fault

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// rules compiles flags, each a text such as "freeze-before write=1s".
func rules(t testing.TB, texts ...string) []Rule {
	t.Helper()
	var all []Rule
	for _, s := range texts {
		r, err := Parse(split(s))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func armedWith(t testing.TB, limits Limits, texts ...string) *Plan {
	t.Helper()
	p, err := NewPlan(rules(t, texts...), 7, limits)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var sure = lock.Attribution{ID: 1, Confidence: 1}

func redisOp(kind lock.Kind, verb, key string, outcome lock.Outcome) *lock.Op {
	return &lock.Op{Proto: lock.Redis, Kind: kind, Verb: verb, Key: key, NX: kind == lock.Acquire, Outcome: outcome}
}

func sqlOp(kind lock.Kind, verb, table string) *lock.Op {
	return &lock.Op{Proto: lock.Postgres, Kind: kind, Verb: verb, SQL: &lock.Statement{Table: table}, Outcome: lock.Done, Term: sure}
}

func before(op *lock.Op) Moment { return Moment{Phase: Before, Op: op, Actor: "A1", Freezable: true} }
func after(op *lock.Op) Moment  { return Moment{Phase: After, Op: op, Actor: "A1", Freezable: true} }

// fires counts how often the moment makes the plan act, ending each act at once.
func fires(p *Plan, m Moment, times int) (ordinals []int) {
	for range times {
		if d := p.Decide(m, 0); d.Act != Pass {
			ordinals = append(ordinals, d.Ordinal)
			p.Ended(d.Injection, 0)
		}
	}
	return ordinals
}

func TestDecisionTellsEverything(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after SETNX=800ms", "freeze-after read(counter)=ttl+300ms,scope=cgroup,name=late")
	m := after(sqlOp(lock.Read, "SELECT", "counter"))
	m.TTL = 500 * ms
	got := p.Decide(m, 10)
	want := Decision{
		Act: Freeze, At: After, Injection: 1, Rule: 1, RuleText: "--freeze-after read(counter)=ttl+300ms,scope=cgroup,name=late",
		Name: "late", Called: "late", For: 800 * ms, Scope: ScopeCgroup, Actor: "A1", Matched: "counter", Ordinal: 1,
	}
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if d := p.Decide(after(redisOp(lock.Acquire, "SET", "k", lock.Granted)), 20); d.Injection != 2 || d.Scope != ScopeConn || d.For != 800*ms {
		t.Errorf("second decision: %+v", d)
	}
}

func TestZeroDurationFires(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after SETNX=0s")
	if d := p.Decide(after(redisOp(lock.Acquire, "SETNX", "k", lock.Granted)), 0); d.Act != Stall || d.Injection != 1 || d.For != 0 {
		t.Errorf("%+v", d)
	}
}

func TestWhatMatches(t *testing.T) {
	acquire := func(verb string, o lock.Outcome) *lock.Op { return redisOp(lock.Acquire, verb, "lock:c", o) }
	unsure := sqlOp(lock.Write, "UPDATE", "counter")
	unsure.Term = lock.Attribution{ID: 1, Confidence: 0.75}
	shared := sqlOp(lock.Write, "UPDATE", "counter")
	shared.Term.Also = []lock.TermID{2}
	commit := func(implicit bool, term lock.Attribution, tables ...string) *lock.Op {
		return &lock.Op{Proto: lock.Postgres, Kind: lock.Commit, Verb: "COMMIT", Implicit: implicit, Tables: tables, Term: term}
	}
	implicit := sqlOp(lock.Write, "UPDATE", "counter")
	implicit.Implicit = true
	store := redisOp(lock.Store, "SET", "lock:c", lock.Done)
	owned := redisOp(lock.Store, "SET", "lock:c", lock.Done)
	owned.Term = sure
	db2 := acquire("SET", lock.Granted)
	db2.DB = 2
	script := acquire("EVALSHA", lock.Granted)
	script.NX = false
	truncated := sqlOp(lock.Write, "TRUNCATE", "a")
	truncated.SQL.Also = []string{"counter", "0"}
	lease := func(kind lock.Kind, verb string, o lock.Outcome) *lock.Op {
		return &lock.Op{Proto: lock.Postgres, Kind: kind, Verb: verb, Key: "lease:jobs:1", Outcome: o}
	}
	advisory := &lock.Op{Proto: lock.Postgres, Kind: lock.Acquire, Verb: "SELECT", Key: "42", Outcome: lock.Granted}
	plain := redisOp(lock.Store, "SET", "a", lock.Granted)
	many := redisOp(lock.Acquire, "MSETEX", "a", lock.Granted)

	for _, c := range []struct {
		rule string
		m    Moment
		want string // the matched name; "no" when the rule must not fire
	}{
		{"stall-after SETNX=1s", after(acquire("SETNX", lock.Granted)), "lock:c"},
		{"stall-after SETNX=1s", after(acquire("SET", lock.Granted)), "lock:c"},
		{"stall-after SETNX=1s", after(acquire("SET", lock.Refused)), "no"},
		{"stall-after SETNX=1s", after(script), "no"},
		{"stall-after SETNX=1s", after(store), "no"},
		{"stall-after SETNX=1s", before(acquire("SET", lock.Pending)), "no"},
		{"stall-before SETNX=1s", before(acquire("SET", lock.Pending)), "lock:c"},
		{"stall-before SETNX=1s", after(acquire("SET", lock.Granted)), "no"},
		{"stall-after SETNX=1s", after(plain), "no"},
		{"stall-after SETNX=1s", after(many), "no"},
		{"drop-reply acquire", after(acquire("SETNX", lock.Granted)), "lock:c"},
		{"drop-reply acquire", after(acquire("SETNX", lock.Refused)), "no"},
		{"drop-reply acquire", before(acquire("SETNX", lock.Pending)), "no"},
		{"hold-reply acquire=1s", after(acquire("SETNX", lock.Granted)), "lock:c"},
		{"hold acquire=1s", before(acquire("SETNX", lock.Pending)), "lock:c"},
		{"reset-before acquire", before(acquire("SETNX", lock.Pending)), "lock:c"},
		{"reset-after acquire", before(acquire("SETNX", lock.Pending)), "lock:c"},
		{"reset-after acquire", after(acquire("SETNX", lock.Granted)), "no"},
		{"stall-after acquire(42)=1s", after(advisory), "42"},
		{"stall-after acquire(43)=1s", after(advisory), "no"},
		{"stall-after WAIT=1s", after(redisOp(lock.Other, "WAIT", "", lock.Done)), ""},
		{"stall-after GET(a)=1s", after(redisOp(lock.Other, "GET", "", lock.Done)), "no"},
		{"stall-after SET=1s", after(acquire("SET", lock.Granted)), "lock:c"},
		{"stall-after SET=1s", after(acquire("SET", lock.Refused)), "no"},
		{"stall-after SET=1s", after(store), "lock:c"},
		{"stall-after SET=1s", after(acquire("SETNX", lock.Granted)), "no"},
		{"stall-after acquire=1s", after(script), "lock:c"},
		{"stall-after acquire=1s", after(acquire("SET", lock.Refused)), "no"},
		{"stall-after acquire=1s", after(acquire("SET", lock.Failed)), "no"},
		{"stall-after acquire=1s", after(store), "no"},
		{"stall-after acquire=1s", after(owned), "lock:c"},
		{"stall-before acquire=1s", before(acquire("SET", lock.Pending)), "lock:c"},
		{"stall-before acquire=1s", before(owned), "no"},
		{"stall-after EVALSHA=1s", after(script), "lock:c"},
		{"stall-after EVAL=1s", after(script), "no"},
		{"stall-after refused=1s", after(acquire("SET", lock.Refused)), "lock:c"},
		{"stall-after refused=1s", after(acquire("SET", lock.Granted)), "no"},
		{"stall-after acquire(lock:*)=1s", after(db2), "lock:c db 2"},
		{"stall-after acquire(*2)=1s", after(db2), "no"},
		{"stall-after pg:acquire=1s", after(acquire("SET", lock.Granted)), "no"},
		{"stall-after redis:acquire=1s", after(acquire("SET", lock.Granted)), "lock:c"},
		{"stall-after renew=1s", after(redisOp(lock.Renew, "PEXPIRE", "lock:c", lock.NotHeld)), "lock:c"},
		{"stall-after release=1s", after(redisOp(lock.Release, "EVAL", "lock:c", lock.NotHeld)), "lock:c"},
		{"stall-after release(other)=1s", after(redisOp(lock.Release, "EVAL", "lock:c", lock.Done)), "no"},
		{"stall-after fence=1s", after(redisOp(lock.Fence, "INCR", "fence:c", lock.Done)), "fence:c"},
		{"stall-after GET=1s", after(redisOp(lock.Other, "GET", "a", lock.Done)), "a"},
		{"stall-after pg:SET=1s", after(redisOp(lock.Store, "SET", "a", lock.Done)), "no"},

		{"stall-before write=1s", before(sqlOp(lock.Write, "UPDATE", "counter")), "counter"},
		{"stall-before write=1s", before(implicit), "counter"},
		{"stall-before write=1s", before(unsure), "no"},
		{"stall-before write=1s", before(shared), "no"},
		{"stall-before read=1s", before(sqlOp(lock.Write, "UPDATE", "counter")), "no"},
		{"stall-before read=1s", before(sqlOp(lock.Read, "SELECT", "counter")), "counter"},
		{"stall-before UPDATE(counter)=1s", before(unsure), "counter"},
		{"stall-before UPDATE(counter)=1s", before(sqlOp(lock.Write, "UPDATE", "public.counter")), "counter"},
		{"stall-before UPDATE(counter)=1s", before(sqlOp(lock.Write, "UPDATE", "jobs.counter")), "jobs.counter"},
		{"stall-before UPDATE(public.counter)=1s", before(sqlOp(lock.Write, "UPDATE", "counter")), "counter"},
		{"stall-before UPDATE(jobs.counter)=1s", before(sqlOp(lock.Write, "UPDATE", "counter")), "no"},
		{"stall-before UPDATE(counter)=1s", before(sqlOp(lock.Write, "UPDATE", "counter.other")), "no"},
		{"stall-before UPDATE(count)=1s", before(sqlOp(lock.Write, "UPDATE", "counter")), "no"},
		{"stall-before write(counter)=1s", before(truncated), "counter"},
		{"stall-before write(other)=1s", before(truncated), "no"},
		{"stall-before write=1s", before(truncated), "0"},
		{"stall-before UPDATE=1s", before(lease(lock.Acquire, "UPDATE", lock.Pending)), "no"},
		{"stall-after UPDATE=1s", after(lease(lock.Acquire, "UPDATE", lock.Granted)), "no"},
		{"stall-after UPDATE=1s", after(lease(lock.Renew, "UPDATE", lock.Done)), "no"},
		{"stall-after DELETE=1s", after(lease(lock.Release, "DELETE", lock.Done)), "no"},
		{"stall-after acquire=1s", after(lease(lock.Acquire, "UPDATE", lock.Granted)), "lease:jobs:1"},
		{"stall-after acquire(lease:jobs:*)=1s", after(lease(lock.Acquire, "UPDATE", lock.Granted)), "lease:jobs:1"},
		{"stall-after refused=1s", after(lease(lock.Acquire, "INSERT", lock.Refused)), "lease:jobs:1"},
		{"stall-after renew=1s", after(lease(lock.Renew, "UPDATE", lock.Done)), "lease:jobs:1"},
		{"stall-before release=1s", before(lease(lock.Release, "DELETE", lock.Pending)), "lease:jobs:1"},
		{"stall-before commit=1s", before(commit(false, sure)), ""},
		{"stall-before commit=1s", before(commit(false, lock.Attribution{}, "b", "a")), "a"},
		{"stall-before commit(b)=1s", before(commit(false, lock.Attribution{}, "b", "a")), "b"},
		{"stall-before commit(c)=1s", before(commit(false, sure, "b", "a")), "no"},
		{"stall-before commit=1s", before(commit(false, lock.Attribution{})), "no"},
		{"stall-before commit=1s", before(commit(true, sure, "a")), "no"},
		{"stall-before commit=1s", before(implicit), "no"},
		{"stall-before COMMIT=1s", before(commit(false, lock.Attribution{})), ""},
		{"stall-before COMMIT(a)=1s", before(commit(false, lock.Attribution{}, "a")), "a"},
		{"stall-before COMMIT=1s", before(implicit), "no"},
		{"freeze-after tick(1s)=1s", after(sqlOp(lock.Write, "UPDATE", "counter")), "no"},
	} {
		p := armedWith(t, Limits{}, c.rule)
		got, d := "no", p.Decide(c.m, 0)
		if d.Act != Pass {
			got = d.Matched
		}
		if got != c.want {
			t.Errorf("%s at %s %s %s %s: %s, want %s", c.rule, c.m.Phase, c.m.Op.Kind, c.m.Op.Verb, c.m.Op.Outcome, got, c.want)
		}
	}
	if d := armedWith(t, Limits{}, "stall-before write=1s").Decide(Moment{Phase: Before}, 0); d != (Decision{}) {
		t.Errorf("without an op: %+v", d)
	}
}

func TestSelectors(t *testing.T) {
	for _, c := range []struct {
		rule string
		want []int
	}{
		{"write=1s", []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"write#3=1s", []int{3}},
		{"write#2-4=1s", []int{2, 3, 4}},
		{"write#*/4=1s", []int{4, 8}},
		{"write@100%=1s", []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"write#2-4@100%=1s", []int{2, 3, 4}},
		{"write=1s,max=2", []int{1, 2}},
	} {
		p := armedWith(t, Limits{}, "stall-before "+c.rule)
		if got := fires(p, before(sqlOp(lock.Write, "UPDATE", "counter")), 9); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.rule, got, c.want)
		}
	}
}

func TestCountsPerName(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write#2=1s")
	var got []string
	for _, table := range []string{"a", "b", "b", "a", "public.a", "b"} {
		if d := p.Decide(before(sqlOp(lock.Write, "UPDATE", table)), 0); d.Act != Pass {
			got = append(got, d.Matched)
		}
	}
	if !slices.Equal(got, []string{"b", "a"}) {
		t.Errorf("fired on %v", got)
	}
}

// With per=section, what others do meanwhile does not count, nor what is of no section.
func TestCountsPerSection(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write(counter)#2=1s,per=section")
	var got []lock.TermID
	for _, of := range []lock.TermID{1, 2, 0, 3, 2, 0, 3, 3, 2, 1} {
		op := sqlOp(lock.Write, "UPDATE", "counter")
		op.Term = lock.Attribution{ID: of, Confidence: 1}
		if d := p.Decide(before(op), 0); d.Act != Pass {
			if d.Ordinal != 2 {
				t.Errorf("ordinal %d", d.Ordinal)
			}
			got = append(got, of)
		}
	}
	if !slices.Equal(got, []lock.TermID{2, 3, 1}) {
		t.Errorf("fired in the sections %v", got)
	}
	verb := armedWith(t, Limits{}, "stall-before UPDATE#1=1s,per=section")
	op := sqlOp(lock.Write, "UPDATE", "counter")
	op.Term = lock.Attribution{ID: 1, Confidence: 0.6}
	if d := verb.Decide(before(op), 0); d.Act != Pass || barred(verb, 0, UnknownLock) != 1 {
		t.Errorf("%+v, %+v", d, verb.Uses())
	}
}

// Names do not matter to it, and of very many sections it keeps those that began last.
func TestSectionsThatAreCounted(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write#2=1s,per=section")
	fires := func(of lock.TermID, table string) bool {
		op := sqlOp(lock.Write, "UPDATE", table)
		op.Term = lock.Attribution{ID: of, Confidence: 1}
		return p.Decide(before(op), 0).Act != Pass
	}
	if fires(1, "a") || !fires(1, "b") {
		t.Error("the second write of a section is not the one of its second table")
	}
	for of := lock.TermID(2); of < 3*mostNames; of++ {
		if fires(of, "a") {
			t.Fatalf("fired at the first write of section %d", of)
		}
	}
	if n := len(p.rules[0].within); n > mostNames {
		t.Errorf("%d sections are kept", n)
	}
	if !fires(3*mostNames-1, "a") {
		t.Error("a section that goes on was forgotten")
	}
}

// barred returns what a rule's use says of one reason.
func barred(p *Plan, rule int, reason string) int {
	for _, c := range p.Uses()[rule].Barred {
		if c.What == reason {
			return c.N
		}
	}
	return 0
}

func TestBarredIsNotCounted(t *testing.T) {
	write := before(sqlOp(lock.Write, "UPDATE", "counter"))
	other := write
	other.Actor = "A2"

	t.Run("max-frozen", func(t *testing.T) {
		p := armedWith(t, Limits{}, "freeze-before write#*/2=1s")
		p.Decide(write, 0)
		d := p.Decide(write, 0)
		if d.Act != Freeze || d.Ordinal != 2 {
			t.Fatalf("%+v", d)
		}
		for range 3 {
			if d := p.Decide(other, 0); d.Act != Pass {
				t.Fatalf("a second freeze: %+v", d)
			}
		}
		p.Decide(write, 0)
		p.Ended(d.Injection, 0)
		p.Ended(d.Injection, 0) // twice is harmless
		if got := fires(p, other, 2); !slices.Equal(got, []int{4}) {
			t.Errorf("ordinals after the thaw: %v, want [4]", got)
		}
		if barred(p, 0, TooManyFrozen) != 3 || barred(p, 0, AlreadyFrozen) != 1 {
			t.Errorf("%+v", p.Uses())
		}
	})
	t.Run("two may be frozen", func(t *testing.T) {
		p := armedWith(t, Limits{MaxFrozen: 2}, "freeze-before write=1s")
		if p.Decide(write, 0).Act != Freeze || p.Decide(write, 0).Act != Pass || p.Decide(other, 0).Act != Freeze {
			t.Errorf("%+v", p.Uses())
		}
	})
	t.Run("a stall is no freeze", func(t *testing.T) {
		p := armedWith(t, Limits{}, "stall-before write=1s", "freeze-before write=1s")
		p.Decide(write, 0)
		if barred(p, 0, TooManyFrozen) != 0 || p.Decide(other, 0).Act != Stall {
			t.Errorf("%+v", p.Uses())
		}
	})
	t.Run("not freezable", func(t *testing.T) {
		p := armedWith(t, Limits{}, "freeze-before write#1=1s")
		foreign := write
		foreign.Freezable = false
		if p.Decide(foreign, 0).Act != Pass || p.Decide(write, 0).Ordinal != 1 || barred(p, 0, NotFreezable) != 1 {
			t.Errorf("%+v", p.Uses())
		}
	})
	t.Run("a stall needs no freezable process", func(t *testing.T) {
		p := armedWith(t, Limits{}, "stall-before write=1s")
		nobody := Moment{Phase: Before, Op: write.Op}
		if p.Decide(nobody, 0).Act != Stall {
			t.Errorf("%+v", p.Uses())
		}
		p = armedWith(t, Limits{}, "stall-before write=1s,scope=process")
		if p.Decide(nobody, 0).Act != Pass || barred(p, 0, NoActor) != 1 {
			t.Errorf("%+v", p.Uses())
		}
	})
	t.Run("ttl unknown", func(t *testing.T) {
		p := armedWith(t, Limits{}, "stall-before write#1=ttl")
		known := write
		known.TTL = time.Second
		if p.Decide(write, 0).Act != Pass || p.Decide(known, 0).Ordinal != 1 || barred(p, 0, UnknownTTL) != 1 {
			t.Errorf("%+v", p.Uses())
		}
	})
	t.Run("no lease", func(t *testing.T) {
		p := armedWith(t, Limits{}, "stall-before write#1=ttl", "stall-before write#1=until:lease-expired", "stall-before write#2=1s")
		bare, leased := write, write
		bare.NoLease, leased.NoLease, leased.TTL = true, true, time.Second
		fires(p, bare, 2)
		if barred(p, 0, NoLease) != 2 || barred(p, 0, UnknownTTL) != 0 || barred(p, 1, NoLease) != 2 {
			t.Errorf("%+v", p.Uses())
		}
		// Each of the two says so once.
		if v := p.Vain(); len(v) != 2 || v[0].Rule != "--stall-before write#1=ttl" || v[0].Name != "counter" || !strings.Contains(v[0].Why, "no lease") {
			t.Errorf("%+v", v)
		}
		if v := p.Vain(); len(v) != 0 {
			t.Errorf("said again: %+v", v)
		}
		if d := p.Decide(leased, 0); d.Rule != 0 || d.Ordinal != 1 {
			t.Errorf("%+v", d)
		}
	})
	gates := []struct {
		name, rule string
		change     func(m *Moment)
		limits     Limits
		bar, said  string
	}{
		{"a lock that was given back", "stall-before write=until:lease-expired", func(m *Moment) { m.Back = true }, Limits{}, GivenBack, "ended by its holder"},
		{"and nothing waits for its lease", "stall-before write=until:next-acquire", func(m *Moment) { m.Back = true }, Limits{}, "", ""},
		{"a timeout before the lease's end", "stall-before write=until:lease-expired,timeout=400ms", func(m *Moment) { m.Left = 401 * time.Millisecond }, Limits{}, TooShort, "shorter than what is left"},
		{"one behind it", "stall-before write=until:lease-expired,timeout=400ms", func(m *Moment) { m.Left = 400 * time.Millisecond }, Limits{}, "", ""},
		{"a timeout of what is no lease", "stall-before write=until:next-write,timeout=400ms", func(m *Moment) { m.Left = time.Second }, Limits{}, "", ""},
		{"a limit before the lease's end", "freeze-before write=until:lease-expired", func(m *Moment) { m.Left = 401 * time.Millisecond }, Limits{MaxFreeze: 400 * time.Millisecond}, TooLong, "max-freeze: it is shorter"},
		{"which is a freeze's", "stall-before write=until:lease-expired", func(m *Moment) { m.Left = 401 * time.Millisecond }, Limits{MaxFreeze: 400 * time.Millisecond}, "", ""},
		{"a freeze under a lock that only its holder can give back", "freeze-before write=until:next-read", func(m *Moment) { m.Sole = Kept }, Limits{}, NoLease, "nobody else can have the lock"},
		{"a stall under such a one", "stall-before write=until:next-read", func(m *Moment) { m.Sole = Kept }, Limits{}, "", ""},
		{"a stall under a session's lock", "stall-before write=until:next-read", func(m *Moment) { m.Sole = Bound }, Limits{}, NoLease, "nobody else can have the lock"},
		{"which waits for a signal", "stall-before write=until:signal:go", func(m *Moment) { m.Sole = Bound }, Limits{}, "", ""},
	}
	for _, g := range gates {
		t.Run(g.name, func(t *testing.T) {
			p := armedWith(t, g.limits, g.rule)
			m := write
			m.TTL, m.Lock, m.Freezable, m.Actor = 100*time.Millisecond, true, true, "A1"
			g.change(&m)
			d, v := p.Decide(m, 7), p.Vain()
			switch {
			case g.bar == "" && (d.Act == Pass || len(v) != 0):
				t.Errorf("%+v, %+v", p.Uses(), v)
			case g.bar != "" && (d.Act != Pass || barred(p, 0, g.bar) != 1 || len(v) != 1 || v[0].At != 7 || !strings.Contains(v[0].Why, g.said)):
				t.Errorf("%+v, %+v", p.Uses(), v)
			}
		})
	}
	t.Run("nothing is told of a rule that will pick no more", func(t *testing.T) {
		p := armedWith(t, Limits{}, "stall-before write#1-2=until:lease-expired,timeout=1s", "stall-before write#*/9=until:lease-expired,timeout=1s")
		m := write
		m.TTL, m.Lock = 100*time.Millisecond, true
		fires(p, m, 2)
		m.Left = 2 * time.Second
		if fires(p, m, 1); barred(p, 0, TooShort) != 1 || barred(p, 1, TooShort) != 1 {
			t.Fatalf("%+v", p.Uses())
		}
		if v := p.Vain(); len(v) != 1 || v[0].Rule != "--stall-before write#*/9=until:lease-expired,timeout=1s" {
			t.Errorf("%+v", v)
		}
	})
	t.Run("a limit that is no gate's is told of at the end", func(t *testing.T) {
		p := armedWith(t, Limits{MaxFreeze: 400 * time.Millisecond}, "freeze-before write=ttl*2")
		m := write
		m.TTL, m.Freezable, m.Actor = 300*time.Millisecond, true, "A1"
		if p.Decide(m, 0).Act != Pass || barred(p, 0, TooLong) != 1 || len(p.Vain()) != 0 {
			t.Errorf("%+v", p.Uses())
		}
	})
	t.Run("ttl of a request is no grant's", func(t *testing.T) {
		p := armedWith(t, Limits{}, "stall-before SET=ttl")
		asked := before(redisOp(lock.Acquire, "SET", "k", lock.Pending))
		asked.TTL = time.Second
		if p.Decide(asked, 0).Act != Pass || barred(p, 0, UnknownTTL) != 1 {
			t.Errorf("%+v", p.Uses())
		}
	})
	t.Run("max", func(t *testing.T) {
		p := armedWith(t, Limits{}, "stall-before write=1s,max=1")
		fires(p, write, 4)
		if u := p.Uses()[0]; u.Seen != 4 || u.Could != 1 || u.Fired != 1 || barred(p, 0, BudgetSpent) != 3 {
			t.Errorf("%+v", u)
		}
	})
	t.Run("cooldown", func(t *testing.T) {
		p := armedWith(t, Limits{}, "stall-before write=1s,cooldown=10s")
		at := func(s int) Act {
			d := p.Decide(write, lock.Instant(s)*lock.Instant(time.Second))
			return d.Act
		}
		if at(0) != Stall || at(60) != Pass { // going on: no end yet
			t.Fatalf("%+v", p.Uses())
		}
		p.Ended(1, lock.Instant(61*time.Second))
		if at(70) != Pass || at(71) != Stall {
			t.Errorf("%+v", p.Uses())
		}
		if barred(p, 0, CoolingDown) != 2 {
			t.Errorf("%+v", p.Uses())
		}
	})
	t.Run("earlier rule", func(t *testing.T) {
		p := armedWith(t, Limits{}, "stall-before UPDATE#2=1s", "stall-before write#2=2s")
		var got []int
		for range 4 {
			d := p.Decide(write, 0)
			got = append(got, int(d.For/time.Second))
		}
		// The second write is the first rule's; the third is the second that the other was free to take.
		if !slices.Equal(got, []int{0, 1, 2, 0}) || barred(p, 1, EarlierRule) != 1 {
			t.Errorf("%v, %+v", got, p.Uses())
		}
	})
	t.Run("a barred rule lets the next one have it", func(t *testing.T) {
		p := armedWith(t, Limits{}, "freeze-before write=ttl", "stall-before write=2s")
		if d := p.Decide(write, 0); d.Act != Stall {
			t.Errorf("%+v", d)
		}
	})
	t.Run("too long for max-freeze", func(t *testing.T) {
		p := armedWith(t, Limits{MaxFreeze: time.Second}, "freeze-before write#1=ttl*2")
		long, short := write, write
		long.TTL, short.TTL = time.Second, 500*ms
		if p.Decide(long, 0).Act != Pass || p.Decide(short, 0).For != time.Second || barred(p, 0, TooLong) != 1 {
			t.Errorf("%+v", p.Uses())
		}
	})
}

func TestDefaultMaxFreezeGrowsWithTheLease(t *testing.T) {
	write := before(sqlOp(lock.Write, "UPDATE", "counter"))
	write.TTL = time.Minute
	p := armedWith(t, Limits{}, "freeze-before write=ttl+50%")
	if d := p.Decide(write, 0); d.For != 90*time.Second {
		t.Errorf("%+v %+v", d, p.Uses())
	}
	p = armedWith(t, Limits{}, "freeze-before write=ttl*3")
	if d := p.Decide(write, 0); d.Act != Pass {
		t.Errorf("%+v", d)
	}
}

func TestRefusedWhenArmed(t *testing.T) {
	for _, c := range []struct {
		rules  []string
		limits Limits
		want   string
	}{
		{[]string{"freeze-before write=40s"}, Limits{}, "arm rule --freeze-before write=40s: a freeze of 40s cannot fit --max-freeze=30s, expected a shorter one or a higher limit"},
		{[]string{"freeze-after write=ttl+2s"}, Limits{MaxFreeze: time.Second}, "arm rule --freeze-after write=ttl+2s: a freeze of ttl+2s cannot fit --max-freeze=1s, expected a shorter one or a higher limit"},
		{[]string{"freeze-after write=ttl+40s"}, Limits{}, ""},
		{[]string{"freeze-after write=30s"}, Limits{}, ""},
		{[]string{"freeze-after write=40s"}, Limits{MaxFreeze: time.Minute}, ""},
		{[]string{"stall-after write=40s"}, Limits{}, ""},
		{[]string{"stall-after write=1s,name=a", "stall-after read=1s,name=a"}, Limits{}, "arm rule --stall-after read=1s,name=a: another rule has the name a, expected a name of its own"},
		{[]string{"stall-after write=1s", "stall-after read=1s"}, Limits{}, ""},
		{nil, Limits{MaxFrozen: -1}, "arm rules: --max-frozen and --max-freeze cannot be negative"},
		{nil, Limits{MaxFreeze: -1}, "arm rules: --max-frozen and --max-freeze cannot be negative"},
	} {
		_, err := NewPlan(rules(t, c.rules...), 1, c.limits)
		if got := fmt.Sprint(err); got != c.want && !(c.want == "" && err == nil) {
			t.Errorf("%v:\n got %s\nwant %s", c.rules, got, c.want)
		}
	}
}

func TestWants(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after GET=1s", "stall-after pg:SET=1s", "stall-after write=1s")
	for _, c := range []struct {
		proto lock.Protocol
		verb  string
		want  bool
	}{
		{lock.Redis, "GET", true}, {lock.Postgres, "GET", false}, {lock.Redis, "SET", false},
		{lock.Postgres, "SET", true}, {lock.Postgres, "UPDATE", false},
	} {
		if p.Wants(c.proto, c.verb) != c.want {
			t.Errorf("Wants(%s, %s) is %t", c.proto, c.verb, !c.want)
		}
	}
}

// drawn plays rounds of events on several keys and returns which fired.
func drawn(t *testing.T, seed uint64, order []string) map[string][]int {
	p, err := NewPlan(rules(t, "stall-before DEL@30%=1s"), seed, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	fired := map[string][]int{}
	for _, key := range order {
		if d := p.Decide(before(redisOp(lock.Release, "DEL", key, lock.Pending)), 0); d.Act != Pass {
			fired[key] = append(fired[key], d.Ordinal)
		}
	}
	return fired
}

func TestDrawsIgnoreArrivalOrder(t *testing.T) {
	var order []string
	for i := range 600 {
		order = append(order, fmt.Sprintf("lock:%d", i%6))
	}
	first := drawn(t, 7, order)
	shuffle := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		shuffle.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if again := drawn(t, 7, order); !reflect.DeepEqual(first, again) {
			t.Fatalf("another order drew otherwise:\n%v\n%v", first, again)
		}
	}
	if reflect.DeepEqual(first, drawn(t, 8, order)) {
		t.Error("another seed drew the same")
	}
	n := 0
	for key, ordinals := range first {
		n += len(ordinals)
		if key != "lock:0" && slices.Equal(ordinals, first["lock:0"]) {
			t.Errorf("%s drew as lock:0 did", key)
		}
	}
	if n < 140 || n > 220 {
		t.Errorf("30%% of 600 were %d", n)
	}
}

// What a seed draws is a promise: a run must repeat under a later version.
func TestDrawsStayTheSame(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before DEL@10%=1s")
	got := fires(p, before(redisOp(lock.Release, "DEL", "lock:counter", lock.Pending)), 60)
	if want := []int{8, 12, 14, 18, 29, 32, 51, 52, 59}; !slices.Equal(got, want) {
		t.Errorf("seed 7 draws %#v, want %#v", got, want)
	}
}

func TestUsesShowTheNearest(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before write(counter)=1s", "stall-after acquire(lock:jobs)=1s", "stall-before UPDATE(nothing)=1s")
	outside := sqlOp(lock.Write, "UPDATE", "counter")
	outside.Term = lock.Attribution{}
	for range 3 {
		p.Decide(before(outside), 0)
	}
	p.Decide(before(sqlOp(lock.Read, "SELECT", "users")), 0)
	p.Decide(before(&lock.Op{Proto: lock.Postgres, Kind: lock.Begin, Verb: "BEGIN"}), 0)
	p.Decide(before(redisOp(lock.Acquire, "SET", "lock:job", lock.Pending)), 0)
	p.Decide(after(redisOp(lock.Acquire, "SET", "lock:job", lock.Granted)), 0)
	uses := p.Account()
	for i, want := range [][]Count{
		{{"UPDATE(counter) outside a section", 3}, {"SELECT(users)", 1}, {"BEGIN", 1}},
		{{"SET(lock:job)", 1}, {"UPDATE(counter) outside a section", 3}, {"SELECT(users)", 1}, {"BEGIN", 1}},
		{{"UPDATE(counter) outside a section", 3}, {"BEGIN", 1}, {"SELECT(users)", 1}},
	} {
		if !reflect.DeepEqual(uses[i].Nearest, want) {
			t.Errorf("%s: %v, want %v", uses[i].Text, uses[i].Nearest, want)
		}
	}
}

func TestNearestKnowsClasses(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-after refused(lock:a)=1s", "stall-after release(lock:a)=1s", "stall-before DEL=1s")
	p.Decide(before(redisOp(lock.Acquire, "SET", "lock:a", lock.Pending)), 0)
	for range 2 {
		p.Decide(before(redisOp(lock.Release, "DEL", "lock:a", lock.Pending)), 0)
	}
	uses := p.Account()
	if got := uses[0].Nearest; !slices.Equal(got, []Count{{"SET(lock:a)", 1}, {"DEL(lock:a)", 2}}) {
		t.Errorf("refused: %v", got)
	}
	if got := uses[1].Nearest; !slices.Equal(got, []Count{{"DEL(lock:a)", 2}, {"SET(lock:a)", 1}}) {
		t.Errorf("release: %v", got)
	}
	if got := uses[2].Nearest; got != nil {
		t.Errorf("a rule that matched: %v", got)
	}
}

func TestBarredMostFrequentFirst(t *testing.T) {
	p := armedWith(t, Limits{}, "freeze-before write=ttl,max=1")
	m := before(sqlOp(lock.Write, "UPDATE", "counter"))
	for i := range 6 {
		m.Freezable, m.TTL = i > 0, time.Duration(i/3)*time.Second
		p.Ended(p.Decide(m, 0).Injection, 0)
	}
	want := []Count{{UnknownTTL, 3}, {BudgetSpent, 2}}
	for range 20 {
		if got := p.Uses()[0].Barred; !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	p := armedWith(t, Limits{}, "stall-before DEL#1=1s", "stall-before DEL=2s", "stall-before GET=1s")
	for i := range mostNames + 10 {
		d := p.Decide(before(redisOp(lock.Release, "DEL", fmt.Sprintf("k%d", i), lock.Pending)), 0)
		if full := i >= mostNames; full != (d.For == 2*time.Second) {
			t.Fatalf("event %d: %+v", i, d)
		}
		p.Ended(d.Injection, 0)
	}
	if n := barred(p, 0, TooManyNames); n != 10 {
		t.Errorf("%d barred, want 10", n)
	}
	if len(p.seen.counts) > mostSeen || len(p.rules[0].counts) > mostNames || len(p.live) != 0 {
		t.Errorf("kept %d events, %d names, %d injections", len(p.seen.counts), len(p.rules[0].counts), len(p.live))
	}
	if n := len(p.Account()[2].Nearest); n != 5 {
		t.Errorf("%d nearest events", n)
	}
	// The second rule counts nothing that it chooses by, so it goes on.
	full := armedWith(t, Limits{}, "stall-before DEL=2s")
	for i := range mostNames + 1 {
		d := full.Decide(before(redisOp(lock.Release, "DEL", fmt.Sprintf("k%d", i), lock.Pending)), 0)
		full.Ended(d.Injection, 0)
		if counted := i < mostNames; d.Act != Stall || counted != (d.Ordinal == 1) {
			t.Fatalf("event %d: %+v", i, d)
		}
	}
	if len(full.rules[0].counts) != mostNames {
		t.Errorf("%d names", len(full.rules[0].counts))
	}
	long := strings.Repeat("k", 1<<20)
	if d := p.Decide(before(redisOp(lock.Release, "DEL", long, lock.Pending)), 0); len(d.Matched) > 100 {
		t.Errorf("a name of %d bytes", len(d.Matched))
	}
	if short(long) == short(long+"x") {
		t.Error("two long names are one")
	}
}
