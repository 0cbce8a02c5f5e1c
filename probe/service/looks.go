package service

import (
	"maps"
	"slices"
	"time"
)

// looked takes in what a watch saw.
func (s *Service) looked(l look) error {
	w := s.conf.Watches[l.watch]
	about := w.About()
	s.counts.looked(about.Name, l.err != nil)
	if l.err != nil {
		return s.unseen(about, l)
	}
	if gap := s.gaps.ofWatch(about.Name); gap != nil {
		gap.To, s.changed = l.at, true
		s.conf.Log.Info("an invariant can be read again", "invariant", about.Name, "what", gap.Of, "after", gap.To.Sub(gap.From).Round(time.Millisecond))
	}
	if len(s.pending) >= mostPending {
		s.dropOldest(l.watch)
	}
	s.pending = append(s.pending, l)
	return s.lookAtPending()
}

// dropOldest makes room among the looks that wait: the watch's first, or else that of another one, is never judged. That is a
// gap up to the next one that is.
func (s *Service) dropOldest(watch int) {
	n := max(0, slices.IndexFunc(s.pending, func(p look) bool { return p.watch == watch }))
	name := s.conf.Watches[s.pending[n].watch].About().Name
	if s.gaps.open(Gap{Of: name, From: s.pending[n].at, Why: "too many looks wait to be judged: the oldest were dropped"}) {
		s.conf.Log.Warn("too many looks wait to be judged: the oldest are dropped", "invariant", name)
	}
	s.pending, s.changed = slices.Delete(s.pending, n, n+1), true
}

// mostPending is how many looks may wait to be judged.
const mostPending = 256

// unseen notes that a watch saw nothing.
func (s *Service) unseen(about About, l look) error {
	of := about.failedAt(l.err)
	s.changed = true
	if gap := s.gaps.ofWatch(about.Name); gap != nil && gap.Of != of {
		gap.To = l.at
	}
	s.gaps.end(about.Name, "", l.at, false) // why is known now
	if s.gaps.open(Gap{Of: of, Invariant: about.Name, From: l.at, Why: l.err.Error()}) {
		s.conf.Log.Warn("an invariant cannot be read", "invariant", about.Name, "what", of, "why", l.err)
	}
	s.opinions[about.Name] = opinion{Opinion{State: Unknown, Text: l.err.Error()}, l.at}
	return nil
}

// lookAtPending judges the looks that can be by now, in order.
func (s *Service) lookAtPending() error {
	waits := map[int]bool{}
	var rest []look
	for _, l := range s.pending {
		if waits[l.watch] {
			rest = append(rest, l)
			continue
		}
		o := l.judge()
		if o.Wait {
			waits[l.watch] = true
			rest = append(rest, l)
			continue
		}
		if err := s.opine(s.conf.Watches[l.watch].About(), o, l.at); err != nil {
			return err
		}
	}
	s.pending = rest
	return nil
}

// opine tells of episodes that begin, and notes those that are over.
func (s *Service) opine(about About, o Opinion, at time.Time) error {
	s.changed = true
	s.opinions[about.Name] = opinion{o, at}
	s.counts.opinion(about.Name, o)
	s.gaps.end(about.Name, "", at, false)
	if o.Limit != "" {
		s.gaps.add(Gap{Of: about.Name, From: o.From, To: at, Why: o.Limit})
	}
	r := Record{Broken: map[string]string{}}
	open := s.episodes[about.Name]
	for _, b := range o.Breaches {
		key := joinKey(about.Name, b.Thing)
		if _, known := open[b.Thing]; known || r.Broken[key] != "" {
			continue
		}
		v := s.ofWatch(about, b, at)
		r.Verdicts = append(r.Verdicts, v)
		r.Broken[key] = v.ID
	}
	if o.State != Unknown {
		for _, thing := range slices.Sorted(maps.Keys(open)) {
			if !slices.ContainsFunc(o.Breaches, func(b Breach) bool { return b.Thing == thing }) && !slices.Contains(o.Stays, thing) {
				r.Whole = append(r.Whole, joinKey(about.Name, thing))
				s.conf.Log.Info("it holds again", "invariant", about.Name, "thing", thing)
			}
		}
	}
	if len(r.Verdicts)+len(r.Whole) > 0 {
		return s.tell(r)
	}
	return nil
}

func (s *Service) ofWatch(about About, b Breach, at time.Time) Verdict {
	s.counts.broke(about.Name)
	return Verdict{
		ID: identity(about.Name, b.Thing, b.Code, at.UnixNano()), Run: s.pos.Run, Invariant: about.Name, Code: b.Code, Name: b.Name, Class: b.Class,
		Level: b.Level, Harm: b.Harm, Lock: b.Lock, Table: b.Table, Count: max(1, b.Count), Proof: b.Proof,
	}
}
