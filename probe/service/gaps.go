package service

import (
	"slices"
	"time"
)

// A Gap is a stretch in which something could not be seen.
type Gap struct {
	Of   string    `json:"of"` // what
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"` // zero: it goes on
	Lost int       `json:"lost,omitempty"`
	Why  string    `json:"why"`
	// MadeUp: what had happened in it was told of afterwards.
	MadeUp bool `json:"made_up,omitempty"`
}

// mostGaps is how many are remembered.
const mostGaps = 1000

// gaps are those so far.
type gaps struct {
	list   []Gap
	missed int // also those that are forgotten
}

// open begins a gap, if there is none of that already.
func (g *gaps) open(of, why string, at time.Time) (began bool) {
	if g.now(of) != nil {
		return false
	}
	g.add(Gap{Of: of, From: at, Why: why})
	return true
}

func (g *gaps) add(gap Gap) {
	g.missed++
	if len(g.list) >= mostGaps {
		g.list = slices.Delete(g.list, 0, 1)
	}
	g.list = append(g.list, gap)
}

// end ends the gap that goes on, if there is one.
func (g *gaps) end(of string, at time.Time, madeUp bool) *Gap {
	gap := g.now(of)
	if gap != nil {
		gap.To, gap.MadeUp = at, madeUp
	}
	return gap
}

// now is the gap that goes on.
func (g *gaps) now(of string) *Gap {
	for i := range slices.Backward(g.list) {
		if g.list[i].Of == of && g.list[i].To.IsZero() {
			return &g.list[i]
		}
	}
	return nil
}
