package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/probe/check"
	"github.com/lockfaultd/lockfaultd/report"
)

const verifyExample = `probe verify HISTORY [flags]

Examples:
  probe verify out/history.jsonl
  probe verify out/history.jsonl --database "$DATABASE_URL" \
      --counter 'SELECT value FROM counter WHERE id = 1' --lock 'lock:counter=counter.fence'

The judge sees ops alone, never what was injected, nor which rules were armed:
a run that was not exercised (LF401, exit 11) is a PASS here, which says so.
Where the invariants stood at the start is in the history, and of lockfaultd run
at the end too. With --database the sums of others end with their present values,
so ask before anybody writes again. While a lockfaultd still writes the history no
sum is ended: have probe serve watch it. Exit status: 10 with PROVEN harm, 11 when
the evidence does not suffice, else 0.`

func verifyCommand() *cli.Command {
	return command(&cli.Command{
		Name:      "verify",
		Usage:     "judge a history, from its ops alone",
		UsageText: verifyExample,
		ArgsUsage: "HISTORY",
		Flags:     judgeFlags(),
		Action:    verify,
	})
}

func verify(c *cli.Context) error {
	j, err := judge(c)
	if err != nil {
		return err
	}
	r := j.run()
	if err := writeVerdicts(c.App.Writer, r); err != nil {
		return err
	}
	return exit(r.Outcome())
}

// exit makes the outcome our exit status.
func exit(o report.Outcome) error {
	if o.Exit == 0 {
		return nil
	}
	return statusError(o.Exit)
}

// writeVerdicts prints everything that the judge found, proof by proof.
func writeVerdicts(w io.Writer, run report.Run) error {
	p, r, o := printer{w: w}, run.Result, run.Outcome()
	p.line("%s (exit %d): %s", o.Word, o.Exit, o.Why)
	f := r.Facts
	p.line("%d ops, %d grants, %d refusals, %d sections, %d leases ended or locks lost while held, %d overlaps",
		f.Ops, f.Grants, f.Refusals, f.Sections, f.EndedWhileHeld, len(f.Overlaps))
	for _, v := range r.Verdicts {
		p.verdict(v, run.AcceptedFor(v))
	}
	for _, line := range run.AcceptedInVain() {
		p.line("--accept: %s", line)
	}
	for _, c := range r.Counters {
		p.counter(c)
	}
	for _, g := range r.Fences {
		p.line("fence %s: %d to %d, %d writes accepted, %d rejected, %d regressions",
			place(g.Name, g.Table, g.Column), g.Lowest, g.Highest, g.Accepted, g.Rejected, g.Regressions)
	}
	for _, m := range r.Risings {
		p.rising(m)
	}
	return p.err
}

// A printer keeps its first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) verdict(v check.Verdict, accepted string) {
	where := ""
	if v.Lock != "" {
		where += " lock " + v.Lock
	}
	if v.Table != "" {
		where += " table " + v.Table
	}
	count, victims := report.Counts(v)
	if victims > 0 {
		where += fmt.Sprintf("; victims: %d", victims)
	}
	if v.Train > 0 {
		where += fmt.Sprintf("; follow from others: %d", v.Train)
	}
	p.line("%s %s %s (%s) x%d%s", v.Code, v.Name, v.Level, v.Class, count, where)
	if v.Proof != "" {
		p.line("  %s", v.Proof)
	}
	if accepted != "" {
		p.line("  accepted: %s", accepted)
	}
}

func (p *printer) counter(c check.Counter) {
	name := place(c.Name, c.Table, c.Column)
	if c.GivenUp != "" {
		p.line("counter %s: not summed, since %s", name, c.GivenUp)
		return
	}
	if !c.Known {
		p.line("counter %s: acknowledged %d, its change is not known", name, c.Acknowledged)
		return
	}
	p.line("counter %s: acknowledged %d, change %d (from %d to %d), net deficit %d",
		name, c.Acknowledged, c.Change, c.Start, c.End, c.NetDeficit)
	p.line("  %d writes from a stale base, %d victims, %d without an answer", c.StaleBase, c.Victims, c.Unknown)
}

func (p *printer) rising(m check.Rising) {
	name := place(m.Name, m.Table, m.Column)
	if !m.Known {
		p.line("monotone %s: not read, fell %d times", name, m.Falls)
		return
	}
	p.line("monotone %s: from %d to %d, at most %d, fell %d times", name, m.Start, m.End, m.Highest, m.Falls)
}

// place names a figure by its column where that is known.
func place(name, table, column string) string {
	if table == "" {
		return name
	}
	return table + "." + column
}
