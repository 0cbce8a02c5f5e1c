package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"path/filepath"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

func (d *daemon) injected(in history.Injection) {
	said := []any{"rule", in.Rule, "effect", in.Effect, "matched", in.Matched, "for", in.For, "actor", in.Actor, "outcome", in.Outcome}
	if in.Reason != "" {
		said = append(said, "reason", in.Reason)
	}
	d.log.Info("injection ended", said...)
	d.noteInjection(in)
	if d.record != nil {
		d.record.Injection(in)
	}
}

func (d *daemon) turned(t history.Turn) {
	if d.record != nil {
		d.record.Turn(t)
	}
}

// did records what a rule has done to a lock.
func (d *daemon) did(op *lock.Op) {
	if d.record != nil {
		d.record.Op(op)
	}
}

func (d *daemon) vain(v fault.Vain) {
	d.log.Warn("a rule waits in vain", "rule", v.Rule, "matched", v.Name, "why", v.Why)
	if d.record != nil {
		d.record.Vain(v)
	}
}

// openHistory begins the record: in the file, if there is to be one, and in the ring that
// the admin API shows.
func (d *daemon) openHistory(path string, start time.Time, full proxy.WhenFull) error {
	if path != "" {
		var err error
		if d.files, err = history.OpenParts(filepath.Dir(path), d.keeping()); err != nil {
			return usagef("--out: cannot write the history: %v", err)
		}
	}
	out := tee{file: d.files}
	if d.setup.admin != "" {
		d.ring = history.NewRing(history.RingSize, d.clock)
		out.ring = d.ring
	}
	h := history.Header{
		Schema: history.Schema, Run: d.run, Started: start, Seed: d.setup.seed, KeyID: d.hash.ID(), Version: version,
		Declarations: d.setup.decls, Invariants: invariantsForHeader(d.setup.invariants), Upstreams: d.setup.upstreams(),
	}
	var seen proxy.Observer
	if d.setup.admin != "" {
		d.openMetrics()
		seen = d.metrics
	}
	d.record = proxy.NewRecord(history.NewWriter(out, h, d.setup.integers), out.flush, d.engine, full, seen)
	return nil
}

// A tee hands each line of the history to the ring and to the file, of which either may be
// missing. What goes wrong with the file comes out of flush: those that follow the ring
// are shown what comes then.
type tee struct {
	ring *history.Ring
	file *history.Parts
}

func (t tee) Write(line []byte) (int, error) {
	if t.ring != nil {
		t.ring.Write(line)
	}
	if t.file != nil {
		_, _ = t.file.Write(line) // its error sticks
	}
	return len(line), nil
}

func (t tee) flush() error {
	if t.file == nil {
		return nil
	}
	return t.file.Flush()
}

// newRun returns what names one start of a daemon.
func newRun() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// keeping says how the history is kept. A failure is told at once: the error itself
// comes out only when the history is closed, which for a sidecar may be weeks
// later.
func (d *daemon) keeping() history.PartsOptions {
	return history.PartsOptions{
		Size: d.setup.part, Keep: d.setup.keep, Clock: d.clock,
		Failed: func(err error) {
			d.log.Error("the history cannot be written: nothing is recorded from here on", "err", err)
		},
		Warn: func(err error) { d.log.Warn("the history's files are not as they should be", "err", err) },
	}
}

func (d *daemon) closeHistory() error {
	if d.record == nil {
		return nil
	}
	err := d.record.Close()
	if d.ring != nil {
		d.ring.Close()
	}
	if d.files == nil {
		return err
	}
	return errors.Join(err, d.files.Close())
}
