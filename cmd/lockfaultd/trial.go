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
			o, err := s.trial(ctx, t, fmt.Sprintf("%02d-%s", i+1, folderName(t)), k+1)
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

// trial runs a trial once, and reads what it came to.
func (s *sweeping) trial(ctx context.Context, t sweep.Trial, name string, k int) (sweep.Outcome, error) {
	dir := filepath.Join(s.out, name, fmt.Sprint(k))
	exit, said, err := s.run(ctx, dir, []string{"--" + t.Flag, t.Rule})
	if err != nil {
		return sweep.Outcome{}, err
	}
	switch exit {
	case 0, 10, 11, 12:
		return readOutcome(filepath.Join(dir, "report.json"))
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
	Verdicts []struct {
		Code, Level, Class, Accepted string
		Harm                         bool
	}
	Rules []struct {
		WhyNot string `json:"why_not"`
	}
	Injections struct {
		List []struct{ Outcome, Reason string }
	}
}

func readOutcome(path string) (sweep.Outcome, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return sweep.Outcome{}, fmt.Errorf("read the report: %w", err)
	}
	var r trialReport
	if err := json.Unmarshal(text, &r); err != nil {
		return sweep.Outcome{}, fmt.Errorf("read the report: %w", err)
	}
	return r.outcome(), nil
}

func (r trialReport) outcome() sweep.Outcome {
	o := sweep.Outcome{Exit: r.Exit, Why: r.Why}
	for _, v := range r.Verdicts {
		o.Verdicts = append(o.Verdicts, sweep.Verdict{Code: v.Code, Level: v.Level, Class: v.Class, Harm: v.Harm && v.Accepted == ""})
	}
	if len(r.Rules) > 0 {
		o.Reason = r.Rules[0].WhyNot
	}
	if len(r.Injections.List) > 0 {
		o.Happened, o.Reason = r.Injections.List[0].Outcome, r.Injections.List[0].Reason
	}
	return o
}
