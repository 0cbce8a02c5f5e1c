package service

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// take takes in what the source tells.
func (s *Service) take(m Message) error {
	switch {
	case m.Over: // who ended it need not have been the daemon: a next run tells
		s.over = true
		return nil
	case m.Down != "":
		s.up.Store(false)
		if s.gaps.open(Gap{Of: s.conf.Source.Name(), From: m.At, Why: m.Down}) {
			if s.down = m.At; s.over {
				s.down = m.At.Add(-outage) // no line comes late
			}
			s.conf.Log.Warn("the history cannot be followed", "source", s.conf.Source.Name(), "why", m.Down)
		}
		s.changed = true
		return nil
	case m.Up:
		s.up.Store(true)
		s.reached, s.over = true, false
		return nil
	case m.Idle:
		s.back(m.At, true)
		return nil
	}
	return s.line(m)
}

// line takes in a line of the history.
func (s *Service) line(m Message) error {
	e, err := s.lines.Line(m.Line)
	if err != nil {
		if m.Line, e, err = s.lacking(m, err); err != nil {
			return err
		}
	}
	resumed := m.Pos.Run == s.pos.Run
	s.back(m.At, resumed)
	if !resumed {
		if err := s.begin(m, e); err != nil {
			return err
		}
	} else if m.Pos.N <= s.pos.N || s.ended {
		return nil // we have it
	}
	s.pos, s.taken, s.at = m.Pos, m.At, max(s.at, overBy(e))
	if e.Gap != nil && e.Gap.Lost > 0 {
		s.gaps.add(Gap{Of: s.conf.Source.Name(), From: m.At, To: m.At, Lost: e.Gap.Lost, Why: e.Gap.Why})
		s.conf.Log.Warn("lines of the history were lost", "lost", e.Gap.Lost, "why", e.Gap.Why)
		s.locks.lost()
	}
	s.listen(m.Pos.Run, e)
	s.counts.lines.Add(1)
	s.tail.keep(m, e)
	s.judge.Entry(m.Pos.N, e)
	if len(s.tail.buffer) < flushAt {
		return nil
	}
	return s.flush()
}

// lacking is the line that stands for one that cannot be read. What that told of had happened when it was heard.
func (s *Service) lacking(m Message, why error) ([]byte, history.Entry, error) {
	gap := &history.Gap{Lost: 1, Why: fmt.Sprintf("line %s cannot be read: %v", m.Pos, why)}
	if m.Pos.Run == s.pos.Run {
		gap.At = s.at
		if !s.taken.IsZero() {
			gap.At += lock.Instant(max(0, m.At.Sub(s.taken)))
		}
	}
	line, err := json.Marshal(struct {
		Type string `json:"type"`
		*history.Gap
	}{"gap", gap})
	if err != nil {
		return nil, history.Entry{}, fmt.Errorf("write a gap: %w", err)
	}
	return line, history.Entry{Gap: gap}, nil
}

// back ends the gap of a source that was not seen.
func (s *Service) back(at time.Time, resumed bool) {
	if !s.reached {
		return
	}
	s.reached, s.down = false, time.Time{}
	if gap := s.gaps.end(s.conf.Source.Name(), "", at, resumed); gap != nil {
		s.conf.Log.Info("the history is followed again", "source", s.conf.Source.Name(), "after", gap.To.Sub(gap.From).Round(time.Millisecond), "made_up", resumed)
	}
}

// begin judges the rest of the last run, and begins the message's.
func (s *Service) begin(m Message, e history.Entry) error {
	if err := s.end(); err != nil {
		return err
	}
	s.conf.Log.Info("a run begins", "run", m.Pos.Run)
	s.header = history.Header{}
	if e.Header != nil {
		s.header = *e.Header
	}
	s.judge = check.NewLive(s.header, s.conf.Declared, s.conf.Invariants)
	s.locks, s.at, s.ended, s.changed = newLocks(), 0, false, true
	if len(s.tail.lines) == 0 {
		return nil
	}
	s.tail = tail{} // of a run that was judged to its end
	return s.store.Trim(nil)
}

// end judges the run to its end. Its lines are needed no more then.
func (s *Service) end() error {
	if s.judge == nil {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	found := s.judge.End()
	s.judge, s.ended, s.changed = nil, true, true
	if err := s.settled(found); err != nil {
		return err
	}
	if err := s.save(true); err != nil {
		return err
	}
	s.tail = tail{}
	return s.store.Trim(nil)
}

// keep puts a line behind the tail.
func (t *tail) keep(m Message, e history.Entry) {
	b := m.wire()
	t.note(m.Pos.N, len(b), e)
	t.buffer = append(t.buffer, b...)
}

func (s *Service) flush() error {
	if len(s.tail.buffer) == 0 {
		return nil
	}
	err := s.store.Append(s.tail.buffer)
	s.tail.buffer = s.tail.buffer[:0]
	return err
}

// listen tells of an entry to whoever wants to know.
func (s *Service) listen(run string, e history.Entry) {
	if e.Header != nil {
		s.header = *e.Header
		s.locks.started = e.Header.Started
	}
	s.locks.entry(e)
	for _, tell := range s.conf.Listen {
		tell(run, e)
	}
}

// settle judges what is over by now. HTTP is answered meanwhile.
func (s *Service) settle() error {
	if err := s.locked(s.flush); err != nil {
		return err
	}
	if s.judge == nil {
		return s.locked(func() error { return s.save(false) })
	}
	began := time.Now()
	found := s.judge.Settle(s.clock())
	s.took = time.Since(began)
	return s.locked(func() error { return s.settled(found) })
}

// outage is for how long a source that is not seen holds the time of its daemon still: lines may come late then.
const outage = 2 * time.Minute

// clock is what the daemon's clock shows at least.
func (s *Service) clock() lock.Instant {
	from := s.taken
	if !s.down.IsZero() {
		from = s.down.Add(outage)
	}
	if s.queued.Load() > 0 || s.taken.IsZero() || from.After(time.Now()) {
		return s.at
	}
	return s.at.Add(time.Since(from))
}

func (s *Service) settled(found check.Settlement) error {
	s.facts = s.facts.Plus(found.Numbers)
	if len(found.Verdicts) > 0 {
		r := Record{}
		for _, v := range found.Verdicts {
			r.Verdicts = append(r.Verdicts, ofJudge(s.pos.Run, v))
		}
		if err := s.tell(r); err != nil {
			return err
		}
	}
	s.changed = true
	if s.judge == nil {
		return nil
	}
	if err := s.trim(); err != nil {
		return err
	}
	return s.save(false)
}

// tell numbers verdicts, puts them on the disk with the state that is true from then on, and only then counts them.
func (s *Service) tell(r Record) error {
	r.At = time.Now()
	for i := range r.Verdicts {
		r.Verdicts[i].N, r.Verdicts[i].At = s.told.last+uint64(i)+1, r.At
	}
	state, err := s.state()
	if err != nil {
		return err
	}
	if err := s.store.Tell(r, state); err != nil {
		return err
	}
	s.changed, s.saved = false, time.Now()
	s.replay(r)
	for _, v := range r.Verdicts {
		s.conf.Log.Log(context.Background(), urgency(v), "verdict", "code", v.Code, "name", v.Name, "level", v.Level, "class", v.Class, "lock", v.Lock, "table", v.Table,
			"invariant", v.Invariant, "count", v.Count, "proof", v.Proof)
	}
	return s.turn()
}

// urgency is how loudly a verdict is logged.
func urgency(v Verdict) slog.Level {
	switch {
	case v.Harm && v.Level == check.Proven:
		return slog.LevelError
	case v.Class == check.Good || v.Class == check.Inconclusive:
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// replay takes in a record that is on the disk.
func (s *Service) replay(r Record) {
	if r.Past != nil {
		s.told.restore(*r.Past)
		clear(s.episodes)
		s.begun(r.Past.Broken)
	}
	s.told.add(r.Verdicts)
	s.begun(r.Broken)
	for _, key := range r.Whole {
		watch, thing := splitKey(key)
		delete(s.episodes[watch], thing)
	}
}

// begun takes in episodes that have begun.
func (s *Service) begun(broken map[string]string) {
	for key, id := range broken {
		watch, thing := splitKey(key)
		if s.episodes[watch] == nil {
			s.episodes[watch] = map[string]string{}
		}
		s.episodes[watch][thing] = id
	}
}

// A keeper is a watch that needs lines of the history again after a restart: those of what was not over before an instant.
type keeper interface{ Keeps() lock.Instant }

// trim drops lines that nobody needs any more. The state that needs no more than what is left is on the disk before.
func (s *Service) trim() error {
	needed := s.judge.Keeps()
	late := lock.Never
	for _, w := range s.conf.Watches {
		if k, ok := w.(keeper); ok {
			late = min(late, k.Keeps())
		}
	}
	if !s.tail.wasted(len(needed), s.trimFrom) {
		return nil
	}
	if err := s.save(true); err != nil {
		return err
	}
	return s.store.Trim(s.tail.choose(ranges(needed), s.judge.State().Next, late))
}

// saveEvery is how often the state is written while it changes.
const saveEvery = time.Second

func (s *Service) save(now bool) error {
	if !s.changed || !now && time.Since(s.saved) < saveEvery {
		return nil
	}
	state, err := s.state()
	if err != nil {
		return err
	}
	s.changed, s.saved = false, time.Now()
	return s.store.Save(state)
}

// state is how far everything has come. The lines that it rests on are in the file then.
func (s *Service) state() (State, error) {
	if err := s.flush(); err != nil {
		return State{}, err
	}
	state := State{Run: s.pos.Run, N: s.pos.N, Ended: s.ended, Facts: s.facts, Watches: map[string]json.RawMessage{},
		Gaps: s.gaps.list, Missed: s.gaps.missed, Saved: time.Now()}
	if s.judge != nil {
		state.Live, state.Keeps = s.judge.State(), ranges(s.judge.Keeps())
	}
	for _, w := range s.conf.Watches {
		b, err := json.Marshal(w.Memory())
		if err != nil {
			return state, fmt.Errorf("save invariant %s: %w", w.About().Name, err)
		}
		state.Watches[w.About().Name] = b
	}
	return state, nil
}

func recall(b json.RawMessage, into any) error {
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("read what was kept: %w", err)
	}
	return nil
}
