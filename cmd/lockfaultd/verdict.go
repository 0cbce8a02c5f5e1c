package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/probe/check"
	"github.com/lockfaultd/lockfaultd/report"
)

// judge reads the history back, as anybody could later, and judges it.
func (w *wrapped) judge(uses []fault.Use) (report.Run, error) {
	r := report.Run{Rules: ruleUses(uses)}
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
			case keep && e.Injection != nil:
				r.Injections = append(r.Injections, *e.Injection)
			case keep && e.Turn != nil:
				r.Turns = append(r.Turns, *e.Turn)
			}
			return take(e)
		})
	}
	var err error
	if r.Result, err = check.Stream(source, nil, nil); err != nil {
		return r, fmt.Errorf("judge: %w", err)
	}
	r.Gaps = r.Result.Facts.Gaps
	return r, nil
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
