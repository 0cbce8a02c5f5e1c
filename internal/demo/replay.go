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
	form, rule, code string
}

func replayRows() []replayRow {
	const write, read = "until:lease-expired+next-write", "until:lease-expired+next-read"
	return []replayRow{
		{"unfenced", "write#1=" + write, "LF104"},
		{"write-fenced", "write#1=" + write, "LF201"},
		{"write-fenced", "write#1=" + read, "LF104"},
		{"read-claimed", "write#2=" + read, "LF201"},
		{"heartbeat", "write#1=" + write, "LF104"},
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
	fmt.Fprintln(t, "service\trule: --freeze-before\tverdicts\trepeated")
	wrong := 0
	for i, row := range r.rows() {
		same, codes, err := r.again(ctx, row, i, *n)
		if err != nil {
			return err
		}
		if same != *n {
			wrong++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d of %d\n", row.of().name, row.rule, codes, same, *n)
	}
	if err := t.Flush(); err != nil {
		return err
	}
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

// again records a row, and repeats it; it returns how often it came to the same.
func (r *repeated) again(ctx context.Context, row replayRow, i, n int) (same int, codes string, err error) {
	first := r.file(fmt.Sprintf("replay%d", i+1))
	codes, err = r.record(ctx, row, first)
	if err != nil {
		return 0, codes, err
	}
	for k := range n {
		progress("%s: %s: %d/%d", row.of().name, row.rule, k+1, n)
		if _, _, err := r.lockfaultd(ctx, row.of(), "run", "--out", first+"-again", "--replay", first+"/schedule.json"); err != nil {
			return same, codes, err
		}
		wrong, err := differ(first, first+"-again", codes)
		if err != nil {
			return same, codes, err
		}
		if wrong == "" {
			same++
		} else {
			progress("%s: %s: %s", row.of().name, row.rule, wrong)
		}
	}
	return same, codes, nil
}

// record makes the run that is to be repeated.
func (r *repeated) record(ctx context.Context, row replayRow, dir string) (string, error) {
	_, said, err := r.lockfaultd(ctx, row.of(), "run", "--out", dir, "--freeze-before", row.rule)
	if err != nil {
		return "", err
	}
	o, err := readReplayed(dir)
	if err == nil && !strings.Contains(o.codes(), row.code) {
		err = fmt.Errorf("%s: %s: expected %s, got %s\n%s", row.of().name, row.rule, row.code, o.codes(), said)
	}
	return o.codes(), err
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

// differ says in what a run differs from the one that it repeats.
func differ(first, again, codes string) (string, error) {
	o, err := readReplayed(again)
	if err != nil {
		return "", err
	}
	was, err := os.ReadFile(first + "/schedule.json")
	if err != nil {
		return "", fmt.Errorf("read schedule: %w", err)
	}
	is, err := os.ReadFile(again + "/schedule.json")
	switch {
	case err != nil:
		return "", fmt.Errorf("read schedule: %w", err)
	case o.codes() != codes:
		return fmt.Sprintf("expected %s, got %s: %s", codes, o.codes(), o.Why), nil
	case !bytes.Equal(was, is):
		return "another schedule: " + o.Why, nil
	}
	return "", nil
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
