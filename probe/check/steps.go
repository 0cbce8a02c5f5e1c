package check

import (
	"maps"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Step is one change of a counter: what was written less what had been read for it, or
// what the statement itself added. A retry from the same read is the same step.
type Step struct {
	Invariant int          // its place among those that are judged by, from 0
	From, To  lock.Instant // it took effect between them; without an answer To is Never
	Low, High int64        // what it added, at least and at most; without an answer one of them is 0
	Bounded   bool         // those are known
	Answered  bool         // it was acknowledged
	Anew      bool         // it set the value, whatever that was before, to Low
}

type stepID struct {
	invariant int
	op        uint64 // the base read, else the write
}

// A notebook has the steps of one counter, as they are summed.
type notebook struct {
	invariant int
	steps     map[stepID]Step
}

// noteSteps has the steps of the counters noted as they are summed.
func (c *carry) noteSteps(into map[stepID]Step) {
	n := 0
	for i, inv := range c.setup.Invariants {
		if inv.Kind == "fence" || inv.Kind == "monotone" {
			continue
		}
		c.tallies[n].notes = &notebook{i, into}
		n++
	}
}

func (b *notebook) add(op uint64, s Step) {
	if b != nil {
		s.Invariant = b.invariant
		b.steps[stepID{b.invariant, op}] = s
	}
}

// clear forgets what was noted: it is summed again.
func (b *notebook) clear() {
	if b != nil {
		maps.DeleteFunc(b.steps, func(id stepID, _ Step) bool { return id.invariant == b.invariant })
	}
}

// stepOf is what an intent added, with the op by which it is known.
func (t *tally) stepOf(i *intent) (op uint64, s Step) {
	w := i.final
	op = w.op.Seq
	if i.read != nil {
		op = i.read.op.Seq
	}
	step, known := t.step(i)
	s = Step{From: w.lo, To: w.hi, Low: step, High: step, Bounded: known, Answered: w.state == accepted}
	switch {
	case !known:
		s.Low, s.High = 0, 0
	case !s.Answered:
		s.Low, s.High = min(0, step), max(0, step)
	}
	if !s.Answered {
		s.To = lock.Never
	}
	return op, s
}

// anewBy is the step of a write that sets the value.
func (t *tally) anewBy(w *write) Step {
	a, ok := w.assigns(t.inv.Column)
	return Step{From: w.lo, To: w.hi, Low: a.Value.Int, High: a.Value.Int, Bounded: ok && a.Value.IsInt, Answered: true, Anew: true}
}
