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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
)

// lease is that of A in the rows with a fault, which last twice as long.
const lease = time.Second

// rowLimit bounds one row, soakLimit one of many sections.
const (
	rowLimit  = 90 * time.Second
	soakLimit = 20 * time.Minute
)

// short are pauses that no lease minds.
var short = []string{
	"--freeze-after", "SELECT(counter)#*/197=60ms", "--freeze-before", "UPDATE(counter)#*/211=90ms",
	"--stall-after", "acquire#*/223=70ms", "--stall-before", "release#*/227=40ms",
}

// counter is the number that the services write.
const counter = "SELECT value FROM counter WHERE id = 1"

// An outcome is what came of one trial.
type outcome struct {
	trial
	a, b     counts // as the services say
	seen     counts // as the history says
	evidence string
	verdicts string
	missed   int   // calls that the witness says that it has not seen
	deficit  int64 // of the counter: acknowledged less the database's
	took     time.Duration
	wrong    []string
}

// try runs one trial. One whose fault missed its moment, for the witness told too late
// what a script had done, is run again, twice at most.
func (l *lab) try(ctx context.Context, t trial) outcome {
	o := l.tryOnce(ctx, t)
	for n := 0; n < 2 && o.mistimed(); n++ {
		fmt.Fprintf(os.Stderr, "%s %s: again, since the witness was late for %d calls: %s\n", t.name, t.label(), o.missed, strings.Join(o.wrong, "; "))
		o = l.tryOnce(ctx, t)
	}
	return o
}

// mistimed reports whether nothing was exercised, where something should have been, and the
// witness says that it was late. Whatever else is not as written down stays so.
func (o *outcome) mistimed() bool {
	return len(o.wrong) > 0 && o.missed > 0 && len(o.fault()) > 0 && o.verdicts == notExercised
}

const notExercised = "LF401"

func (l *lab) tryOnce(ctx context.Context, t trial) outcome {
	o := outcome{trial: t}
	began := time.Now()
	dir := filepath.Join(l.dir, t.name+"-"+t.label())
	if err := l.runOnce(ctx, &o, dir); err != nil {
		o.wrong = append(o.wrong, err.Error())
	} else {
		o.compare()
	}
	o.took = time.Since(began)
	l.put(dir)
	return o
}

// put keeps the folder of a trial where that is wanted.
func (l *lab) put(dir string) {
	if l.options.keep != "" {
		to := filepath.Join(l.options.keep, filepath.Base(dir))
		_ = os.RemoveAll(to)
		_ = os.CopyFS(to, os.DirFS(dir))
	}
	_ = os.RemoveAll(dir)
}

func (l *lab) runOnce(ctx context.Context, o *outcome, dir string) error {
	limit := rowLimit
	if o.row == soak {
		limit = soakLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := errors.Join(os.Mkdir(dir, 0o755), l.clear(ctx)); err != nil {
		return err
	}
	text, err := l.command(ctx, o, dir)
	if err != nil {
		return fmt.Errorf("%w:\n%s", err, text)
	}
	o.missed = missedIn(text)
	if err := o.read(dir); err != nil {
		return err
	}
	var value int64
	if err := l.conn.QueryRow(ctx, counter).Scan(&value); err != nil {
		return err
	}
	if real := int64(o.a.Wrote+o.b.Wrote) - value; !o.rowed && real != o.deficit {
		o.wrong = append(o.wrong, fmt.Sprintf("the net deficit is %d by the wire and %d by the database", o.deficit, real))
	}
	return nil
}

// command runs the services below lockfaultd. Their statuses do not matter here:
// one that failed has printed nothing.
func (l *lab) command(ctx context.Context, o *outcome, dir string) (string, error) {
	args := append([]string{"run", "--out", dir, "--counter", counter}, o.witnessed(l.options.witness)...)
	args = append(append(args, o.fault()...), "--", "sh", "-c", l.script(o.trial))
	cmd := exec.CommandContext(ctx, l.tools.lockfaultd, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REDIS_URL="+l.redis.URL(), "DATABASE_URL="+l.pg.URL(), "PYTHONDONTWRITEBYTECODE=1")
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := l.starting(ctx, o.trial, filepath.Join(dir, "start"))
	err := cmd.Wait()
	stop()
	_ = os.WriteFile(filepath.Join(dir, "summary.txt"), text.Bytes(), 0o644)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 10 && exit.ExitCode() <= 11 {
		err = nil // a verdict
	}
	return text.String(), err
}

// starting makes the file start once the server has the lock, or, in the row lose, has
// lost it as a replica that takes over may have. The function that it
// returns ends it.
func (l *lab) starting(ctx context.Context, t trial, file string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil && !l.taken(ctx, t.subject) {
			time.Sleep(5 * time.Millisecond)
		}
		if t.row == lose {
			_ = l.client.FlushAll(ctx)
		}
		_ = os.WriteFile(file, nil, 0o644)
	}()
	return func() {
		cancel()
		<-done
	}
}

// fault returns the rule of a row.
func (t trial) fault() []string {
	twice := (2 * lease).String()
	switch t.row {
	case late:
		return []string{"--stall-after", t.grantedAt() + "#1=" + twice}
	case freeze:
		return []string{t.freezeAt(), t.freezeOn() + "#1=" + twice}
	case soak:
		return short
	case renew:
		return []string{"--stall-before", t.renewsAt() + "=" + twice}
	}
	return nil
}

// script runs A and B beside each other.
func (l *lab) script(t trial) string {
	program := t.program(l.tools)
	think := map[string]string{clean: "THINK_MS=10", soak: "THINK_MS=0 RETRY_MS=1"}
	b := []string{fmt.Sprint("SECTIONS=", t.sections), "LEASE_MS=5000", think[t.row], "RENEW=1"}
	a := append(slices.Clone(b), "INSERT=1")
	switch ms := fmt.Sprint(lease.Milliseconds()); t.row {
	case clean, soak:
		if t.second {
			b = append(b, "START_FILE=start")
		}
	default:
		a = []string{"SECTIONS=1", "ATTEMPTS=1", "LEASE_MS=" + ms, "THINK_MS=100", "INSERT=1", "START_FILE=ready"}
		b = []string{"SECTIONS=1", "LEASE_MS=15000", "READY_FILE=ready", "START_FILE=start", "WAIT_FILE=done"}
	}
	if t.row == renew {
		a = append(a, "RENEW=1")
	}
	if t.row == lose || t.row == renew && t.alone {
		a = append(a, "THINK_MS=3000") // it renews when half of the lease is over
	}
	return fmt.Sprintf("(%s %s >a.json 2>a.err; : >done) & %s %s >b.json 2>b.err & wait",
		strings.Join(append(a, t.env...), " "), program, strings.Join(append(b, t.env...), " "), program)
}

// read takes in what the services, the report and the history say.
func (o *outcome) read(dir string) error {
	for _, s := range []struct {
		name string
		into *counts
	}{{"a", &o.a}, {"b", &o.b}} {
		b, err := os.ReadFile(filepath.Join(dir, s.name+".json"))
		if err == nil {
			err = json.Unmarshal(b, s.into)
		}
		if err != nil {
			text, _ := os.ReadFile(filepath.Join(dir, s.name+".err"))
			return fmt.Errorf("read what %s counted: %w:\n%s", s.name, err, text)
		}
	}
	var r report
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		return fmt.Errorf("read report: %w", err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("read report: %w", err)
	}
	o.judged(r)
	f, err := os.Open(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		return fmt.Errorf("read history: %w", err)
	}
	o.seen, o.evidence = tally(o.subject, h.Ops)
	return nil
}
