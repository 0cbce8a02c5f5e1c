package fault

import (
	"slices"
	"strings"
)

const signal = "signal:"

// Signal returns the name of the signal that a condition is, or "".
func (c Condition) Signal() string {
	if name, ok := strings.CutPrefix(string(c), signal); ok {
		return name
	}
	return ""
}

// OfSignal returns the condition that a signal of that name is given.
func OfSignal(name string) Condition { return Condition(signal + name) }

// Signals lists the names of the signals that gates of the armed rules wait for, sorted.
func (p *Plan) Signals() []string {
	var on []Rule
	for _, r := range p.rules {
		if r.on {
			on = append(on, r.Rule)
		}
	}
	return Signals(on)
}

// Signals lists the names of the signals that are waited for still.
func (w *Wait) Signals() (names []string) {
	for _, c := range w.all {
		if name := c.Signal(); name != "" && w.open[c] {
			names = append(names, name)
		}
	}
	return names
}

// Signals lists the names of the signals that gates of the rules wait for, sorted.
func Signals(rules []Rule) []string {
	var names []string
	for _, r := range rules {
		for _, c := range r.Until.All() {
			if name := c.Signal(); name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
