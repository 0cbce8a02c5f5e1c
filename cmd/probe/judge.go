package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe"
	"github.com/lockfaultd/lockfaultd/probe/check"
	"github.com/lockfaultd/lockfaultd/report"
)

// readLimit bounds each look at the database.
const readLimit = 30 * time.Second

// judgeFlags are common to verify and report.
func judgeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "history", Usage: "`FILE` that lockfaultd wrote, or its folder; it may as well be the argument"},
		&cli.StringFlag{Name: "database", Usage: "`URL` of Postgres: read where those invariants stand now whose end is not in the history, before anybody writes again"},
		&cli.StringSliceFlag{Name: "counter", Usage: "`SQL` of a number that must move by what was acknowledged; repeatable"},
		&cli.StringSliceFlag{Name: "fence", Usage: "`SQL` of a fence, which must only rise; repeatable"},
		&cli.StringSliceFlag{Name: "monotone", Usage: "`SQL` of a number that must never fall, by whatever it moves; repeatable"},
		&cli.StringSliceFlag{Name: "lock", Usage: "`KEY=TABLE[.FENCE]` that a lock protects; repeatable"},
		&cli.StringFlag{Name: "accept", Usage: "`FILE` (YAML) of known findings, which fail nothing"},
	}
}

// judged is what came of a history.
type judged struct {
	result     check.Result
	unread     []string // invariants that could not be read, with the reason
	accepted   []report.Accepted
	header     history.Header
	injections []history.Injection
	turns      []history.Turn
	elapsed    time.Duration
}

// judgePercent is how much of a judgement's memory may be garbage, in percent of what
// it keeps. That is little, and most of what it makes is garbage soon: to collect it
// less often takes some tens of megabytes, and less of the processor.
const judgePercent = 200

// collectLess sets that until the returned function is called. GOGC has the last word.
func collectLess() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(judgePercent)
	return func() { debug.SetGCPercent(before) }
}

// judge does what the flags say: read, look, judge.
func judge(c *cli.Context) (judged, error) {
	defer collectLess()()
	named, err := invariantsOf(c)
	if err != nil {
		return judged{}, usageError{err}
	}
	declared, err := declarationsOf(c)
	if err != nil {
		return judged{}, usageError{err}
	}
	known, err := acceptedOf(c)
	if err != nil {
		return judged{}, usageError{err}
	}
	path, typed, err := historyOf(c)
	if err != nil {
		return judged{}, usageError{err}
	}
	if err := probe.CheckURL(c.String("database")); err != nil {
		return judged{}, usageError{fmt.Errorf("--database: %w", err)}
	}
	goesOn := history.GoesOn(path)
	j := judged{accepted: known}
	j.result, err = check.Draw(j.source(path, typed), declared, func(header []check.Invariant) []check.Invariant {
		all := merge(header, named)
		if url := c.String("database"); goesOn != "" {
			j.unread = noEnds(all, goesOn)
		} else if url != "" {
			j.unread = readEnds(c.Context, url, all)
		}
		return all
	})
	if err != nil {
		return judged{}, usageError{err}
	}
	adviseRecording(j.result.Counters, j.header.Invariants, named)
	return j, nil
}

// adviseRecording says of counters that were named after the fact alone why they could
// not be summed: a record keeps in clear only what tells the rows of its own.
func adviseRecording(counters []check.Counter, recorded []history.Invariant, named []check.Invariant) {
	for i := range counters {
		c := &counters[i]
		sameQuery := func(query string) bool { return query == c.Query }
		late := slices.ContainsFunc(named, func(n check.Invariant) bool { return sameQuery(n.Query) }) &&
			!slices.ContainsFunc(recorded, func(r history.Invariant) bool { return sameQuery(r.Query) })
		if late && c.GivenUp != "" {
			c.GivenUp += "; declare it while it is recorded, with --counter of lockfaultd run or under invariants in the --config of a daemon"
		}
	}
}

// run is what a report is made from, as far as the judge knows it.
func (j judged) run() report.Run {
	return report.Run{Result: j.result, Unread: j.unread, Gaps: j.result.Facts.Gaps, Unplanned: true, Accepted: j.accepted,
		Seed: j.header.Seed, Started: j.header.Started, Elapsed: j.elapsed}
}

// historyOf returns the file that was named, by the flag or as the argument, and how
// errors name it: as it was typed.
func historyOf(c *cli.Context) (path, typed string, err error) {
	path, args := c.String("history"), c.Args().Slice()
	switch {
	case slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }):
		return "", "", fmt.Errorf("%q: the history stands between flags; expected it before all of them, or behind", args[0])
	case len(args) > 1, len(args) == 1 && path != "":
		return "", "", fmt.Errorf("%q: expected one history", args[len(args)-1])
	case len(args) == 1:
		return args[0], args[0], nil
	case path == "":
		return "", "", fmt.Errorf("expected the file history.jsonl of a run, or its folder")
	}
	return path, "--history " + path, nil
}

// openHistory opens a file, or in a folder such as --out names the history that is there.
func openHistory(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return os.Open(path)
	}
	return history.OpenRun(path)
}

// source reads the file anew each time, and the first time keeps what a report lays
// beside the verdicts.
func (j *judged) source(path, typed string) check.Source {
	first := true
	return func(take func(history.Entry) error) error {
		f, err := openHistory(path)
		if err != nil {
			return fmt.Errorf("%s: %w", typed, err)
		}
		defer f.Close()
		keep := first
		first = false
		err = history.Scan(f, func(e history.Entry) error {
			if keep {
				j.keep(e)
			}
			return take(e)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", typed, err)
		}
		return nil
	}
}

func (j *judged) keep(e history.Entry) {
	switch {
	case e.Header != nil:
		j.header = *e.Header
	case e.Injection != nil:
		j.injections = append(j.injections, *e.Injection)
	case e.Turn != nil:
		j.turns = append(j.turns, *e.Turn)
	case e.Op != nil:
		j.elapsed = max(j.elapsed, time.Duration(e.Op.A), time.Duration(e.Op.D))
	}
}

func invariantsOf(c *cli.Context) ([]check.Invariant, error) {
	var all []check.Invariant
	for _, kind := range probe.Kinds() {
		for _, sql := range c.StringSlice(kind) {
			inv, err := probe.ParseInvariant(kind, sql)
			if err != nil {
				return nil, err
			}
			all = append(all, inv)
		}
	}
	return all, nil
}

func declarationsOf(c *cli.Context) ([]lock.Declaration, error) {
	var all []lock.Declaration
	for _, text := range c.StringSlice("lock") {
		d, err := config.ParseLockFlag(text)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// acceptedOf reads what --accept names; none without it.
func acceptedOf(c *cli.Context) ([]report.Accepted, error) {
	if !c.IsSet("accept") {
		return nil, nil
	}
	list, err := config.LoadAccepted(c.String("accept"), report.AcceptableCode)
	if err != nil {
		return nil, fmt.Errorf("--accept: %w", err)
	}
	out := make([]report.Accepted, 0, len(list))
	for _, a := range list {
		out = append(out, report.Accepted(a))
	}
	return out, nil
}

// merge adds to the header's invariants those that were named on the command
// line and are not among them.
func merge(header, named []check.Invariant) []check.Invariant {
	for _, n := range named {
		known := false
		for _, h := range header {
			known = known || h.Kind == n.Kind && h.Query == n.Query
		}
		if !known {
			header = append(header, n)
		}
	}
	return header
}

// noEnds says of invariants why they are not read where the run has more than the history:
// what is read then is of that, too.
func noEnds(invariants []check.Invariant, goesOn string) (unread []string) {
	for _, inv := range invariants {
		if !inv.HasEnd {
			unread = append(unread, fmt.Sprintf("%s %q: %s, so more may have been written than it tells of; give the folder of a run that is over, or have probe serve watch one that goes on", inv.Kind, inv.Query, goesOn))
		}
	}
	return unread
}

// readEnds puts where the invariants stand now in their place, but for those that were
// read at the end of the run, and returns those that could not be read, with the reason.
func readEnds(ctx context.Context, url string, invariants []check.Invariant) (unread []string) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	for i := range invariants {
		inv := &invariants[i]
		if inv.HasEnd {
			continue
		}
		value, exists, err := probe.ReadInvariant(ctx, url, *inv)
		inv.End, inv.HasEnd = value, exists && err == nil
		switch {
		case err != nil:
			unread = append(unread, err.Error())
		case !exists:
			unread = append(unread, fmt.Sprintf("%s %q: %s", inv.Kind, inv.Query, probe.Database{URL: url}.Lacks(ctx, *inv)))
		}
	}
	return unread
}
