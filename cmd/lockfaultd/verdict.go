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
	f, err := os.Open(filepath.Join(w.dir, "history.jsonl"))
	if err != nil {
		return r, fmt.Errorf("judge: %w", err)
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		return r, fmt.Errorf("judge: %w", err)
	}
	r.Result = check.Judge(check.From(h))
	r.Injections, r.Started, r.Gaps = h.Injections, h.Header.Started, len(h.Gaps)
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
