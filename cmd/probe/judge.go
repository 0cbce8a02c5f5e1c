package main

import (
	"context"
	"fmt"
	"os"
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
		&cli.StringFlag{Name: "history", Usage: "`FILE` that lockfaultd wrote"},
		&cli.StringFlag{Name: "database", Usage: "`URL` of Postgres: read where the invariants stand now"},
		&cli.StringSliceFlag{Name: "counter", Usage: "`SQL` of a number that must move by what was acknowledged; repeatable"},
		&cli.StringSliceFlag{Name: "fence", Usage: "`SQL` of a fence, which must only rise; repeatable"},
		&cli.StringSliceFlag{Name: "lock", Usage: "`KEY=TABLE[.FENCE]` that a lock protects; repeatable"},
		&cli.StringFlag{Name: "accept", Usage: "`FILE` (YAML) of known findings, which fail nothing"},
	}
}

// judged is a history and what came of it.
type judged struct {
	history  *history.History
	result   check.Result
	unread   []string // invariants that could not be read, with the reason
	accepted []report.Accepted
}

// judge does what the flags say: read, look, judge.
func judge(c *cli.Context) (judged, error) {
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
	h, err := readHistory(c.String("history"))
	if err != nil {
		return judged{}, usageError{err}
	}
	j := judged{history: h, accepted: known}
	in := check.From(h)
	in.Declarations = append(in.Declarations, declared...)
	in.Invariants = merge(in.Invariants, named)
	if url := c.String("database"); url != "" {
		j.unread = readEnds(c.Context, url, in.Invariants)
	}
	j.result = check.Judge(in)
	return j, nil
}

// run is what a report is made from, as far as the judge knows it.
func (j judged) run() report.Run {
	r := report.Run{Result: j.result, Unread: j.unread, Gaps: len(j.history.Gaps), Unplanned: true, Accepted: j.accepted,
		Seed: j.history.Header.Seed, Started: j.history.Header.Started}
	for _, op := range j.history.Ops {
		r.Elapsed = max(r.Elapsed, time.Duration(op.A), time.Duration(op.D))
	}
	return r
}

func readHistory(path string) (*history.History, error) {
	if path == "" {
		return nil, fmt.Errorf("--history: expected the file history.jsonl of a run")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--history: %w", err)
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		return nil, fmt.Errorf("--history %s: %w", path, err)
	}
	return h, nil
}

func invariantsOf(c *cli.Context) ([]check.Invariant, error) {
	var all []check.Invariant
	for _, kind := range []string{probe.CounterKind, probe.FenceKind} {
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

// readEnds puts where the invariants stand now in their place, and returns
// those that could not be read, with the reason.
func readEnds(ctx context.Context, url string, invariants []check.Invariant) (unread []string) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	for i := range invariants {
		inv := &invariants[i]
		value, exists, err := probe.ReadInvariant(ctx, url, *inv)
		inv.End, inv.HasEnd = value, exists && err == nil
		switch {
		case err != nil:
			unread = append(unread, err.Error())
		case !exists:
			unread = append(unread, fmt.Sprintf("%s %q: there is no such row", inv.Kind, inv.Query))
		}
	}
	return unread
}
