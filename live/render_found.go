package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// headline says in one line how it stands: a word, and what is most worth knowing.
func headline(s Snapshot) (word string, st style, rest string) {
	var some []string
	count := func(names []string, one, more string) {
		switch len(names) {
		case 0:
		case 1:
			some = append(some, names[0]+one)
		default:
			some = append(some, fmt.Sprintf("%d %s", len(names), more))
		}
	}
	broken, over, frozen, stalled := telling(s)
	count(broken, " does not hold", "invariants do not hold")
	count(over, " past its lease", "locks are held past their leases")
	count(frozen, " is frozen", "actors are frozen")
	count(stalled, " is stalled", "actors are stalled")
	armed := armedOf(s.Rules)
	switch {
	case s.Control && armed > 0 && armed == len(s.Rules):
		some = append(some, many(armed, "rule")+" armed")
	case s.Control && armed > 0:
		some = append(some, fmt.Sprintf("%d of %d rules armed", armed, len(s.Rules)))
	case s.Control:
		some = append(some, "no rule is armed")
	}
	if len(broken) == 0 && len(s.Invariants) > 0 {
		some = append(some, hold(s.Invariants))
	}
	if len(some) < 3 {
		some = append(some, held(s))
	}
	rest = strings.Join(some[:min(3, len(some))], "; ")
	switch harm := harmOf(s.Verdicts); {
	case harm > 0:
		return many(harm, "finding") + " of harm", red, rest
	case len(broken) > 0:
		return "Broken", red, rest
	case len(over) > 0:
		return "Overrun", red, rest
	case len(frozen) > 0:
		return "Frozen", blue, rest
	case len(stalled) > 0:
		return "Stalled", amber, rest
	case armed > 0:
		return "Armed", amber, rest
	case s.Control:
		return "Passive", strong, rest
	}
	return "No harm", green, rest
}

// telling lists what is not as it should be.
func telling(s Snapshot) (broken, over, frozen, stalled []string) {
	for _, i := range s.Invariants {
		if i.State == Broken {
			broken = append(broken, i.Name)
		}
	}
	for _, l := range s.Locks {
		if l.Overrun && s.Blind.IsZero() {
			over = append(over, cmp.Or(l.Holder, "somebody")+" holds "+l.Name)
		}
	}
	for _, a := range s.Actors {
		switch a.State {
		case Frozen:
			frozen = append(frozen, a.Label)
		case Stalled:
			stalled = append(stalled, a.Label)
		}
	}
	return broken, over, frozen, stalled
}

func armedOf(rules []Rule) (n int) {
	for _, r := range rules {
		if r.Armed {
			n++
		}
	}
	return n
}

func held(s Snapshot) string {
	if !s.Blind.IsZero() {
		return "its locks are not known since " + clock(s.Blind, s.Now)
	}
	n := 0
	for _, l := range s.Locks {
		if l.Held {
			n++
		}
	}
	if n == 0 {
		return "no lock is held"
	}
	return many(n, "lock") + " held"
}

func harmOf(verdicts []Verdict) (n int) {
	for _, v := range verdicts {
		if v.Harm {
			n += max(1, v.Count)
		}
	}
	return n
}

func hold(invariants []Invariant) string {
	open := 0
	for _, i := range invariants {
		if i.State != Holds {
			open++
		}
	}
	switch open {
	case 0:
		return "every invariant holds"
	case 1:
		return "one invariant is not known to hold"
	}
	return fmt.Sprintf("%d invariants are not known to hold", open)
}

func (p *sheet) invariants(invariants []Invariant) {
	if len(invariants) == 0 {
		return
	}
	name := begin(p, "INVARIANTS", "", invariants, func(i Invariant) string { return i.Name })
	for _, i := range invariants {
		state, st := i.State, green
		switch i.State {
		case Broken:
			st = red
		case Unknown:
			state, st = "not known", amber
		}
		p.flow(name+15, piece{usual, join(i.Kind+prefixed(" ", i.Value), i.Text)}, piece{usual, "  "}, piece{strong, pad(plain(i.Name), name)}, piece{usual, "  "}, piece{st, pad(plain(state), 9)}, piece{usual, "  "})
	}
}

// mostVerdicts are shown: the page and /v1/verdicts have all.
const mostVerdicts = 8

func (p *sheet) verdicts(s Snapshot) {
	if len(s.Verdicts) == 0 && s.Control {
		return
	}
	remark := ""
	if n := len(s.Verdicts) - mostVerdicts; n > 0 {
		remark = fmt.Sprintf("%d more", n)
	}
	p.title("VERDICTS", remark)
	if len(s.Verdicts) == 0 {
		p.line(piece{faint, "  none so far"})
	}
	for _, v := range s.Verdicts[:min(mostVerdicts, len(s.Verdicts))] {
		st := usual
		switch {
		case v.Harm:
			st = red
		case v.Class == Hazard, v.Class == Declared:
			st = amber
		case v.Class == Good:
			st = green
		}
		p.flow(12, piece{usual, v.Level + " " + join(classOf(v), prefixed("lock ", v.Lock), prefixed("table ", v.Table), timesSeen(v))}, piece{faint, "  " + clock(v.At, p.now) + "  "}, piece{st, v.Code + " " + v.Name}, piece{usual, "  "})
		if v.Harm && v.Proof != "" {
			p.flow(12, piece{faint, v.Proof}, piece{usual, strings.Repeat(" ", 12)})
		}
	}
}

func classOf(v Verdict) string {
	if v.Harm {
		return Harm
	}
	return v.Class
}

func timesSeen(v Verdict) string {
	if v.Count < 2 {
		return ""
	}
	return fmt.Sprintf("%d times", v.Count)
}

func (p *sheet) sight(s Snapshot) {
	p.title("WHAT IT SEES", "")
	var names []string
	for _, x := range s.Sources {
		names = append(names, x.Name)
	}
	name := p.column(names)
	for _, x := range s.Sources {
		state, st, why := "reached    ", green, x.Text
		if !x.Up {
			state, st = "not reached", red
		}
		if !x.Up && !x.Since.IsZero() {
			why = join("since "+clock(x.Since, p.now), why)
		}
		p.flow(name+17, piece{usual, join(x.Address, why)}, piece{usual, "  "}, piece{strong, pad(plain(x.Name), name)}, piece{usual, "  "}, piece{st, state}, piece{usual, "  "})
	}
	if s.Gaps == 0 {
		if all(s.Sources) {
			p.line(piece{faint, "  nothing was missed since it began"})
		}
		return
	}
	p.line(piece{amber, "  could not see: " + stretches(s.Gaps)})
	for _, g := range s.Unseen[:min(3, len(s.Unseen))] {
		long, lost := "", ""
		if !g.To.IsZero() {
			long = "for " + spell(g.To.Sub(g.At))
		}
		if g.Lost > 0 {
			lost = many(g.Lost, "line") + " lost"
		}
		p.flow(14, piece{faint, join(long, lost, g.Why)}, piece{faint, "    " + clock(g.At, p.now) + "  "})
	}
}

// all reports whether each source is reached.
func all(sources []Source) bool {
	return !slices.ContainsFunc(sources, func(x Source) bool { return !x.Up })
}

// stretches counts what could not be seen.
func stretches(n int) string {
	if n == 1 {
		return "1 stretch"
	}
	return fmt.Sprintf("%d stretches", n)
}
