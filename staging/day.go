package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// stage sets the stage, lets the day pass, and says what was wrong.
func stage(ctx context.Context, o options) (err error) {
	s := &theatre{options: o, dir: o.Keep}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "lockfaultd-staging-"); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o755); err != nil { // the user postgres passes
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.set(ctx); err != nil {
		return err
	}
	d := &day{theatre: s, began: time.Now()}
	return d.pass(ctx)
}

// A day is the course of events.
type day struct {
	*theatre
	began         time.Time
	made          int // lost updates
	rounds        int
	daemons, eyes memory
}

// between is the time between two looks at memory.
const between = 5 * time.Second

func (d *day) say(format string, args ...any) {
	fmt.Printf("%6.1f s  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

func (d *day) pass(ctx context.Context) error {
	looking, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { d.look(looking) })
	err := d.course(ctx)
	stop()
	looks.Wait()
	if err != nil {
		return err
	}
	return d.conclude(ctx)
}

func (d *day) look(ctx context.Context) {
	for {
		d.daemons.look(d.daemon.pid.Load())
		d.eyes.look(d.probe.pid.Load())
		select {
		case <-ctx.Done():
			return
		case <-time.After(between):
		}
	}
}

// course has one round after the other until the time is over.
func (d *day) course(ctx context.Context) error {
	disasters := []struct {
		what string
		do   func(context.Context) error
	}{
		{"probe is killed", d.killProbe}, {"lockfaultd is killed", d.killDaemon}, {"Redis is started anew", d.redis.Restart},
		{"probe is stopped in order", d.stopProbe}, {"Postgres is started anew", d.postgres.Restart}, {"lockfaultd is stopped in order", d.stopDaemon},
	}
	for ; time.Since(d.began) < d.Time; d.rounds++ {
		if err := d.quiet(ctx); err != nil {
			return err
		}
		if err := d.race(ctx); err != nil {
			return err
		}
		if d.Calm {
			continue
		}
		next := disasters[d.rounds%len(disasters)]
		d.say("%s", next.what)
		if err := next.do(ctx); err != nil {
			return err
		}
	}
	return d.quiet(ctx)
}

// quiet lets a stretch pass in which there must be no harm.
func (d *day) quiet(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d.Quiet):
	}
	return d.holds(ctx)
}

// holds checks that as much was told as was made, and nothing else.
func (d *day) holds(ctx context.Context) error {
	f, err := d.findings(ctx)
	if err != nil {
		return err
	}
	switch lost, others := f.lost(); {
	case len(others) > 0:
		return fmt.Errorf("%d lost updates were made, %d told, and beside these %+v", d.made, lost, others)
	case lost > d.made:
		return fmt.Errorf("%d lost updates were made by the rule, and %d told: a service that waits for a processor past its lease loses more by itself, so this takes a machine with nothing else to do", d.made, lost)
	case lost < d.made:
		return fmt.Errorf("%d lost updates were made, and %d told", d.made, lost)
	}
	return nil
}

// race makes the first service lose one update. Each other time probe is killed before it can tell.
func (d *day) race(ctx context.Context) error {
	rule := map[string]any{"name": "race", "times": 1,
		"rule": "--freeze-before write(counter)#1=until:lease-expired+next-write,timeout=10s"}
	if err := ask(ctx, http.MethodPost, d.admin+"/v1/rules", rule, nil); err != nil {
		return err
	}
	err := until(ctx, time.Minute, "the rule's injection", func() (bool, error) {
		var now struct {
			Rules []struct {
				Name  string
				Fired int
				Armed bool
			}
		}
		err := ask(ctx, http.MethodGet, d.admin+"/v1/rules", nil, &now)
		return err == nil && len(now.Rules) == 1 && now.Rules[0].Fired == 1 && !now.Rules[0].Armed, err
	})
	if err != nil {
		return err
	}
	d.made++
	if err := d.thawed(ctx); err != nil {
		return err
	}
	if err := ask(ctx, http.MethodDelete, d.admin+"/v1/rules/race", nil, nil); err != nil {
		return err
	}
	if d.rounds%2 == 1 && !d.Calm {
		d.say("probe is killed before it has told")
		if err := d.killProbe(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	err = until(ctx, 5*time.Minute, fmt.Sprintf("verdict %d", d.made), func() (bool, error) {
		f, err := d.findings(ctx)
		lost, _ := f.lost()
		return err == nil && lost >= d.made, err
	})
	d.say("lost update %d was told %.1f s later", d.made, time.Since(began).Seconds())
	return errors.Join(err, d.holds(ctx))
}

// thawed waits until no process is frozen or stalled.
func (d *day) thawed(ctx context.Context) error {
	return until(ctx, time.Minute, "the thaw", func() (bool, error) {
		var now struct{ Actors []struct{ State string } }
		err := ask(ctx, http.MethodGet, d.admin+"/v1/actors", nil, &now)
		for _, a := range now.Actors {
			if a.State != "running" {
				return false, err
			}
		}
		return err == nil, err
	})
}

func (d *day) killProbe(ctx context.Context) error {
	return d.again(ctx, d.probe, syscall.SIGKILL, d.watcher)
}
func (d *day) stopProbe(ctx context.Context) error {
	return d.again(ctx, d.probe, syscall.SIGTERM, d.watcher)
}
func (d *day) killDaemon(ctx context.Context) error {
	return d.again(ctx, d.daemon, syscall.SIGKILL, d.admin)
}
func (d *day) stopDaemon(ctx context.Context) error {
	return d.again(ctx, d.daemon, syscall.SIGTERM, d.admin)
}

// again ends a part and starts it anew.
func (d *day) again(ctx context.Context, p *part, sig syscall.Signal, url string) error {
	p.end(sig)
	if err := p.start(); err != nil {
		return err
	}
	return d.ready(ctx, url)
}

// conclude says what it came to.
func (d *day) conclude(ctx context.Context) error {
	f, err := d.findings(ctx)
	if err != nil {
		return err
	}
	lost, _ := f.lost()
	fmt.Printf("\n%d rounds in %v: %d lost updates made, %d told, no other harm; gaps told: %d\n", d.rounds, time.Since(d.began).Round(time.Second), d.made, lost, f.Missed)
	for _, g := range f.Groups {
		fmt.Printf("  %s %s %s%s%s: %d\n", g.Code, g.Level, g.Lock, g.Table, g.Invariant, g.Count)
	}
	for _, m := range []struct {
		name string
		*memory
	}{{"lockfaultd", &d.daemons}, {"probe", &d.eyes}} {
		early, late, most := m.growth(between)
		fmt.Printf("%s: resident memory %d KiB, later %d KiB, at most %d KiB\n", m.name, early, late, most)
		if d.Calm && late > early+early/5+4096 {
			err = errors.Join(err, fmt.Errorf("the memory of %s grows: from %d KiB to %d KiB", m.name, early, late))
		}
	}
	return err
}
