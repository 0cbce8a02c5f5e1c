package schedule

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

type actor struct{ id, name, program string }

func (a actor) ID() string               { return a.id }
func (a actor) Called() (string, string) { return a.name, a.program }

var counter = lock.LockID{Key: "lock:counter"}

// A run tells a book of ops, as an engine does.
type run struct {
	*Book
	terms int
}

func (r *run) at(who actor, at string, op lock.Op) (Place, int) {
	ev := Event{Actor: who, Op: &op, At: at, Lock: counter}
	if op.Term.Sure() {
		ev.Term = op.Term.ID
	}
	return r.Moment(ev)
}

func (r *run) grant(who actor) lock.TermID {
	r.terms++
	t := lock.TermID(r.terms)
	r.at(who, Before, lock.Op{Kind: lock.Acquire, Verb: "SET"})
	r.at(who, After, lock.Op{Kind: lock.Acquire, Verb: "SET", Outcome: lock.Granted, Term: sure(t)})
	return t
}

func (r *run) refuse(who actor) {
	r.at(who, Before, lock.Op{Kind: lock.Acquire, Verb: "SET"})
	r.at(who, After, lock.Op{Kind: lock.Acquire, Verb: "SET", Outcome: lock.Refused})
}

func (r *run) read(who actor, t lock.TermID) (Place, int) {
	return r.at(who, Before, lock.Op{Kind: lock.Read, Verb: "SELECT", Term: sure(t), SQL: &lock.Statement{Table: "counter"}})
}

func (r *run) write(who actor, t lock.TermID) (Place, int) {
	return r.at(who, Before, lock.Op{Kind: lock.Write, Verb: "UPDATE", Term: sure(t), SQL: &lock.Statement{
		Table: "public.counter", Set: []lock.Assign{{Column: "value"}}, Where: []lock.Cond{{Column: "id", Op: "="}, {Column: "fence", Op: "<"}}}})
}

func sure(t lock.TermID) lock.Attribution { return lock.Attribution{ID: t, Confidence: 1} }

func fresh() *run                  { return &run{Book: NewBook(nil)} }
func repeating(s *Schedule) *run   { return &run{Book: NewBook(s)} }
func worker(id string) actor       { return actor{id: id, program: "python3"} }
func (r *run) acts(p Place) *Entry { return r.Decided(p, frozen) }
func done(steps []Step) *Schedule {
	return &Schedule{Schema: Schema, Rules: []Rule{{"freeze-before", "write#1=1s"}}, Steps: steps}
}
func encoded(s *Schedule) string      { var b bytes.Buffer; _ = s.Write(&b); return b.String() }
func second(d time.Duration) Duration { return Duration(d) }

var frozen = Fault{Rule: 1, Do: "freeze", Scope: "process", For: second(time.Second)}

// recorded is a run of two workers in which the first holder's second write is frozen.
func recorded(first, other actor) *run {
	r := fresh()
	a := r.grant(first)
	r.refuse(other)
	r.read(first, a)
	r.write(first, a)
	b := r.grant(other)
	r.read(other, b)
	r.write(other, b)
	a = r.grant(first)
	r.read(first, a)
	p, _ := r.write(first, a)
	r.Ended(r.acts(p), "landed")
	return r
}

func TestKeysNameNoProcessOfTheRun(t *testing.T) {
	got := recorded(worker("A1"), worker("A2")).Close()
	want := Step{
		Step:    1,
		Key:     Key{Actor: "holder:1", Lock: "lock:counter", Event: "write", At: Before, Ordinal: 2},
		Context: Context{Section: 2, Since: []string{"acquire", "read"}, Statement: "UPDATE counter set value where id =, fence <"},
		Fault:   frozen, Outcome: "landed",
	}
	if len(got) != 1 || encoded(done(got)) != encoded(done([]Step{want})) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEqualDecisionsGiveEqualBytes(t *testing.T) {
	a, b := recorded(worker("A1"), worker("A2")), recorded(worker("A2"), worker("A1"))
	if x, y := encoded(done(a.Close())), encoded(done(b.Close())); x != y {
		t.Errorf("two runs that differ in labels alone:\n%s\n%s", x, y)
	}
}

func TestActorsAreNamedByWhatTheyCallThemselvesAndTheOrderOfGrants(t *testing.T) {
	r := fresh()
	late, early, other := actor{"A1", "billing", "java"}, actor{"A2", "billing", "java"}, worker("A3")
	r.refuse(late)
	r.grant(other)
	for _, tt := range []struct {
		who  actor
		want string
	}{{early, "holder:billing:1"}, {late, "holder:billing:2"}, {other, "holder:1"}} {
		term := r.grant(tt.who)
		if p, _ := r.write(tt.who, term); p.key.Actor != tt.want {
			t.Errorf("got %s, want %s", p.key.Actor, tt.want)
		}
	}
	p, _ := r.at(worker("A4"), Before, lock.Op{Kind: lock.Acquire, Verb: "SET"})
	if p.key.Actor != "process:python3:2" {
		t.Errorf("one without a grant: got %s, want the second process of its program", p.key.Actor)
	}
}

func TestOrdinalsCountOneActorLockAndClass(t *testing.T) {
	r := fresh()
	a := worker("A1")
	r.refuse(a)
	term := r.grant(a)
	r.read(a, term)
	for n := 1; n <= 3; n++ {
		if p, _ := r.write(a, term); p.key.Ordinal != n {
			t.Errorf("write %d: got %s", n, p.key)
		}
	}
	if p, _ := r.at(a, Before, lock.Op{Kind: lock.Acquire, Verb: "SET"}); p.key.Ordinal != 3 {
		t.Errorf("the third request: got %s", p.key)
	}
	op := lock.Op{Kind: lock.Acquire, Verb: "SET", Outcome: lock.Failed}
	if p, _ := r.at(a, After, op); p.key.Event == "acquire" {
		t.Errorf("one that failed counts as a grant: %s", p.key)
	}
}

func TestTheWayThroughASectionLeavesOutWhatTheClockDecides(t *testing.T) {
	r := fresh()
	a := worker("A1")
	term := r.grant(a)
	for range 3 {
		r.at(a, Before, lock.Op{Kind: lock.Renew, Verb: "EVAL", Term: sure(term)})
		r.read(a, term)
	}
	p, _ := r.write(a, term)
	if got := strings.Join(p.context().Since, " "); got != "acquire read" {
		t.Errorf("got %q", got)
	}
}

func TestARepeatedStepIsDueAtItsKey(t *testing.T) {
	s := done(recorded(worker("A1"), worker("A2")).Close())
	r := repeating(s)
	a, b := worker("A7"), worker("A8")
	term := r.grant(a)
	if _, rule := r.write(a, term); rule != 0 {
		t.Fatal("the first write is not the step's")
	}
	other := r.grant(b)
	r.read(b, other)
	r.write(b, other)
	if _, rule := r.write(b, other); rule != 0 {
		t.Fatal("the other's second write is not the step's")
	}
	term = r.grant(a)
	r.read(a, term)
	p, rule := r.write(a, term)
	if rule != 1 {
		t.Fatal("the step is not due at its key")
	}
	r.Ended(r.acts(p), "landed")
	if got := encoded(done(r.Close())); got != encoded(s) || r.Diverged() != nil {
		t.Errorf("the run that repeats has another schedule: %s %v", got, r.Diverged())
	}
	if _, rule := r.write(a, term); rule != 0 {
		t.Error("a step was done twice")
	}
}

// Of a run that goes on and on, what was decided first is kept, and how much came behind it.
func TestABookKeepsSoManySteps(t *testing.T) {
	r := fresh()
	a := worker("A1")
	for range mostSteps + 3 {
		p, _ := r.read(a, r.grant(a))
		r.Ended(r.acts(p), "landed")
	}
	steps := r.Close()
	if len(steps) != mostSteps || r.Unkept() != 3 || steps[mostSteps-1].Step != mostSteps || steps[mostSteps-1].Ordinal != mostSteps {
		t.Errorf("%d steps, %d unkept, the last %+v", len(steps), r.Unkept(), steps[len(steps)-1])
	}
	if len(r.steps) > mostSteps {
		t.Errorf("%d are held", len(r.steps))
	}
	s := done(steps)
	s.Cut = r.Unkept()
	if _, err := Read([]byte(encoded(s))); err == nil || !strings.Contains(err.Error(), "cut: 3 decisions") {
		t.Errorf("got %v", err)
	}
}

// A decision at a moment that has no number, as too many are told apart, is none that could be repeated.
func TestWhatIsNotCountedIsNotKept(t *testing.T) {
	r := fresh()
	term := r.grant(worker("A1"))
	for i := range most {
		r.Book.keys.counts[counted{actor: strconv.Itoa(i)}] = 1
	}
	p, _ := r.read(worker("A1"), term)
	r.Ended(r.acts(p), "landed")
	if steps := r.Close(); len(steps) != 0 || r.Unkept() != 1 {
		t.Errorf("%+v, %d unkept", steps, r.Unkept())
	}
}

func TestTheFirstDivergenceNamesTheStep(t *testing.T) {
	s := done(recorded(worker("A1"), worker("A2")).Close())
	a, b := worker("A1"), worker("A2")
	reach := func(r *run) (Place, int) {
		term := r.grant(a)
		r.read(a, term)
		r.write(a, term)
		term = r.grant(a)
		r.read(a, term)
		return r.write(a, term)
	}
	for name, tt := range map[string]struct {
		play func(r *run)
		want string
	}{
		"another way to it": {func(r *run) {
			r.grant(a)
			term := r.grant(a)
			r.write(a, term)
			r.write(a, term)
		}, "step 1 (holder:1: before write 2 under lock:counter): expected it behind acquire, read; saw it behind acquire, write"},
		"another section": {func(r *run) {
			term := r.grant(a)
			r.read(a, term)
			r.write(a, term)
			r.read(a, term)
			r.write(a, term)
		}, "expected it in section 2 of its actor; saw it in section 1"},
		"another statement": {func(r *run) {
			term := r.grant(a)
			r.read(a, term)
			r.write(a, term)
			term = r.grant(a)
			r.read(a, term)
			r.at(a, Before, lock.Op{Kind: lock.Write, Verb: "INSERT", Term: sure(term), SQL: &lock.Statement{Table: "log"}})
		}, "expected it to be UPDATE counter set value where id =, fence <; saw INSERT log"},
		"a section too late": {func(r *run) {
			for range 3 {
				r.grant(a)
			}
		}, "expected it; saw none in section 2, and then holder:1: after acquire 3 under lock:counter"},
		"another length": {func(r *run) {
			p, _ := reach(r)
			r.Decided(p, Fault{Rule: 1, Do: "freeze", Scope: "process", For: second(2 * time.Second)})
		}, "expected freeze for 1s; saw freeze for 2s"},
		"barred": {func(r *run) {
			p, _ := reach(r)
			r.Passed(p, "not freezable")
		}, "expected freeze for 1s; saw nothing done: not freezable"},
		"another outcome": {func(r *run) {
			p, _ := reach(r)
			r.Ended(r.acts(p), "client-gave-up")
		}, "expected it landed; saw it client-gave-up"},
		"nothing at all":  {func(r *run) { r.Close() }, "expected freeze for 1s; saw none by the end of the run; nothing at all"},
		"no second write": {func(r *run) { r.write(a, r.grant(a)); r.Close() }, "of holder:1 at lock:counter: after acquire 1, before acquire 1, before write 1"},
		"another lock": {func(r *run) {
			r.Moment(Event{Actor: b, At: Before, Op: &lock.Op{Kind: lock.Acquire, Verb: "SET"}, Lock: lock.LockID{Key: "lock:other"}})
			r.Close()
		}, "nothing at lock:counter, only at lock:other"},
		"others alone": {func(r *run) { r.refuse(b); r.Close() }, "at lock:counter only process:python3:1"},
	} {
		r := repeating(s)
		tt.play(r)
		if d := r.Diverged(); d == nil || !strings.HasPrefix(d.String(), "step 1 (") || !strings.Contains(d.String(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, d, tt.want)
		}
	}
}

func TestNothingIsRepeatedBehindADivergence(t *testing.T) {
	steps := recorded(worker("A1"), worker("A2")).Close()
	again := steps[0]
	again.Step, again.Ordinal, again.Section = 2, 1, 1
	r := repeating(done(append(steps, again)))
	r.Passed(Place{entry: r.steps[0]}, "not freezable")
	term := r.grant(worker("A1"))
	r.read(worker("A1"), term)
	if _, rule := r.write(worker("A1"), term); rule != 0 {
		t.Error("a step was repeated in a run that had diverged")
	}
	r.Close()
	if d := r.Diverged(); d.Step != 1 || !strings.Contains(d.Saw, "not freezable") {
		t.Errorf("the first divergence was lost: %v", d)
	}
}

func TestARunThatRepeatsNothingNeverDiverges(t *testing.T) {
	r := recorded(worker("A1"), worker("A2"))
	r.Close()
	if r.Diverged() != nil || r.Repeats() {
		t.Errorf("got %v", r.Diverged())
	}
}

func TestTicksAreKeyedByRuleNumberAndProcess(t *testing.T) {
	r := fresh()
	a, b := worker("A1"), worker("A2")
	r.refuse(a)
	r.refuse(b)
	r.Ended(r.Decided(r.Struck(1, 3, "A2"), frozen), "landed")
	s := done(r.Close())
	if k := s.Steps[0].Key; k != (Key{Actor: "process:python3:2", Name: "rule 1", Event: "tick", At: Clock, Ordinal: 3}) {
		t.Errorf("got %+v", k)
	}
	again := repeating(s)
	again.refuse(worker("A5"))
	again.refuse(worker("A4"))
	if got := again.Tick(1, 2, []string{"A4", "A5"}); got != "" {
		t.Errorf("tick 2 hit %s", got)
	}
	if got := again.Tick(1, 3, []string{"A4", "A5"}); got != "A4" {
		t.Errorf("tick 3: got %q, want the second that came", got)
	}
	again.Ended(again.Decided(again.Struck(1, 3, "A4"), frozen), "landed")
	if again.Close(); again.Diverged() != nil {
		t.Errorf("got %v", again.Diverged())
	}
}

func TestAnOpAtWhichNothingIsDecidedAllocatesNothing(t *testing.T) {
	r := fresh()
	a := worker("A1")
	term := r.grant(a)
	ev := Event{Actor: a, At: Before, Lock: counter, Term: term, Op: &lock.Op{Kind: lock.Write, Verb: "UPDATE", Term: sure(term),
		SQL: &lock.Statement{Table: "counter", Set: []lock.Assign{{Column: "value"}}}}}
	r.Moment(ev)
	if n := testing.AllocsPerRun(100, func() { r.Moment(ev) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A key that several servers have is one in a schedule, which names no server.
func TestOneLockOnSeveralServers(t *testing.T) {
	r, seen := fresh(), map[Key]bool{}
	for _, upstream := range []string{"a", "b", "c"} {
		p := r.Book.keys.note(Event{Actor: worker("A1"), Op: &lock.Op{Kind: lock.Acquire, Verb: "SET"}, At: Before, Lock: lock.LockID{Upstream: upstream, Key: "lock:counter"}})
		if seen[p.key] {
			t.Errorf("%s again", p.key)
		}
		seen[p.key] = true
	}
}

func TestWhatIsKeptOfOneSectionIsBounded(t *testing.T) {
	r, w := fresh(), worker("A1")
	term := r.grant(w)
	for range 2 * longest {
		r.read(w, term)
		r.write(w, term)
	}
	if n := len(r.Book.keys.paths[term]); n > longest {
		t.Errorf("%d", n)
	}
}
