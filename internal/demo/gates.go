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
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A gateRow is one service an op of which waits at a gate, and what that must come to each time.
type gateRow struct {
	service, rule string
	load          []string // flags of probe load
	form          string   // that of another service, which is one of services()
	worker        string   // its command; "": it is probe load
	flag          string   // "": --freeze-before
	lease         time.Duration
	want          result
	quick         bool // part of make test
}

func (g gateRow) fault() string { return cmp.Or(g.flag, "--freeze-before") + " " + g.rule }

const (
	nextWrite = "until:lease-expired+next-write"
	nextRead  = "until:lease-expired+next-read"
)

func gateRows() []gateRow {
	fence := func(how string) []string { return []string{"--fence", how} }
	heartbeat := []string{"--renew", "60ms"}
	rows := []gateRow{
		{service: "no fence", rule: "write#1=" + nextWrite, load: fence("none"), want: loss(), quick: true},
		{service: "fence checked at the write", rule: "write#1=" + nextWrite, load: fence("write"), want: refusal()},
		{service: "fence checked at the write", rule: "write#1=" + nextRead, load: fence("write"), want: loss()},
		{service: "fence claimed at the read", rule: "write#1=" + nextWrite, load: fence("claim"), want: refusal()},
		{service: "fence claimed at the read; its claim waits", rule: "write#1=" + nextRead, load: fence("claim"), want: refusal()},
		{service: "fence claimed at the read; its write waits", rule: "write#2=" + nextRead, load: fence("claim"), want: refusal()},
		{service: "a heartbeat", rule: "read#1=" + nextWrite, load: heartbeat, want: overrun()},
		{service: "a heartbeat, which a stall leaves running", rule: "read#1=" + nextWrite + ",timeout=1s", load: heartbeat, flag: "--stall-before", want: renewed()},
	}
	for i := range rows {
		rows[i].lease = lease
	}
	return rows
}

// lease is that of all but heartbeats of processes that are slow: what renews it has to have its turn.
const lease, slowLease = 200 * time.Millisecond, 500 * time.Millisecond

// gates runs each row as often as -n says and counts how often it came out as it must.
func gates(ctx context.Context, d *demo, args []string) error {
	fs := flag.NewFlagSet("demo gates", flag.ContinueOnError)
	n := fs.Int("n", 20, "how often each row is run")
	libraries := fs.Bool("libraries", false, "services with redsync and with redlock, rather than probe load")
	keep := fs.String("keep", "", "folder for the files of runs that do not come out as they must")
	markdown := fs.Bool("markdown", false, "print what is expected, for docs/gates.md, and run nothing")
	r := &repeated{demo: d, times: times{work: 20 * time.Millisecond, duration: 800 * time.Millisecond}}
	r.flags(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *markdown {
		writeGates(os.Stdout)
		return nil
	}
	rows, err := r.gateRows(ctx, *libraries)
	if err != nil {
		return err
	}
	d.duration = r.times.duration.String()
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "service\trule\tmust give\tas it must\tdisturbed, run anew\tgrant to answer, median, longest")
	wrong := 0
	for i, g := range rows {
		progress("%d/%d  %s: %s", i+1, len(rows), g.service, g.fault())
		got, err := r.tryGate(ctx, g, i, *n, *keep)
		if err != nil {
			return fmt.Errorf("%s: %w", g.service, err)
		}
		if got.met != *n {
			wrong++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t%d, %d\t%s\n", g.service, g.fault(), g.want, got.met, *n, got.disturbed, got.anew, got.times())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Print(gatesLegend)
	if wrong > 0 {
		return fmt.Errorf("%d rows did not come out as they must each time", wrong)
	}
	return nil
}

const gatesLegend = `
disturbed: runs in which a further section outran its lease by itself, as happens on a machine that is
busy. What these have beyond what they must is that section's; those in which something else came of
it are no try, and were run anew.
`

// gateRows returns the rows that are asked for, with what they run on made.
func (r *repeated) gateRows(ctx context.Context, libraries bool) (rows []gateRow, err error) {
	switch {
	case libraries:
		if rows, err = r.rowsOfLibraries(ctx); err == nil {
			err = r.prepare(ctx)
		}
	case r.worker != "":
		rows, err = workerRows("", r.worker, r.heartbeat), r.prepare(ctx)
	default:
		rows = gateRows()
	}
	return slices.DeleteFunc(rows, func(g gateRow) bool { return r.quick && !g.quick || r.form != "" && r.form != g.form }), err
}

// writeGates writes the tables of docs/gates.md.
func writeGates(w io.Writer) {
	tables := [][]gateRow{gateRows()}
	for _, l := range libraries() {
		tables = append(tables, workerRows(l.name+": ", "", true))
	}
	fmt.Fprintln(w, "| service | rule | comes to | deficit | rejected | exit |\n|---|---|---|---|---|---|")
	for _, g := range slices.Concat(tables...) {
		fmt.Fprintf(w, "| %s | `%s` | %s | %d | %d | %d |\n", g.service, g.fault(), g.want.words(), g.want.deficit, g.want.rejected, g.want.exit)
	}
}

// A gateTally is what the runs of a row came to.
type gateTally struct {
	met, disturbed, anew int
	took                 []time.Duration
}

// tryGate runs a row n times. A run that another late section has led elsewhere is no try, and is run anew.
func (r *repeated) tryGate(ctx context.Context, g gateRow, i, n int, keep string) (got gateTally, err error) {
	for k := 0; k < n; k++ {
		o, dir, err := r.runGate(ctx, g, i)
		if err != nil {
			return got, err
		}
		wrong := g.must(o)
		if wrong != "" {
			progress("%s: %s: %s", g.service, g.fault(), wrong)
			if err := kept(keep, dir, fmt.Sprintf("gate%d-%d", i+1, k+got.anew+1)); err != nil {
				return got, err
			}
		}
		if k -= got.count(wrong, o.others(g.want) > 0); wrong != "" {
			continue
		}
		lasted, err := grantToAnswer(dir + "/history.jsonl")
		if err != nil {
			return got, err
		}
		got.took = append(got.took, lasted)
	}
	return got, nil
}

// count notes what came of a run, and returns 1 if it is to be run anew.
func (t *gateTally) count(wrong string, others bool) int {
	if others {
		t.disturbed++
	}
	switch {
	case wrong == "":
		t.met++
	case others && t.anew < mostDisturbed:
		t.anew++
		return 1
	}
	return 0
}

// times are how long it took, in the middle and at most.
func (t *gateTally) times() string {
	if len(t.took) == 0 {
		return "-"
	}
	slices.Sort(t.took)
	return fmt.Sprintf("%s, %s", t.took[len(t.took)/2].Round(time.Millisecond), t.took[len(t.took)-1].Round(time.Millisecond))
}

// kept puts the files of a run away, if they are wanted.
func kept(in, dir, name string) error {
	if in == "" {
		return nil
	}
	return os.CopyFS(filepath.Join(in, name), os.DirFS(dir))
}

// runGate runs a row once, and says where its files are.
func (r *repeated) runGate(ctx context.Context, g gateRow, i int) (o outcome, dir string, err error) {
	if g.worker != "" {
		return r.runWorker(ctx, g)
	}
	o, err = r.run(ctx, row{
		service: g.service, load: append([]string{"--lease", g.lease.String()}, g.load...),
		rules: strings.SplitN(g.fault(), " ", 2), must: func(outcome) string { return "" },
	}, i)
	return o, r.file(fmt.Sprintf("row%d", i+1)), err
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
