package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lockfaultd/lockfaultd/live"
)

const watchExample = `lockfaultd watch [--admin URL] [--once] [--interval DURATION]

Shows what a daemon sees, again and again: locks with their leases, actors,
rules and their counts, verdicts, the last minute. In a terminal it keeps to
one picture; elsewhere it prints one whenever something has changed.

Examples:
  lockfaultd watch
  lockfaultd watch --once
  lockfaultd watch --admin http://127.0.0.1:8475     # probe serve
  LOCKFAULTD_ADMIN_TOKEN=... lockfaultd watch --admin http://staging:8474

Exit status 1 if nobody answers, 2 if the token is refused.`

// shortest is the shortest time between two looks.
const shortest = 50 * time.Millisecond

// A watch looks at a daemon and shows what it sees.
type watch struct {
	client   *client
	once     bool
	interval time.Duration
	out      io.Writer
	errs     io.Writer
	last     []byte // what was printed last, without what always changes
	silent   bool   // nobody answered when it was asked last
}

func watchCommandOf(stdout, stderr io.Writer) *cli.Command {
	w, address := &watch{out: stdout, errs: stderr}, ""
	return &cli.Command{
		Name:      "watch",
		Usage:     "show in the terminal what a daemon sees, as its page does",
		UsageText: watchExample,
		Flags: []cli.Flag{
			adminFlag(&address),
			&cli.BoolFlag{Name: "once", Usage: "show it once, and end", Destination: &w.once},
			&cli.DurationFlag{Name: "interval", Usage: "look every `DURATION`", Value: 500 * time.Millisecond, Destination: &w.interval},
		},
		OnUsageError: onUsageError,
		Action: func(c *cli.Context) error {
			if err := noArguments(c, "watch"); err != nil {
				return err
			}
			if w.interval < shortest {
				return usagef("--interval %v: expected %v or more", w.interval, shortest)
			}
			var err error
			if w.client, err = newClient(address); err != nil {
				return err
			}
			return w.run(c.Context)
		},
	}
}

// run shows what is seen until it is told to stop. If nobody answers the first time there is nothing to show.
func (w *watch) run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var first live.Snapshot
	if err := w.client.get(ctx, "/v1/state", &first); err != nil || ctx.Err() != nil {
		return failed(ctx, err)
	}
	term := terminalOf(w.out)
	switch {
	case w.once:
		return show(w.out, first, term)
	case term.redraws():
		return w.redraw(ctx, first, term)
	}
	return w.follow(ctx, first, term)
}

// failed is an error, unless it is that of having been told to stop.
func failed(ctx context.Context, err error) error {
	var usage usageError
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &usage):
		return fmt.Errorf("watch: %w", err)
	}
	return fmt.Errorf("watch: cannot %w", err)
}

func show(out io.Writer, s live.Snapshot, t terminal) error {
	return live.Render(out, local(s), t.width(), t.colour())
}

// local has the times of day in the zone of who looks.
func local(s live.Snapshot) live.Snapshot {
	s.Now = s.Now.Local()
	return s
}

// each looks at the daemon in turn, and has seen deal with what it says, until that fails or ctx ends.
func (w *watch) each(ctx context.Context, seen func(live.Snapshot, error) error) error {
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var s live.Snapshot
		err := w.client.get(ctx, "/v1/state", &s)
		var usage usageError
		if ctx.Err() != nil || errors.As(err, &usage) {
			return failed(ctx, err)
		}
		if err := seen(s, err); err != nil {
			return err
		}
	}
}

// follow prints a snapshot whenever it is another than the last.
func (w *watch) follow(ctx context.Context, first live.Snapshot, t terminal) error {
	if err := w.print(first, t); err != nil {
		return err
	}
	return w.each(ctx, func(s live.Snapshot, err error) error {
		if err != nil {
			if !w.silent {
				fmt.Fprintf(w.errs, "lockfaultd: watch: cannot %v; it is asked again\n", err)
			}
			w.silent = true
			return nil
		}
		w.silent = false
		return w.print(s, t)
	})
}

func (w *watch) print(s live.Snapshot, t terminal) error {
	now, err := constant(s)
	if err != nil {
		return err
	}
	if bytes.Equal(now, w.last) {
		return nil
	}
	if w.last != nil {
		if _, err := io.WriteString(w.out, "\n"); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	w.last = now
	if err := show(w.out, s, t); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// constant is a snapshot without what changes while nothing happens.
func constant(s live.Snapshot) ([]byte, error) {
	s.Now, s.Marks = time.Time{}, nil
	s.Sources, s.Invariants = append([]live.Source{}, s.Sources...), append([]live.Invariant{}, s.Invariants...)
	for i := range s.Sources {
		s.Sources[i].At = time.Time{}
	}
	for i := range s.Invariants {
		s.Invariants[i].At = time.Time{}
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	return b, nil
}

// redraw keeps one picture on a screen of its own, which is left whatever ends it.
func (w *watch) redraw(ctx context.Context, first live.Snapshot, t terminal) error {
	leave := t.enter()
	defer leave()
	former := first
	if err := t.draw(former, ""); err != nil {
		return err
	}
	since := time.Time{}
	return w.each(ctx, func(s live.Snapshot, err error) error {
		if err == nil {
			former, since = s, time.Time{}
			return t.draw(s, "")
		}
		if since.IsZero() {
			since = time.Now()
		}
		return t.draw(former, fmt.Sprintf("cannot %v (for %v); this is how it stood", err, time.Since(since).Round(time.Second)))
	})
}
