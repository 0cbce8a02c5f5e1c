package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A replayRow is a service under a rule whose run is done again.
type replayRow struct {
	form, rule, codes string
}

func replayRows() []replayRow {
	const write, read = "until:lease-expired+next-write", "until:lease-expired+next-read"
	return []replayRow{
		{"unfenced", "write#1=" + write, "LF104 LF403"},
		{"write-fenced", "write#1=" + write, "LF201"},
		{"write-fenced", "write#1=" + read, "LF104 LF403"},
		{"read-claimed", "write#2=" + read, "LF201"},
		{"heartbeat", "write#1=" + write, "LF104 LF403"},
	}
}

// replay records a run of each row, repeats it n times, and wants the same verdicts and the same bytes of
// schedule.json each time. A service that is another one must be told from it.
func replay(ctx context.Context, d *demo, args []string) error {
	fs := flag.NewFlagSet("demo replay", flag.ContinueOnError)
	n := fs.Int("n", 10, "how often each row is repeated")
	r := &repeated{demo: d, times: times{200 * time.Millisecond, 20 * time.Millisecond, 800 * time.Millisecond}}
	r.flags(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "service\trule: --freeze-before\tverdicts\trepeated\tdisturbed")
	wrong := 0
	for i, row := range r.rows() {
		got, err := r.again(ctx, row, i, *n)
		if err != nil {
			return err
		}
		if got.same != *n {
			wrong++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\t%d\n", row.of().name, row.rule, got.codes, got.same, *n, got.disturbed)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Print(replayLegend)
	if err := r.changed(ctx); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d rows were not repeated each time", wrong)
	}
	return nil
}

func (r *repeated) rows() []replayRow {
	rows := replayRows()
	if r.quick {
		rows = rows[:2]
	}
	return slices.DeleteFunc(rows, func(row replayRow) bool { return !slices.ContainsFunc(r.services(), row.is) })
}

func (row replayRow) is(s service) bool { return s.form == row.form }

func (row replayRow) of() service {
	all := services()
	return all[slices.IndexFunc(all, row.is)]
}

const replayLegend = `
disturbed: runs with another verdict in which a further section outran its lease by itself, as
happens on a machine that is busy. They are no repetition, and were run anew.
`

// repetitions are what the runs of a row came to.
type repetitions struct {
	codes           string
	same, disturbed int
}

// mostDisturbed bounds how often a row is run anew.
const mostDisturbed = 10

// again records a row, and repeats it.
func (r *repeated) again(ctx context.Context, row replayRow, i, n int) (got repetitions, err error) {
	first := r.file(fmt.Sprintf("replay%d", i+1))
	if got.codes, err = r.record(ctx, row, first); err != nil {
		return got, err
	}
	for k := 0; k < n; k++ {
		progress("%s: %s: %d/%d", row.of().name, row.rule, k+1, n)
		if _, _, err := r.lockfaultd(ctx, row.of(), "run", "--out", first+"-again", "--replay", first+"/schedule.json"); err != nil {
			return got, err
		}
		wrong, disturbed, err := differ(first, first+"-again", got.codes)
		switch {
		case err != nil:
			return got, err
		case wrong == "":
			got.same++
			continue
		case disturbed && got.disturbed < mostDisturbed:
			got.disturbed++
			k--
		}
		progress("%s: %s: %s", row.of().name, row.rule, wrong)
	}
	return got, nil
}

// record makes the run that is to be repeated, anew where the machine has disturbed it.
func (r *repeated) record(ctx context.Context, row replayRow, dir string) (string, error) {
	for n := 1; ; n++ {
		_, said, err := r.lockfaultd(ctx, row.of(), "run", "--out", dir, "--freeze-before", row.rule)
		if err != nil {
			return "", err
		}
		o, err := readReplayed(dir)
		switch {
		case err != nil || o.codes() == row.codes:
			return row.codes, err
		case o.late() <= 1 || n == mostDisturbed:
			return "", fmt.Errorf("%s: %s: expected %s, got %s\n%s", row.of().name, row.rule, row.codes, o.codes(), said)
		}
	}
}

// replayed is what is read of a run's report.
type replayed struct {
	Exit     int
	Why      string
	Verdicts []verdict
}

func readReplayed(dir string) (o replayed, err error) {
	text, err := os.ReadFile(dir + "/report.json")
	if err != nil {
		return o, fmt.Errorf("read report: %w", err)
	}
	return o, json.Unmarshal(text, &o)
}

// codes are what was proven of harm and defences: what is the fault's doing, and not the machine's.
func (o replayed) codes() string {
	var out []string
	for _, v := range o.Verdicts {
		if v.Level == "PROVEN" && (v.Harm || v.Class == "good") {
			out = append(out, v.Code)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// late is how many sections outran their lease.
func (o replayed) late() (n int) {
	for _, v := range o.Verdicts {
		if v.Code == "LF101" {
			n += v.Count
		}
	}
	return n
}

// differ says in what a run differs from the one that it repeats, and whether more sections than the held
// one outran their lease in it. Another schedule is never excused.
func differ(first, again, codes string) (wrong string, disturbed bool, err error) {
	o, err := readReplayed(again)
	if err != nil {
		return "", false, err
	}
	was, err := os.ReadFile(first + "/schedule.json")
	if err != nil {
		return "", false, fmt.Errorf("read schedule: %w", err)
	}
	is, err := os.ReadFile(again + "/schedule.json")
	switch {
	case err != nil:
		return "", false, fmt.Errorf("read schedule: %w", err)
	case !bytes.Equal(was, is):
		return "another schedule: " + o.Why, false, nil
	case o.codes() != codes:
		return fmt.Sprintf("expected %s, got %s: %s", codes, o.codes(), o.Why), o.late() > 1, nil
	}
	return "", false, nil
}

// changed repeats the first row on each other service: it has to be found, with the step.
func (r *repeated) changed(ctx context.Context) error {
	for _, s := range r.services() {
		if s.form == "unfenced" || s.form == "heartbeat" {
			continue // a heartbeat changes nothing of a section's way
		}
		exit, said, err := r.lockfaultd(ctx, s, "run", "--replay", r.file("replay1/schedule.json"))
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(said[max(0, strings.Index(said, "INCONCLUSIVE")):], "\n\n")
		fmt.Printf("\nthe first one's schedule on another service (%s): exit %d\n%s\n", s.name, exit, first)
		if exit != 11 || !strings.Contains(said, "diverged at step 1") {
			return fmt.Errorf("%s: not told from the service that the schedule is of\n%s", s.name, said)
		}
	}
	return nil
}
