package probe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

// A Summary is what a load did, over all of its workers.
type Summary struct {
	Workers  []WorkerReport `json:"workers"`
	Writes   int64          `json:"writes"`
	Rejected int64          `json:"rejected"`
	Unknown  int64          `json:"unknown"`
	Lapsed   int64          `json:"lapsed"`
	Errors   int64          `json:"errors"`
	Overlaps int            `json:"overlaps"` // sections that overlap another, by Redis' clock
	Start    int64          `json:"start"`    // the counter before
	Counter  int64          `json:"counter"`  // and after
	Lost     int64          `json:"lost"`     // Writes less what the counter rose by; 0 where they do not count
}

// endLimit bounds the last look at the counter, after the workers.
const endLimit = 30 * time.Second

// A Program is how to start a worker: a process that calls [ServeWorker].
type Program struct {
	Path string
	Args []string // the first is the name by which it is called
}

// Run prepares the table, starts the workers as processes of p, waits for all
// of them and sums up. A worker is told its part on its stdin, which stays open
// as long as we live, and reports one JSON line on its stdout. When ctx is done
// the workers finish the section in hand. A worker that failed is an error,
// beside the summary of what the others did.
func (l Load) Run(ctx context.Context, p Program, stderr *os.File) (Summary, error) {
	start, err := l.prepare(ctx)
	if err != nil {
		return Summary{}, err
	}
	reports, workErr := l.runWorkers(ctx, p, stderr)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	counter, err := l.end(last)
	if err != nil {
		return Summary{}, errors.Join(workErr, err)
	}
	s := sum(reports, start, counter)
	if f, _ := formOf(l.Write); !f.counts {
		s.Lost = 0
	}
	return s, workErr
}

// runWorkers waits for every worker, whatever becomes of the others.
func (l Load) runWorkers(ctx context.Context, p Program, stderr *os.File) ([]WorkerReport, error) {
	reports, errs := make([]WorkerReport, l.Workers), make([]error, l.Workers)
	var all sync.WaitGroup
	for i := range l.Workers {
		all.Go(func() {
			name := "worker-" + strconv.Itoa(i+1)
			reports[i], errs[i] = l.runWorker(ctx, name, p, stderr)
			if errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", name, errs[i])
			}
		})
	}
	all.Wait()
	return reports, errors.Join(errs...)
}

// runWorker starts one process and waits for it. Its group is its own, so that
// a terminal's ^C comes through us alone and only once.
func (l Load) runWorker(ctx context.Context, name string, p Program, stderr *os.File) (WorkerReport, error) {
	order, err := json.Marshal(workOrder{Name: name, Load: l, Self: p})
	if err != nil {
		return WorkerReport{}, fmt.Errorf("write order: %w", err)
	}
	var out bytes.Buffer
	cmd := &exec.Cmd{
		Path: p.Path, Args: p.Args, Stdout: &out, Stderr: stderr,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return WorkerReport{}, fmt.Errorf("make pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return WorkerReport{}, fmt.Errorf("start: %w", err)
	}
	_, orderErr := stdin.Write(append(order, '\n'))
	stop := context.AfterFunc(ctx, func() { _ = stdin.Close() }) // its end of input tells the worker to stop
	defer stop()
	if err := cmd.Wait(); err != nil {
		return WorkerReport{Name: name}, err
	}
	var report WorkerReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return WorkerReport{Name: name}, errors.Join(fmt.Errorf("read report: %w", err), orderErr)
	}
	return report, nil
}

// A workOrder is what a worker reads from its stdin: URLs may hold passwords,
// which have no business in an argument list.
type workOrder struct {
	Name    string
	Load    Load
	Self    Program // how to start a process like the reader
	Partner bool    // work for the tokens that follow, as a worker's partner
}

// ServeWorker is what a worker's process runs: it reads its order from stdin,
// works, and writes its report to stdout as one JSON line. The end of stdin is
// the end of the work, so that no worker outlives its parent.
func ServeWorker(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	in := json.NewDecoder(stdin)
	var order workOrder
	if err := in.Decode(&order); err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	if order.Partner {
		return order.Load.servePartner(ctx, in, stdout, stderr)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the parent's end of the pipe, or with this process
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	report, err := order.Load.serve(ctx, order.Name, os.Getpid(), order.Self, stderr)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(report)
}

func sum(reports []WorkerReport, start, counter int64) Summary {
	s := Summary{Workers: reports, Start: start, Counter: counter}
	var sections [][2]float64
	for _, r := range reports {
		s.Writes += r.Writes
		s.Rejected += r.Rejected
		s.Unknown += r.Unknown
		s.Lapsed += r.Lapsed
		s.Errors += r.Errors
		sections = append(sections, r.Sections...)
	}
	s.Overlaps = overlaps(sections)
	s.Lost = s.Writes - (counter - start)
	return s
}

// overlaps counts the sections that share some time with another. In order of
// their starts, a section does so with an earlier one if it begins before the
// latest end so far, and with a later one if the next begins before its end.
func overlaps(sections [][2]float64) int {
	sections = slices.Clone(sections)
	slices.SortFunc(sections, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	n, latest := 0, -1.0
	for i, s := range sections {
		if s[0] < latest || i+1 < len(sections) && sections[i+1][0] < s[1] {
			n++
		}
		latest = max(latest, s[1])
	}
	return n
}

// WriteJSON writes the summary as one JSON line.
func (s Summary) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(s) }

// WriteText writes the summary as a table.
func (s Summary) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "worker\twrites\trejected\terrors\tsections\t")
	for _, r := range s.Workers {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t\n", r.Name, r.Writes, r.Rejected, r.Errors, len(r.Sections))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	more := ""
	if s.Lapsed > 0 {
		more = fmt.Sprintf("  lapsed %d", s.Lapsed)
	}
	if s.Unknown > 0 {
		more += fmt.Sprintf("  unknown %d", s.Unknown)
	}
	_, err := fmt.Fprintf(w, "writes %d  rejected %d  errors %d  overlaps %d%s  counter %d (from %d)  lost %d\n",
		s.Writes, s.Rejected, s.Errors, s.Overlaps, more, s.Counter, s.Start, s.Lost)
	return err
}
