package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/report"
	"github.com/lockfaultd/lockfaultd/schedule"
)

// scheduleFile is what a run decided.
const scheduleFile = "schedule.json"

// addReplay reads the schedule of --replay, whose rules and limits are those of the run.
func (o *options) addReplay(s *setup) error {
	if o.replay == "" {
		return nil
	}
	if err := o.alone(); err != nil {
		return err
	}
	text, err := os.ReadFile(o.replay)
	if err != nil {
		return fmt.Errorf("--replay: %w", err)
	}
	if s.replay, err = schedule.Read(text); err != nil {
		return fmt.Errorf("--replay %s: %w", o.replay, err)
	}
	s.limits = fault.Limits{MaxFrozen: s.replay.MaxFrozen, MaxFreeze: time.Duration(s.replay.MaxFreeze)}
	s.filed = 0
	if s.rules, err = rulesOf(s.replay); err != nil {
		return fmt.Errorf("--replay %s: %w", o.replay, err)
	}
	return nil
}

// alone refuses what the schedule says itself.
func (o *options) alone() error {
	switch {
	case len(o.typed) > 0:
		return fmt.Errorf("--%s: superfluous with --replay, whose schedule has the rules; expected one of them", o.typed[0].flag)
	case o.seed != 0:
		return fmt.Errorf("--seed: superfluous with --replay, which leaves nothing to chance; expected one of them")
	case o.maxFrozen > 1:
		return fmt.Errorf("--max-frozen: superfluous with --replay, whose schedule has it; expected one of them")
	case o.maxFreeze != 0:
		return fmt.Errorf("--max-freeze: superfluous with --replay, whose schedule has it; expected one of them")
	}
	return nil
}

func rulesOf(s *schedule.Schedule) ([]fault.Rule, error) {
	var out []fault.Rule
	for i, r := range s.Rules {
		rule, err := fault.Parse(r.Flag, r.Rule)
		if err != nil {
			return nil, fmt.Errorf("rules[%d]: %w", i+1, err)
		}
		out = append(out, rule)
	}
	return out, nil
}

// writeSchedule writes what the run decided, to be repeated.
func (w *wrapped) writeSchedule(out io.Writer, _ report.Run) error {
	l := w.setup.limits
	s := &schedule.Schedule{Schema: schedule.Schema, MaxFrozen: max(l.MaxFrozen, 1), MaxFreeze: schedule.Duration(l.MaxFreeze), Rules: []schedule.Rule{}, Cut: w.daemon.engine.Unkept(), Steps: w.steps}
	for _, r := range w.daemon.engine.Rules() {
		s.Rules = append(s.Rules, schedule.Rule{Flag: r.Flag(), Rule: r.String()})
	}
	return s.Write(out)
}

// strayed says where a repeated schedule was left, "" if it was not.
func (w *wrapped) strayed() string {
	if d := w.daemon.engine.Diverged(); d != nil {
		return d.String()
	}
	return ""
}

// strayed has the command ended, as nothing more is repeated.
func (d *daemon) strayed(at schedule.Divergence) {
	d.log.Warn("the run is not the one that the schedule is of: it ends here", "diverged", at.String())
	close(d.diverged)
}
