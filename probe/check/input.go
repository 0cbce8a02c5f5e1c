package check

import (
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// From returns the input that a history is: its ops and what else was
// observed, and none of its injections.
func From(h *history.History) Input {
	in := Input{Ops: h.Ops, Declarations: h.Header.Declarations}
	for _, e := range h.Ends {
		in.Ends = append(in.Ends, End(e))
	}
	for _, g := range h.Gaps {
		in.Gaps = append(in.Gaps, Gap(g))
	}
	for _, k := range h.Clocks {
		in.Clocks = append(in.Clocks, clockOf(h.Header.Started, k))
	}
	for _, t := range h.Tallies {
		in.Tallies = append(in.Tallies, Tally(t))
	}
	for _, b := range h.Bypasses {
		in.Bypasses = append(in.Bypasses, bypassOf(b))
	}
	in.Invariants = invariants(h.Header.Invariants)
	return in
}

// setup is what is known before the ops.
func (in Input) setup() Setup {
	return Setup{in.Declarations, in.Invariants, in.Clocks, in.Tallies, in.Bypasses}
}

// clockOf returns a look at an upstream's clock, by the instants of a record that
// began at started.
func clockOf(started time.Time, k history.Clock) Clock {
	return Clock{Upstream: k.Upstream, From: k.At.Add(-k.Trip / 2), To: k.At.Add(k.Trip / 2),
		Offset: k.Wall.Sub(started) - time.Duration(k.At), Slept: k.Slept, Run: k.Run, Data: k.Data}
}

func bypassOf(b history.Bypass) Bypass {
	return Bypass{b.Upstream, b.At, b.DB, b.Key, b.Verb, b.Address}
}

func invariants(list []history.Invariant) []Invariant {
	var out []Invariant
	for _, i := range list {
		out = append(out, Invariant(i))
	}
	return out
}

// A Source goes through the entries of a history, from the first, each time that
// it is called, and returns take's error or its own.
type Source func(take func(history.Entry) error) error

// Stream judges a history that it goes through twice (three times where what tells
// rows apart is found out late), and of which it keeps what it must. Its answer is
// the one that [Judge] gives. More was declared than the history's header says;
// amend, if it is not nil, is given the history's invariants and returns those to
// judge by, before the second time.
//
// A history in which requests and replies have no numbers, as no daemon writes one,
// is kept whole.
func Stream(src Source, more []lock.Declaration, amend func([]Invariant) []Invariant) (Result, error) {
	return stream{src: src, more: more, amend: amend}.judge()
}

func (s stream) judge() (Result, error) {
	if err := s.survey(); err != nil {
		return Result{}, err
	}
	if s.known.unplaced {
		return s.whole()
	}
	j := NewJudging(s.setup, s.known)
	j.pictures = s.pictures
	err := s.src(func(e history.Entry) error {
		switch {
		case e.Op != nil:
			j.Op(e.Op)
		case e.End != nil:
			j.End(End(*e.End))
		case e.Gap != nil:
			j.Gap(Gap(*e.Gap))
		}
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	return j.Result(), nil
}

type stream struct {
	src   Source
	more  []lock.Declaration
	amend func([]Invariant) []Invariant
	known *Survey
	setup Setup

	pictures *gallery
}

// survey goes through the history until it knows what a judging needs.
func (s *stream) survey() error {
	var named []history.Invariant
	var started time.Time
	for first := true; first || s.known.Again(); first = false {
		err := s.src(func(e history.Entry) error {
			switch {
			case e.Header != nil && first:
				s.setup.Declarations = append(e.Header.Declarations, s.more...)
				s.known, named, started = NewSurvey(s.setup.Declarations), e.Header.Invariants, e.Header.Started
			case e.Invariants != nil && first:
				named = *e.Invariants
			case e.Op != nil:
				s.known.Op(e.Op)
			case first:
				s.beside(e, started)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.setup.Invariants = invariants(named)
	if s.amend != nil {
		s.setup.Invariants = s.amend(s.setup.Invariants)
	}
	return nil
}

// beside takes in what the history tells beside its ops.
func (s *stream) beside(e history.Entry, started time.Time) {
	switch {
	case e.Clock != nil:
		s.setup.Clocks = append(s.setup.Clocks, clockOf(started, *e.Clock))
	case e.Tally != nil:
		s.setup.Tallies = append(s.setup.Tallies, Tally(*e.Tally))
	case e.Bypass != nil:
		s.setup.Bypasses = append(s.setup.Bypasses, bypassOf(*e.Bypass))
	}
}

// whole judges a history that has to be kept.
func (s *stream) whole() (Result, error) {
	in := Input{Declarations: s.setup.Declarations, Invariants: s.setup.Invariants,
		Clocks: s.setup.Clocks, Tallies: s.setup.Tallies, Bypasses: s.setup.Bypasses}
	err := s.src(func(e history.Entry) error {
		switch {
		case e.Op != nil:
			in.Ops = append(in.Ops, e.Op)
		case e.End != nil:
			in.Ends = append(in.Ends, End(*e.End))
		case e.Gap != nil:
			in.Gaps = append(in.Gaps, Gap(*e.Gap))
		}
		return nil
	})
	return judgeBy(in, func(j *Judging) { j.window, j.kept, j.pictures = windowOps, mostKept, s.pictures }).result(), err
}
