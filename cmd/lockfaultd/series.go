package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/lockfaultd/lockfaultd/report"
)

// A series is the command run several times, each time with proxies, readings, a
// history and a verdict of its own, and with one seed.
type series struct {
	options *options
	told    *telling
	dir     string
	keep    bool // all of it was asked for

	report.Series
	notes  [][]report.Annotation
	suites []report.Suite
	page   []byte // of the worst run
}

// runSeries makes the runs one after the other, and exits by the worst. The first one
// is ready.
func runSeries(ctx context.Context, w *wrapped, t *telling) error {
	s := &series{options: w.options, told: t}
	s.Asked, s.Seed, s.Armed, s.Command, s.Repeat = w.options.repeat, w.setup.seed, len(w.setup.rules) > 0, w.options.command, w.repeat()
	if err := s.open(); err != nil {
		return errors.Join(err, t.close())
	}
	if w.options.replay == "" {
		w.options.seed = s.Seed
	}
	if err := s.all(ctx, w); err != nil {
		return errors.Join(err, t.close(), s.discard())
	}
	err := s.write()
	return exitBy(s.Outcome().Exit, errors.Join(t.series(s), err))
}

func (s *series) open() (err error) {
	if s.dir, s.keep = s.options.out, s.options.out != ""; s.keep {
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return usagef("--out: cannot make the folder: %v", err)
		}
		return nil
	}
	if s.dir, err = os.MkdirTemp("", "lockfaultd-runs-"); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}

// all runs them, until somebody asks for the end. That may be between two runs, too.
func (s *series) all(ctx context.Context, w *wrapped) error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(asked)
	for n := 1; n <= s.Asked && !s.Interrupted; n++ {
		if n > 1 {
			var err error
			if w, err = newWrapped(s.options, s.told.stdout, s.told.stderr); err != nil {
				return err
			}
		}
		w.dir, w.keep = filepath.Join(s.dir, fmt.Sprintf("run-%0*d", len(fmt.Sprint(s.Asked)), n)), s.keep
		r, err := w.run(ctx)
		if r == nil || err != nil {
			return err
		}
		if err := s.add(*r, w.dir); err != nil {
			return err
		}
		s.Interrupted = s.Interrupted || len(asked) > 0
	}
	return nil
}

// add takes in what a run came to, and lets go of the run.
func (s *series) add(r report.Run, dir string) error {
	o := r.Outcome()
	fmt.Fprintf(s.told.stderr, "lockfaultd: run %d of %d: %s (exit %d): %s\n", len(s.Runs)+1, s.Asked, o.Word, o.Exit, o.Why)
	if len(r.Files) == 0 {
		dir = ""
	}
	worst := s.Worst()
	s.Runs, s.Folders = append(s.Runs, r.Saved()), append(s.Folders, dir)
	s.Interrupted = r.Interrupted
	if s.told.github {
		s.notes = append(s.notes, r.Annotations())
	}
	if s.told.junit != nil {
		s.suites = append(s.suites, r.Suite(len(s.Runs)))
	}
	if !s.told.github || worst >= 0 && !report.Worse(o.Exit, s.Runs[worst].Exit()) {
		return nil
	}
	page, err := bytesOf(func(w io.Writer) error { return report.Markdown(w, r) })
	s.page = page
	return err
}

// write keeps the files of the series where those of a run are kept.
func (s *series) write() error {
	if !s.keep && s.Outcome().Exit == 0 {
		return s.discard()
	}
	s.Files = []string{filepath.Join(s.dir, "runs.json"), filepath.Join(s.dir, "runs.md")}
	return errors.Join(
		toFile(s.Files[0], func(w io.Writer) error { return report.SeriesJSON(w, s.Series) }),
		toFile(s.Files[1], func(w io.Writer) error { return report.SeriesMarkdown(w, s.Series) }))
}

// discard removes the folder if nothing is kept in it.
func (s *series) discard() error {
	if s.keep {
		return nil
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		return err
	}
	return os.Remove(s.dir)
}

// series tells what several runs came to.
func (t *telling) series(s *series) error {
	err := t.summary(func(w io.Writer) error { return report.SeriesText(w, s.Series) })
	if t.junit != nil {
		err = errors.Join(err, report.JUnitSeries(t.junit, s.suites))
	}
	if t.github {
		err = errors.Join(err, report.GitHub(t.stdout, report.Merged(s.notes...), len(s.Runs)), t.stepSummary(s.Files, func(w io.Writer) error {
			if err := report.SeriesMarkdown(w, s.Series); err != nil {
				return err
			}
			_, err := fmt.Fprintf(w, "\n### Run %d\n\n%s", s.Worst()+1, s.page)
			return err
		}))
	}
	return errors.Join(err, t.close())
}
