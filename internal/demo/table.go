package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
)

// A row is one service under one fault, and how it must come out.
type row struct {
	service, fault string
	load           []string // flags of probe load
	rules          []string // flags of lockfaultd run
	must           func(o outcome) string
	codes          []string // of the broken: that it gives; with a question mark, may give
	quick          bool     // of the broken: part of make test whatever it gives
	settings       []string // further flags of lockfaultd run
	uncounted      bool     // no invariant: the work does not count
}

// An outcome is what a row came to.
type outcome struct {
	row    row
	exit   int
	load   load
	report report
	wrong  string
}

func (o outcome) has(code string) bool {
	return slices.ContainsFunc(o.report.Verdicts, func(v verdict) bool {
		return v.Code == code && v.Level == "PROVEN"
	})
}

const every20th = "UPDATE(counter)#*/20=800ms"

var short, long = []string{"--lease", "500ms"}, []string{"--lease", "2s"}

// rows is the table.
func rows() []row {
	with := func(base []string, more ...string) []string { return append(slices.Clone(base), more...) }
	return []row{
		{service: "500 ms lease", fault: "none", load: short, must: sound(0)},
		{service: "500 ms lease", fault: "random freeze 0.8 s x6", load: short, rules: []string{"--freeze-after", "tick(1.5s)#1-6=800ms"}, must: agrees},
		{service: "2 s lease", fault: "random freeze 0.8 s x6", load: long, rules: []string{"--freeze-after", "tick(1.5s)#1-6=800ms"}, must: sound(11)},
		{service: "500 ms lease", fault: "freeze 0.8 s before every 20th write", load: short, rules: []string{"--freeze-before", every20th}, must: loses(1)},
		{service: "500 ms lease", fault: "aimed: freeze after the first six reads in a section, ttl+300ms", load: short, rules: []string{"--freeze-after", "read(counter)#1-6=ttl+300ms"}, must: loses(6)},
		{service: "500 ms, fence checked at the write", fault: "freeze 0.8 s before every 20th write", load: with(short, "--fence", "write"), rules: []string{"--freeze-before", every20th}, must: rejects},
		{service: "500 ms, fence claimed at the read", fault: "freeze 0.8 s before every 20th write", load: with(short, "--fence", "claim"), rules: []string{"--freeze-before", "write(counter)#*/20=800ms"}, must: rejects},
		{service: "500 ms, fence taken apart from the grant", fault: "grant's reply stalled 0.8 s, every 20th", load: with(short, "--fence", "write", "--broken", "split-fence"), rules: []string{"--stall-after", "SETNX#*/20=800ms"}, must: inverts},
		{service: "lock without NX", fault: "none", load: with(short, "--broken", "no-nx"), must: excludesNobody},
	}
}

// Each of these says what is wrong with an outcome, "" for nothing.

func agrees(o outcome) string {
	if o.report.Counter.NetDeficit != o.load.Lost {
		return fmt.Sprintf("the service lost %d", o.load.Lost)
	}
	return ""
}

func sound(exit int) func(outcome) string {
	return func(o outcome) string {
		if o.report.Counter.NetDeficit != 0 || o.exit != exit {
			return fmt.Sprintf("expected no deficit and exit %d, got exit %d", exit, o.exit)
		}
		return agrees(o)
	}
}

func loses(least int) func(outcome) string {
	return func(o outcome) string {
		if o.report.Counter.NetDeficit < least || !o.has("LF104") || o.exit != 10 {
			return fmt.Sprintf("expected LF104, a deficit of %d or more and exit 10, got exit %d", least, o.exit)
		}
		return agrees(o)
	}
}

func rejects(o outcome) string {
	if o.load.Rejected == 0 || !o.has("LF201") {
		return "expected stale writes to be refused"
	}
	return sound(0)(o)
}

func inverts(o outcome) string {
	if !o.has("LF309") {
		return "expected LF309"
	}
	return loses(1)(o)
}

func excludesNobody(o outcome) string {
	if !o.has("LF305") || o.report.Facts.Overlap == 0 {
		return "expected LF305 and overlaps"
	}
	return loses(1)(o)
}

// A demo is one run of a table.
type demo struct {
	dir      string
	servers  *servers
	rows     []row
	duration string // of a row
	legend   string
}

func (d *demo) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", d.dir+"/", "./cmd/...")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

func (d *demo) table(ctx context.Context) error {
	var done []outcome
	for i, r := range d.rows {
		progress("%d/%d  %s; fault: %s", i+1, len(d.rows), r.service, r.fault)
		o, err := d.run(ctx, r, i)
		if err != nil {
			return fmt.Errorf("row %d: %w", i+1, err)
		}
		done = append(done, o)
	}
	return d.show(done)
}

// run runs one row.
func (d *demo) run(ctx context.Context, r row, i int) (outcome, error) {
	out := d.file(fmt.Sprintf("row%d", i+1))
	args := []string{"run", "--seed", "1", "--out", out}
	if len(r.settings) == 0 {
		args = append(args, "--lock", "lock:counter*=counter.fence")
	}
	if !r.uncounted {
		args = append(args, "--counter", "SELECT value FROM counter WHERE id = 1")
	}
	args = append(args, r.settings...)
	args = append(args, r.rules...)
	args = append(args, "--", d.file("probe"), "load", "--json", "--duration", d.duration, "--key", fmt.Sprintf("lock:counter%d", i+1)) // what a row leaves is not the next one's
	args = append(args, r.load...)
	cmd := exec.CommandContext(ctx, d.file("lockfaultd"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = append(os.Environ(), "REDIS_URL="+d.servers.redis, "DATABASE_URL="+d.servers.database)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var x *exec.ExitError
	if err != nil && !errors.As(err, &x) {
		return outcome{}, err
	}
	o := outcome{row: r, exit: cmd.ProcessState.ExitCode()}
	if err := o.read(stdout.Bytes(), out+"/report.json"); err != nil {
		return o, fmt.Errorf("%w\n%s%s", err, stdout.Bytes(), stderr.Bytes())
	}
	o.wrong = r.must(o)
	return o, ctx.Err()
}

func (o *outcome) read(stdout []byte, path string) error {
	line, _, _ := bytes.Cut(stdout, []byte("\n"))
	if err := json.Unmarshal(line, &o.load); err != nil {
		return fmt.Errorf("read the service's summary: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read report: %w", err)
	}
	return json.Unmarshal(text, &o.report)
}

// verdict is the last column.
func (o outcome) words() string {
	var codes []string
	for _, v := range o.report.Verdicts {
		if v.Level == "PROVEN" && (v.Class != "hazard" || o.exit == 0) && !slices.Contains(codes, v.Code) && v.Code != "LF101" && v.Code != "LF102" && v.Code != "LF103" {
			codes = append(codes, v.Code)
		}
	}
	slices.Sort(codes)
	word := map[int]string{0: "ok", 11: "not exercised"}[o.exit]
	if word != "" {
		codes = append([]string{word}, codes...)
	}
	if o.wrong != "" {
		codes = append(codes, "UNEXPECTED: "+o.wrong)
	}
	return strings.Join(codes, ", ")
}

func (d *demo) show(done []outcome) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "service\tfault\twrites\tnet deficit\trejected\toverlaps\tverdict\texit")
	wrong := 0
	for _, o := range done {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%d\n", o.row.service, o.row.fault, o.load.Writes,
			o.report.Counter.NetDeficit, o.load.Rejected, o.report.Facts.Overlap, o.words(), o.exit)
		if o.wrong != "" {
			wrong++
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Print(d.legend)
	if wrong > 0 {
		return fmt.Errorf("%d rows did not come out as they must", wrong)
	}
	return nil
}

const legend = `
net deficit: updates that the database acknowledged and then lost; rejected: stale
writes that a fence refused; overlaps: pairs of holders in the section at once.
LF104 lost-update  LF201 fence-rejected  LF305 double-grant  LF309 fence-inversion
LF403 counter-mismatch. Random freezes may or may not land inside a section.
`
