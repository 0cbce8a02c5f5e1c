package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Divergence is the first thing of a run that was not as in the schedule.
type Divergence struct {
	Step     int
	Key      Key
	Expected string
	Saw      string
}

// String says it in one line.
func (d Divergence) String() string {
	return fmt.Sprintf("step %d (%s): expected %s; saw %s", d.Step, d.Key, d.Expected, d.Saw)
}

// Diverged returns the first divergence, nil as long as there is none.
func (b *Book) Diverged() *Divergence { return b.diverged }

func (b *Book) diverge(e *Entry, expected, saw string) {
	if b.diverged == nil {
		b.diverged = &Divergence{e.was.Step, e.was.Key, expected, saw}
	}
}

// absent finds a step that has not come by the end.
func (b *Book) absent() {
	for _, e := range b.steps {
		if b.repeats && b.due[e.was.Key] == e {
			b.diverge(e, e.was.Fault.String(), "none by the end of the run; "+b.keys.instead(e.was.Key))
			return
		}
	}
}

// instead says what came that is most like what did not.
func (k *keys) instead(want Key) string {
	if want.At == Clock {
		return "no such tick, or no such process"
	}
	own, others, locks := map[string]int{}, map[string]bool{}, map[string]bool{}
	for c, n := range k.counts {
		who := k.actor(known(c.actor), c.lock)
		switch {
		case c.lock != want.Lock || c.name != want.Name && want.Lock == "":
			locks[cmp.Or(c.lock, c.name)] = true
		case who == want.Actor:
			own[c.at+" "+c.event] = n
		default:
			others[who] = true
		}
	}
	return said(want, own, others, locks)
}

// said puts it in words.
func said(want Key, own map[string]int, others, locks map[string]bool) string {
	of := cmp.Or(want.Lock, want.Name)
	switch {
	case len(own) > 0:
		var parts []string
		for _, what := range sorted(own) {
			parts = append(parts, fmt.Sprintf("%s %d", what, own[what]))
		}
		return fmt.Sprintf("of %s at %s: %s", want.Actor, of, few(parts))
	case len(others) > 0:
		return fmt.Sprintf("at %s only %s", of, few(sorted(others)))
	case len(locks) > 0:
		return fmt.Sprintf("nothing at %s, only at %s", of, few(sorted(locks)))
	}
	return "nothing at all"
}

func sorted[V any](m map[string]V) []string {
	var out []string
	for s := range m {
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func few(list []string) string {
	const most = 8
	if len(list) > most {
		return strings.Join(list[:most], ", ") + " ..."
	}
	return strings.Join(list, ", ")
}

// known is an actor that has a name already.
type known string

func (k known) ID() string               { return string(k) }
func (k known) Called() (string, string) { return "", "" }
