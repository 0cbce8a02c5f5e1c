package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A gateRow is one service an op of which waits at a gate, and what that must come to each time.
type gateRow struct {
	service, rule string
	load          []string
	code          string
	deficit       int
	flag          string // "": --freeze-before
	says          string // part of why the gate did not open; code is "" then
}

func (g gateRow) fault() string { return cmp.Or(g.flag, "--freeze-before") + " " + g.rule }

func gateRows() []gateRow {
	const write, read = "until:lease-expired+next-write", "until:lease-expired+next-read"
	fence := func(how string) []string { return []string{"--fence", how} }
	heartbeat := []string{"--renew", "60ms"}
	return []gateRow{
		{service: "no fence", rule: "write#1=" + write, load: fence("none"), code: "LF104", deficit: 1},
		{service: "fence checked at the write", rule: "write#1=" + write, load: fence("write"), code: "LF201"},
		{service: "fence checked at the write", rule: "write#1=" + read, load: fence("write"), code: "LF104", deficit: 1},
		{service: "fence claimed at the read", rule: "write#1=" + write, load: fence("claim"), code: "LF201"},
		{service: "fence claimed at the read; its claim waits", rule: "write#1=" + read, load: fence("claim"), code: "LF201"},
		{service: "fence claimed at the read; its write waits", rule: "write#2=" + read, load: fence("claim"), code: "LF201"},
		{service: "a heartbeat", rule: "read#1=" + write, load: heartbeat, code: "LF101"},
		{service: "a heartbeat, which a stall leaves running", rule: "read#1=" + write + ",timeout=1s", load: heartbeat, flag: "--stall-before", says: "renewed by heartbeat"},
	}
}

// gates runs each row as often as -n says and counts how often it came out as it must.
func gates(ctx context.Context, d *demo, args []string) error {
	fs := flag.NewFlagSet("demo gates", flag.ContinueOnError)
	n := fs.Int("n", 20, "how often each row is run")
	if err := fs.Parse(args); err != nil {
		return err
	}
	d.duration = "800ms"
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "service\trule\tmust give\tas it must\tgrant to answer, median, longest")
	wrong := 0
	for i, g := range gateRows() {
		progress("%d/%d  %s: %s", i+1, len(gateRows()), g.service, g.fault())
		met, took, err := d.again(ctx, g, i, *n)
		if err != nil {
			return err
		}
		if met != *n {
			wrong++
		}
		slices.Sort(took)
		fmt.Fprintf(t, "%s\t%s\t%s, deficit %d\t%d of %d\t%s, %s\n", g.service, g.fault(), cmp.Or(g.code, g.says), g.deficit, met, *n, middle(took), took[len(took)-1].Round(time.Millisecond))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d rows did not come out as they must each time", wrong)
	}
	return nil
}

func middle(took []time.Duration) time.Duration { return took[len(took)/2].Round(time.Millisecond) }

// again runs a row n times.
func (d *demo) again(ctx context.Context, g gateRow, i, n int) (met int, took []time.Duration, err error) {
	r := row{service: g.service, load: append([]string{"--lease", "200ms"}, g.load...), rules: strings.SplitN(g.fault(), " ", 2), must: g.must}
	for range n {
		o, err := d.run(ctx, r, i)
		if err != nil {
			return met, took, fmt.Errorf("%s: %w", g.service, err)
		}
		if o.wrong == "" {
			met++
		} else {
			progress("%s: %s: %s", g.service, g.fault(), o.wrong)
		}
		lasted, err := grantToAnswer(d.file(fmt.Sprintf("row%d/history.jsonl", i+1)))
		if err != nil {
			return met, took, err
		}
		took = append(took, lasted)
	}
	return met, took, nil
}

// must says what is wrong with an outcome: the gate has to give its verdict, and the counter to lack
// what that one says, and no more unless a section outlasted its lease without a gate.
func (g gateRow) must(o outcome) string {
	others := -1
	for _, v := range o.report.Verdicts {
		if v.Code == "LF101" {
			others += v.Count
		}
	}
	switch {
	case g.code != "" && !o.has(g.code):
		return "expected " + g.code
	case g.says != "" && !o.report.says(g.says):
		return "expected that it says " + g.says
	case o.report.Counter.NetDeficit < g.deficit, o.report.Counter.NetDeficit > g.deficit && others <= 0:
		return fmt.Sprintf("expected a deficit of %d, got %d", g.deficit, o.report.Counter.NetDeficit)
	case g.code != "LF104" && g.code != "" && o.report.Counter.NetDeficit == 0 && o.exit != 0:
		return fmt.Sprintf("expected exit 0, got %d", o.exit)
	}
	return agrees(o)
}

// says reports whether a gate did not open for a reason.
func (r report) says(why string) bool {
	return slices.ContainsFunc(r.Injections.List, func(i injection) bool { return strings.Contains(i.Reason, why) })
}

// grantToAnswer is how long it took from the grant of the held op's term to the op's answer, which is
// when the verdict is certain.
func grantToAnswer(path string) (time.Duration, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("read history: %w", err)
	}
	defer f.Close()
	return grantToAnswerIn(f)
}

func grantToAnswerIn(r io.Reader) (time.Duration, error) {
	type line struct {
		Type, Outcome string
		Seq, Op       uint64
		R             time.Duration
		Term          struct{ ID uint64 }
	}
	grants, answers, terms := map[uint64]time.Duration{}, map[uint64]time.Duration{}, map[uint64]uint64{}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	held := uint64(0)
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return 0, fmt.Errorf("read history: %w", err)
		}
		switch {
		case l.Type == "injection":
			held = l.Op
		case l.Type == "op" && l.Outcome == "granted":
			grants[l.Term.ID] = l.R
		case l.Type == "op":
			answers[l.Seq], terms[l.Seq] = l.R, l.Term.ID
		}
	}
	if err := in.Err(); err != nil {
		return 0, fmt.Errorf("read history: %w", err)
	}
	if held == 0 || answers[held] == 0 {
		return 0, errors.New("read history: no injection, or its op has no answer")
	}
	return answers[held] - grants[terms[held]], nil
}
