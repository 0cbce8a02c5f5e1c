package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
	"github.com/lockfaultd/lockfaultd/report"
)

// judge reads the history back, as anybody could later, and judges it.
func (w *wrapped) judge(uses []fault.Use) (report.Run, error) {
	r := report.Run{Rules: ruleUses(uses), Baseline: w.baseline()}
	first := true
	source := func(take func(history.Entry) error) error {
		f, err := os.Open(filepath.Join(w.dir, "history.jsonl"))
		if err != nil {
			return err
		}
		defer f.Close()
		keep := first
		first = false
		return history.Scan(f, func(e history.Entry) error {
			switch {
			case keep && e.Header != nil:
				r.Started = e.Header.Started
			case keep && e.Op != nil:
				note(r.Baseline, e.Op)
			case keep && e.Injection != nil:
				r.Injections = append(r.Injections, *e.Injection)
			case keep && e.Turn != nil:
				r.Turns = append(r.Turns, *e.Turn)
			}
			return take(e)
		})
	}
	var err error
	if r.Result, err = check.Draw(source, nil, nil); err != nil {
		return r, fmt.Errorf("judge: %w", err)
	}
	r.Gaps = r.Result.Facts.Gaps
	return r, nil
}

// baseline is what is known of the stretch before the ops are read; nil without one.
func (w *wrapped) baseline() *report.Baseline {
	if w.setup.baseline <= 0 {
		return nil
	}
	b := &report.Baseline{Asked: w.setup.baseline, Ops: map[uint64]bool{}}
	b.From, b.Until = w.daemon.plan.BaselineSpan()
	b.Over = b.From > 0 && w.ended >= b.Until
	return b
}

// note counts an op to the baseline if it was answered there.
func note(b *report.Baseline, op *lock.Op) {
	if b != nil && op.R > 0 && op.R <= b.Until {
		b.Ops[op.Seq] = true
	}
}

func ruleUses(uses []fault.Use) []report.RuleUse {
	out := make([]report.RuleUse, 0, len(uses))
	for _, u := range uses {
		out = append(out, report.RuleUse{
			Text: u.Text, Name: u.Name, Seen: u.Seen, Could: u.Could, Fired: u.Fired,
			Barred: counts(u.Barred), Nearest: counts(u.Nearest),
		})
	}
	return out
}

func counts(in []fault.Count) []report.Count {
	out := make([]report.Count, 0, len(in))
	for _, c := range in {
		out = append(out, report.Count(c))
	}
	return out
}
