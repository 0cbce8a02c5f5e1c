package main

import (
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/report"
)

const reportExample = `probe report HISTORY [flags]

Examples:
  probe report out/history.jsonl
  probe report out/history.jsonl --json > report.json
  probe report out/history.jsonl --map

The verdicts are those of probe verify; beside them stands what was injected,
as far as it is in the history: a rule that never fired is not.`

func reportCommand() *cli.Command {
	return command(&cli.Command{
		Name:      "report",
		Usage:     "judge a history and lay beside it what was injected",
		UsageText: reportExample,
		ArgsUsage: "HISTORY",
		Flags: append(judgeFlags(),
			&cli.BoolFlag{Name: "json", Usage: "print report.json"},
			&cli.BoolFlag{Name: "markdown", Usage: "print a page in Markdown"},
			&cli.BoolFlag{Name: "map", Usage: "print which lock guards what, and for how long, alone"}),
		Action: writeReport,
	})
}

func writeReport(c *cli.Context) error {
	write, err := writerOf(c)
	if err != nil {
		return err
	}
	j, err := judge(c)
	if err != nil {
		return err
	}
	r := j.run()
	r.Injections, r.Turns = j.injections, j.turns
	r.Rules = rulesOf(j.injections)
	if err := write(c.App.Writer, r); err != nil || c.Bool("map") {
		return err
	}
	return exit(r.Outcome())
}

// writerOf returns what writes the form that is asked for.
func writerOf(c *cli.Context) (func(io.Writer, report.Run) error, error) {
	json, markdown, lockMap := c.Bool("json"), c.Bool("markdown"), c.Bool("map")
	switch {
	case json && (markdown || lockMap):
		return nil, usagef("--json goes with neither --markdown nor --map: report.json has the map")
	case json:
		return report.JSON, nil
	case markdown && lockMap:
		return report.MapMarkdown, nil
	case markdown:
		return report.Markdown, nil
	case lockMap:
		return report.Map, nil
	}
	return report.Text, nil
}

// rulesOf finds the rules that fired, in the order in which each first did.
func rulesOf(injections []history.Injection) []report.RuleUse {
	var uses []report.RuleUse
	for _, in := range injections {
		at := slices.IndexFunc(uses, func(u report.RuleUse) bool { return u.Text == in.Rule && u.Name == in.Name })
		if at < 0 {
			uses, at = append(uses, report.RuleUse{Text: in.Rule, Name: in.Name}), len(uses)
		}
		uses[at].Fired++
	}
	return uses
}
