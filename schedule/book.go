package schedule

import (
	"strconv"

	"github.com/lockfaultd/lockfaultd/lock"
)

// mostSteps bounds what a book keeps of a run that goes on for days.
const mostSteps = 1 << 14

// A Book keeps what a run decides, and has it repeat a schedule where it was given one.
type Book struct {
	keys     keys
	steps    []*Entry
	unkept   int            // decisions of which no step is kept
	due      map[Key]*Entry // of the schedule to repeat, and not yet come
	repeats  bool
	diverged *Divergence
}

// An Entry is a step with what became of it in this run.
type Entry struct {
	Step
	was     Step // to be repeated
	decided bool
}

// A Place is a moment that the book was told of.
type Place struct {
	key     Key
	section int
	since   []string
	op      *lock.Op // nil: of a tick; read until the next call of Moment
	entry   *Entry   // that is due there
}

// context is made only where it is needed, as every op of the run has a place.
func (p Place) context() Context {
	c := Context{Section: p.section, Since: p.since}
	if p.op != nil {
		c.Statement = statement(p.op)
	}
	return c
}

// NewBook returns an empty book; with a schedule, one that has it repeated.
func NewBook(repeat *Schedule) *Book {
	b := &Book{keys: newKeys(), due: map[Key]*Entry{}, repeats: repeat != nil}
	if repeat == nil {
		return b
	}
	for _, s := range repeat.Steps {
		e := &Entry{was: s}
		b.steps = append(b.steps, e)
		b.due[s.Key] = e
	}
	return b
}

// Repeats reports whether the book has a schedule repeated.
func (b *Book) Repeats() bool { return b.repeats }

// Moment takes an event and returns its place, and the rule that a step has act there: its number
// from 1, 0 for none.
func (b *Book) Moment(ev Event) (Place, int) {
	p := b.keys.note(ev)
	b.missed(p)
	return p, b.turn(&p)
}

// turn finds the step that is due at a place.
func (b *Book) turn(p *Place) int {
	e := b.due[p.key]
	if e == nil || b.diverged != nil {
		return 0
	}
	if expected, saw := p.context().same(e.was.Context); expected != "" {
		b.diverge(e, expected, saw)
		return 0
	}
	delete(b.due, p.key)
	p.entry = e
	return e.was.Rule
}

// missed finds steps that cannot come any more, since their actor has been granted the lock anew.
func (b *Book) missed(p Place) {
	if p.key.Event != "acquire" || p.key.At != After || b.diverged != nil || len(b.due) == 0 {
		return
	}
	for _, e := range b.steps {
		k := e.was.Key
		if b.due[k] == e && k.Actor == p.key.Actor && k.Lock == p.key.Lock && e.was.Section < p.section && e.was.Section > 0 {
			b.diverge(e, "it", "none in section "+strconv.Itoa(e.was.Section)+", and then "+p.key.String())
			return
		}
	}
}

// Decided takes what was decided at a place, and returns what Ended wants.
func (b *Book) Decided(p Place, f Fault) *Entry {
	e := p.entry
	switch {
	case e == nil && (len(b.steps) >= mostSteps || p.key.Ordinal == 0): // without an ordinal it is past what is counted
		b.unkept++
		return &Entry{}
	case e == nil:
		e = &Entry{}
		b.steps = append(b.steps, e)
	}
	e.Key, e.Context, e.Fault, e.decided = p.key, p.context(), f, true
	if p.entry != nil && f != e.was.Fault {
		b.diverge(e, e.was.Fault.String(), f.String())
	}
	return e
}

// Passed takes that nothing was decided at a place, and why, which matters where a step was due.
func (b *Book) Passed(p Place, why string) {
	if p.entry == nil {
		return
	}
	if why == "" {
		why = "its rule does not match there"
	}
	b.diverge(p.entry, p.entry.was.Fault.String(), "nothing done: "+why)
}

// Ended takes the outcome of what was decided.
func (b *Book) Ended(e *Entry, outcome string) {
	e.Outcome = outcome
	if b.repeats && outcome != e.was.Outcome {
		b.diverge(e, "it "+e.was.Outcome, "it "+outcome)
	}
}

// Tick returns the ID of the actor at which a step has a rule act at one of its ticks, "" for none.
func (b *Book) Tick(rule, n int, ids []string) string {
	for _, id := range ids {
		if e := b.due[b.tick(rule, n, id)]; e != nil && b.diverged == nil {
			return id
		}
	}
	return ""
}

// Struck returns the place of a tick at an actor.
func (b *Book) Struck(rule, n int, id string) Place {
	p := Place{key: b.tick(rule, n, id)}
	b.turn(&p)
	return p
}

func (b *Book) tick(rule, n int, id string) Key {
	return Key{Actor: b.keys.named[id], Name: "rule " + strconv.Itoa(rule), Event: "tick", At: Clock, Ordinal: n}
}

// Close ends the run: what is due now has not come. It returns the steps of the run, those of a schedule
// that was repeated in its order.
func (b *Book) Close() []Step {
	b.absent()
	steps := []Step{}
	for _, e := range b.steps {
		if e.decided {
			e.Step.Step = len(steps) + 1
			steps = append(steps, e.Step)
		}
	}
	return steps
}

// Unkept returns how many decisions were too many to be kept: a schedule without them is not the run's.
func (b *Book) Unkept() int { return b.unkept }
