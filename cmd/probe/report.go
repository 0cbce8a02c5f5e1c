package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/report"
	"github.com/lockfaultd/lockfaultd/report/html"
)

const reportExample = `probe report HISTORY [flags]

Examples:
  probe report out/history.jsonl
  probe report out/history.jsonl --json > report.json
  probe report out/history.jsonl --map
  probe report out/history.jsonl -o report.html

-o takes the form from the file's extension: .html (a page for a browser, with a
picture of each root cause), .md, .json or .xml (JUnit); it may be given again.

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
			&cli.BoolFlag{Name: "html", Usage: "print a page for a browser"},
			&cli.StringSliceFlag{Name: "output", Aliases: []string{"o"}, Usage: "write `FILE` beside what is printed: .html, .md, .json or .xml; repeatable"},
			&cli.BoolFlag{Name: "map", Usage: "print which lock guards what, and for how long, alone"}),
		Action: writeReport,
	})
}

func writeReport(c *cli.Context) error {
	write, err := writerOf(c)
	if err != nil {
		return err
	}
	files, err := outputsOf(c)
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
	for _, f := range files {
		r.Files = append(r.Files, f.path)
	}
	for _, f := range files {
		if err := f.write(r); err != nil {
			return err
		}
	}
	if err := write(c.App.Writer, r); err != nil || c.Bool("map") {
		return err
	}
	return exit(r.Outcome())
}

// writerOf returns what writes the form that is asked for.
func writerOf(c *cli.Context) (func(io.Writer, report.Run) error, error) {
	json, markdown, lockMap := c.Bool("json"), c.Bool("markdown"), c.Bool("map")
	switch {
	case c.Bool("html") && (json || markdown || lockMap):
		return nil, usagef("--html goes with none of --json, --markdown and --map: the page has it all")
	case c.Bool("html"):
		return html.Write, nil
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

// An output is a file to write, with what writes its form.
type output struct {
	path string
	form func(io.Writer, report.Run) error
}

// outputsOf lists the files that -o names. Their extensions say which form.
func outputsOf(c *cli.Context) (out []output, err error) {
	forms := map[string]func(io.Writer, report.Run) error{
		".html": html.Write, ".htm": html.Write, ".md": report.Markdown, ".json": report.JSON, ".xml": report.JUnit, ".txt": report.Text,
	}
	for _, path := range c.StringSlice("output") {
		form := forms[strings.ToLower(filepath.Ext(path))]
		if form == nil {
			return nil, usagef("-o %s: expected a name that ends with .html, .md, .json, .xml or .txt", path)
		}
		out = append(out, output{path, form})
	}
	return out, nil
}

func (o output) write(r report.Run) error {
	f, err := os.Create(o.path)
	if err != nil {
		return usagef("-o: %w", err)
	}
	if err := o.form(f, r); err != nil {
		f.Close()
		return fmt.Errorf("write %s: %w", o.path, err)
	}
	return f.Close()
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
