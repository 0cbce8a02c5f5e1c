package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/probe/check"
	"github.com/lockfaultd/lockfaultd/sweep"
)

// rows runs the trials, each as often as it is to be.
func (s *sweeping) rows(ctx context.Context, trials []sweep.Trial) ([]sweep.Row, error) {
	var rows []sweep.Row
	pace := newPace(len(trials) * s.repeat)
	for i, t := range trials {
		var runs []sweep.Outcome
		for k := range s.repeat {
			began := time.Now()
			o, err := s.clean(ctx, t, fmt.Sprintf("%02d-%s", i+1, folderName(t)), k+1)
			if err != nil {
				return nil, err
			}
			runs = append(runs, o)
			left := pace.done(time.Since(began))
			r := sweep.NewRow(t, []sweep.Outcome{o})
			s.say("%d/%d  %s, %s: %s %s (%s left)", pace.n, pace.of, t.Anchor, t.Fault, r.Result, strings.Join(r.Codes, " "), left.Round(time.Second))
		}
		rows = append(rows, sweep.NewRow(t, runs))
	}
	return rows, nil
}

// A pace tells how long what is left will take.
type pace struct {
	n, of int
	took  time.Duration
}

func newPace(of int) *pace { return &pace{of: of} }

func (p *pace) done(took time.Duration) time.Duration {
	p.n++
	p.took += took
	return p.took / time.Duration(p.n) * time.Duration(p.of-p.n)
}

func folderName(t sweep.Trial) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Anchor+"-"+t.Fault)
}

// tries is how often a trial is run anew that harm has come to which is not owed to its fault.
const tries = 3

// clean runs a trial until nothing but the fault has done harm, a few times at most.
func (s *sweeping) clean(ctx context.Context, t sweep.Trial, name string, k int) (o sweep.Outcome, err error) {
	for range tries {
		if o, err = s.trial(ctx, t, name, k); err != nil || len(o.Beside()) == 0 {
			return o, err
		}
		s.say("%s, %s: %s beside the fault, of sections that outran their lease without it: once more", t.Anchor, t.Fault, strings.Join(o.Beside(), " "))
	}
	return o, err
}

// trial runs a trial once, and reads what it came to.
func (s *sweeping) trial(ctx context.Context, t sweep.Trial, name string, k int) (sweep.Outcome, error) {
	dir := filepath.Join(s.out, name, fmt.Sprint(k))
	exit, said, err := s.run(ctx, dir, []string{"--" + t.Flag, t.Rule})
	if err != nil {
		return sweep.Outcome{}, err
	}
	switch exit {
	case 0, 10, 11, 12:
		return readOutcome(dir)
	}
	fmt.Fprint(s.stderr, said)
	s.say("a run ended with %d: lockfaultd run --%s %s", exit, t.Flag, quote(t.Rule))
	return sweep.Outcome{}, status(exit)
}

// run is one `lockfaultd run` in a process of its own, whose files are below a folder, with what it printed.
func (s *sweeping) run(ctx context.Context, dir string, rule []string) (exit int, said string, err error) {
	args := append([]string{"lockfaultd", "run", "--out", dir}, s.passed...)
	args = append(append(append(args, rule...), "--"), s.command...)
	cmd := exec.CommandContext(ctx, self())
	cmd.Args = args
	// In a group of its own it is told once to end, by us, and not by the terminal as well.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if s.verbose {
		fmt.Fprint(s.stderr, out.String())
	}
	var x *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, "", status(exitInterrupted)
	case err != nil && !errors.As(err, &x):
		return 0, "", fmt.Errorf("run lockfaultd: %w", err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), nil
}

const exitInterrupted = 130

// A trialReport is what a sweep reads of report.json.
type trialReport struct {
	Exit     int
	Why      string
	Verdicts []struct{ Code, Accepted string }
	Rules    []struct {
		WhyNot string `json:"why_not"`
	}
}

// readOutcome reads what a run came to, and judges its history anew, which tells more than the report: of
// which sections each verdict is.
func readOutcome(dir string) (sweep.Outcome, error) {
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		return sweep.Outcome{}, fmt.Errorf("read the report: %w", err)
	}
	var r trialReport
	if err := json.Unmarshal(text, &r); err != nil {
		return sweep.Outcome{}, fmt.Errorf("read the report: %w", err)
	}
	h, err := readRun(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		return sweep.Outcome{}, err
	}
	o := sweep.Outcome{Exit: r.Exit, Why: r.Why}
	for _, v := range check.Judge(check.From(h)).Verdicts {
		o.Verdicts = append(o.Verdicts, sweep.Verdict{Code: v.Code, Level: string(v.Level), Class: string(v.Class), Harm: v.Harm && !r.accepted(v.Code), Terms: v.Terms})
	}
	r.injected(h, &o)
	return o, nil
}

// injected says what became of the fault.
func (r trialReport) injected(h *history.History, o *sweep.Outcome) {
	if len(r.Rules) > 0 {
		o.Reason = r.Rules[0].WhyNot
	}
	if len(h.Injections) == 0 {
		return
	}
	in := h.Injections[0]
	o.Happened, o.Reason = in.Outcome, in.Reason
	for _, op := range h.Ops {
		if op.Seq == in.Op {
			o.Term = op.Term.ID
		}
	}
}

// accepted reports whether all that was found of a code is known and accepted.
func (r trialReport) accepted(code string) bool {
	known := false
	for _, v := range r.Verdicts {
		if v.Code == code && v.Accepted == "" {
			return false
		}
		known = known || v.Code == code
	}
	return known
}

func readRun(path string) (*history.History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	return h, nil
}
