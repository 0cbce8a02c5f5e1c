// Command matrix runs the locks that people use through `lockfaultd run`, unmodified, and
// compares what came out with what is written down.
//
// Each library has a small service in clients, written as its users write theirs. Two processes of
// it, A and B, guard a read-modify-write of one row by the library's lock. There are up to four rows
// for each:
//
//	clean   no fault, both at work at once: no verdict, and every grant, refusal, renewal and
//	        release in the history is one that the services counted
//	late    the answer to A's acquire is held until twice the lease; B takes the lock meanwhile
//	freeze  A is frozen for twice the lease when it has read the row
//	renew   A's renewal is held for twice the lease
//	lose    the server loses A's key
//
// In all but the first the order of events is given by files and not by sleeps: A begins when B could, B when the
// server has A's lock, and has a long lease; its work lasts until A has ended. subjects.go says what A has to report
// then, which ops the history has to have and which verdicts there have to be. A deviation
// makes the exit status 1.
//
// With -soak there is one row for each library instead, of many sections, with pauses that are all
// shorter than the lease: no verdict may come of it.
//
// With -effects there are the clean rows of the locks in Redis instead, with one witness alone to tell
// what scripts do.
//
// run.go is one row, count.go reads what came of it, effects.go is -effects, table.go prints.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
)

func main() {
	o := options{}
	only := flag.String("only", "", "libraries to run, comma-separated; * stands for any text (all)")
	rows := flag.String("rows", strings.Join(allRows, ","), "rows to run")
	flag.BoolVar(&o.quick, "quick", false, "only the rows that make test runs")
	flag.IntVar(&o.labs, "labs", 2, "rows at a time, each on servers of its own")
	flag.StringVar(&o.witness, "witness", "auto", "--witness of lockfaultd")
	effects := flag.String("effects", "", "instead of the rows, those without a fault under these witnesses, comma-separated, each without any script's text: monitor, probe")
	flag.IntVar(&o.soak, "soak", 0, "sections, all in all, with pauses shorter than the lease, instead of the rows")
	flag.StringVar(&o.keep, "keep", "", "folder for histories, reports and output (default: none is kept)")
	markdown := flag.Bool("markdown", false, "print what is expected, for docs/matrix.md, and run nothing")
	flag.Parse()
	if *markdown {
		writeMarkdown(os.Stdout)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.choose(*only, *rows, *effects, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(2)
	}
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

type options struct {
	cases   []trial
	quick   bool
	soak    int
	witness string
	labs    int
	keep    string
}

// A trial is one row of one library.
type trial struct {
	subject
	row      string
	sections int    // of each service
	effects  string // the witness that alone tells what scripts do; "": any, and their text
}

func (o *options) choose(only, rows, effects string, rest []string) error {
	if len(rest) > 0 {
		return fmt.Errorf("expected no arguments, got %q", rest)
	}
	names := strings.Split(rows, ",")
	for _, r := range names {
		if !slices.Contains(allRows, r) {
			return fmt.Errorf("-rows: what is %q? expected some of %s", r, strings.Join(allRows, ", "))
		}
	}
	var chosen []subject
	for _, l := range subjects() {
		if l.named(only) {
			chosen = append(chosen, l)
		}
	}
	o.cases = trials(chosen, names, o.quick)
	if o.quick {
		o.cases = append(o.cases, watchedQuickly(chosen)...)
	}
	if o.soak > 0 {
		o.cases = soaks(chosen, o.soak)
	}
	if effects != "" {
		by, err := witnesses(effects)
		if err != nil {
			return err
		}
		o.cases = watched(chosen, by)
	}
	if len(o.cases) == 0 {
		return errors.New("-only, -rows: nothing is left to run")
	}
	return nil
}

// named reports whether the library is one of a list of globs.
func (l subject) named(list string) bool {
	return list == "" || slices.ContainsFunc(strings.Split(list, ","), func(glob string) bool {
		ok, _ := path.Match(glob, l.name)
		return ok
	})
}

// trials are the rows of that name, of those that have them.
func trials(all []subject, rows []string, quick bool) []trial {
	var out []trial
	for _, l := range all {
		for _, r := range allRows {
			_, has := l.rows[r]
			if !has || !slices.Contains(rows, r) || quick && !slices.Contains(l.quick, r) {
				continue
			}
			t := trial{subject: l, row: r, sections: 1}
			if r == clean {
				t.sections = 20
			}
			out = append(out, t)
		}
	}
	return out
}

// soaks divides sections among the libraries. A slow one gets a tenth of another's.
func soaks(all []subject, sections int) []trial {
	weights := 0
	for _, l := range all {
		weights += l.weight()
	}
	var out []trial
	for _, l := range all {
		out = append(out, trial{subject: l, row: soak, sections: sections*l.weight()/weights/2 + 1})
	}
	return out
}

func (l subject) weight() int {
	if l.slow {
		return 1
	}
	return 10
}
