package main

import (
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/report"
)

const explainExample = `lockfaultd explain [CODE]

Examples:
  lockfaultd explain LF104
  lockfaultd explain lost-update
  lockfaultd explain               # every code, one a line`

func explainCommandOf(stdout io.Writer) *cli.Command {
	return &cli.Command{
		Name:         "explain",
		Usage:        "say what a verdict means, what proves it, what it is not, and what to do",
		UsageText:    explainExample,
		OnUsageError: onUsageError,
		Action: func(c *cli.Context) error {
			if err := nothingBefore(c, "explain"); err != nil {
				return err
			}
			return explain(stdout, c.Args().Slice())
		},
	}
}

func explain(stdout io.Writer, words []string) error {
	if len(words) == 0 {
		return report.List(stdout)
	}
	if len(words) > 1 {
		return usagef("explain: unexpected argument %q; it takes one code or name", words[1])
	}
	err := report.Explain(stdout, words[0])
	if unknown := (*report.UnknownCode)(nil); errors.As(err, &unknown) {
		return usagef("explain: %w", err)
	}
	return err
}
