package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lockfaultd/lockfaultd/live"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// Routes are what is served beside the page and the metrics, by path; all of them are asked by GET.
func (s *Service) Routes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"/v1/report":   func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.Report()) },
		"/v1/locks":    func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.heldNow()) },
		"/v1/verdicts": s.verdicts,
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever has gone cannot be told
}

type heldNow struct {
	Locks []Held    `json:"locks"`
	Blind time.Time `json:"blind_since,omitzero"` // since when it cannot be told
}

func (s *Service) heldNow() heldNow {
	s.mu.Lock()
	defer s.mu.Unlock()
	return heldNow{s.held(time.Now()), s.blind()}
}

// verdictsSince is the answer to /v1/verdicts.
type verdictsSince struct {
	Verdicts []Verdict `json:"verdicts"`
	Last     uint64    `json:"last"`              // the number of the last one that there is
	Missing  bool      `json:"missing,omitempty"` // some behind since are not remembered any more
}

func (s *Service) verdicts(w http.ResponseWriter, r *http.Request) {
	var since uint64
	if text := r.URL.Query().Get("since"); text != "" {
		var err error
		if since, err = strconv.ParseUint(text, 10, 64); err != nil {
			reply(w, http.StatusBadRequest, map[string]string{"error": fmt.Sprintf("since=%.40q: expected the number n of a verdict", text)})
			return
		}
	}
	s.mu.Lock()
	list, missing := s.told.since(since)
	out := verdictsSince{Verdicts: append([]Verdict{}, list...), Last: s.told.last, Missing: missing}
	s.mu.Unlock()
	reply(w, http.StatusOK, out)
}

// A Report is what is known by now.
type Report struct {
	Now        time.Time         `json:"now"`
	Since      time.Time         `json:"since"` // when this process began
	Version    string            `json:"version,omitempty"`
	Source     *SourceReport     `json:"source,omitempty"`
	Invariants []InvariantReport `json:"invariants"`
	Facts      check.Numbers     `json:"facts"` // since the state folder was begun
	Groups     []Group           `json:"groups"`
	Verdicts   int               `json:"verdicts"`
	Gaps       []Gap             `json:"gaps"`
	Missed     int               `json:"missed"` // gaps, also those that are not listed any more
	Unseen     string            `json:"cannot_see"`
}

// A SourceReport says how far the history has been followed.
type SourceReport struct {
	Name      string        `json:"name"`
	Up        bool          `json:"up"`
	Run       string        `json:"run,omitempty"`
	Line      uint64        `json:"line"`
	Lines     uint64        `json:"lines"` // taken in by this process
	Behind    time.Duration `json:"behind_ns"`
	Kept      int64         `json:"kept_bytes"`
	JudgeTook time.Duration `json:"judge_took_ns"` // the last time
}

// An InvariantReport is how an invariant stood at its last look.
type InvariantReport struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Must     string    `json:"must"` // what must hold
	State    string    `json:"state"`
	Value    string    `json:"value,omitempty"`
	Text     string    `json:"text,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Figures  *Figures  `json:"figures,omitempty"`
	Polls    uint64    `json:"polls"`
	Failed   uint64    `json:"failed"`
	Breaches uint64    `json:"episodes"` // told by this process
	Open     []string  `json:"open,omitempty"`
}

// cannotSee is the sentence that every report has.
const cannotSee = "It sees what goes through the daemon that it follows and what its own queries ask for, at the moments at which they ask: " +
	"not what happens between two looks and is undone before the second, nor other stores, mail or calls of other services."

// Report puts together what is known by now.
func (s *Service) Report() Report {
	polls, failures, breaches, _ := s.counts.copy()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Now: time.Now(), Since: s.since, Version: s.conf.Version, Facts: s.facts, Groups: s.told.byGroup(), Verdicts: int(s.told.last),
		Gaps: append([]Gap{}, s.gaps.list...), Missed: s.gaps.missed, Unseen: cannotSee, Invariants: []InvariantReport{}}
	slices.Reverse(r.Gaps)
	if s.conf.Source != nil {
		r.Source = &SourceReport{Name: s.conf.Source.Name(), Up: s.up.Load(), Run: s.pos.Run, Line: s.pos.N, Lines: s.counts.lines.Load(),
			Behind: s.behind(), Kept: s.tail.size, JudgeTook: s.took}
	}
	for _, w := range s.conf.Watches {
		about := w.About()
		o, ok := s.opinions[about.Name]
		i := InvariantReport{Name: about.Name, Kind: about.Kind, Must: about.Text, State: Unknown, Text: "not looked at yet", Polls: polls[about.Name],
			Failed: failures[about.Name], Breaches: breaches[about.Name]}
		if ok {
			i.State, i.Value, i.Text, i.At, i.Figures = o.State, o.Value, o.Text, o.at, o.Figures
		}
		for thing := range s.episodes[about.Name] {
			i.Open = append(i.Open, thing)
		}
		slices.Sort(i.Open)
		r.Invariants = append(r.Invariants, i)
	}
	return r
}

// behind is how long ago what was taken in last had happened, while more waits.
func (s *Service) behind() time.Duration {
	if s.queued.Load() == 0 || s.locks.started.IsZero() {
		return 0
	}
	return max(0, time.Since(s.locks.started.Add(time.Duration(s.locks.now))))
}

// Ready returns why there is nothing to be asked yet.
func (s *Service) Ready() error {
	polls, _, _, _ := s.counts.copy()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conf.Source != nil && s.pos.Run == "" {
		return fmt.Errorf("no line of %s has been read", s.conf.Source.Name())
	}
	for _, w := range s.conf.Watches {
		if polls[w.About().Name] == 0 {
			return fmt.Errorf("%s has not been looked at", w.About().Name)
		}
	}
	return nil
}

// State is what the page shows.
func (s *Service) State() any {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := live.Snapshot{Now: now, Blind: s.blind(), Name: "probe", Version: s.conf.Version, Since: s.since, Sources: s.sources(), Gaps: s.gaps.missed}
	for _, h := range s.held(now) {
		snap.Locks = append(snap.Locks, live.Lock{Name: h.Lock, Held: true, Holder: h.Holder, Since: h.Since, TTL: float64(h.TTL) / 1e6,
			EndsFrom: h.EndsFrom, EndsTo: h.EndsTo, Overrun: h.Overrun, Waiters: h.Waiters, Fence: h.Fence})
	}
	for _, v := range slices.Backward(s.told.list) {
		if len(snap.Verdicts) == 100 {
			break
		}
		snap.Verdicts = append(snap.Verdicts, live.Verdict{ID: v.ID, At: v.At, Code: v.Code, Name: v.Name, Level: string(v.Level), Class: string(v.Class),
			Harm: v.Harm, Lock: v.Lock, Table: v.Table, Count: v.Count, Proof: v.Proof})
		if now.Sub(v.At) < time.Minute {
			snap.Marks = append(snap.Marks, live.Mark{At: v.At, Kind: live.MarkVerdict, Lock: v.Lock, Text: v.Code + " " + v.Name})
		}
	}
	for _, g := range slices.Backward(s.gaps.list) {
		if len(snap.Unseen) < 20 {
			snap.Unseen = append(snap.Unseen, live.Gap{At: g.From, To: g.To, Lost: g.Lost, Why: g.text()})
		}
		if g.To.IsZero() || now.Sub(g.To) < time.Minute {
			snap.Marks = append(snap.Marks, live.Mark{At: g.From, To: g.To, Open: g.To.IsZero(), Kind: live.MarkGap, Text: g.text()})
		}
	}
	slices.SortFunc(snap.Marks, func(a, b live.Mark) int { return a.At.Compare(b.At) })
	for _, w := range s.conf.Watches {
		i := live.Invariant{Name: w.About().Name, Kind: w.About().Kind, State: live.Unknown, Text: "not looked at yet"}
		if o, ok := s.opinions[i.Name]; ok {
			i.State, i.Value, i.Text, i.At = o.State, o.Value, o.Text, o.at
		}
		snap.Invariants = append(snap.Invariants, i)
	}
	return snap
}

// blind is since when the source is not seen; zero: it is, or there is none.
func (s *Service) blind() time.Time {
	if src := s.conf.Source; src != nil {
		if gap := s.gaps.now(src.Name(), ""); gap != nil {
			return gap.From
		}
	}
	return time.Time{}
}

// held lists who holds what; nobody, as far as can be told, while the source is not seen: whether a lock was given back then
// is not known.
func (s *Service) held(now time.Time) []Held {
	if !s.blind().IsZero() {
		return []Held{}
	}
	return s.locks.list(now)
}

func (s *Service) sources() (list []live.Source) {
	if src := s.conf.Source; src != nil {
		l := live.Source{Name: src.Name(), Up: s.up.Load()}
		if gap := s.gaps.now(l.Name, ""); gap != nil {
			l.Up, l.Since, l.Text = false, gap.From, gap.Why
		}
		list = append(list, l)
	}
	for _, w := range s.conf.Watches {
		for _, of := range w.About().Of {
			if !slices.ContainsFunc(list, func(l live.Source) bool { return l.Name == of }) {
				list = append(list, s.server(of))
			}
		}
	}
	return list
}

// server is a server that invariants are asked of: it is reached if the last look of one of them has reached it.
func (s *Service) server(of string) live.Source {
	l := live.Source{Name: of}
	for _, w := range s.conf.Watches {
		about := w.About()
		_, looked := s.opinions[about.Name]
		if !looked || !slices.Contains(about.Of, of) {
			continue
		}
		if gap := s.gaps.ofWatch(about.Name); gap == nil {
			l.Up, l.Since, l.Text = true, time.Time{}, ""
			break
		} else if gap.Of == of {
			l.Since, l.Text = gap.From, gap.Why
		} else if l.Text == "" {
			l.Text = "not known: " + gap.Of + " was not reached"
		}
	}
	return l
}
