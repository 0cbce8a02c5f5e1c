package service

import (
	"slices"
	"time"
)

// A Gap is a stretch in which something could not be seen.
type Gap struct {
	Of string `json:"of"` // what
	// Invariant is the watch whose looks saw nothing; "": it is of all that Of is asked for. Another watch may see the same server.
	Invariant string `json:"invariant,omitempty"`

	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"` // zero: it goes on
	Lost int       `json:"lost,omitempty"`
	Why  string    `json:"why"`
	// MadeUp: what had happened in it was told of afterwards.
	MadeUp bool `json:"made_up,omitempty"`
}

// text says in words what could not be seen.
func (g Gap) text() string {
	if g.Invariant == "" {
		return g.Of + ": " + g.Why
	}
	return g.Invariant + " (" + g.Of + "): " + g.Why
}

// mostGaps is how many are remembered, beside those that go on.
const mostGaps = 1000

// gaps are those so far.
type gaps struct {
	list   []Gap
	missed int // also those that are forgotten
}

// open begins a gap, if there is none already of the same.
func (g *gaps) open(gap Gap) (began bool) {
	if g.now(gap.Of, gap.Invariant) != nil {
		return false
	}
	g.add(gap)
	return true
}

func (g *gaps) add(gap Gap) {
	g.missed++
	if len(g.list) >= mostGaps {
		if over := slices.IndexFunc(g.list, func(old Gap) bool { return !old.To.IsZero() }); over >= 0 {
			g.list = slices.Delete(g.list, over, over+1)
		}
	}
	g.list = append(g.list, gap)
}

// end ends the gap that goes on, if there is one.
func (g *gaps) end(of, invariant string, at time.Time, madeUp bool) *Gap {
	gap := g.now(of, invariant)
	if gap != nil {
		gap.To, gap.MadeUp = at, madeUp
	}
	return gap
}

// now is the gap that goes on.
func (g *gaps) now(of, invariant string) *Gap {
	return g.last(func(gap *Gap) bool { return gap.Of == of && gap.Invariant == invariant })
}

// ofWatch is the gap of a watch's looks that goes on, whatever it is that they do not reach.
func (g *gaps) ofWatch(name string) *Gap {
	return g.last(func(gap *Gap) bool { return gap.Invariant == name })
}

func (g *gaps) last(is func(*Gap) bool) *Gap {
	for i := range slices.Backward(g.list) {
		if g.list[i].To.IsZero() && is(&g.list[i]) {
			return &g.list[i]
		}
	}
	return nil
}

// endStrays ends gaps that go on of what nobody looks at any more.
func (g *gaps) endStrays(at time.Time, watched func(*Gap) bool) {
	for i := range g.list {
		if gap := &g.list[i]; gap.To.IsZero() && !watched(gap) {
			gap.To = at
		}
	}
}
