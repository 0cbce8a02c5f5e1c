package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/report"
)

const reportExample = `probe report HISTORY [flags]

Examples:
  probe report out/history.jsonl
  probe report out/history.jsonl --json > report.json

The verdicts are those of probe verify; beside them stands what was injected,
as far as it is in the history: a rule that never fired is not.`

func reportCommand() *cli.Command {
	return command(&cli.Command{
		Name:      "report",
		Usage:     "judge a history and lay beside it what was injected",
		UsageText: reportExample,
		ArgsUsage: "HISTORY",
		Flags:     append(judgeFlags(), &cli.BoolFlag{Name: "json", Usage: "print report.json"}),
		Action:    writeReport,
	})
}

func writeReport(c *cli.Context) error {
	j, err := judge(c)
	if err != nil {
		return err
	}
	r := j.run()
	r.Injections = j.injections
	r.Rules = rulesOf(j.injections)
	write := report.Text
	if c.Bool("json") {
		write = report.JSON
	}
	if err := write(c.App.Writer, r); err != nil {
		return err
	}
	return exit(r.Outcome())
}

// rulesOf finds the rules that fired, in the order in which each first did.
func rulesOf(injections []history.Injection) []report.RuleUse {
	var uses []report.RuleUse
	for _, in := range injections {
		at := slices.IndexFunc(uses, func(u report.RuleUse) bool { return u.Text == in.Rule && u.Name == in.Name })
		if at < 0 {
			uses, at = append(uses, report.RuleUse{Text: in.Rule, Name: in.Name}), len(uses)
		}
		uses[at].Seen++
		uses[at].Fired++
	}
	return uses
}
