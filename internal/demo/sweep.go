package main

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// golden are the tables that sweeps must come to, reviewed by hand. A line is an anchor, a fault, the results that it may
// have, and its codes; one with a question mark need not be found. A # begins a remark.
//
//go:embed testdata/sweep
var golden embed.FS

// A goldenRow is a line of these.
type goldenRow struct {
	anchor, fault string
	results       []string
	codes         []string
}

// A sweptRow is what `lockfaultd sweep --json` says of a row.
type sweptRow struct {
	Anchor, Fault, Result, Note string
	Codes                       []string
	Stable, Of                  int
}

// sweeps runs a sweep of each service and compares its table with the golden one.
func sweeps(ctx context.Context, d *demo, args []string) error {
	fs := flag.NewFlagSet("demo sweep", flag.ContinueOnError)
	k := fs.Int("repeat", 2, "how often each trial is run")
	r := &repeated{demo: d, times: times{800 * time.Millisecond, 100 * time.Millisecond, 6 * time.Second}} // so that each worker has its turn
	r.flags(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	if r.quick {
		r.times.duration = 2 * time.Second
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	wrong := 0
	for _, s := range r.services() {
		n, err := r.swept(ctx, s, *k)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		wrong += n
	}
	if wrong > 0 {
		return fmt.Errorf("%d rows did not come out as they must", wrong)
	}
	return nil
}

// swept runs one sweep, prints its table, and returns how many rows of it are wrong.
func (r *repeated) swept(ctx context.Context, s service, k int) (int, error) {
	progress("sweep of: %s", s.name)
	want, err := goldenTable(s.form)
	if err != nil {
		return 0, err
	}
	file := r.file("sweep.json")
	_ = os.Remove(file)
	flags := []string{"--repeat", fmt.Sprint(k), "--json", file}
	if r.quick {
		flags = append(flags, "--only", "before write")
		want = slices.DeleteFunc(want, func(g goldenRow) bool { return g.anchor != "before write" })
	}
	_, said, err := r.lockfaultd(ctx, s, "sweep", flags...)
	if err != nil {
		return 0, err
	}
	got, err := readSwept(file)
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, said)
	}
	_, table, _ := strings.Cut(said, "\nsection ")
	fmt.Printf("\n%s\nsection %s", s.name, table)
	return len(compare(want, got)), nil
}

func readSwept(file string) ([]sweptRow, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	var t struct{ Rows []sweptRow }
	return t.Rows, json.Unmarshal(text, &t)
}

// compare prints the rows that are not as they must be, and returns them.
func compare(want []goldenRow, got []sweptRow) (wrong []string) {
	for i, g := range got {
		if i >= len(want) {
			wrong = append(wrong, fmt.Sprintf("%s, %s: no such row was expected", g.Anchor, g.Fault))
		} else if why := want[i].unlike(g); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s, %s: %s", g.Anchor, g.Fault, why))
		}
	}
	for _, w := range want[min(len(got), len(want)):] {
		wrong = append(wrong, fmt.Sprintf("%s, %s: no such row", w.anchor, w.fault))
	}
	for _, w := range wrong {
		fmt.Println("UNEXPECTED:", w)
	}
	return wrong
}

// unlike says what of a row is not as it must be.
func (w goldenRow) unlike(g sweptRow) string {
	switch {
	case w.anchor != g.Anchor || w.fault != g.Fault:
		return fmt.Sprintf("expected the row %s, %s", w.anchor, w.fault)
	case !slices.Contains(w.results, g.Result):
		return fmt.Sprintf("expected %s, got %s %s", strings.Join(w.results, " or "), g.Result, g.Note)
	}
	for _, c := range g.Codes {
		if !slices.Contains(w.codes, c) && !slices.Contains(w.codes, strings.TrimSuffix(c, "?")+"?") {
			return "unexpected " + c
		}
	}
	for _, c := range w.codes {
		if !strings.HasSuffix(c, "?") && !slices.Contains(g.Codes, c) {
			return "expected " + c + " each time"
		}
	}
	return ""
}

// goldenTable reads the rows of a service.
func goldenTable(form string) (out []goldenRow, err error) {
	f, err := golden.Open("testdata/sweep/" + form + ".txt")
	if err != nil {
		return nil, fmt.Errorf("read golden table: %w", err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		line, _, _ := strings.Cut(in.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			return nil, fmt.Errorf("%s.txt:%d: expected anchor | fault | results | codes", form, n)
		}
		out = append(out, goldenRow{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), split(cells[2], " or "), strings.Fields(cells[3])})
	}
	return out, in.Err()
}

func split(text, by string) (out []string) {
	for s := range strings.SplitSeq(text, by) {
		out = append(out, strings.TrimSpace(s))
	}
	return out
}
