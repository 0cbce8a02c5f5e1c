package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lockfaultd/lockfaultd/report"
)

// A telling is where an outcome goes: the summary to stdout, and what CIs read
// beside it. Its files are opened before the command runs, so that a path that is
// wrong costs no run.
type telling struct {
	junit  *os.File // nil: not asked for
	step   *os.File // of GitHub's step summary; nil: none
	github bool
	stdout io.Writer
	stderr io.Writer
}

func openTelling(o *options, stdout, stderr io.Writer) (*telling, error) {
	t := &telling{github: o.github, stdout: stdout, stderr: stderr}
	var err error
	if o.junit != "" {
		// It may be meant for the folder that the run is to make.
		if filepath.Clean(filepath.Dir(o.junit)) == filepath.Clean(o.out) && o.out != "" {
			_ = os.MkdirAll(o.out, 0o755) // opening the file says what is wrong
		}
		if t.junit, err = os.Create(o.junit); err != nil {
			return nil, usagef("--junit: %v", err)
		}
	}
	if !t.github {
		return t, nil
	}
	path := os.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		fmt.Fprintln(stderr, "lockfaultd: --github: GITHUB_STEP_SUMMARY is not set, as it is in a job of GitHub Actions: there is no step summary")
		return t, nil
	}
	if t.step, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		return nil, errors.Join(usagef("--github: GITHUB_STEP_SUMMARY: %v", err), t.close())
	}
	return t, nil
}

func (t *telling) close() error {
	var errs error
	for _, f := range []*os.File{t.junit, t.step} {
		if f != nil {
			errs = errors.Join(errs, f.Close())
		}
	}
	return errs
}

// run tells what one run came to.
func (t *telling) run(r report.Run) error {
	err := t.summary(func(w io.Writer) error { return report.Text(w, r) })
	if t.junit != nil {
		err = errors.Join(err, report.JUnit(t.junit, r))
	}
	if t.github {
		err = errors.Join(err, report.GitHub(t.stdout, r.Annotations(), 1), t.stepSummary(r.Files, func(w io.Writer) error { return report.Markdown(w, r) }))
	}
	return errors.Join(err, t.close())
}

// summary writes to stdout what is for people. A job of GitHub Actions takes lines
// that begin with :: for its own, and what came from the wire is in the summary: it
// is told not to.
func (t *telling) summary(write func(io.Writer) error) error {
	if !t.github {
		return write(t.stdout)
	}
	token := "lockfaultd-" + rand.Text()
	fmt.Fprintf(t.stdout, "::stop-commands::%s\n", token)
	err := write(t.stdout)
	fmt.Fprintf(t.stdout, "::%s::\n", token)
	return err
}

// stepSummary adds a page to the step's, which has room for so much.
func (t *telling) stepSummary(files []string, write func(io.Writer) error) error {
	if t.step == nil {
		return nil
	}
	page, err := bytesOf(write)
	if err != nil {
		return err
	}
	info, err := t.step.Stat()
	if err != nil {
		return fmt.Errorf("write step summary: %w", err)
	}
	whole := "the log of this step"
	if len(files) > 0 {
		whole = files[len(files)-1]
	}
	room := report.StepSummaryLimit - int(info.Size())
	if len(page) > room {
		fmt.Fprintln(t.stderr, "lockfaultd: --github: the step summary is truncated: GitHub takes 1 MiB of a step at most")
	}
	return report.StepSummary(t.step, page, room, whole)
}

func bytesOf(write func(io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	err := write(&b)
	return b.Bytes(), err
}
