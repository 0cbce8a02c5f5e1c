package sweep

import (
	"fmt"
	"slices"
	"strings"
)

// An Anchor is a place in a section.
type Anchor struct {
	Name  string // such as "before write"
	Flag  string // the side: before or after
	Step  Step
	place int // of the step in the section
}

// A Trial is one fault at one anchor.
type Trial struct {
	Anchor string `json:"anchor"`
	Fault  string `json:"fault"`
	Flag   string `json:"flag"`             // of lockfaultd run, without dashes
	Rule   string `json:"rule"`             // its value
	Pruned string `json:"pruned,omitempty"` // why it is not run; "" if it is
}

// The faults, in the order of the table.
const (
	Short     = "ttl*0.5"
	NextRead  = "until:lease-expired+next-read"
	NextWrite = "until:lease-expired+next-write"
	DropReply = "drop-reply"
)

// Faults lists them.
func Faults() []string { return []string{Short, NextRead, NextWrite, DropReply} }

// Anchors lists the places of a section at which a fault can be, in its order.
func (s Section) Anchors() []Anchor {
	var out []Anchor
	for i, step := range s.Steps {
		for _, side := range sides(step) {
			out = append(out, Anchor{Name: s.called(side, i), Flag: side, Step: step, place: i})
		}
	}
	return out
}

// sides are those of a step that say something: before a grant there is no section, and what a fence's
// reply waits for is no other than what the next step does.
func sides(s Step) []string {
	switch s.Event {
	case "acquire":
		return []string{"after"}
	case "fence":
		return []string{"before"}
	}
	return []string{"before", "after"}
}

// called names an anchor: what is answered by then is called by its reply, where it ends something.
func (s Section) called(side string, i int) string {
	step := s.Steps[i]
	event, word := step.Event, side
	switch {
	case step.Claim:
		event = "read (claim)"
	case side == "after" && (event == "write" || event == "commit" || event == "release"):
		word = "reply of"
	}
	name := word + " " + event
	if n := s.before(i); n > 0 {
		name += fmt.Sprintf(" %d", n+1)
	}
	return name
}

// before counts the steps before one that would have its name.
func (s Section) before(i int) (n int) {
	for _, other := range s.Steps[:i] {
		if other.Event == s.Steps[i].Event && other.Claim == s.Steps[i].Claim {
			n++
		}
	}
	return n
}

// Cross makes a trial of every fault at every anchor, those that could show nothing with the reason.
func (s Section) Cross() []Trial {
	var out []Trial
	for _, a := range s.Anchors() {
		for _, f := range Faults() {
			t := Trial{Anchor: a.Name, Fault: f, Pruned: s.prune(a, f)}
			t.Flag, t.Rule = s.rule(a, f)
			out = append(out, t)
		}
	}
	return out
}

// rule is the flag of a trial. It acts once: later sections show how the service goes on.
func (s Section) rule(a Anchor, fault string) (flag, rule string) {
	rule = a.Step.Event
	if a.Step.Name != "" {
		rule += "(" + escape(a.Step.Name) + ")"
	}
	rule += fmt.Sprintf("#%d", a.Step.N)
	keys := ",max=1"
	if a.Step.N > 1 { // # alone counts over all sections, of which others may be under way
		keys = ",per=section" + keys
	}
	if fault == DropReply {
		return DropReply, rule + keys
	}
	return "freeze-" + a.Flag, rule + "=" + fault + keys
}

// escape writes a name as a glob that matches it alone.
func escape(name string) string {
	return strings.NewReplacer(`\`, `\\`, `(`, `\(`, `)`, `\)`, `*`, `\*`).Replace(name)
}

// prune says why a fault at an anchor would show nothing, or nothing that another trial does not; "" if it would.
func (s Section) prune(a Anchor, fault string) string {
	over := a.Step.Event == "release" && a.Flag == "after"
	switch {
	case fault == DropReply && a.Flag == "before":
		return "nothing has been answered yet that could be lost"
	case fault == DropReply:
		return ""
	case over:
		return "the lock has been given back: nothing is held that could be outlasted"
	case s.Lease == 0:
		return "the lock has no lease: a pause outlasts nothing"
	case fault == Short:
		return ""
	case s.Actors < 2:
		return "one process alone asks for the lock: nobody comes meanwhile"
	case s.locked(a) && (fault == NextWrite || s.readsWait()):
		return "the row is locked by the held transaction: nobody else gets that far before it ends"
	case fault == NextRead && !s.touches(a):
		return "no statement of the section follows that a read could come between: as with next-write"
	}
	return ""
}

// locked reports whether the transaction that an anchor lies in has locked a row by then.
func (s Section) locked(a Anchor) bool {
	last := a.place
	if a.Flag == "before" {
		last--
	}
	for i := last; i >= 0; i-- {
		switch step := s.Steps[i]; {
		case step.Event == "commit":
			return false
		case step.Locks:
			return true
		}
	}
	return false
}

// readsWait reports whether the section's first read of a row waits for its lock.
func (s Section) readsWait() bool {
	i := slices.IndexFunc(s.Steps, func(t Step) bool { return t.Event == "read" || t.Event == "write" })
	return i < 0 || s.Steps[i].Needs || s.Steps[i].Event == "write"
}

// touches reports whether anything is read or written from an anchor on.
func (s Section) touches(a Anchor) bool {
	from := a.place
	if a.Flag == "after" {
		from++
	}
	return slices.ContainsFunc(s.Steps[from:], func(t Step) bool { return t.Event == "read" || t.Event == "write" || t.Event == "commit" })
}

// Runs lists the trials that are to be run.
func Runs(all []Trial) (out []Trial) {
	for _, t := range all {
		if t.Pruned == "" {
			out = append(out, t)
		}
	}
	return out
}

// Only leaves the trials of an anchor, of a fault, or of one at the other, with = between them.
func Only(all []Trial, want string) (out []Trial) {
	for _, t := range all {
		if want == t.Anchor || want == t.Fault || want == t.Anchor+"="+t.Fault {
			out = append(out, t)
		}
	}
	return out
}

// Names lists the anchors of trials, each once.
func Names(all []Trial) (out []string) {
	for _, t := range all {
		if !slices.Contains(out, t.Anchor) {
			out = append(out, t.Anchor)
		}
	}
	return out
}
