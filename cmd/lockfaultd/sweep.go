package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/sweep"
)

const sweepExample = `lockfaultd sweep [flags] -- COMMAND [ARGUMENT...]

Examples:
  lockfaultd sweep -- make integration
  lockfaultd sweep --lock lock:counter=counter.fence --repeat 3 \
      --counter 'SELECT value FROM counter WHERE id = 1' -- ./service
  lockfaultd sweep --only 'before write' --only 'after read' -- ./service

Runs the command once without a fault, finds out what its sections do, and then runs it
with one fault after the other: a pause that is shorter than the lease, one until
another holder has read, one until another holder has written, and a lost reply, each after the
grant, before and after each read and write, at the commit, and at the release. What could show
nothing new is left out. The table says what came of each. The command should take
a few seconds; it is run 20 to 30 times, times --repeat.`

// A sweeping is one `lockfaultd sweep`.
type sweeping struct {
	command  []string
	passed   []string // flags of run
	repeat   int
	of       string
	only     cli.StringSlice
	out      string
	json     string
	markdown string
	dry      bool
	verbose  bool
	stdout   io.Writer
	stderr   io.Writer
}

func sweepCommandOf(stdout, stderr io.Writer) *cli.Command {
	s := &sweeping{stdout: stdout, stderr: stderr}
	taken := taken(newOptions().runFlags())
	return &cli.Command{
		Name:         "sweep",
		Usage:        "run a command again and again, with every fault that could matter, and print one table",
		UsageText:    sweepExample,
		Flags:        append(append(taken, s.flags()...), refused()...),
		OnUsageError: onUsageError,
		Action: func(c *cli.Context) error {
			if err := nothingBefore(c, "sweep"); err != nil {
				return err
			}
			s.command, s.passed = c.Args().Slice(), passedOn(c, taken)
			if err := s.check(c.String("config")); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(c.Context, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return s.sweep(ctx)
		},
	}
}

func (s *sweeping) flags() []cli.Flag {
	const category = "sweep"
	return []cli.Flag{
		&cli.IntFlag{Name: "repeat", Value: 2, Usage: "run each trial `K` times", Destination: &s.repeat, Category: category},
		&cli.StringFlag{Name: "of", Usage: "the lock whose sections are meant, by its `KEY`; without it the one under which most is written", Destination: &s.of, Category: category, Action: notEmpty("of")},
		&cli.StringSliceFlag{Name: "only", Usage: "no more than this: `WHAT` is an anchor, a fault or ANCHOR=FAULT, as the table has them; repeatable", Destination: &s.only, Category: category, Action: noneEmpty("only")},
		&cli.BoolFlag{Name: "dry-run", Usage: "run the command once without a fault, and list the trials", Destination: &s.dry, Category: category},
		&cli.StringFlag{Name: "out", Usage: "keep the files of every run below `DIR`", Destination: &s.out, Category: category, Action: notEmpty("out")},
		&cli.StringFlag{Name: "json", Usage: "write the table as JSON to `FILE`", Destination: &s.json, Category: category, Action: notEmpty("json")},
		&cli.StringFlag{Name: "markdown", Usage: "write the table as Markdown to `FILE`", Destination: &s.markdown, Category: category, Action: notEmpty("markdown")},
		&cli.BoolFlag{Name: "verbose", Usage: "say what was left out and why, and what each run printed", Destination: &s.verbose, Category: category},
	}
}

// taken are the flags of run that each run of a sweep is given, too.
func taken(all []cli.Flag) (out []cli.Flag) {
	names := map[string]bool{}
	for _, n := range strings.Fields("config redis postgres tls-cert tls-key tls-client-ca proxy-protocol lock witness max-freeze counter fence monotone database env timeout accept") {
		names[n] = true
	}
	for _, f := range all {
		if names[f.Names()[0]] {
			out = append(out, f)
		}
	}
	return out
}

// refused are those that a sweep answers itself: they are known, to say so.
func refused() (out []cli.Flag) {
	why := map[string]string{"replay": "a sweep has no one schedule", "seed": "a sweep leaves nothing to chance", "max-frozen": "a sweep freezes one process at a time",
		"expect": "a sweep fails on whatever is proven", "fail-on": "a sweep fails on whatever is proven", "require": "a sweep says itself whether a fault was there",
		"junit": "a sweep has --json and --markdown", "github": "a sweep has --json and --markdown", "admin": "a sweep waits for no signals"}
	for _, f := range ruleFlags {
		why[f.name] = "a sweep chooses the faults itself"
	}
	for name, reason := range why {
		refuse := func() error {
			return usagef("sweep: --%s is not for it: %s; expected lockfaultd run with it, or none", name, reason)
		}
		out = append(out, &cli.GenericFlag{Name: name, Hidden: true, Value: refusedValue(refuse)})
	}
	return out
}

// A refusedValue is that of a flag which is not for the command.
type refusedValue func() error

// Set implements cli.Generic.
func (r refusedValue) Set(string) error { return r() }

// String implements cli.Generic.
func (r refusedValue) String() string { return "" }

// IsBoolFlag has the flag refused with and without a value.
func (r refusedValue) IsBoolFlag() bool { return true }

// passedOn writes the flags that were given as a run takes them.
func passedOn(c *cli.Context, flags []cli.Flag) (out []string) {
	for _, f := range flags {
		name := f.Names()[0]
		if !c.IsSet(name) {
			continue
		}
		if _, list := f.(*cli.StringSliceFlag); !list {
			out = append(out, fmt.Sprintf("--%s=%v", name, c.Value(name)))
			continue
		}
		for _, v := range c.StringSlice(name) {
			out = append(out, "--"+name+"="+v)
		}
	}
	return out
}

func (s *sweeping) check(configFile string) error {
	if len(s.command) == 0 {
		return usagef("sweep: no command; expected lockfaultd sweep [flags] -- COMMAND")
	}
	if s.repeat < 1 {
		return usagef("--repeat %d: expected 1 or more", s.repeat)
	}
	return noRules(configFile)
}

// noRules refuses a configuration that would have its own faults in every run.
func noRules(file string) error {
	if file == "" {
		return nil
	}
	c, err := config.Load(file)
	if err != nil {
		return usagef("--config: %w", err)
	}
	if len(c.Rules) > 0 {
		return usagef("--config %s: it has rules, which would be armed in every run; a sweep chooses the faults itself: expected a file without rules", file)
	}
	return nil
}

// sweep runs the baseline, the trials, and prints the table.
func (s *sweeping) sweep(ctx context.Context) (err error) {
	if s.out == "" {
		if s.out, err = os.MkdirTemp("", "lockfaultd-sweep-"); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.out)) }()
	}
	section, took, err := s.baseline(ctx)
	if err != nil {
		return err
	}
	all, err := s.chosen(section)
	if err != nil {
		return err
	}
	t := sweep.Table{Section: section, Command: s.command, Pruned: pruned(all), Verbose: s.verbose || s.dry}
	trials := sweep.Runs(all)
	if s.dry {
		return s.list(section, trials, t)
	}
	total := sweep.Estimate(trials, section, s.repeat, took)
	s.say("%d trials, each %d times: about %s", len(trials), s.repeat, total.Round(time.Second))
	if t.Rows, err = s.rows(ctx, trials); err != nil {
		return err
	}
	return s.show(t)
}

// baseline runs the command without a fault, and finds its sections.
func (s *sweeping) baseline(ctx context.Context) (sweep.Section, time.Duration, error) {
	s.say("a run without a fault")
	dir := filepath.Join(s.out, "baseline")
	began := time.Now()
	exit, said, err := s.run(ctx, dir, nil)
	took := time.Since(began)
	switch {
	case err != nil:
		return sweep.Section{}, took, err
	case exit != 0:
		fmt.Fprint(s.stderr, said)
		return sweep.Section{}, took, s.dirty(exit)
	}
	h, err := readRun(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		return sweep.Section{}, took, err
	}
	section, err := sweep.Derive(h.Ops, s.of)
	if err != nil {
		s.say("there is nothing to sweep: %v", err)
		return section, took, status(exitNothing)
	}
	s.say("it took %s: %s", took.Round(10*time.Millisecond), section)
	return section, took, nil
}

// exitNothing is that of a sweep that could show nothing.
const exitNothing = 11

// dirty says why a sweep ends with its baseline.
func (s *sweeping) dirty(exit int) error {
	if exit == 10 || exit == 11 {
		s.say("the run without a fault is not clean (exit %d): the service, or what tests it, is broken already, or nothing was seen of it", exit)
		return status(exitNothing)
	}
	s.say("the run without a fault ended with %d", exit)
	return status(exit)
}

// chosen are the trials, those that --only leaves.
func (s *sweeping) chosen(section sweep.Section) ([]sweep.Trial, error) {
	all := section.Cross()
	if len(s.only.Value()) == 0 {
		return all, nil
	}
	var out []sweep.Trial
	for _, want := range s.only.Value() {
		found := sweep.Only(all, want)
		if len(found) == 0 {
			return nil, usagef("--only %q: expected an anchor (%s), a fault (%s), or ANCHOR=FAULT", want, strings.Join(sweep.Names(all), ", "), strings.Join(sweep.Faults(), ", "))
		}
		out = append(out, found...)
	}
	return out, nil
}

func pruned(all []sweep.Trial) (out []sweep.Trial) {
	for _, t := range all {
		if t.Pruned != "" {
			out = append(out, t)
		}
	}
	return out
}

// list prints the trials without running them.
func (s *sweeping) list(section sweep.Section, trials []sweep.Trial, t sweep.Table) error {
	fmt.Fprintf(s.stdout, "section   %s\n\n", section)
	for _, trial := range trials {
		fmt.Fprintf(s.stdout, "%s, %s: lockfaultd run --%s %s\n", trial.Anchor, trial.Fault, trial.Flag, quote(trial.Rule))
	}
	return t.Omitted(s.stdout)
}

func (s *sweeping) say(format string, args ...any) {
	fmt.Fprintf(s.stderr, "lockfaultd: sweep: "+format+"\n", args...)
}

// show prints the table and writes its other forms.
func (s *sweeping) show(t sweep.Table) error {
	err := t.Text(s.stdout)
	for _, f := range []struct {
		file string
		form func(io.Writer) error
	}{{s.json, t.JSON}, {s.markdown, t.Markdown}} {
		if f.file != "" {
			err = errors.Join(err, toFile(f.file, f.form))
		}
	}
	if exit := sweep.Exit(t.Rows); err == nil && exit != 0 {
		return status(exit)
	}
	return err
}
