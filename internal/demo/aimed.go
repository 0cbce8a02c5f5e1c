package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// An aim is a fault at one place of a section.
type aim struct {
	place, flag, event, effect string
	load                       []string
	quick                      bool // part of make test
	end                        bool // at the end of the section: its release has been asked for, and the lock is had
}

// rule has the fault done n times.
func (a aim) rule(n int) string {
	return strings.TrimSuffix(fmt.Sprintf("%s#1-%d=%s", a.event, n, a.effect), "=")
}

// aims are the places of a section, each with faults that are common there.
func aims() []aim {
	long := []string{"--lease", "2s"}
	fenced := append(slices.Clone(long), "--fence", "write", "--broken", "split-fence")
	tx := append(slices.Clone(long), "--write", "tx")
	return []aim{
		{"after acquire", "--freeze-after", "acquire", "30ms", long, true, false},
		{"before fence", "--freeze-before", "fence", "30ms", fenced, false, false},
		{"before read", "--stall-before", "read", "30ms", long, true, false},
		{"after read", "--freeze-after", "read", "30ms", long, false, false},
		{"before write", "--freeze-before", "write", "30ms", long, true, false},
		{"before write", "--freeze-before", "write", "ttl+20%", []string{"--lease", "300ms"}, false, false},
		{"reply of write", "--hold-reply", "write", "30ms", long, true, false},
		{"reply of write", "--drop-reply", "write", "", long, false, false},
		{"before commit", "--freeze-before", "commit", "30ms", tx, true, false},
		{"reply of commit", "--stall-after", "commit", "30ms", tx, false, false},
		{"before release", "--freeze-before", "release", "30ms", long, true, true},
	}
}

// aimed arms n injections at each place of a section, and counts in the histories how many of them landed in one.
func aimed(ctx context.Context, d *demo, args []string) error {
	fs := flag.NewFlagSet("demo aimed", flag.ContinueOnError)
	n := fs.Int("n", 100, "how many injections are armed at each place")
	quick := fs.Bool("quick", false, "the part that make test runs")
	if err := fs.Parse(args); err != nil {
		return err
	}
	list := aims()
	d.duration = "5s"
	if *quick {
		list = slices.DeleteFunc(list, func(a aim) bool { return !a.quick })
		d.duration = "600ms"
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "place\tfault\tarmed\tlanded in a section")
	var inside, end landing
	for i, a := range list {
		progress("%d/%d  %s: %s %s", i+1, len(list), a.place, a.flag, a.rule(*n))
		got, err := d.aim(ctx, a, i, *n)
		if err != nil {
			return fmt.Errorf("%s: %w", a.place, err)
		}
		if a.end {
			end.add(got)
			fmt.Fprintf(t, "%s\t%s %s\t%d\t%d, at its end\n", a.place, a.flag, a.rule(*n), got.armed, got.landed)
			continue
		}
		inside.add(got)
		fmt.Fprintf(t, "%s\t%s %s\t%d\t%d\n", a.place, a.flag, a.rule(*n), got.armed, got.landed)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Printf("\nAimed faults: of %d injections armed in a section, %d landed in one.\n", inside.armed, inside.landed)
	fmt.Printf("Of %d that were armed at its end, before the release, %d landed there.\n", end.armed, end.landed)
	inside.add(end)
	return inside.fails(*n * len(list))
}

// mostShown is how many of those that went astray are shown.
const mostShown = 10

// fails lists what went astray, and says if not all is there that was to be done.
func (l landing) fails(want int) error {
	for _, why := range l.astray[:min(len(l.astray), mostShown)] {
		fmt.Println("ASTRAY:", why)
	}
	if l.armed != want || l.landed != want {
		return fmt.Errorf("%d were to be armed, and to land", want)
	}
	return nil
}

// mostRuns bounds how often a service is run until all of its faults are done.
const mostRuns = 20

// aim runs a service until it has had n injections.
func (d *demo) aim(ctx context.Context, a aim, i, n int) (got landing, err error) {
	for runs := 0; got.armed < n && runs < mostRuns; runs++ {
		r := row{load: a.load, rules: []string{a.flag, a.rule(n - got.armed)}, must: func(outcome) string { return "" }}
		if _, err := d.run(ctx, r, i); err != nil {
			return got, err
		}
		h, err := readHistory(d.file(fmt.Sprintf("row%d/history.jsonl", i+1)))
		if err != nil {
			return got, err
		}
		got.add(landings(h, a.end))
	}
	return got, nil
}

func readHistory(path string) (*history.History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer f.Close()
	return history.Read(f)
}

// A landing says where injections landed.
type landing struct {
	armed, landed int
	astray        []string // of each that did not land in a section, why
}

func (l *landing) add(m landing) {
	l.armed += m.armed
	l.landed += m.landed
	l.astray = append(l.astray, m.astray...)
}

// landings goes by what the history says of each injection's time and op, and of its actor's terms. What
// it says of the injection, that its target was in a section, has to agree; at the section's end, that it was not.
func landings(h *history.History, end bool) (out landing) {
	terms := map[lock.TermID]*held{}
	ops := map[uint64]*lock.Op{}
	for _, op := range h.Ops {
		ops[op.Seq] = op
		note(terms, op)
	}
	for _, i := range h.Injections {
		out.armed++
		if why := astray(i, ops[i.Op], terms, end); why != "" {
			out.astray = append(out.astray, fmt.Sprintf("injection %d, %s, at %s until %s: %s", i.ID, i.Rule, time.Duration(i.At), time.Duration(i.Ended), why))
			continue
		}
		out.landed++
	}
	return out
}

// A held is a term from the server's yes until its release is sent to the server. Its lease
// certainly runs until a time.
type held struct {
	actor           string
	from, to, lease lock.Instant
}

func note(terms map[lock.TermID]*held, op *lock.Op) {
	switch {
	case op.Kind == lock.Acquire && op.Outcome == lock.Granted:
		terms[op.Term.ID] = &held{actor: op.Actor, from: op.R, to: lock.Never, lease: op.F.Add(op.TTL)}
	case op.Kind == lock.Release && op.F != 0 && terms[op.Term.ID] != nil:
		terms[op.Term.ID].to = op.F
	}
}

// astray says why an injection did not land in a section, "" if it did: it began while its actor had the
// lock, by an unexpired lease, and was over before that was given back; and its op belongs to that term.
func astray(i history.Injection, op *lock.Op, terms map[lock.TermID]*held, end bool) string {
	switch {
	case i.Outcome != "landed":
		return i.Outcome + " " + i.Reason
	case op == nil:
		return "its op is not in the history"
	case terms[op.Term.ID] == nil:
		return "its op belongs to no term"
	}
	t, ended := terms[op.Term.ID], max(i.At, i.Ended)
	switch {
	case i.Actor != t.actor || op.Actor != t.actor:
		return fmt.Sprintf("it is %s's, the term %s's", i.Actor, t.actor)
	case i.At < t.from || i.At >= t.lease:
		return fmt.Sprintf("the lock was had from %s, and its lease ran until %s", time.Duration(t.from), time.Duration(t.lease))
	case ended > t.to:
		return fmt.Sprintf("the lock was given back at %s", time.Duration(t.to))
	case end && (op.Kind != lock.Release || i.At < op.A):
		return "its release had not been asked for"
	case i.Section == end:
		return fmt.Sprintf("the history says that its target was in a section: %t", i.Section)
	}
	return ""
}
