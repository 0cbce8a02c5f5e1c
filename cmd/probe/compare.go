package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/report"
)

const compareExample = `probe compare A B [--json]

Examples:
  probe compare lf-before lf-after
  probe compare before/report.json after/report.json --json > compare.json

A and B are folders of lockfaultd run --out, or the report.json of each.
Exit statuses: 0 nothing is worse in B, 10 something is, 11 it cannot be told.`

func compareCommand() *cli.Command {
	return command(&cli.Command{
		Name:      "compare",
		Usage:     "set two runs side by side, such as before a fix and after it",
		UsageText: compareExample,
		ArgsUsage: "A B",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print it as JSON"}},
		Action:    compareReports,
	})
}

func compareReports(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) != 2 {
		return usagef("compare: expected two runs, each the folder of --out or its report.json; see probe compare --help")
	}
	both := report.Comparison{NameA: args[0], NameB: args[1]}
	var err error
	if both.A, err = readReport(args[0]); err != nil {
		return usageError{err}
	}
	if both.B, err = readReport(args[1]); err != nil {
		return usageError{err}
	}
	write := report.CompareText
	if c.Bool("json") {
		write = report.CompareJSON
	}
	if err := write(c.App.Writer, both); err != nil {
		return err
	}
	return exit(both.Outcome())
}

// readReport reads a run's report.json, which the path names or has.
func readReport(path string) (report.Saved, error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file = filepath.Join(path, "report.json")
		if _, err := os.Stat(file); err != nil {
			return report.Saved{}, fmt.Errorf("%s: there is no report.json in it%s", path, instead(path))
		}
	}
	if filepath.Ext(file) == ".jsonl" {
		return report.Saved{}, fmt.Errorf("%s: a history, where a report is expected: probe report %s --json makes one", path, path)
	}
	f, err := os.Open(file)
	if err != nil {
		return report.Saved{}, err
	}
	defer f.Close()
	s, err := report.ReadSaved(f)
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// instead says what to name, by what else there is.
func instead(folder string) string {
	has := func(name string) bool { _, err := os.Stat(filepath.Join(folder, name)); return err == nil }
	switch {
	case has("runs.json"):
		return ", but several runs: expected one of them, such as " + filepath.Join(folder, "run-1")
	case has("history.jsonl"):
		return ", but a history: probe report " + folder + " --json makes one"
	}
	return ""
}
